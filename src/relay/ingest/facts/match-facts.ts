import type { Hex } from '../../../lib/hex.ts'
import { contentOf, contractOf, type FactDraft, hasSameDetail, isSameContent, type PublishedFact } from './fact.ts'

type BlockFacts = {
  readonly published: ReadonlyMap<string, PublishedFact>
  readonly sealed: readonly FactDraft[]
  /** Contracts whose sealed facts are complete. A key of another contract stays, even if the block lacks it. */
  readonly addresses: ReadonlySet<Hex>
  /** Returns sealed facts of other blocks that have the same transactions as the given facts. */
  readonly sealedElsewhere: (facts: readonly FactDraft[]) => readonly FactDraft[]
}

/** A published fact, and the content that replaces its own. */
export type Amendment = { readonly published: PublishedFact; readonly fact: FactDraft }

type MatchedFacts = {
  readonly retractions: readonly {
    readonly published: PublishedFact
    readonly reason: 'reorg' | 'replaced' | 'not_sealed'
    readonly replacedBy: string | null
  }[]
  readonly amendments: readonly Amendment[]
  /** `isMoved`: whether the fact was published under another log index of its transaction. */
  readonly additions: readonly { readonly fact: FactDraft; readonly isMoved: boolean }[]
}

/** Compares the published facts of a block with its sealed facts. A key with the same content stays. */
export function matchFacts(block: BlockFacts): MatchedFacts {
  const { published, sealed } = block
  const amendments: Amendment[] = []
  const unmatched = new Map<string, FactDraft>()
  for (const fact of sealed) {
    const known = published.get(fact.key)
    if (!known || !isSameContent(known.draft, fact)) {
      unmatched.set(fact.key, fact)
      continue
    }
    known.txIndex = fact.tx.index
    if (!hasSameDetail(known.draft, fact)) amendments.push({ published: known, fact })
  }
  const hasMissing = sealed.length - unmatched.size < published.size
  const missing = hasMissing ? findMissing(block) : []
  const moves = findMoves(missing, unmatched, sealed)
  const movedTo = new Set([...moves.values()].filter((key) => unmatched.has(key)))
  const keysElsewhere = keysByContent(missing.length > 0 ? block.sealedElsewhere(missing.map(({ draft }) => draft)) : [])
  const retractions: MatchedFacts['retractions'][number][] = []
  for (const lost of missing) {
    const { key, address } = lost.draft
    const fact = unmatched.get(key)
    if (fact && !moves.has(key) && !movedTo.has(key) && fact.address === address) {
      amendments.push({ published: lost, fact })
      unmatched.delete(key)
      continue
    }
    const replacedBy = moves.get(key) ?? nextKey(keysElsewhere, lost.draft) ?? null
    const reason = replacedBy !== null ? 'replaced' : lost.state === 'sealed' ? 'reorg' : 'not_sealed'
    retractions.push({ published: lost, reason, replacedBy })
  }
  return {
    retractions,
    amendments: amendments.sort((a, b) => byLogIndex(a.fact, b.fact)),
    additions: [...unmatched.values()].map((fact) => ({ fact, isMoved: movedTo.has(fact.key) })),
  }
}

/** Returns the published facts that the sealed block lacks, or contains with other content, in log order. */
function findMissing({ published, sealed, addresses }: BlockFacts): readonly PublishedFact[] {
  const sealedByKey = new Map(sealed.map((fact) => [fact.key, fact]))
  const isMissing = ({ draft }: PublishedFact) => {
    const fact = sealedByKey.get(draft.key)
    // A key in the block is compared, even if the block is incomplete for its contract.
    return fact ? !isSameContent(draft, fact) : addresses.has(contractOf(draft))
  }
  return [...published.values()].filter(isMissing).sort((a, b) => byLogIndex(a.draft, b.draft))
}

/** Maps a missing key to one under which its transaction now has that content. Facts share a key if too few keys are new. */
function findMoves(
  missing: readonly PublishedFact[],
  unmatched: ReadonlyMap<string, FactDraft>,
  sealed: readonly FactDraft[],
): ReadonlyMap<string, string> {
  if (missing.length === 0) return new Map()
  const transactions = new Set(missing.map(({ draft }) => draft.tx.hash))
  const isOfMissing = ({ tx }: FactDraft) => transactions.has(tx.hash)
  const freeKeys = keysByContent([...unmatched.values()].filter(isOfMissing))
  const allKeys = keysByContent(sealed.filter(isOfMissing))
  const moves = new Map<string, string>()
  if (freeKeys.size === 0 && allKeys.size === 0) return moves
  for (const { draft } of missing) {
    const content = contentKey(draft)
    const newKey = freeKeys.get(content)?.shift() ?? allKeys.get(content)?.[0]
    if (newKey !== undefined) moves.set(draft.key, newKey)
  }
  return moves
}

function keysByContent(facts: readonly FactDraft[]): Map<string, string[]> {
  const byContent = Map.groupBy(facts.toSorted(byLogIndex), contentKey)
  return new Map([...byContent].map(([content, same]) => [content, same.map(({ key }) => key)]))
}

/** Removes and returns the next key with the content of a fact. The last key stays, so several facts may share it. */
function nextKey(keys: ReadonlyMap<string, string[]>, fact: FactDraft): string | undefined {
  const matchingKeys = keys.size === 0 ? undefined : keys.get(contentKey(fact))
  return matchingKeys && matchingKeys.length > 1 ? matchingKeys.shift() : matchingKeys?.[0]
}

const contentKey = (fact: FactDraft): string => `${fact.tx.hash} ${contentOf(fact)}`

const byLogIndex = (a: FactDraft, b: FactDraft): number => a.tx.log_index - b.tx.log_index

import { getOrAdd } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { DraftOf, FactType } from '../../../protocol/updates.ts'
import { DEPTH_BOUND_BLOCKS, FAR_AHEAD_BLOCKS, RECENT_BLOCKS_BOUND } from '../../chain/blocks/block-bounds.ts'
import type { Cursor, OpenKey, OpenKeys } from '../../chain/blocks/sealed-block.ts'
import type { Log } from '../../chain/logs/log-parser.ts'
import { lineDigest } from '../../tape/line-digest.ts'
import { contractOf, type FactDraft, type PublishedFact, replaceDraft } from './fact.ts'
import { type Amendment, matchFacts } from './match-facts.ts'

/** Limit of keys in the ledger. Beyond it the ledger forgets the oldest block without open keys. */
const KEYS_BOUND = 262_144
/** Limit of open keys. Beyond it a new log is published only when its block is settled. */
const OPEN_BOUND = 100_000
/** Depth to which facts wait for a contract that a node refuses: a day on Base. A restart reads the tape from there. */
const WAITING_BOUND_BLOCKS = 43_200

type Part = Pick<Log, 'key' | 'address' | 'logIndex'>

/** The facts of a sealed block, and the logs that are folded into them (parts), both in log order. */
export type BlockContents = { readonly facts: readonly FactDraft[]; readonly parts: readonly Part[] }

type TokenSeal = Pick<DraftOf<'seal'>, 'keys' | 'types' | 'digest'> & { readonly address: Hex; readonly symbol: string | null }

/** The changes that settling a block publishes: retracts, amends, new facts and seals, in this order. */
export type Settlement = Omit<ReturnType<typeof matchFacts>, 'amendments' | 'additions'> & {
  /** `before` is the content that the amend replaces. */
  readonly amendments: readonly (Pick<Amendment, 'published'> & { readonly before: FactDraft })[]
  readonly additions: readonly PublishedFact[]
  /** A seal for each token, unless an earlier seal of this block lists the same logs. */
  readonly seals: readonly TokenSeal[]
}

type SealedBlockRef = { readonly number: number; readonly hash: Hex; readonly timestamp: string | null }

type LedgerBlock = {
  readonly facts: Map<string, PublishedFact>
  /** Block hash and digest of the last seal of each token in this block. */
  readonly seals: Map<Hex, string>
  /** End of the tape before the first fact of the block. A restart reads from the lowest end of all blocks. */
  readonly restartSeq: number
  sealed: SealedBlockRef | null
  open: number
  /** Steady time at which the first of the block's open keys was published. */
  openSince: number
}

/** Keeps the published keys, each open or sealed. A retracted key is removed. */
export class Ledger implements OpenKeys {
  readonly #blocks = new Map<number, LedgerBlock>()
  readonly #openBlocks = new Set<LedgerBlock>()
  /** The published facts of each transaction, of any block: a reorg may move a transaction to another block. */
  readonly #factsByTx = new Map<Hex, PublishedFact | Set<PublishedFact>>()
  #size = 0
  #open = 0
  #settled: number | null = null
  #safe: number | null = null
  #mayGoBack = false
  #keptFrom = 0

  /** Number of the newest settled block. Logs up to it are no longer published as pre-confirmed. */
  get settled(): number | null {
    return this.#settled
  }

  /** Number of the block from which on facts may still change. */
  get keptFrom(): number {
    return [...this.#blocks.keys()].reduce((least, number) => Math.min(least, number), this.#keptFrom)
  }

  at(number: number): readonly OpenKey[] {
    const facts = this.#blocks.get(number)?.facts.values() ?? []
    return Array.from(facts, ({ draft }) => {
      const key = { key: draft.key, address: contractOf(draft), tx: draft.tx.hash }
      return draft.type === 'trade' ? { ...key, token: draft.address } : key
    })
  }

  publishedBlocksBetween(from: number, to: number): readonly number[] {
    const published = [...this.#blocks].filter(([number, block]) => number >= from && number <= to && block.facts.size > 0)
    return published.map(([number]) => number).sort((a, b) => a - b)
  }

  get sealedInPreviousRun(): readonly Cursor[] {
    const sealed = [...this.#blocks.values()].flatMap(({ sealed }) => sealed ?? [])
    return sealed.sort((a, b) => a.number - b.number)
  }

  find(block: number, key: string): PublishedFact | undefined {
    return this.#blocks.get(block)?.facts.get(key)
  }

  /** Whether a block of this number with another hash was settled before. */
  isReplaced(hash: Hex, block: number): boolean {
    return (this.#blocks.get(block)?.sealed?.hash ?? hash) !== hash
  }

  isSealedBy(hash: Hex, block: number, address: Hex): boolean {
    return this.#blocks.get(block)?.seals.get(address)?.startsWith(hash) === true
  }

  /** Whether a block has published facts of a pool, or of a token, its trades included. `token`: only those about it count. */
  hasFactOf(contract: Hex, block: number, token?: Hex): boolean {
    const isOf = ({ draft }: PublishedFact) =>
      (contractOf(draft) === contract || draft.address === contract) && (token === undefined || draft.address === token)
    return [...(this.#blocks.get(block)?.facts.values() ?? [])].some(isOf)
  }

  /** Whether a pre-confirmed log may be published: a new key, in an unsettled block not far ahead, below the limit of open keys. */
  canPublish(block: number, key: string): boolean {
    if (this.#settled !== null && (block <= this.#settled || block > this.#settled + FAR_AHEAD_BLOCKS)) return false
    return this.#open < OPEN_BOUND && !this.#blocks.get(block)?.facts.has(key)
  }

  hasOtherKeys(tx: Hex, keys: ReadonlySet<string>): boolean {
    return this.#factsOfTx(tx).some(({ draft }) => !keys.has(draft.key))
  }

  /** Returns the published facts of a token in chain order, each with its block if that one has sealed it. */
  factsOf(address: Hex): readonly { readonly published: PublishedFact; readonly sealed: SealedBlockRef | null }[] {
    const facts = [...this.#blocks].flatMap(([number, { facts, sealed }]) =>
      [...facts.values()]
        .filter(({ draft }) => draft.address === address)
        .map((published) => ({ number, published, sealed: published.sealedIn === sealed?.hash ? sealed : null })),
    )
    const logIndexOf = ({ draft }: PublishedFact) => draft.tx.log_index
    return facts.sort((a, b) => a.number - b.number || logIndexOf(a.published) - logIndexOf(b.published))
  }

  /** Adds a published fact. `end` is the end of the tape before this batch; `at` is the steady time of the publication. */
  add(draft: FactDraft, state: PublishedFact['state'], end: number, at: number): PublishedFact {
    const published: PublishedFact = { draft, txIndex: draft.tx.index, state, sealedIn: null, seq: 0 }
    const block = getOrAdd(this.#blocks, draft.block.number, () => newBlock(end))
    this.#remove(block, draft.key)
    block.facts.set(draft.key, published)
    this.#size += 1
    const sameTransaction = this.#factsByTx.get(draft.tx.hash)
    if (sameTransaction instanceof Set) sameTransaction.add(published)
    else this.#factsByTx.set(draft.tx.hash, sameTransaction ? new Set([sameTransaction, published]) : published)
    if (state === 'open' && block.open === 0) block.openSince = at
    if (state === 'open') this.#countOpen(block, 1)
    if (this.#size > KEYS_BOUND) this.#forgetOldest()
    return published
  }

  /** Removes a key. If the last seal of its token lists it, the same block is sealed again when it returns. */
  retract(block: number, key: string): void {
    const ledgerBlock = this.#blocks.get(block)
    const published = ledgerBlock?.facts.get(key)
    if (!ledgerBlock || !published) return
    const { sealedIn, draft } = published
    if (sealedIn !== null && ledgerBlock.seals.get(draft.address)?.startsWith(sealedIn)) ledgerBlock.seals.delete(draft.address)
    this.#remove(ledgerBlock, key)
  }

  /** Applies a seal of a previous run. If the ledger lacks one of its facts, the token counts as unsealed in this block. */
  restoreSeal(block: SealedBlockRef, { address, keys, types, digest }: Omit<TokenSeal, 'symbol'>): void {
    const ledgerBlock = this.#blocks.get(block.number)
    if (!ledgerBlock) return
    ledgerBlock.sealed = block
    const isWhole = keys.every((key, index) => types[index] === 'part' || ledgerBlock.facts.has(key))
    if (isWhole) ledgerBlock.seals.set(address, `${block.hash} ${digest}`)
    for (const key of keys) this.#markSealed(ledgerBlock, ledgerBlock.facts.get(key), block.hash)
  }

  /** Lets the next call of `setSettled` return to a lower block. */
  expectReorg(): void {
    this.#mayGoBack = true
  }

  /**
   * Records that blocks up to this one are settled. Only a reorg lowers that number. After a restart, the relay settles some older
   * blocks again, or backfills them: the ledger keeps the keys of blocks from `keepFrom`.
   */
  setSettled(block: number, keepFrom: number = block): void {
    this.#settled = this.#mayGoBack ? block : Math.max(block, this.#settled ?? block)
    this.#mayGoBack = false
    this.#forgetSettled(keepFrom)
  }

  /** Records the newest block with the finality `safe`. No block below it is settled again. */
  setSafe(block: number): void {
    this.#safe = Math.max(block, this.#safe ?? block)
  }

  /** Returns the number after which a restart must read the tape. */
  restartSeq(end: number): number {
    return Math.min(end, leastOf(this.#blocks.values(), 'restartSeq') ?? end)
  }

  /** Number after which the tape has the publications of all open keys; null without open keys. */
  get openSeq(): number | null {
    return leastOf(this.#openBlocks, 'restartSeq')
  }

  /** Steady time at which the oldest open key was published; null without open keys. */
  get oldestOpenAt(): number | null {
    return leastOf(this.#openBlocks, 'openSince')
  }

  /** Compares a block with its published facts. `contents` are complete for `addresses` only; the tape ended at `end` before. */
  settle(block: SealedBlockRef, contents: BlockContents, addresses: ReadonlySet<Hex>, end: number): Settlement {
    const { retractions, ...matched } = matchFacts({
      published: this.#blocks.get(block.number)?.facts ?? new Map(),
      sealed: contents.facts,
      addresses,
      sealedElsewhere: (facts) => this.#sealedElsewhere(facts, block.number),
    })
    for (const { published } of retractions) this.retract(block.number, published.draft.key)
    const amendments = matched.amendments.map(({ published, fact }) => ({ published, before: replaceDraft(published, fact) }))
    const additions = matched.additions.map(({ fact, isMoved }) =>
      // A moved fact is not late: it was published in time under another key.
      this.add(isMoved ? { ...fact, late: false } : fact, 'sealed', end, 0),
    )
    return { retractions, amendments, additions, seals: this.#seal(block, contents, addresses) }
  }

  /** Marks the keys of a block as sealed. Returns a seal for each token, unless it equals the token's last seal of the block. */
  #seal(block: SealedBlockRef, { facts, parts }: BlockContents, addresses: ReadonlySet<Hex>): Settlement['seals'] {
    const ledgerBlock = this.#blocks.get(block.number)
    if (!ledgerBlock) return []
    const held = ledgerBlock.sealed ? unreadFacts(ledgerBlock, block.hash, facts, addresses) : []
    ledgerBlock.sealed = block
    const logs: Part[] = [...facts, ...held].map(({ key, address, tx }) => ({ key, address, logIndex: tx.log_index }))
    const isInOrder = parts.length === 0 && held.length === 0
    const byAddress = Map.groupBy(isInOrder ? logs : [...logs, ...parts].sort(byLogIndex), ({ address }) => address)
    const seals: TokenSeal[] = []
    for (const [address, tokenLogs] of byAddress) {
      const keys = tokenLogs.map(({ key }) => key)
      const published = keys.map((key) => ledgerBlock.facts.get(key))
      for (const fact of published) this.#markSealed(ledgerBlock, fact, block.hash)
      const digest = lineDigest(keys)
      const signature = `${block.hash} ${digest}`
      if (ledgerBlock.seals.get(address) === signature) continue
      ledgerBlock.seals.set(address, signature)
      const symbol = published.find((fact) => fact)?.draft.symbol ?? null
      seals.push({ address, symbol, keys, types: published.map((fact): FactType | 'part' => fact?.draft.type ?? 'part'), digest })
    }
    return seals
  }

  #sealedElsewhere(facts: readonly FactDraft[], block: number): readonly FactDraft[] {
    const transactions = new Set(facts.map(({ tx }) => tx.hash))
    const published = this.#blocks.get(block)?.facts
    return [...transactions]
      .flatMap((tx) => this.#factsOfTx(tx))
      .filter((fact) => fact.state === 'sealed' && published?.get(fact.draft.key) !== fact)
      .map(({ draft }) => draft)
  }

  #factsOfTx(tx: Hex): readonly PublishedFact[] {
    const facts = this.#factsByTx.get(tx)
    if (facts instanceof Set) return [...facts]
    return facts ? [facts] : []
  }

  #countOpen(block: LedgerBlock, change: 1 | -1): void {
    block.open += change
    this.#open += change
    if (block.open === 0) this.#openBlocks.delete(block)
    else this.#openBlocks.add(block)
  }

  #markSealed(block: LedgerBlock, published: PublishedFact | undefined, hash: Hex): void {
    if (!published) return
    published.sealedIn = hash
    if (published.state !== 'open') return
    published.state = 'sealed'
    this.#countOpen(block, -1)
  }

  #remove(block: LedgerBlock, key: string): void {
    const published = block.facts.get(key)
    if (!published) return
    block.facts.delete(key)
    this.#size -= 1
    if (published.state === 'open') this.#countOpen(block, -1)
    const { hash } = published.draft.tx
    const sameTransaction = this.#factsByTx.get(hash)
    if (sameTransaction instanceof Set) sameTransaction.delete(published)
    if (sameTransaction === published || (sameTransaction instanceof Set && sameTransaction.size === 0))
      this.#factsByTx.delete(hash)
  }

  #forgetOldest(): void {
    for (const [number, block] of this.#blocks) {
      if (block.open > 0 || block.facts.size === 0) continue
      return this.#forgetBlock(number, block)
    }
  }

  /** Forgets blocks that no reorg can replace. Never forgets a block with an open key, or with one that waits. */
  #forgetSettled(keepFrom: number): void {
    const settled = this.#settled ?? 0
    // If no block is known to be final, a reorg may replace every block within the depth of a rollback.
    const finalBlock = Math.min(this.#safe ?? 0, settled - RECENT_BLOCKS_BOUND)
    const keepAbove = Math.min(keepFrom, Math.max(finalBlock, settled - DEPTH_BOUND_BLOCKS))
    this.#keptFrom = Math.max(this.#keptFrom, keepAbove)
    for (const [number, block] of this.#blocks)
      if (number < keepAbove && block.open === 0 && (number < settled - WAITING_BOUND_BLOCKS || !hasWaitingFact(block)))
        this.#forgetBlock(number, block)
  }

  #forgetBlock(number: number, block: LedgerBlock): void {
    for (const key of block.facts.keys()) this.#remove(block, key)
    this.#blocks.delete(number)
  }
}

/**
 * The trades that this block has sealed, of pools that were not read this time: the node may refuse them. They stay in its seals,
 * even if another block took its place meanwhile.
 */
function unreadFacts(
  { facts }: LedgerBlock,
  hash: Hex,
  read: readonly FactDraft[],
  addresses: ReadonlySet<Hex>,
): readonly FactDraft[] {
  const keys = new Set(read.map(({ key }) => key))
  const isUnread = ({ sealedIn, draft }: PublishedFact) =>
    sealedIn === hash && !keys.has(draft.key) && addresses.has(draft.address) && !addresses.has(contractOf(draft))
  return [...facts.values()].filter(isUnread).map(({ draft }) => draft)
}

/** Whether a replaced block had a fact of a contract that the node refuses: the block is settled again once it answers. */
const hasWaitingFact = ({ facts, sealed }: LedgerBlock): boolean =>
  sealed !== null && [...facts.values()].some(({ state, sealedIn }) => state === 'sealed' && sealedIn !== sealed.hash)

const newBlock = (restartSeq: number): LedgerBlock => ({
  facts: new Map(),
  seals: new Map(),
  restartSeq,
  sealed: null,
  open: 0,
  openSince: 0,
})

const leastOf = (blocks: Iterable<LedgerBlock>, name: 'restartSeq' | 'openSince'): number | null => {
  let least: number | null = null
  for (const { [name]: value } of blocks) least = Math.min(least ?? value, value)
  return least
}

const byLogIndex = (a: Part, b: Part): number => a.logIndex - b.logIndex

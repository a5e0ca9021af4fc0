import type { OpenKey, OpenKeys } from '../chain/sealed/block-logs.ts'
import { type Cursor, DEPTH_BOUND_BLOCKS, RECENT_BLOCKS_BOUND } from '../chain/sealed/recent-blocks.ts'
import type { Hex } from '../protocol/fields.ts'
import type { FactDraft, FactLocation, FactType } from './fact.ts'
import { byLogIndex, findMoves, keysByContent, nextKey } from './moved-facts.ts'

/** Beyond this many keys the oldest settled block is forgotten. */
const KEYS_BOUND = 262_144
/** Beyond this many open keys a pre-confirmed log is published only when its block is settled. */
const OPEN_BOUND = 100_000
/** No real block is pre-confirmed this far above the newest settled one; its key would stay open for ever. */
const AHEAD_BOUND_BLOCKS = 100_000

/** A published fact, and whether its key is open or sealed. */
export type PublishedFact = Omit<FactLocation, 'txIndex'> & {
  txIndex: number
  readonly symbol: string
  type: FactType
  content: string
  /** What follows from other logs, such as the multiplier and shares of a movement. */
  detail: string | null
  state: 'open' | 'sealed'
  /** The number of the update that published or last amended it. */
  seq: number
}

/** A fact of a sealed block. */
export type SealedFact = FactLocation & { readonly content: string; readonly detail: string | null; readonly draft: FactDraft }

/** The facts of a sealed block, and the locations of the logs that are folded into them. */
export type BlockContents = { readonly facts: readonly SealedFact[]; readonly parts: readonly FactLocation[] }

type SealedLogRef = { readonly key: string; readonly type: FactType | 'part' }

type Retraction = {
  readonly published: PublishedFact
  readonly reason: 'reorg' | 'replaced' | 'not_sealed'
  readonly by: string | null
}

/** What settling a block publishes, in this order. */
export type Settlement = {
  readonly retractions: readonly Retraction[]
  /** The same key with other content. `of` is the type before. */
  readonly amendments: readonly { readonly published: PublishedFact; readonly of: FactType; readonly fact: SealedFact }[]
  /** Published only now. `isMoved`: the same content was published under another log index of its transaction. */
  readonly additions: readonly { readonly published: PublishedFact; readonly fact: SealedFact; readonly isMoved: boolean }[]
  /** One per token whose logs in the block no seal lists yet. */
  readonly seals: readonly { readonly address: Hex; readonly symbol: string | null; readonly logs: readonly SealedLogRef[] }[]
}

type SealedBlockRef = { readonly number: number; readonly hash: Hex; readonly timestamp: string | null }

type LedgerBlock = {
  readonly facts: Map<string, PublishedFact>
  /** The last seal of each token in this block: the block hash and the keys. */
  readonly seals: Map<Hex, string>
  /** The end of the tape when the first fact of the block was added. A restart reads from the lowest one. */
  readonly restartSeq: number
  sealed: SealedBlockRef | null
  open: number
}

/** Which keys have been published, and which of them are open or sealed. Retracted keys are gone. */
export class Ledger implements OpenKeys {
  readonly #blocks = new Map<number, LedgerBlock>()
  /** The published facts of each transaction, in any block, so that a moved transaction is found again. */
  readonly #factsByTx = new Map<Hex, Set<PublishedFact>>()
  #size = 0
  #open = 0
  #settled: number | null = null
  #safe: number | null = null

  /** No block up to this one can be pre-confirmed any more. */
  get settled(): number | null {
    return this.#settled
  }

  get openCount(): number {
    return this.#open
  }

  get size(): number {
    return this.#size
  }

  at(number: number): readonly OpenKey[] {
    return [...(this.#blocks.get(number)?.facts.values() ?? [])]
  }

  publishedBlocksBetween(from: number, to: number): readonly number[] {
    const published = [...this.#blocks].filter(([number, block]) => number >= from && number <= to && block.facts.size > 0)
    return published.map(([number]) => number).sort((a, b) => a - b)
  }

  get sealedInPreviousRun(): readonly Cursor[] {
    const sealed = [...this.#blocks.values()].flatMap(({ sealed }) => sealed ?? [])
    return sealed.sort((a, b) => a.number - b.number)
  }

  /** Whether a pre-confirmed log is new: its key is not published, and its block can still be open. */
  canPublish(block: number, key: string): boolean {
    if (this.#settled !== null && (block <= this.#settled || block > this.#settled + AHEAD_BOUND_BLOCKS)) return false
    return this.#open < OPEN_BOUND && !this.#blocks.get(block)?.facts.has(key)
  }

  /** `end` is the end of the tape before this fact. */
  add(block: number, published: PublishedFact, end: number): void {
    const ledgerBlock = this.#blocks.get(block) ?? { facts: new Map(), seals: new Map(), restartSeq: end, sealed: null, open: 0 }
    this.#blocks.set(block, ledgerBlock)
    this.#remove(ledgerBlock, published.key)
    ledgerBlock.facts.set(published.key, published)
    this.#size += 1
    const sameTransaction = this.#factsByTx.get(published.tx)
    if (sameTransaction) sameTransaction.add(published)
    else this.#factsByTx.set(published.tx, new Set([published]))
    if (published.state === 'open') {
      ledgerBlock.open += 1
      this.#open += 1
    }
    if (this.#size > KEYS_BOUND) this.#forgetOldest()
  }

  amend(published: PublishedFact, type: FactType, content: string, detail: string | null): void {
    published.type = type
    published.content = content
    published.detail = detail
  }

  /** The published facts of a token from a block on, in chain order. */
  publishedFrom(
    block: number,
    address: Hex,
  ): readonly { readonly published: PublishedFact; readonly number: number; readonly sealed: SealedBlockRef | null }[] {
    const later = [...this.#blocks].filter(([number]) => number >= block).sort(([a], [b]) => a - b)
    return later.flatMap(([number, { facts, sealed }]) => {
      const tokenFacts = [...facts.values()].filter((fact) => fact.address === address).sort(byLogIndex)
      return tokenFacts.map((fact) => ({ published: fact, number, sealed: fact.state === 'sealed' ? sealed : null }))
    })
  }

  /** Whether other keys than these are published for a transaction. */
  hasOtherKeys(tx: Hex, keys: ReadonlyMap<string, unknown>): boolean {
    return [...(this.#factsByTx.get(tx) ?? [])].some(({ key }) => !keys.has(key))
  }

  find(block: number, key: string): PublishedFact | undefined {
    return this.#blocks.get(block)?.facts.get(key)
  }

  retract(block: number, key: string): void {
    const ledgerBlock = this.#blocks.get(block)
    if (ledgerBlock) this.#remove(ledgerBlock, key)
  }

  /** Applies a seal that the previous run published. */
  restoreSeal(block: SealedBlockRef, address: Hex, keys: readonly string[]): void {
    const ledgerBlock = this.#blocks.get(block.number)
    if (!ledgerBlock) return
    ledgerBlock.sealed = block
    ledgerBlock.seals.set(address, `${block.hash} ${keys.join()}`)
    for (const key of keys) this.#markSealed(ledgerBlock, ledgerBlock.facts.get(key))
  }

  /**
   * Settling has reached this block; the number goes back after a reorganisation. Blocks above `keepFrom` may still be
   * backfilled, so the ledger keeps their keys.
   */
  setSettled(block: number, keepFrom: number = block): void {
    this.#settled = block
    this.#forgetSettled(keepFrom)
  }

  /** No block below this one is settled again. */
  setSafe(block: number): void {
    this.#safe = Math.max(block, this.#safe ?? block)
  }

  /** The number on the tape after which a restart must read. */
  restartSeq(end: number): number {
    let oldestSeq = end
    for (const block of this.#blocks.values()) oldestSeq = Math.min(oldestSeq, block.restartSeq)
    return oldestSeq
  }

  /**
   * Settles a block, for the first time or again. A key with the same content stays. The facts are complete for
   * `addresses` only, so keys of other tokens stay too. `end` is the end of the tape before this batch.
   */
  settle(block: SealedBlockRef, contents: BlockContents, addresses: ReadonlySet<Hex>, end: number): Settlement {
    const { facts } = contents
    const ledgerBlock = this.#blocks.get(block.number)
    const publishedFacts = [...(ledgerBlock?.facts.values() ?? [])].filter(({ address }) => addresses.has(address)).sort(byLogIndex)
    const unmatched = new Map(facts.map((fact) => [fact.key, fact]))
    const amendments: { published: PublishedFact; of: FactType; fact: SealedFact }[] = []
    const missing = publishedFacts.filter((published) => {
      const fact = unmatched.get(published.key)
      if (fact?.content !== published.content) return true
      unmatched.delete(published.key)
      published.txIndex = fact.txIndex
      if (fact.detail !== published.detail) amendments.push({ published, of: published.type, fact })
      return false
    })
    const moves = findMoves(missing, [...unmatched.values()], facts)
    const movedTo = new Set([...moves.values()].filter((key) => unmatched.has(key)))
    const retractions: Retraction[] = []
    const sealedElsewhere = this.#sealedElsewhere(missing, block.number)
    for (const published of missing) {
      const fact = unmatched.get(published.key)
      if (!moves.has(published.key) && fact && !movedTo.has(published.key) && fact.address === published.address) {
        amendments.push({ published, of: published.type, fact })
        unmatched.delete(published.key)
        continue
      }
      const by = moves.get(published.key) ?? nextKey(sealedElsewhere, published) ?? null
      const reason = by !== null ? 'replaced' : published.state === 'sealed' ? 'reorg' : 'not_sealed'
      retractions.push({ published, reason, by })
    }
    for (const { published } of retractions) this.retract(block.number, published.key)
    for (const { published, fact } of amendments) this.amend(published, fact.draft.type, fact.content, fact.detail)
    const additions = [...unmatched.values()].map((fact) => {
      const { draft, ...rest } = fact
      const { symbol, type } = draft
      const published: PublishedFact = { ...rest, symbol, type, state: 'sealed', seq: 0 }
      this.add(block.number, published, end)
      return { published, fact, isMoved: movedTo.has(fact.key) }
    })
    amendments.sort((a, b) => byLogIndex(a.published, b.published))
    return { retractions, amendments, additions, seals: this.#seal(block, contents) }
  }

  /** Marks the block's keys as sealed, and returns a seal for each token whose last seal differs. */
  #seal(block: SealedBlockRef, { facts, parts }: BlockContents): Settlement['seals'] {
    const { number, hash } = block
    const logs = [...facts, ...parts].sort(byLogIndex)
    const ledgerBlock = this.#blocks.get(number)
    if (!ledgerBlock) return []
    ledgerBlock.sealed = block
    const byAddress = Map.groupBy(logs, (log) => log.address)
    const seals: { address: Hex; symbol: string | null; logs: readonly SealedLogRef[] }[] = []
    for (const [address, tokenLogs] of byAddress) {
      const published = tokenLogs.map(({ key }) => ledgerBlock.facts.get(key))
      for (const fact of published) this.#markSealed(ledgerBlock, fact)
      const signature = `${hash} ${tokenLogs.map(({ key }) => key).join()}`
      if (ledgerBlock.seals.get(address) === signature) continue
      ledgerBlock.seals.set(address, signature)
      const symbol = published.find((fact) => fact)?.symbol ?? null
      seals.push({ address, symbol, logs: tokenLogs.map(({ key }, index) => ({ key, type: published[index]?.type ?? 'part' })) })
    }
    for (const address of ledgerBlock.seals.keys()) if (!byAddress.has(address)) ledgerBlock.seals.delete(address)
    return seals
  }

  /** The sealed keys of the same transactions in other blocks, by content. */
  #sealedElsewhere(missing: readonly PublishedFact[], block: number): ReadonlyMap<string, string[]> {
    const blockFacts = this.#blocks.get(block)?.facts
    const sameTransactions = [...new Set(missing.map(({ tx }) => tx))].flatMap((tx) => [...(this.#factsByTx.get(tx) ?? [])])
    return keysByContent(sameTransactions.filter((fact) => fact.state === 'sealed' && blockFacts?.get(fact.key) !== fact))
  }

  #markSealed(block: LedgerBlock, published: PublishedFact | undefined): void {
    if (published?.state !== 'open') return
    published.state = 'sealed'
    block.open -= 1
    this.#open -= 1
  }

  #remove(block: LedgerBlock, key: string): void {
    const published = block.facts.get(key)
    if (!published) return
    block.facts.delete(key)
    this.#size -= 1
    if (published.state === 'open') {
      block.open -= 1
      this.#open -= 1
    }
    const sameTransaction = this.#factsByTx.get(published.tx)
    sameTransaction?.delete(published)
    if (sameTransaction?.size === 0) this.#factsByTx.delete(published.tx)
  }

  #forgetOldest(): void {
    for (const [number, block] of this.#blocks) {
      if (block.open > 0 || block.facts.size === 0) continue
      return this.#forgetBlock(number, block)
    }
  }

  /** Forgets blocks that no reorganisation can reach. A block with an open key is never forgotten. */
  #forgetSettled(keepFrom: number): void {
    const settled = this.#settled ?? 0
    const finalBlock = Math.min(this.#safe ?? settled, settled - RECENT_BLOCKS_BOUND)
    const keepAbove = Math.min(keepFrom, Math.max(finalBlock, settled - DEPTH_BOUND_BLOCKS))
    for (const [number, block] of this.#blocks) if (number < keepAbove && block.open === 0) this.#forgetBlock(number, block)
  }

  #forgetBlock(number: number, block: LedgerBlock): void {
    for (const key of block.facts.keys()) this.#remove(block, key)
    this.#blocks.delete(number)
  }
}

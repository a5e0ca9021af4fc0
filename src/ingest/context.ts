import type { Head, Hex } from '../protocol/fields.ts'
import { formatPosition } from '../protocol/position.ts'
import type { Draft, Update } from '../protocol/updates.ts'
import type { Tape, TapeHistory } from '../tape/tape.ts'
import type { FeedSetting } from '../tokens/price-feeds.ts'
import type { Token } from '../tokens/token.ts'
import { correctMultiplier, type PublishContext } from './enrich.ts'
import { changedFields, contentOf, detailOf, type FactDraft, isFact } from './fact.ts'
import type { Ledger, PublishedFact } from './ledger.ts'
import { Outbox } from './outbox.ts'
import { openKeyNotes } from './restore.ts'
import { TokenState } from './token-state.ts'

export type IngestOptions = {
  readonly tape: Tape & Pick<TapeHistory, 'readKey'>
  readonly staleMs: number
  readonly feeds: readonly FeedSetting[]
  readonly now: () => number
  readonly count: { readonly repeated: () => void; readonly unlisted: () => void; readonly unreadable: (n: number) => void }
}

/** A block and its time, in seconds. */
type BlockTime = { readonly number: number; readonly timestamp: number | null }

/** What every step of the reducer shares: the outbox, the ledger, the token state, and how far the chain is settled. */
export class IngestContext {
  readonly outbox: Outbox
  readonly ledger: Ledger
  readonly tokenState: TokenState
  readonly count: IngestOptions['count']
  /** Every block up to this one is settled; null until the first cursor. */
  #settledBlock: number | null
  /** The highest block whose time is known while blocks before it are not settled. */
  #aheadBlock: BlockTime | null = null
  readonly #options: IngestOptions

  constructor(options: IngestOptions, ledger: Ledger, { sealed, pending }: Head, settled: number | null) {
    this.#options = options
    this.count = options.count
    this.#settledBlock = settled
    this.outbox = new Outbox(options.tape)
    this.ledger = ledger
    this.tokenState = new TokenState({ ...options, outbox: this.outbox, headBlock: Math.max(sealed ?? 0, pending ?? 0) })
  }

  /** The end of the tape before this batch. */
  get tapeEnd(): number {
    return this.#options.tape.end()
  }

  get now(): number {
    return this.#options.now()
  }

  get nowIso(): string {
    return new Date(this.now).toISOString()
  }

  findToken(address: Hex): Token | undefined {
    return this.tokenState.tokens.get(address)
  }

  /** The token's symbol now, or else the one under which a fact was published. */
  symbolOf(address: Hex, published: string): string {
    return this.findToken(address)?.symbol ?? published
  }

  positionOf(seq: number): string {
    return formatPosition(this.#options.tape.epoch, seq)
  }

  publishContext(origin: Pick<PublishContext, 'via' | 'sealed' | 'late' | 'receivedAt'>): PublishContext {
    return { ...origin, now: this.now, staleMs: this.#options.staleMs, chainTime: this.tokenState.chainTime }
  }

  /** Publishes other content for the same key. */
  amend(published: PublishedFact, of: PublishedFact['type'], fact: FactDraft): void {
    const before = this.#publishedDraft(published.seq, published.key)
    const late = before !== null && 'late' in before && before.late === true
    const { time: _time, ...update } = { ...fact, late }
    const draft: Draft = {
      type: 'amend',
      symbol: this.symbolOf(published.address, published.symbol),
      address: published.address,
      time: this.nowIso,
      key: published.key,
      of,
      was: this.positionOf(published.seq),
      changed: before ? changedFields(before, update) : ['type'],
      update,
    }
    published.seq = this.outbox.nextSeq
    this.outbox.publish(draft)
    this.ledger.amend(published, fact.type, contentOf(fact), detailOf(fact))
  }

  /** Every block up to this one is settled, without exception. */
  advanceSettled(settled: number): void {
    this.#settledBlock = settled
    const aheadBlock = this.#aheadBlock
    if (!aheadBlock || aheadBlock.number > settled + 1) return
    this.#aheadBlock = null
    this.advanceTime(aheadBlock.timestamp)
  }

  /** Advances to the time of a block once at most `aheadBlocks` blocks before it are not settled. */
  observeBlockTime({ number, timestamp }: BlockTime, aheadBlocks = 0): void {
    if (this.#settledBlock === null || number <= this.#settledBlock + 1 + aheadBlocks) this.advanceTime(timestamp)
    else if (number >= (this.#aheadBlock?.number ?? 0)) this.#aheadBlock = { number, timestamp }
  }

  /** Applies the schedules that are due at this chain time, also to facts that were published before. */
  advanceTime(timestamp: number | null): void {
    for (const address of this.tokenState.advanceTime(timestamp)) this.correctMultipliers(address, () => true)
  }

  /** Amends the facts of a token that were published with another multiplier than the one in force at their position. */
  correctMultipliers(address: Hex, isAffected: (block: number, published: PublishedFact) => boolean): void {
    const token = this.findToken(address)
    if (!token) return
    for (const { published, number, sealed } of this.ledger.publishedFrom(0, address)) {
      const before =
        published.detail === null || !isAffected(number, published) ? null : this.#publishedDraft(published.seq, published.key)
      if (!before || !isFact(before)) continue
      const { timestamp } = before.block
      const block = sealed ? { ...sealed, timestamp: sealed.timestamp ?? timestamp } : { ...before.block, hash: null }
      const tx = { ...before.tx, index: published.txIndex }
      const stage = sealed ? 'sealed' : 'preconfirmed'
      const fact = correctMultiplier({ ...before, stage, block, tx, time: this.nowIso }, token, this.tokenState.chainTime)
      if (!fact) continue
      this.amend(published, published.type, fact)
      if (!sealed) this.noteOpenKey(published, number)
    }
  }

  /** Keeps an open key beside the tape, because it may outlive the update that published it. */
  noteOpenKey(published: PublishedFact, block: number): void {
    this.outbox.setNote(openKeyNotes.at(published.key), { published: { ...published }, block })
  }

  /** The update that published or last amended a key, if it is still kept. */
  #publishedDraft(seq: number, key: string): Draft | null {
    const { tape } = this.#options
    const update = this.outbox.draftAt(seq) ?? tape.readKey(key).find((entry) => entry.seq === seq)?.update
    if (update?.type === 'amend') return { ...update.update, time: update.time }
    return update ? withoutTapeFields(update) : null
  }
}

const withoutTapeFields = (update: Draft | Update): Draft => {
  const { id: _id, prev: _prev, ...draft } = { id: '', prev: null, ...update }
  return draft as Draft
}

import type { Head, Hex } from '../protocol/fields.ts'
import { formatPosition } from '../protocol/position.ts'
import type { Draft, Update } from '../protocol/updates.ts'
import type { Tape, TapeHistory } from '../tape/tape.ts'
import type { FeedSetting } from '../tokens/price-feeds.ts'
import type { Token } from '../tokens/token.ts'
import { correctMultiplier, type PublishContext } from './enrich.ts'
import { contentOf, detailOf, type FactDraft, isFact } from './fact.ts'
import type { Ledger, PublishedFact } from './ledger.ts'
import { Outbox } from './outbox.ts'
import { openKeyNotes } from './restore.ts'
import { amendDraft } from './settle.ts'
import { TokenState } from './token-state.ts'

/** What the ingest tells with. */
export type IngestOptions = {
  readonly tape: Tape & Pick<TapeHistory, 'readKey'>
  readonly staleMs: number
  readonly feeds: readonly FeedSetting[]
  readonly now: () => number
  readonly count: {
    readonly repeated: () => void
    readonly unlisted: () => void
    readonly unreadable: (n: number) => void
  }
}

/** A block and its time, in seconds. */
type BlockTime = { readonly number: number; readonly timestamp: number | null }

/** Where everything is told: the sheet, what is known of keys and of tokens, and what becomes of a key that was told. */
export class IngestContext {
  readonly outbox: Outbox
  readonly ledger: Ledger
  readonly tokenState: TokenState
  readonly count: IngestOptions['count']
  /** Up to here all is settled; null until it is known where to begin. */
  #settledBlock: number | null
  /** A block of which the time is known, and before which more is still to be settled. */
  #aheadBlock: BlockTime | null = null
  readonly #options: IngestOptions

  constructor(options: IngestOptions, ledger: Ledger, { sealed, pending }: Head, settled: number | null) {
    this.#options = options
    this.count = options.count
    this.#settledBlock = settled
    this.outbox = new Outbox(options.tape)
    this.ledger = ledger
    this.tokenState = new TokenState({
      ...options,
      outbox: this.outbox,
      headBlock: Math.max(sealed ?? 0, pending ?? 0),
    })
  }

  /** The end of the tape before this turn. */
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

  /** How and when something is told, beside how it was heard. */
  publishContext(origin: Pick<PublishContext, 'via' | 'sealed' | 'late' | 'receivedAt'>): PublishContext {
    return { ...origin, now: this.now, staleMs: this.#options.staleMs, chainTime: this.tokenState.chainTime }
  }

  /** What messages that follow a key say beside it. */
  get messageContext() {
    const { epoch } = this.#options.tape
    return {
      time: this.nowIso,
      symbolOf: (address: Hex, before: string) => this.findToken(address)?.symbol ?? before,
      positionOf: (seq: number) => formatPosition(epoch, seq),
      currentValue: ({ address, type }: PublishedFact) => this.tokenState.currentValue(address, type),
    }
  }

  /** The same key, other content: told as a message of its own. */
  amend(published: PublishedFact, of: PublishedFact['type'], fact: FactDraft): void {
    const before = this.#publishedDraft(published.seq, published.key)
    const late = before !== null && 'late' in before && before.late === true
    const draft = amendDraft({ told: published, of, before, fact: { ...fact, late } }, this.messageContext)
    published.seq = this.outbox.nextSeq
    this.outbox.publish(draft)
    this.ledger.amend(published, fact.type, contentOf(fact), detailOf(fact))
  }

  /** Up to here all is settled. */
  advanceSettled(settled: number): void {
    this.#settledBlock = settled
    const aheadBlock = this.#aheadBlock
    if (!aheadBlock || aheadBlock.number > settled + 1) return
    this.#aheadBlock = null
    this.advanceTime(aheadBlock.timestamp)
  }

  /** A block's time is known. It has come once all before the block is settled, but for so many blocks at most. */
  observeBlockTime({ number, timestamp }: BlockTime, aheadBlocks = 0): void {
    if (this.#settledBlock === null || number <= this.#settledBlock + 1 + aheadBlocks) this.advanceTime(timestamp)
    else if (number >= (this.#aheadBlock?.number ?? 0)) this.#aheadBlock = { number, timestamp }
  }

  /** This time has come: what was scheduled until then is in force, also for what was told before that was known. */
  advanceTime(timestamp: number | null): void {
    for (const address of this.tokenState.advanceTime(timestamp)) this.correctMultipliers(address, () => true)
  }

  /** Another multiplier was in force somewhere than was thought: what was told with the wrong one is amended. */
  correctMultipliers(address: Hex, isAffected: (block: number, published: PublishedFact) => boolean): void {
    const token = this.findToken(address)
    if (!token) return
    for (const { published, number, sealed } of this.ledger.publishedFrom(0, address)) {
      const before =
        published.detail === null || !isAffected(number, published)
          ? null
          : this.#publishedDraft(published.seq, published.key)
      if (!before || !isFact(before)) continue
      const { timestamp } = before.block
      const block = sealed ? { ...sealed, timestamp: sealed.timestamp ?? timestamp } : { ...before.block, hash: null }
      const tx = { ...before.tx, index: published.txIndex }
      const stage = sealed ? 'sealed' : 'preconfirmed'
      const fact = correctMultiplier(
        { ...before, stage, block, tx, time: this.nowIso },
        token,
        this.tokenState.chainTime,
      )
      if (!fact) continue
      this.amend(published, published.type, fact)
      if (!sealed) this.noteOpenKey(published, number)
    }
  }

  /** Keeps beside the tape that a promise is open: it outlives the message that made it. */
  noteOpenKey(published: PublishedFact, block: number): void {
    this.outbox.setNote(openKeyNotes.at(published.key), { published: { ...published }, block })
  }

  /** What a key was told as before, if that is still kept. */
  #publishedDraft(seq: number, key: string): Draft | null {
    const { tape } = this.#options
    const message = this.outbox.draftAt(seq) ?? tape.readKey(key).find((entry) => entry.seq === seq)?.update
    if (message?.type === 'amend') return { ...message.update, time: message.time }
    return message ? withoutTapeFields(message) : null
  }
}

/** A message as it was before the tape had numbered it. */
const withoutTapeFields = (message: Draft | Update): Draft => {
  const { id: _id, prev: _prev, ...draft } = { id: '', prev: null, ...message }
  return draft as Draft
}

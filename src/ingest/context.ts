import type { Head, Hex } from '../protocol/fields.ts'
import { formatPosition } from '../protocol/position.ts'
import type { Draft, Update } from '../protocol/updates.ts'
import { noteNames, type Tape } from '../tape/tape.ts'
import type { FeedSetting } from '../tokens/price-feeds.ts'
import type { Token } from '../tokens/token.ts'
import { corrected, type Hearing } from './enrich.ts'
import { contentOf, detailOf, type FactDraft, isFact } from './fact.ts'
import type { Ledger, Told } from './ledger.ts'
import { Sheet } from './outbox.ts'
import type { OpenNote } from './restore.ts'
import { amendOf } from './settle.ts'
import { Keeper } from './token-state.ts'

/** What the ingest tells with. */
export type DeskOptions = {
  readonly tape: Tape
  readonly staleMs: number
  readonly feeds: readonly FeedSetting[]
  readonly now: () => number
  readonly count: {
    readonly repeated: () => void
    readonly foreign: () => void
    readonly unreadable: (n: number) => void
  }
}

/** A block and its time, in seconds. */
type Timed = { readonly number: number; readonly timestamp: number | null }

/** Where everything is told: the sheet, what is known of keys and of tokens, and what becomes of a key that was told. */
export class Desk {
  readonly sheet: Sheet
  readonly ledger: Ledger
  readonly keeper: Keeper
  readonly count: DeskOptions['count']
  /** Up to here all is settled; null until it is known where to begin. */
  #settled: number | null
  /** A block of which the time is known, and before which more is still to be settled. */
  #early: Timed | null = null
  readonly #options: DeskOptions

  constructor(options: DeskOptions, ledger: Ledger, { sealed, pending }: Head, settled: number | null) {
    this.#options = options
    this.count = options.count
    this.#settled = settled
    this.sheet = new Sheet(options.tape)
    this.ledger = ledger
    this.keeper = new Keeper({ ...options, sheet: this.sheet, head: Math.max(sealed ?? 0, pending ?? 0) })
  }

  /** The end of the tape before this turn. */
  get end(): number {
    return this.#options.tape.end()
  }

  get now(): number {
    return this.#options.now()
  }

  get time(): string {
    return new Date(this.now).toISOString()
  }

  token(address: Hex): Token | undefined {
    return this.keeper.board.get(address)
  }

  /** How and when something is told, beside how it was heard. */
  hearing(how: Pick<Hearing, 'via' | 'sealed' | 'late' | 'receivedAt'>): Hearing {
    return { ...how, now: this.now, staleMs: this.#options.staleMs, chainTime: this.keeper.time }
  }

  /** What messages that follow a key say beside it. */
  get setting() {
    const { epoch } = this.#options.tape
    return {
      time: this.time,
      symbolOf: (address: Hex, before: string) => this.token(address)?.symbol ?? before,
      position: (seq: number) => formatPosition(epoch, seq),
      now: ({ address, type }: Told) => this.keeper.holds(address, type),
    }
  }

  /** The same key, other content: told as a message of its own. */
  amend(told: Told, of: Told['type'], fact: FactDraft): void {
    const before = this.#messageAt(told.seq, told.key)
    const late = before !== null && 'late' in before && before.late === true
    const draft = amendOf({ told, of, before, fact: { ...fact, late } }, this.setting)
    told.seq = this.sheet.next
    this.sheet.tell(draft)
    this.ledger.amend(told, fact.type, contentOf(fact), detailOf(fact))
  }

  /** Up to here all is settled. */
  reaches(settled: number): void {
    this.#settled = settled
    const early = this.#early
    if (!early || early.number > settled + 1) return
    this.#early = null
    this.passes(early.timestamp)
  }

  /** A block's time is known. It has come once all before the block is settled, but for so many blocks at most. */
  hears({ number, timestamp }: Timed, but = 0): void {
    if (this.#settled === null || number <= this.#settled + 1 + but) this.passes(timestamp)
    else if (number >= (this.#early?.number ?? 0)) this.#early = { number, timestamp }
  }

  /** This time has come: what was scheduled until then is in force, also for what was told before that was known. */
  passes(timestamp: number | null): void {
    for (const address of this.keeper.passes(timestamp)) this.correct(address, () => true)
  }

  /** Another multiplier was in force somewhere than was thought: what was told with the wrong one is amended. */
  correct(address: Hex, reaches: (block: number, told: Told) => boolean): void {
    const token = this.token(address)
    if (!token) return
    for (const { told, number, sealed } of this.ledger.from(0, address)) {
      const before = told.detail === null || !reaches(number, told) ? null : this.#messageAt(told.seq, told.key)
      if (!before || !isFact(before)) continue
      const { timestamp } = before.block
      const block = sealed ? { ...sealed, timestamp: sealed.timestamp ?? timestamp } : { ...before.block, hash: null }
      const tx = { ...before.tx, index: told.txIndex }
      const stage = sealed ? 'sealed' : 'preconfirmed'
      const fact = corrected({ ...before, stage, block, tx, time: this.time }, token, this.keeper.time)
      if (!fact) continue
      this.amend(told, told.type, fact)
      if (!sealed) this.owe(told, number)
    }
  }

  /** Keeps beside the tape that a promise is open: it outlives the message that made it. */
  owe(told: Told, block: number): void {
    this.sheet.note(noteNames.open + told.key, { told: { ...told }, block } satisfies OpenNote)
  }

  /** What a key was told as before, if that is still kept. */
  #messageAt(seq: number, key: string): Draft | null {
    const { tape } = this.#options
    const message = this.sheet.at(seq) ?? tape.about(key).find((entry) => entry.seq === seq)?.update
    if (message?.type === 'amend') return { ...message.update, time: message.time }
    return message ? untaped(message) : null
  }
}

/** A message as it was before the tape had numbered it. */
const untaped = (message: Draft | Update): Draft => {
  const { id: _id, prev: _prev, ...draft } = { id: '', prev: null, ...message }
  return draft as Draft
}

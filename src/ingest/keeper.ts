import { isDeepStrictEqual } from 'node:util'
import type { Hex } from '../protocol/parts.ts'
import type { UpdateType } from '../protocol/updates.ts'
import { type Board, type Change, compare, compareListed, heard, type Moment, restate } from '../stocks/board.ts'
import { factorNow, withMatured } from '../stocks/factor.ts'
import type { Listed } from '../stocks/list.ts'
import type { NavRule } from '../stocks/nav.ts'
import { isBefore, type Place } from '../stocks/place.ts'
import { held, type Token } from '../stocks/token.ts'
import { multiplierDraft } from '../stocks/told.ts'
import { type Word, withBlock, withWordOf } from '../stocks/word.ts'
import { noteNames, type Tape } from '../tape/tape.ts'
import type { Sheet } from './sheet.ts'

type Options = {
  readonly tape: Tape
  readonly sheet: Sheet
  readonly staleMs: number
  readonly now: () => number
  /** The newest sealed block that a former life knew. */
  readonly head: number | null
}

/** Keeps the board: takes in what the list, the chain and the clock say of tokens, and tells what is not an on-chain fact. */
export class Keeper {
  readonly #options: Options
  readonly #board: Map<Hex, Token>
  /** Whose multiplier is to change at a time that no block has reached yet. */
  readonly #armed = new Set<Hex>()
  /** The time of the newest block that was heard of, in seconds: the only clock that schedules know. */
  #time: number | null = null
  /** The last log that was heard of: what the list says now comes after it. */
  #at: Place

  constructor(options: Options) {
    this.#options = options
    this.#at = { block: options.head ?? 0, logIndex: Number.MAX_SAFE_INTEGER }
    // The notes are what this class kept: they are read back, not checked again.
    const tokens = [...options.tape.notes(noteNames.token).values()] as Token[]
    this.#board = new Map(tokens.map((token) => [token.address, token]))
    for (const token of tokens) this.#arm(token)
  }

  get board(): Board {
    return this.#board
  }

  /** The newest block's time, in seconds. */
  get time(): number | null {
    return this.#time
  }

  /** A list; null where the last good one stays and only time passed. */
  list(tokens: readonly Listed[] | null, partial: boolean): void {
    if (tokens) this.#apply((partial ? compareListed : compare)(this.#board, tokens, this.#moment()))
    // What the list says nothing of grows older all the same.
    this.#apply(restate(this.#board, this.#rule()))
  }

  /** The logs of these addresses are heard from now on. */
  hears(addresses: readonly Hex[]): void {
    this.#apply(heard(this.#board, addresses, this.#rule()))
  }

  /** A log was heard of, or all of a sealed block. */
  reaches(place: Place): void {
    if (isBefore(this.#at, place)) this.#at = place
  }

  /** A block has this time: what was scheduled until then takes effect, though the chain says nothing. */
  passes(timestamp: number | null): void {
    if (timestamp !== null && (this.#time === null || timestamp > this.#time)) this.#time = timestamp
    if (this.#time === null) return
    for (const address of this.#armed) this.#ring(address, this.#time)
  }

  /** Something pre-confirmed says this of its token. Whether it is another multiplier than before, somewhere. */
  says(word: Word): boolean {
    const token = this.#board.get(word.log.address)
    return token !== undefined && this.#set(withWordOf(token, word, this.#time, this.#rule()))
  }

  /** A sealed block says this of a token, and nothing else. Whether it is another multiplier than before, somewhere. */
  blockSays(block: number, address: Hex, words: readonly Word[]): boolean {
    const token = this.#board.get(address)
    return token !== undefined && this.#set(withBlock(token, block, words, this.#time, this.#rule()))
  }

  /** What holds of a token now, of what messages of a type tell. */
  holds(address: Hex, type: UpdateType): unknown {
    const token = this.#board.get(address)
    if (!token) return null
    return type === 'multiplier'
      ? token.multiplier
      : type === 'pause'
        ? token.paused
        : type === 'token'
          ? token.record
          : null
  }

  #ring(address: Hex, time: number): void {
    const token = this.#board.get(address)
    const schedule = token && factorNow(token.factor).scheduled
    if (!token || !schedule || schedule.effectiveAt === null || schedule.effectiveAt > time) return
    const rule = this.#rule()
    const after = held({ ...token, factor: withMatured(token.factor, schedule) }, rule)
    if (token.state === 'listed' && token.multiplier !== after.multiplier)
      this.#options.sheet.tell(
        multiplierDraft(after, rule, { from: token.multiplier, effectiveAt: schedule.effectiveAt, source: 'clock' }),
      )
    this.#set(after)
  }

  #apply({ drafts, tokens }: Change): void {
    for (const draft of drafts) this.#options.sheet.tell(draft)
    for (const token of tokens) this.#set(token)
  }

  #set(token: Token): boolean {
    const before = this.#board.get(token.address)
    if (before === token || isDeepStrictEqual(before, token)) return false
    this.#board.set(token.address, token)
    this.#options.sheet.note(noteNames.token + token.address, token)
    this.#arm(token)
    return !isDeepStrictEqual(before?.factor, token.factor)
  }

  #arm({ address, scheduled }: Token): void {
    if (scheduled) this.#armed.add(address)
    else this.#armed.delete(address)
  }

  #rule(): NavRule {
    return { now: this.#options.now(), staleMs: this.#options.staleMs }
  }

  #moment(): Moment {
    return { ...this.#rule(), at: this.#at }
  }
}

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Entry, Tape } from '../../tape/tape.ts'
import { type Counted, HOUR_MS, HOURS_BOUND, hourOf, Score } from './hourly-score.ts'

/** Messages read from the tape at once, between two turns of the event loop. */
const PAGE = 100
/** Pages that whoever opens it waits for: a short tape is read by then. */
const PAGES_AT_ONCE = 10

type Taped = Pick<Tape, 'before' | 'follow' | 'since' | 'oldest'>

/** Keeps the score of a tape: reads what it holds already, then follows it, each message once. */
export class Scorekeeper {
  readonly #tape: Taped
  readonly #score = new Score()
  readonly #unfollow: () => void
  /** Up to here all is counted. */
  #reached = 0
  /** The last that was heard of while what stands before it was still being read. */
  #heard = 0
  #isThrough = false
  #isClosed = false

  private constructor(tape: Taped) {
    this.#tape = tape
    this.#unfollow = tape.follow((turn) => this.#hear(turn))
  }

  /** Begins to read what was written since the hour before the first that is shown. */
  static async open(tape: Taped, now: number): Promise<Scorekeeper> {
    const keeper = new Scorekeeper(tape)
    keeper.#reached = await tape.before(hourOf(now) - HOURS_BOUND * HOUR_MS)
    await keeper.read(PAGES_AT_ONCE)
    return keeper
  }

  /** Reads on, so many pages at most, or until it is through. */
  async read(pages = Number.POSITIVE_INFINITY): Promise<void> {
    for (let read = 0; read < pages && !this.#isThrough && !this.#isClosed; read += 1) {
      const heard = this.#heard
      const page = await this.#tape.since(this.#reached, PAGE)
      this.#fold(page)
      // What was heard of before and does not stand there is gone.
      if (page.length < PAGE) this.#reached = Math.max(this.#reached, heard)
      // Between this and the next message that is followed there is no turn in which one could be missed.
      this.#isThrough = page.length < PAGE && this.#heard <= this.#reached
      if (!this.#isThrough) await nextTurn()
    }
  }

  /** The hours as they stand; null while what was written before is still being read. */
  hours(now: number): readonly Counted[] | null {
    return this.#isThrough ? this.#score.hours(now, this.#tape.oldest()) : null
  }

  close(): void {
    this.#isClosed = true
    this.#unfollow()
  }

  #hear(turn: readonly Entry[]): void {
    if (this.#isThrough) this.#fold(turn)
    else this.#heard = turn.at(-1)?.seq ?? this.#heard
  }

  #fold(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.seq <= this.#reached) continue
      this.#score.fold(entry)
      this.#reached = entry.seq
    }
  }
}

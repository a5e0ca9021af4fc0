import type { SourceName } from '../../protocol/fields.ts'
import type { HourScore } from '../../protocol/status.ts'
import type { WatchNote } from '../../tape/tape.ts'
import { HOUR_MS, HOURS_BOUND, hourOf } from './hourly-score.ts'

/** Nobody looks at the clock more seldom than that: a longer time was slept through, or the clock was set. */
const ASTRAY_MS = 60_000

type PerSource = Record<SourceName, number>

const none: Readonly<PerSource> = { pendingLogs: 0, poll: 0, sealed: 0, down: 0 }

/** How long it is listened in which way, hour by hour. The tape cannot say it: nobody writes there that nothing changed. */
export class Watch {
  readonly #hours: Map<number, PerSource>
  #source: SourceName
  /** Up to here all is counted. */
  #at: number

  /** A watch begins now; what passed since the end of the one that left the note is nobody's. */
  constructor(note: WatchNote, source: SourceName, now: number) {
    this.#hours = new Map(note.map(({ hour, ms }) => [hour, { ...ms }]))
    this.#source = source
    this.#at = now
  }

  /** From now on it is listened in this way. */
  turn(source: SourceName, now: number): void {
    this.#pass(now)
    this.#source = source
  }

  /** What is to be kept of it. */
  note(now: number): WatchNote {
    this.#pass(now)
    const first = hourOf(now) - (HOURS_BOUND - 1) * HOUR_MS
    for (const hour of this.#hours.keys()) if (hour < first || hour > now) this.#hours.delete(hour)
    return [...this.#hours].map(([hour, ms]) => ({ hour, ms: { ...ms } }))
  }

  /** Seconds of an hour in each source. */
  seconds(hour: number, now: number): HourScore['seconds'] {
    this.#pass(now)
    const { pendingLogs, poll, sealed, down } = this.#hours.get(hour) ?? none
    return { pendingLogs: pendingLogs / 1_000, poll: poll / 1_000, sealed: sealed / 1_000, down: down / 1_000 }
  }

  #pass(now: number): void {
    if (Math.abs(now - this.#at) > ASTRAY_MS) this.#at = now
    while (this.#at < now) {
      const hour = hourOf(this.#at)
      const until = Math.min(now, hour + HOUR_MS)
      const ms = this.#hours.get(hour) ?? { ...none }
      // A clock that was set back passes the same time twice; an hour has no more than its own.
      const left = HOUR_MS - Object.values(ms).reduce((sum, one) => sum + one, 0)
      ms[this.#source] += Math.min(until - this.#at, left)
      this.#hours.set(hour, ms)
      this.#at = until
    }
  }
}

import { z } from 'zod'
import { SourceName } from '../../protocol/fields.ts'
import type { HourScore } from '../../protocol/service-status.ts'
import { defineNote } from '../tape/notes.ts'
import { Milliseconds } from '../tokens/token-schema.ts'

export const HOUR_MS = 3_600_000
/** Number of hours shown, including the current one. */
export const SHOWN_HOURS_BOUND = 25
/** Limit of the time between two reads of the clock. A longer time means that the machine slept, or that the clock was set. */
const CLOCK_JUMP_MS = 60_000

export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS

type MsPerSource = Record<SourceName, number>

/** Start of each hour, and the time in each source during that hour, both in milliseconds. */
type TimePerSourceNote = readonly { readonly hour: number; readonly ms: Readonly<MsPerSource> }[]

export const timePerSourceNote = defineNote<TimePerSourceNote>(
  'time-per-source',
  z.array(z.object({ hour: Milliseconds, ms: z.record(SourceName, z.number()) })),
)

const zeroMs: Readonly<MsPerSource> = { pendingLogs: 0, poll: 0, sealed: 0, down: 0 }

/** The time of each source, hour by hour. The tape cannot tell it, because it has no update for an unchanged source. */
export class TimePerSource {
  readonly #hours: Map<number, MsPerSource>
  #source: SourceName
  #countedUpTo: number

  /** Counting begins now. The time since the previous run saved its note counts for no source. */
  constructor(note: TimePerSourceNote, source: SourceName, now: number) {
    this.#hours = new Map(note.map(({ hour, ms }) => [hour, { ...ms }]))
    this.#source = source
    this.#countedUpTo = now
  }

  setSource(source: SourceName, now: number): void {
    this.#advanceTo(now)
    this.#source = source
  }

  note(now: number): TimePerSourceNote {
    this.#advanceTo(now)
    const first = hourOf(now) - (SHOWN_HOURS_BOUND - 1) * HOUR_MS
    for (const hour of this.#hours.keys()) if (hour < first || hour > now) this.#hours.delete(hour)
    return [...this.#hours].map(([hour, ms]) => ({ hour, ms: { ...ms } }))
  }

  /** Takes over the hours of the note that this process has not counted itself. */
  fill(note: TimePerSourceNote, now: number): void {
    this.#advanceTo(now)
    for (const { hour, ms } of note) if (!this.#hours.has(hour)) this.#hours.set(hour, { ...ms })
  }

  seconds(hour: number, now: number): HourScore['seconds'] {
    this.#advanceTo(now)
    const { pendingLogs, poll, sealed, down } = this.#hours.get(hour) ?? zeroMs
    return { pendingLogs: pendingLogs / 1_000, poll: poll / 1_000, sealed: sealed / 1_000, down: down / 1_000 }
  }

  #advanceTo(now: number): void {
    if (Math.abs(now - this.#countedUpTo) > CLOCK_JUMP_MS) this.#countedUpTo = now
    while (this.#countedUpTo < now) {
      const hour = hourOf(this.#countedUpTo)
      const until = Math.min(now, hour + HOUR_MS)
      const ms = this.#hours.get(hour) ?? { ...zeroMs }
      // If the clock was set back, a time is counted twice, so the sum of an hour is limited to one hour.
      const leftMs = HOUR_MS - Object.values(ms).reduce((sum, one) => sum + one, 0)
      ms[this.#source] += Math.min(until - this.#countedUpTo, leftMs)
      this.#hours.set(hour, ms)
      this.#countedUpTo = until
    }
  }
}

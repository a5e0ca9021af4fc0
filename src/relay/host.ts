import type { SchedulerLike } from 'rxjs'
import type { WriteLine } from './log-lines.ts'

/** Time, chance and the log of a process. Each part takes from here what it needs, so that a simulation controls all of it. */
export type Host = {
  /** Timers, in the time of `now`. */
  readonly clock: SchedulerLike
  /** Milliseconds of the wall clock without its steps, for ages. It never decreases. */
  readonly now: () => number
  /** Milliseconds of the wall clock, for times that people read. */
  readonly wallTime: () => number
  /** Milliseconds since the process has started, for time limits. */
  readonly uptime: () => number
  /** A number from 0 to 1. */
  readonly random: () => number
  readonly log: WriteLine
}

import { asyncScheduler, type SchedulerAction, type SchedulerLike } from 'rxjs'

/** A wall clock that moves this much more or less than the process has run was set by somebody. */
const STEP_MS = 1_000

/**
 * The wall clock without its steps, in milliseconds: intervals and ages must not change when somebody sets the clock.
 * It equals the wall clock as long as that is never set, and it never goes back.
 */
export function openSteadyClock(wallTime: () => number, uptime: () => number): () => number {
  let last = { wall: wallTime(), uptime: uptime(), steady: wallTime() }
  let stepsMs = 0
  return () => {
    const [wall, up] = [wallTime(), uptime()]
    const stepMs = Math.round(wall - last.wall - (up - last.uptime))
    if (Math.abs(stepMs) >= STEP_MS) stepsMs += stepMs
    last = { wall, uptime: up, steady: Math.max(last.steady, wall - stepsMs) }
    return last.steady
  }
}

/** Timers of Node, which no wall clock moves, with a clock of their own. */
export const schedulerOn = (now: () => number): SchedulerLike => ({
  now,
  schedule<State>(work: (this: SchedulerAction<State>, state?: State) => void, delayMs?: number, state?: State) {
    return asyncScheduler.schedule(work, delayMs, state)
  },
})

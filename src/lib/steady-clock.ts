import { asyncScheduler, type SchedulerLike } from 'rxjs'

/** If the wall clock and the uptime advance by times that differ by this much, somebody has set the wall clock. */
const STEP_MS = 1_000

/** Returns the steady clock: the wall clock in milliseconds, without its steps, so that ages stay right. It never decreases. */
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

/** Limit of the reads of `clockStepsMs`: two in a row are hardly ever in different milliseconds. */
const READS_BOUND = 10

/** Returns by how much the wall clock is ahead of the steady clock, because somebody has set it. Reads both in one millisecond. */
export function clockStepsMs(wallTime: () => number, now: () => number): number {
  let wall = wallTime()
  for (let read = 1; ; read += 1) {
    const steady = now()
    const after = wallTime()
    if (after === wall || read === READS_BOUND) return wall - steady
    wall = after
  }
}

/** Schedules on Node's timers, which do not depend on the wall clock. */
export const schedulerOn = (now: () => number): SchedulerLike => ({ now, schedule: asyncScheduler.schedule.bind(asyncScheduler) })

import { setImmediate as settlePromises } from 'node:timers/promises'
import type { SchedulerLike, VirtualTimeScheduler } from 'rxjs'
import { wait } from '../../src/lib/async-loop.ts'

/** Resolves after this long on the clock; rejects as soon as the signal aborts. */
export const waitOn = (clock: SchedulerLike, ms: number, signal = new AbortController().signal): Promise<void> =>
  wait(ms, clock, signal)

/** Lets time pass. Between two times of the clock all promises settle, as they do between two real timers. */
export async function advanceClock(clock: VirtualTimeScheduler, ms: number): Promise<void> {
  const end = clock.frame + ms
  await settlePromises()
  for (let next = clock.actions[0]; next && next.delay <= end; next = clock.actions[0]) {
    clock.maxFrames = next.delay
    clock.flush()
    await settlePromises()
  }
  clock.maxFrames = end
  clock.frame = end
}

import type { SchedulerLike } from 'rxjs'
import { wait } from '../../../lib/async-loop.ts'
import type { RequestFn, UntilItsTurn } from './endpoint-pool.ts'

/** Limit of requests that are not yet answered. */
export const IN_FLIGHT_BOUND = 10
/** Number of requests that start without a delay after a pause. */
export const BURST_BOUND = 50
/** Interval between the starts of further requests. Together with the burst, at most 450 requests start in any second. */
export const INTERVAL_MS = 2.5

/** Gives requests their turns in order, within the limit per second. */
export function turnsInOrder(clock: SchedulerLike): UntilItsTurn {
  let nextAt = Number.NEGATIVE_INFINITY
  return async (signal = new AbortController().signal) => {
    signal.throwIfAborted()
    const now = clock.now()
    nextAt = Math.max(nextAt, now - BURST_BOUND * INTERVAL_MS) + INTERVAL_MS
    if (nextAt > now) await wait(nextAt - now, clock, signal)
  }
}

/** Sends requests in order, within the limit in flight. Each caller limits its waiting requests itself. */
export function limitedRequests(request: RequestFn): RequestFn {
  const waiting: (() => void)[] = []
  let inFlight = 0
  return async (method, params, signal) => {
    // A finished request gives its place to the next one, so `inFlight` does not change then.
    if (inFlight < IN_FLIGHT_BOUND) inFlight += 1
    else await new Promise<void>((begin) => waiting.push(begin))
    try {
      signal?.throwIfAborted()
      return await request(method, params, signal)
    } finally {
      const next = waiting.shift()
      if (next) next()
      else inFlight -= 1
    }
  }
}

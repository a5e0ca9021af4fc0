import type { SchedulerLike } from 'rxjs'
import { wait } from '../../../lib/async-loop.ts'
import type { RequestFn } from './endpoint-pool.ts'

/** Requests that are under way at once. */
export const IN_FLIGHT_BOUND = 10
/** How many requests begin without a delay, and how far apart the next ones are: at most 450 in any second. */
export const BURST_BOUND = 50
export const INTERVAL_MS = 2.5

/**
 * Passes requests on in their order, so many at once and per second. Whoever asks through this bounds what waits here, and
 * gets answers more slowly; a node that answers at once is not asked without end.
 */
export function limitedRequests(request: RequestFn, clock: SchedulerLike): RequestFn {
  const waiting: (() => void)[] = []
  let inFlight = 0
  let nextAt = Number.NEGATIVE_INFINITY
  const untilItsTurn = async (signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted()
    const now = clock.now()
    nextAt = Math.max(nextAt, now - BURST_BOUND * INTERVAL_MS) + INTERVAL_MS
    if (nextAt > now) await wait(nextAt - now, clock, signal)
  }
  return async (method, params, signal = new AbortController().signal) => {
    // A request that ends hands its place over.
    if (inFlight < IN_FLIGHT_BOUND) inFlight += 1
    else await new Promise<void>((begin) => waiting.push(begin))
    try {
      await untilItsTurn(signal)
      return await request(method, params, signal)
    } finally {
      const next = waiting.shift()
      if (next) next()
      else inFlight -= 1
    }
  }
}

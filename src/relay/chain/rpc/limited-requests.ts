import type { SchedulerLike } from 'rxjs'
import { wait } from '../../../lib/async-loop.ts'
import type { RequestFn } from './endpoint-pool.ts'

/** Requests in flight. */
export const IN_FLIGHT_BOUND = 10
/** This many requests start without a delay; the next ones start at this interval. So at most 450 start in any second. */
export const BURST_BOUND = 50
export const INTERVAL_MS = 2.5

/** Sends requests in their order, within both limits. The callers limit the number of waiting requests. */
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
    // A finished request hands its place to the next one.
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

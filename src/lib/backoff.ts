import { defer, type MonoTypeOperatorFunction, retry, type SchedulerLike, timer } from 'rxjs'

type BackoffBounds = { readonly minMs: number; readonly maxMs: number }

/** Each delay is multiplied by a random factor between these limits, so that many relays do not retry at the same time. */
type Jitter = readonly [least: number, most: number]

type Options = BackoffBounds & {
  readonly jitter: Jitter
  /** An attempt that lasts longer than this counts as a success: the delay after it is the shortest one again. */
  readonly stableMs: number
  readonly clock: SchedulerLike
  readonly random: () => number
  /** Returns the shortest delay that this failure allows, in milliseconds. */
  readonly leastMs?: (failure: unknown) => number
}

/** Subscribes again after each error, any number of times. The delay doubles with each failure in a row, up to `maxMs`. */
export const retryWithBackoff =
  <T>({ jitter, stableMs, clock, random, leastMs = () => 0, ...bounds }: Options): MonoTypeOperatorFunction<T> =>
  (source) =>
    defer(() => {
      let failures = 0
      let startedAt = 0
      const attempt = defer(() => {
        startedAt = clock.now()
        return source
      })
      const delay = (failure: unknown) => {
        failures = clock.now() - startedAt > stableMs ? 1 : failures + 1
        return timer(Math.max(leastMs(failure), withJitter(backoffMs(bounds, failures), jitter, random())), clock)
      }
      return attempt.pipe(retry({ delay }))
    })

/** Returns the delay after this number of failures in a row: it doubles with each one, up to `maxMs`. */
export const backoffMs = ({ minMs, maxMs }: BackoffBounds, failures: number): number => Math.min(maxMs, minMs * 2 ** (failures - 1))

/** Multiplies a delay by a random factor. `drawn` is a random number from 0 to 1. */
export const withJitter = (ms: number, [least, most]: Jitter, drawn: number): number => ms * (least + (most - least) * drawn)

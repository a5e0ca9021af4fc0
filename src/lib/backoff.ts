import { defer, type MonoTypeOperatorFunction, retry, type SchedulerLike, timer } from 'rxjs'

type BackoffBounds = { readonly minMs: number; readonly maxMs: number }

/** Bounds of a random factor of a delay, so that many relays do not retry at the same time. */
type Jitter = readonly [least: number, most: number]

type Options = BackoffBounds & {
  readonly jitter: Jitter
  /** An attempt that lasted longer than this was a success: the next delay is `minMs`. */
  readonly stableMs: number
  readonly clock: SchedulerLike
  readonly random: () => number
  /** Least delay after a failure that asks for one. */
  readonly leastMs?: (failure: unknown) => number
}

/** Subscribes again after each error, without limit. The delay doubles with each failure in a row, up to `maxMs`. */
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

/** The delay doubles with each failure in a row. */
export const backoffMs = ({ minMs, maxMs }: BackoffBounds, failures: number): number => Math.min(maxMs, minMs * 2 ** (failures - 1))

/** `drawn` is a random number from 0 to 1. */
export const withJitter = (ms: number, [least, most]: Jitter, drawn: number): number => ms * (least + (most - least) * drawn)

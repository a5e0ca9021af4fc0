import { concat, defer, NEVER, type Observable, of, throwError, timer, VirtualTimeScheduler } from 'rxjs'
import { mergeMap } from 'rxjs/operators'
import { describe, expect, it } from 'vitest'
import { backoffMs, retryWithBackoff } from '../../../src/lib/backoff.ts'

const STABLE_MS = 30_000

/** When each attempt starts, where the n-th one fails after the n-th lifetime. */
function attemptTimes(lifetimesMs: readonly number[], drawn = 1): readonly number[] {
  const clock = new VirtualTimeScheduler()
  const startedAt: number[] = []
  const attempt: Observable<unknown> = defer(() => {
    const lifetimeMs = lifetimesMs[startedAt.push(clock.now()) - 1]
    if (lifetimeMs === undefined) return NEVER
    const failure = throwError(() => new Error('lost'))
    return concat(of('opened'), timer(lifetimeMs, clock).pipe(mergeMap(() => failure)))
  })
  const backoff = { minMs: 250, maxMs: 30_000, jitter: [0.5, 1], stableMs: STABLE_MS } as const
  attempt.pipe(retryWithBackoff({ ...backoff, clock, random: () => drawn })).subscribe()
  clock.flush()
  return startedAt
}

const delays = (lifetimesMs: readonly number[], drawn?: number): readonly number[] => {
  const times = attemptTimes(lifetimesMs, drawn)
  return lifetimesMs.map((lifetimeMs, index) => (times[index + 1] ?? Number.NaN) - (times[index] ?? 0) - lifetimeMs)
}

describe('retryWithBackoff', () => {
  it.each<[string, readonly number[], number, readonly number[]]>([
    ['doubles the delay with each failure', [0, 0, 0, 0], 1, [250, 500, 1_000, 2_000]],
    ['stops at the longest delay', Array(9).fill(0), 1, [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]],
    ['draws the shortest delay within its jitter', [0, 0, 0], 0, [125, 250, 500]],
    ['draws a delay from the middle of its jitter', [0, 0, 0], 0.5, [187.5, 375, 750]],
    ['starts over after a stable attempt', [0, 0, STABLE_MS + 1, 0], 1, [250, 500, 250, 500]],
    ['goes on after an attempt that lived just too short', [0, 0, STABLE_MS, 0], 1, [250, 500, 1_000, 2_000]],
  ])('%s', (_, lifetimesMs, drawn, expected) => {
    expect(delays(lifetimesMs, drawn)).toEqual(expected)
  })
})

describe('a delay', () => {
  it.each([
    [1, 50],
    [2, 100],
    [6, 1_600],
    [7, 2_000],
    [5_000, 2_000],
  ])('after %d failures is %d ms', (failures, ms) => {
    expect(backoffMs({ minMs: 50, maxMs: 2_000 }, failures)).toBe(ms)
  })
})

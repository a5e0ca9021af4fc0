import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { UpstreamQuota } from '../../../../../src/relay/edge/limits/upstream-quota.ts'

const errorBody = (code: number, status = 200) => ({ code, message: 'over rate limit', status })
const overRate = (retryAfterMs: number | null = null) =>
  new UpstreamError('busy', 'HTTP 429', retryAfterMs, false, errorBody(-32016, 429))

/** How many of this many calls are allowed in the second from this time on. */
const countTaken = (quota: UpstreamQuota, from: number, wanted = 1_000): number =>
  Array.from({ length: wanted }, (_, n) => quota.take(from + (n * 1_000) / wanted)).filter(Boolean).length

describe('the upstream quota', () => {
  it('is half of the recent rate, and grows by a tenth a second', () => {
    const quota = new UpstreamQuota()
    countTaken(quota, 0, 100)
    quota.recordError(overRate(), 999)
    expect(countTaken(quota, 1_000)).toBe(50)
    expect(countTaken(quota, 10_000)).toBeGreaterThan(100)
    expect(countTaken(quota, 10_000)).toBeLessThan(130)
  })

  it('is halved once for all complaints of one second', () => {
    const quota = new UpstreamQuota()
    countTaken(quota, 0, 100)
    for (let n = 0; n < 20; n += 1) quota.recordError(overRate(), 990 + n / 10)
    expect(countTaken(quota, 1_000)).toBe(50)
  })

  it('never falls below a minimum', () => {
    const quota = new UpstreamQuota()
    for (let second = 0; second < 20; second += 1) {
      countTaken(quota, second * 1_000)
      quota.recordError(overRate(), second * 1_000 + 999)
    }
    expect(countTaken(quota, 20_000)).toBe(5)
  })

  it('has no limit again a minute after the last complaint', () => {
    const quota = new UpstreamQuota()
    quota.recordError(overRate(), 0)
    expect(countTaken(quota, 60_000)).toBe(1_000)
  })

  it.each([
    ['as long as the provider asks', [2_000], 2_000],
    ['at most five seconds', [3_600_000], 5_000],
    ['on after another complaint without a time', [5_000, null], 5_000],
  ])('pauses %s', (_, complaints, rest) => {
    const quota = new UpstreamQuota()
    for (const [second, retryAfterMs] of complaints.entries()) quota.recordError(overRate(retryAfterMs), second * 1_000)
    expect(quota.take(rest - 1)).toBe(false)
    expect(quota.take(rest)).toBe(true)
  })

  it.each([
    [
      'stays',
      'a message alone, which a single call may provoke',
      new UpstreamError('busy', '', null, false, errorBody(-32000)),
      1_000,
    ],
    ['stays', 'an error about the call itself', new UpstreamError('unknown', '', null, false, errorBody(-32016, 429)), 1_000],
    ['stays', 'an unreachable upstream', new UpstreamError('unreachable', 'timed out'), 1_000],
    ['falls', 'a 429 without a body', new UpstreamError('busy', 'HTTP 429'), 5],
    ['falls', 'a code for it in a 200', new UpstreamError('busy', '', null, false, errorBody(-32016)), 5],
  ])('%s after %s', (_, __, failure, allowed) => {
    const quota = new UpstreamQuota()
    quota.recordError(failure, 0)
    expect(countTaken(quota, 0)).toBe(allowed)
  })
})

import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../src/chain/rpc/error.ts'
import { UpstreamQuota } from '../../../src/gateway/upstream-quota.ts'

const errorBody = (code: number, status = 200) => ({ code, message: 'over rate limit', status })
const overRate = (retryAfterMs: number | null = null) =>
  new UpstreamError('busy', 'HTTP 429', retryAfterMs, false, errorBody(-32016, 429))

/** How many of so many are let through in one second from this on. */
const countTaken = (allowance: UpstreamQuota, from: number, wanted = 1_000): number =>
  Array.from({ length: wanted }, (_, n) => allowance.take(from + (n * 1_000) / wanted)).filter(Boolean).length

describe('the allowance', () => {
  it('lets everything through until the upstream says that it is too much', () => {
    expect(countTaken(new UpstreamQuota(), 0)).toBe(1_000)
  })

  it('is half of what went through, and grows again by a tenth a second', () => {
    const allowance = new UpstreamQuota()
    countTaken(allowance, 0, 100)
    allowance.recordError(overRate(), 999)
    expect(countTaken(allowance, 1_000)).toBe(50)
    expect(countTaken(allowance, 10_000)).toBeGreaterThan(100)
    expect(countTaken(allowance, 10_000)).toBeLessThan(130)
  })

  it('is halved once for all that say the same in one second', () => {
    const allowance = new UpstreamQuota()
    countTaken(allowance, 0, 100)
    for (let n = 0; n < 20; n += 1) allowance.recordError(overRate(), 990 + n / 10)
    expect(countTaken(allowance, 1_000)).toBe(50)
  })

  it('is never less than a few, however often that is said', () => {
    const allowance = new UpstreamQuota()
    for (let second = 0; second < 20; second += 1) {
      countTaken(allowance, second * 1_000)
      allowance.recordError(overRate(), second * 1_000 + 999)
    }
    expect(countTaken(allowance, 20_000)).toBe(5)
  })

  it('is everything again after a minute without a complaint', () => {
    const allowance = new UpstreamQuota()
    allowance.recordError(overRate(), 0)
    expect(countTaken(allowance, 60_000)).toBe(1_000)
  })

  it('rests as long as it is asked to, and no longer than five seconds', () => {
    for (const [asked, rest] of [
      [2_000, 2_000],
      [3_600_000, 5_000],
    ] as const) {
      const allowance = new UpstreamQuota()
      allowance.recordError(overRate(asked), 0)
      expect(allowance.take(rest - 1)).toBe(false)
      expect(allowance.take(rest)).toBe(true)
    }
  })

  it('rests on though somebody says once more that it is too much, and not for how long', () => {
    const allowance = new UpstreamQuota()
    allowance.recordError(overRate(5_000), 0)
    allowance.recordError(overRate(), 1_000)
    expect(allowance.take(4_999)).toBe(false)
    expect(allowance.take(5_000)).toBe(true)
  })

  it.each([
    ['words alone, which one question may provoke', new UpstreamError('busy', '', null, false, errorBody(-32000))],
    ['an error that is of the question', new UpstreamError('unknown', '', null, false, errorBody(-32016, 429))],
    ['an upstream that is not there', new UpstreamError('unreachable', 'timed out')],
  ])('is not less for %s', (_, failure) => {
    const allowance = new UpstreamQuota()
    allowance.recordError(failure, 0)
    expect(countTaken(allowance, 0)).toBe(1_000)
  })

  it.each([
    ['a 429 without a word', new UpstreamError('busy', 'HTTP 429')],
    ['a code that means it, in a 200', new UpstreamError('busy', '', null, false, errorBody(-32016))],
  ])('is less for %s', (_, failure) => {
    const allowance = new UpstreamQuota()
    allowance.recordError(failure, 0)
    expect(countTaken(allowance, 0)).toBe(5)
  })
})

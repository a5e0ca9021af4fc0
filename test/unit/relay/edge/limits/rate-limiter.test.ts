import { describe, expect, it } from 'vitest'
import { RateLimiter } from '../../../../../src/relay/edge/limits/rate-limiter.ts'

const calls = (count: number, method = 'eth_getBalance'): readonly string[] => Array.from({ length: count }, () => method)
/** How many of this many calls are allowed in a row. */
const countAllowed = (rates: RateLimiter, count: number, now: number, method = 'eth_getBalance', address = 'one'): number =>
  calls(count, method).filter((one) => rates.take(address, [one], now) === 0).length

describe('an address', () => {
  it.each([
    [1, 100],
    [50, 100],
    [51, 102],
    [400, 800],
  ])('may use two seconds of a rate of %d at once, and a whole batch at least: %d', (perSecond, capacity) => {
    const rates = new RateLimiter({ perSecond, atOnce: 100 })
    expect(countAllowed(rates, 2 * capacity, 0)).toBe(capacity)
    expect(countAllowed(rates, 2 * capacity, 1_000)).toBe(perSecond)
    expect(countAllowed(rates, 2 * capacity, 1_000_000)).toBe(capacity)
  })

  it.each([
    [1, 20],
    [50, 20],
    [400, 160],
  ])('may ask for logs at a fifth of a rate of %d: %d at once', (perSecond, capacity) => {
    const rates = new RateLimiter({ perSecond, atOnce: 100 })
    expect(countAllowed(rates, 2 * capacity, 0, 'eth_getLogs')).toBe(capacity)
    expect(countAllowed(rates, 10 * capacity, 0)).toBe(4 * capacity)
    expect(countAllowed(rates, 2 * capacity, 5_000, 'eth_getLogs')).toBe(Math.min(perSecond, capacity))
  })
})

describe('a batch', () => {
  it('counts all its requests, or none if they exceed the rate', () => {
    const rates = new RateLimiter({ perSecond: 50, atOnce: 100 })
    expect(rates.take('one', calls(100), 0)).toBe(0)
    expect(rates.take('one', calls(1), 0)).toBe(20)
    expect(rates.take('another', calls(60), 0)).toBe(0)
    expect(rates.take('another', calls(41), 0)).toBe(20)
    expect(rates.take('another', calls(40), 0)).toBe(0)
  })

  it('with too many logs counts none of its other requests', () => {
    const rates = new RateLimiter({ perSecond: 50, atOnce: 100 })
    expect(rates.take('one', [...calls(21, 'eth_getLogs'), ...calls(40)], 0)).toBeGreaterThan(0)
    expect(rates.take('one', [...calls(20, 'eth_getLogs'), ...calls(80)], 0)).toBe(0)
  })

  it('with too many requests counts none of its logs', () => {
    const rates = new RateLimiter({ perSecond: 50, atOnce: 100 })
    expect(rates.take('one', [...calls(20, 'eth_getLogs'), ...calls(81)], 0)).toBeGreaterThan(0)
    expect(countAllowed(rates, 40, 0, 'eth_getLogs')).toBe(20)
  })
})

it('an address loses no calls when the clock is set back', () => {
  const rates = new RateLimiter({ perSecond: 50, atOnce: 100 })
  expect(countAllowed(rates, 100, 1_000)).toBe(100)
  expect(countAllowed(rates, 100, 500)).toBe(0)
  expect(countAllowed(rates, 100, 600)).toBe(5)
})

it('forgets the address that was idle longest, and no active one', () => {
  const rates = new RateLimiter({ perSecond: 1, atOnce: 100 })
  expect(countAllowed(rates, 100, 0, 'eth_getBalance', 'silent')).toBe(100)
  expect(countAllowed(rates, 100, 0, 'eth_getBalance', 'busy')).toBe(100)
  for (let other = 0; other < 50_000; other += 1) {
    rates.take(`other ${other}`, calls(1), 0)
    if (other % 10_000 === 0) expect(countAllowed(rates, 1, 0, 'eth_getBalance', 'busy')).toBe(0)
  }
  expect(countAllowed(rates, 1, 0, 'eth_getBalance', 'busy')).toBe(0)
  expect(countAllowed(rates, 1, 0, 'eth_getBalance', 'silent')).toBe(1)
})

import { describe, expect, it } from 'vitest'
import { RateLimiter } from '../../../src/gateway/rate-limit.ts'

const calls = (count: number, method = 'eth_getBalance'): readonly string[] => Array.from({ length: count }, () => method)
/** How many of this many calls are allowed in a row. */
const countAllowed = (rates: RateLimiter, count: number, now: number, method = 'eth_getBalance', address = 'one'): number =>
  calls(count, method).filter((one) => rates.take(address, [one], now)).length

describe('an address', () => {
  it("may use one second's worth at once, and then as much as time passes", () => {
    const rates = new RateLimiter(50)
    expect(countAllowed(rates, 80, 0)).toBe(50)
    expect(countAllowed(rates, 80, 100)).toBe(5)
    expect(countAllowed(rates, 80, 10_000)).toBe(50)
  })

  it('may ask for logs at a fifth of the rate', () => {
    const rates = new RateLimiter(50)
    expect(countAllowed(rates, 80, 0, 'eth_getLogs')).toBe(10)
    expect(countAllowed(rates, 80, 0)).toBe(40)
    expect(countAllowed(rates, 80, 100, 'eth_getLogs')).toBe(1)
  })

  it.each([1, 2, 4, 5, 9])('may ask for logs once a second at a rate of %d', (perSecond) => {
    expect(countAllowed(new RateLimiter(perSecond), 20, 0, 'eth_getLogs')).toBe(1)
  })

  it('has a bucket of its own', () => {
    const rates = new RateLimiter(3)
    expect(countAllowed(rates, 5, 0)).toBe(3)
    expect(countAllowed(rates, 5, 0, 'eth_getBalance', 'another')).toBe(3)
  })
})

describe('a batch', () => {
  it('counts all its requests, or none if they exceed the rate', () => {
    const rates = new RateLimiter(50)
    expect(rates.take('one', calls(50), 0)).toBe(true)
    expect(rates.take('one', calls(1), 0)).toBe(false)
    expect(rates.take('another', calls(30), 0)).toBe(true)
    expect(rates.take('another', calls(21), 0)).toBe(false)
    expect(rates.take('another', calls(20), 0)).toBe(true)
  })

  it('with too many logs counts none of its other requests', () => {
    const rates = new RateLimiter(50)
    expect(rates.take('one', [...calls(11, 'eth_getLogs'), ...calls(20)], 0)).toBe(false)
    expect(rates.take('one', [...calls(10, 'eth_getLogs'), ...calls(40)], 0)).toBe(true)
  })

  it('with too many requests counts none of its logs', () => {
    const rates = new RateLimiter(50)
    expect(rates.take('one', [...calls(10, 'eth_getLogs'), ...calls(41)], 0)).toBe(false)
    expect(countAllowed(rates, 20, 0, 'eth_getLogs')).toBe(10)
  })

  it('larger than the bucket is always refused', () => {
    const rates = new RateLimiter(49)
    for (const now of [0, 1_000, 3_600_000]) expect(rates.take('one', calls(50), now)).toBe(false)
  })
})

it('forgets the address that was idle longest, and no active one', () => {
  const rates = new RateLimiter(1)
  expect(countAllowed(rates, 1, 0, 'eth_getBalance', 'silent')).toBe(1)
  expect(countAllowed(rates, 1, 0, 'eth_getBalance', 'busy')).toBe(1)
  for (let other = 0; other < 50_000; other += 1) {
    rates.take(`other ${other}`, calls(1), 0)
    if (other % 10_000 === 0) expect(countAllowed(rates, 1, 0, 'eth_getBalance', 'busy')).toBe(0)
  }
  expect(countAllowed(rates, 1, 0, 'eth_getBalance', 'busy')).toBe(0)
  expect(countAllowed(rates, 1, 0, 'eth_getBalance', 'silent')).toBe(1)
})

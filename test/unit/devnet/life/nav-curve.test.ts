import { describe, expect, it } from 'vitest'
import { withIrregularFeeds } from '../../../../src/devnet/life/calendar-nav.ts'
import { createNavCurve } from '../../../../src/devnet/life/nav-curve.ts'
import { tokens } from '../../../../src/devnet/tokens/issued-tokens.ts'

const HOUR_MS = 3_600_000
// 2026-11-16 is a Monday.
const MONDAY_MS = Date.UTC(2026, 10, 16)
const SATURDAY_MS = MONDAY_MS + 120 * HOUR_MS

const every = (stepMs: number, hours: number, fromMs = MONDAY_MS) =>
  Array.from({ length: (hours * HOUR_MS) / stepMs }, (_, at) => fromMs + at * stepMs)

/** What a feed says at each of these times. */
const readingsOf = (symbol: string, times: readonly number[], navOf = createNavCurve('nav')) => {
  const token = tokens.find((candidate) => candidate.symbol === symbol) ?? expect.unreachable()
  return times.map((now) => ({ now, ...(navOf(token, now) ?? expect.unreachable()) }))
}
const roundsOf = (symbol: string, fromMs: number, hours: number) => [
  ...new Map(readingsOf(symbol, every(5_000, hours, fromMs)).map((round) => [round.updatedAtMs, round])).values(),
]

describe('a reference value', () => {
  it('has a round at each heartbeat, and when it moved past the deviation', () => {
    const rounds = roundsOf('AAPLc', MONDAY_MS, 3)
    expect(rounds.length).toBeGreaterThan(20)
    expect(rounds.filter(({ updatedAtMs }) => updatedAtMs % HOUR_MS === 0)).toHaveLength(3)
    for (const [at, { price, updatedAtMs }] of rounds.entries()) {
      const before = rounds[at - 1]
      if (before && updatedAtMs % HOUR_MS !== 0) expect(Math.abs(price / before.price - 1)).toBeGreaterThanOrEqual(0.001)
      expect(Math.abs(price - 325)).toBeLessThan(25)
    }
  })

  it('has only heartbeats with the same price on a weekend', () => {
    const rounds = roundsOf('TSLAc', SATURDAY_MS, 6)
    expect(rounds.map(({ updatedAtMs }) => (updatedAtMs - SATURDAY_MS) / HOUR_MS)).toEqual([0, 1, 2, 3, 4, 5])
    expect(new Set(rounds.map(({ price }) => price)).size).toBe(1)
  })
})

describe('a faulty feed', () => {
  const faultyOf = (symbol: string, times: readonly number[]) =>
    readingsOf(symbol, times, withIrregularFeeds(createNavCurve('nav')))

  it('publishes a fresh zero for some minutes, and then a newer price', () => {
    const rounds = faultyOf('CRCLc', every(5_000, 1))
    const zeros = rounds.filter(({ price }) => price === 0)
    expect(zeros.length).toBe((2 * 3 * 60) / 5)
    for (const { now, updatedAtMs } of zeros) expect(now - updatedAtMs).toBeLessThan(180_000)
    const times = rounds.map(({ updatedAtMs }) => updatedAtMs)
    expect(times).toEqual(times.toSorted((one, other) => one - other))
  })

  it.each([
    // It publishes for half a day in every three days.
    ['SPCXc', 'stops for longer than 26 hours, and then publishes again', 72, 144, 60],
    ['METAc', 'holds its value from Friday to Monday', 49, 240, 20],
  ])('of %s %s', (symbol, _, oldest, hours, old) => {
    const ages = faultyOf(symbol, every(HOUR_MS, hours)).map(({ now, updatedAtMs }) => (now - updatedAtMs) / HOUR_MS)
    expect(Math.max(...ages)).toBeLessThan(oldest)
    expect(ages.filter((age) => age < 1).length).toBeGreaterThan(20)
    expect(ages.filter((age) => age > 26).length).toBeGreaterThan(old)
  })
})

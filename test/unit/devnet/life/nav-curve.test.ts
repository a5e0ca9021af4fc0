import { describe, expect, it } from 'vitest'
import { withIrregularFeeds } from '../../../../src/devnet/life/calendar-nav.ts'
import { createNavCurve } from '../../../../src/devnet/life/nav-curve.ts'
import { tokens } from '../../../../src/devnet/tokens/issued-tokens.ts'

const HOUR_MS = 3_600_000
// 2026-11-16 is a Monday.
const MONDAY_MS = Date.UTC(2026, 10, 16)
const SATURDAY_MS = MONDAY_MS + 120 * HOUR_MS

const roundsOf = (seed: string, symbol: string, fromMs: number, hours: number) => {
  const token = tokens.find((candidate) => candidate.symbol === symbol)
  if (!token) throw new Error(`no token ${symbol}`)
  const navOf = createNavCurve(seed)
  const readings = Array.from({ length: hours * 720 }, (_, index) => navOf(token, fromMs + index * 5_000))
  return [...new Map(readings.flatMap((round) => round ?? []).map((round) => [round.updatedAtMs, round])).values()]
}

describe('a reference value', () => {
  it('has a round at each heartbeat, and when it moved past the deviation', () => {
    const rounds = roundsOf('nav', 'AAPLc', MONDAY_MS, 3)
    expect(rounds.length).toBeGreaterThan(20)
    for (const [at, { price, updatedAtMs }] of rounds.entries()) {
      const before = rounds[at - 1]
      if (before && updatedAtMs % HOUR_MS !== 0) expect(Math.abs(price / before.price - 1)).toBeGreaterThanOrEqual(0.001)
      expect(price).toBeGreaterThan(300)
      expect(price).toBeLessThan(350)
    }
  })

  it('does not depend on earlier reads', () => {
    const [apple] = tokens
    if (!apple) throw new Error('no token')
    const all = createNavCurve('nav')
    for (let now = MONDAY_MS; now < MONDAY_MS + 2 * HOUR_MS; now += 777) {
      const round = all(apple, now)
      if (now % 100 === 0)
        expect(createNavCurve('nav')(apple, now)).toMatchObject({ price: round?.price, updatedAtMs: round?.updatedAtMs })
    }
  })

  it('has only heartbeats with the same price on a weekend', () => {
    const rounds = roundsOf('nav', 'TSLAc', SATURDAY_MS, 6)
    expect(rounds.map(({ updatedAtMs }) => (updatedAtMs - SATURDAY_MS) / HOUR_MS)).toEqual([0, 1, 2, 3, 4, 5])
    expect(new Set(rounds.map(({ price }) => price)).size).toBe(1)
  })

  it('is absent for a token without one', () => {
    expect(roundsOf('nav', 'INTCc', MONDAY_MS, 1)).toEqual([])
  })
})

describe('a faulty feed', () => {
  const roundsAt = (symbol: string, times: readonly number[]) => {
    const token = tokens.find((candidate) => candidate.symbol === symbol)
    if (!token) throw new Error(`no token ${symbol}`)
    const navOf = withIrregularFeeds(createNavCurve('nav'))
    return times.map((now) => ({ now, ...(navOf(token, now) ?? { price: Number.NaN, updatedAtMs: Number.NaN }) }))
  }
  const every = (stepMs: number, hours: number) =>
    Array.from({ length: (hours * HOUR_MS) / stepMs }, (_, at) => MONDAY_MS + at * stepMs)

  it('stops for longer than 26 hours, and then publishes again', () => {
    const ages = roundsAt('SPCXc', every(HOUR_MS, 144)).map(({ now, updatedAtMs }) => (now - updatedAtMs) / HOUR_MS)
    expect(Math.max(...ages)).toBeGreaterThan(26)
    expect(Math.max(...ages)).toBeLessThan(72)
    expect(ages.filter((age) => age < 1).length).toBeGreaterThan(20)
    expect(ages.filter((age) => age > 26).length).toBeGreaterThan(60)
  })

  it('publishes a fresh zero for some minutes, and then a newer price', () => {
    const rounds = roundsAt('CRCLc', every(5_000, 1))
    const zeros = rounds.filter(({ price }) => price === 0)
    expect(zeros.length).toBe((2 * 3 * 60) / 5)
    for (const { now, updatedAtMs } of zeros) expect(now - updatedAtMs).toBeLessThan(180_000)
    for (const [at, { updatedAtMs }] of rounds.entries()) {
      expect(updatedAtMs).toBeGreaterThanOrEqual(rounds[at - 1]?.updatedAtMs ?? 0)
    }
  })

  it('may hold its value from Friday to Monday, for longer than 26 hours', () => {
    const rounds = roundsAt('METAc', every(HOUR_MS, 200))
    const weekend = rounds.filter(({ now }) => now >= SATURDAY_MS && now < SATURDAY_MS + 48 * HOUR_MS)
    expect(new Set(weekend.map(({ updatedAtMs }) => updatedAtMs))).toEqual(new Set([SATURDAY_MS]))
    for (const { now, updatedAtMs } of rounds)
      if (!weekend.some((held) => held.now === now)) expect(now - updatedAtMs).toBeLessThan(HOUR_MS)
  })

  it('does not affect the other feeds', () => {
    const times = every(HOUR_MS, 100)
    const [apple] = tokens
    if (!apple) throw new Error('no token')
    const navOf = createNavCurve('nav')
    expect(roundsAt('AAPLc', times)).toMatchObject(times.map((now) => navOf(apple, now) ?? {}))
  })
})

import { describe, expect, it } from 'vitest'
import { createNav } from '../../src/devnet/nav.ts'
import { tokens } from '../../src/devnet/tokens.ts'

const HOUR_MS = 3_600_000
// 2026-11-16 is a Monday.
const MONDAY_MS = Date.UTC(2026, 10, 16)
const SATURDAY_MS = MONDAY_MS + 120 * HOUR_MS

const roundsOf = (seed: string, symbol: string, fromMs: number, hours: number) => {
  const token = tokens.find((one) => one.symbol === symbol)
  if (!token) throw new Error(`no token ${symbol}`)
  const navOf = createNav(seed)
  const looks = Array.from({ length: hours * 720 }, (_, at) => navOf(token, fromMs + at * 5_000))
  return [...new Map(looks.flatMap((round) => round ?? []).map((round) => [round.updatedAtMs, round])).values()]
}

describe('a reference value', () => {
  it('has a round when it moved past the deviation, and at the heartbeat', () => {
    const rounds = roundsOf('nav', 'AAPLc', MONDAY_MS, 3)
    expect(rounds.length).toBeGreaterThan(20)
    for (const [at, { price, updatedAtMs }] of rounds.entries()) {
      const before = rounds[at - 1]
      if (before && updatedAtMs % HOUR_MS !== 0)
        expect(Math.abs(price / before.price - 1)).toBeGreaterThanOrEqual(0.001)
      expect(price).toBeGreaterThan(300)
      expect(price).toBeLessThan(350)
    }
  })

  it('is the same for who looks first now and who looked all along', () => {
    const [apple] = tokens
    if (!apple) throw new Error('no token')
    const all = createNav('nav')
    for (let now = MONDAY_MS; now < MONDAY_MS + 2 * HOUR_MS; now += 777) {
      const round = all(apple, now)
      if (now % 100 === 0)
        expect(createNav('nav')(apple, now)).toMatchObject({ price: round?.price, updatedAtMs: round?.updatedAtMs })
    }
  })

  it('has nothing but heartbeats of the held value on a weekend', () => {
    const rounds = roundsOf('nav', 'TSLAc', SATURDAY_MS, 6)
    expect(rounds.map(({ updatedAtMs }) => (updatedAtMs - SATURDAY_MS) / HOUR_MS)).toEqual([0, 1, 2, 3, 4, 5])
    expect(new Set(rounds.map(({ price }) => price)).size).toBe(1)
  })

  it('is absent for a new listing', () => {
    expect(roundsOf('nav', 'INTCc', MONDAY_MS, 1)).toEqual([])
  })
})

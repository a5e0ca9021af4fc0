import { memoized } from '../../lib/bounded-map.ts'
import type { DevnetToken } from '../tokens/issued-tokens.ts'
import { seededRandom } from './seeded-random.ts'
import { DAY_MS, lastOpenMs } from './trading-week.ts'

/** Longest interval between two rounds, also when the market is closed, so that a demo on a weekend shows data. */
const HEARTBEAT_MS = 3_600_000
/** Fraction by which the value must change before a feed publishes between two heartbeats. */
const DEVIATION = 0.001
const CHECK_MS = 5_000

/** The waves whose sum is the value: the amplitude as a fraction, and the period in milliseconds. */
const waves = [
  [0.02, 5.3 * DAY_MS],
  [0.008, 5.1 * 3_600_000],
  [0.0025, 47 * 60_000],
  [0.0008, 97_000],
] as const
/** Waves with a shorter period are quick. */
const QUICK_PERIOD_MS = 3_600_000

export type NavRound = { price: number; updatedAtMs: number }

/** Returns the newest round of a token's feed at a time. */
export type ReadNav = (token: DevnetToken, now: number) => NavRound | undefined

/** Makes the rounds of all feeds, which the seed and the time determine. */
export const createNavCurve = (seed: string): ReadNav => {
  const newestBySymbol = new Map<string, NavRound & { checkedAtMs: number }>()
  return (token, now) => {
    const { nav, symbol } = token
    if (nav === undefined) return undefined
    const heartbeatMs = Math.floor(now / HEARTBEAT_MS) * HEARTBEAT_MS
    const phases = wavePhasesOf(seed, symbol)
    const cached = newestBySymbol.get(symbol)
    const canContinue = cached && cached.checkedAtMs >= heartbeatMs && cached.checkedAtMs <= now
    let round = canContinue ? cached : { ...roundAt(nav, phases, heartbeatMs), checkedAtMs: heartbeatMs }
    for (let atMs = round.checkedAtMs + CHECK_MS; atMs <= now; atMs += CHECK_MS) {
      const next = roundAt(nav, phases, atMs)
      const hasMoved = Math.abs(next.price / round.price - 1) >= DEVIATION
      round = { ...(hasMoved ? next : round), checkedAtMs: atMs }
    }
    newestBySymbol.set(symbol, round)
    return round
  }
}

const roundAt = (nav: number, phases: readonly number[], atMs: number): NavRound => ({
  price: Math.round(valueAt(nav, phases, atMs, 1) * 10_000) / 10_000,
  updatedAtMs: atMs,
})

/** Returns the value that rounds follow, with only this share of its quick waves. */
export const readValue = (seed: string, { nav, symbol }: DevnetToken, atMs: number, quickShare: number): number | undefined =>
  nav === undefined ? undefined : valueAt(nav, wavePhasesOf(seed, symbol), atMs, quickShare)

const valueAt = (nav: number, phases: readonly number[], atMs: number, quickShare: number): number => {
  const openMs = lastOpenMs(atMs)
  const deviation = waves.reduce((sum, [amplitude, periodMs], wave) => {
    const share = periodMs < QUICK_PERIOD_MS ? quickShare : 1
    return sum + share * amplitude * Math.sin((2 * Math.PI * openMs) / periodMs + (phases[wave] ?? 0))
  }, 0)
  return nav * (1 + deviation)
}

const PHASES_BOUND = 1_000

const wavePhasesOf = memoized(PHASES_BOUND, (seed: string, symbol: string): readonly number[] => {
  const random = seededRandom(seed, 'nav', symbol)
  return waves.map(() => random() * 2 * Math.PI)
})

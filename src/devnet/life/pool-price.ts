import type { DevnetPool } from '../tokens/devnet-pools.ts'
import { tokens } from '../tokens/issued-tokens.ts'
import { createNavCurve, type ReadNav } from './nav-curve.ts'
import { seededRandom } from './seeded-random.ts'
import { weekendAt } from './trading-week.ts'

/** The price in a pool at a time, in dollars. It varies a little with `draw`. */
export type ReadPoolPrice = (pool: DevnetPool, atMs: number, draw: string) => string

/** Greatest deviation from the reference value: slow, and from one swap to the next. */
const SLOW_PREMIUM = 0.0012
const SLOW_PERIOD_MS = 7 * 60_000
const SWAP_PREMIUM = 0.0006
/** Enough for all digits of a double. */
const PRICE_DIGITS = 10

/**
 * The price stays near the reference value while the market is open. On a weekend it drifts to the value at which the
 * market will open. Feed faults do not affect it.
 */
export const createPoolPrice = (seed: string): ReadPoolPrice => {
  // A curve continues from its last reading, so each of the two times has its own curve.
  const [readHeld, readNext] = [createNavCurve(seed), createNavCurve(seed)]
  const phases = new Map<string, number>()
  const phaseOf = (id: string): number => {
    const phase = phases.get(id) ?? seededRandom(seed, 'premium', id)() * 2 * Math.PI
    phases.set(id, phase)
    return phase
  }
  return (pool, atMs, draw) => {
    const { elapsed, endMs } = weekendAt(atMs)
    const held = referenceOf(readHeld, pool, atMs)
    const value = elapsed === 0 ? held : held + (referenceOf(readNext, pool, endMs) - held) * elapsed
    const slow = SLOW_PREMIUM * Math.sin((2 * Math.PI * atMs) / SLOW_PERIOD_MS + phaseOf(pool.id))
    const quick = SWAP_PREMIUM * (2 * seededRandom(seed, 'swap', pool.id, draw)() - 1)
    return (value * (1 + slow + quick)).toFixed(PRICE_DIGITS)
  }
}

const referenceOf = (readNav: ReadNav, { token, averagePrice }: DevnetPool, atMs: number): number => {
  const listed = tokens.find(({ address }) => address === token)
  return (listed && readNav(listed, atMs)?.price) ?? averagePrice
}

import { memoized } from '../../lib/bounded-map.ts'
import { type DevnetPool, pools } from '../tokens/devnet-pools.ts'
import { tokens } from '../tokens/issued-tokens.ts'
import { createNavCurve, type ReadNav } from './nav-curve.ts'
import { seededRandom } from './seeded-random.ts'
import { weekendAt } from './trading-week.ts'

/** Returns the price in a pool at a time, in dollars. The text `draw` names a swap, and changes the price a little. */
export type ReadPoolPrice = (pool: DevnetPool, atMs: number, draw: string) => string

/** Greatest deviation from the reference value that changes slowly. SWAP_PREMIUM changes with each swap. */
const SLOW_PREMIUM = 0.0012
const SLOW_PERIOD_MS = 7 * 60_000
const SWAP_PREMIUM = 0.0006
/** Number of decimals that the price needs to keep all digits of a double. */
const PRICE_DIGITS = 10

/**
 * The price stays near the reference value while the market is open. On a weekend it moves to the value at which the
 * market will open. Faults of feeds do not affect it.
 */
export const createPoolPrice = (seed: string): ReadPoolPrice => {
  // A curve continues from its last reading, so the present and the next opening have a curve each.
  const [readHeld, readNext] = [createNavCurve(seed), createNavCurve(seed)]
  const phaseOf = memoized(pools.length, (id: string) => seededRandom(seed, 'premium', id)() * 2 * Math.PI)
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

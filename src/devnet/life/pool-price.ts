import { memoized } from '../../lib/bounded-map.ts'
import { type DevnetPool, pools } from '../tokens/devnet-pools.ts'
import { tokenOf } from '../tokens/issued-tokens.ts'
import { readValue } from './nav-curve.ts'
import { seededRandom } from './seeded-random.ts'
import { type ReadActivity, weekendAt } from './trading-week.ts'

/** Returns the price in a pool at a time, in dollars. The text `draw` names a swap, and changes the price a little. */
export type ReadPoolPrice = (pool: DevnetPool, atMs: number, draw: string) => string

/** Greatest deviation from the reference value that changes slowly. */
const SLOW_PREMIUM = 0.0008
const SLOW_PERIOD_MS = 31 * 60_000
/** Greatest deviation that a swap leaves, at the open and the close of the market. The power makes most deviations small. */
const SWAP_PREMIUM = 0.0035
const SWAP_POWER = 7
/** Share of the quick waves of the reference value that pools follow without any trading. */
const LEAST_FOLLOWED = 0.1
/** Number of decimals that the price needs to keep all digits of a double. */
const PRICE_DIGITS = 10

/**
 * The price stays near the reference value while the market is open, nearer while much is traded. On a weekend it moves to
 * the value at which the market will open. Faults of feeds do not affect it.
 */
export const createPoolPrice = (seed: string, activityAt: ReadActivity): ReadPoolPrice => {
  const phaseOf = memoized(pools.length, (id: string) => seededRandom(seed, 'premium', id)() * 2 * Math.PI)
  const referenceOf = ({ symbol, averagePrice }: DevnetPool, atMs: number, quickShare = 1): number =>
    readValue(seed, tokenOf(symbol), atMs, quickShare) ?? averagePrice
  const fairPriceOf = (pool: DevnetPool, atMs: number, activity: number): number => {
    const weekend = weekendAt(atMs)
    if (!weekend) return referenceOf(pool, atMs, LEAST_FOLLOWED + (1 - LEAST_FOLLOWED) * activity)
    const held = referenceOf(pool, atMs)
    return held + (referenceOf(pool, weekend.endMs) - held) * weekend.elapsed
  }
  return (pool, atMs, draw) => {
    const activity = activityAt(atMs)
    const random = seededRandom(seed, 'swap', pool.id, draw)
    const slow = SLOW_PREMIUM * Math.sin((2 * Math.PI * atMs) / SLOW_PERIOD_MS + phaseOf(pool.id))
    const quick = SWAP_PREMIUM * activity * (2 * random() - 1) ** SWAP_POWER
    return (fairPriceOf(pool, atMs, activity) * (1 + slow + quick)).toFixed(PRICE_DIGITS)
  }
}

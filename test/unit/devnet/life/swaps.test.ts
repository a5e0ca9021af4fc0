import { describe, expect, it } from 'vitest'
import { GENESIS_MS } from '../../../../src/devnet/chain/chain-builder.ts'
import { createNavCurve } from '../../../../src/devnet/life/nav-curve.ts'
import { createPoolPrice } from '../../../../src/devnet/life/pool-price.ts'
import { CYCLE_BLOCKS } from '../../../../src/devnet/life/trading-cycle.ts'
import { openScriptedChain } from '../../../../src/devnet/scripted-chain.ts'
import { type DevnetPool, isTokenFirst, poolContract, pools } from '../../../../src/devnet/tokens/devnet-pools.ts'
import { tokens } from '../../../../src/devnet/tokens/issued-tokens.ts'
import { readPoolState } from '../../../../src/devnet/tokens/pool-storage.ts'
import { tokenBalanceKey } from '../../../../src/devnet/tokens/token-storage.ts'
import { toWord } from '../../../../src/lib/hex.ts'
import { basisBps, priceOf } from '../../../../src/relay/tokens/quote-math.ts'
import { demoSettings } from '../devnet-client.ts'

const SEED = 'swaps'
const HOUR_MS = 3_600_000
// Days of November 2026.
const [WEDNESDAY_MS, SATURDAY_MS, SUNDAY_MS, MONDAY_MS] = [18, 21, 22, 23].map((day) => Date.UTC(2026, 10, day)) as [
  number,
  number,
  number,
  number,
]

/** How many basis points a price is above the reference value of a time; none for a token without such a value. */
const bpsAbove = (readNav: ReturnType<typeof createNavCurve>, pool: DevnetPool, price: string, atMs: number): number[] => {
  const token = tokens.find(({ address }) => address === pool.token)
  const nav = token && readNav(token, atMs)
  return nav ? [Number(basisBps(price, String(nav.price)))] : []
}

describe('the price of a swap', () => {
  it.each([
    ['within tens of basis points of the reference value, above and below, while the market is open', WEDNESDAY_MS, 12, 10, 50],
    ['up to some hundred basis points away on a weekend', SUNDAY_MS + 12 * HOUR_MS, 1, 100, 800],
    ['at the reference value where a weekend begins', SATURDAY_MS, 0, 0, 20],
    ['at the next reference value where a weekend ends', MONDAY_MS - 1, 0, 0, 20],
  ])('is %s', (_, fromMs, hours, least, most) => {
    const [readNav, readPrice] = [createNavCurve(SEED), createPoolPrice(SEED)]
    const times = Array.from({ length: hours * 30 + 1 }, (__, at) => fromMs + at * 120_000)
    // The feed has the next value from Monday on.
    const bps = times.flatMap((atMs) =>
      pools.flatMap((pool) => bpsAbove(readNav, pool, readPrice(pool, atMs, `${atMs}`), atMs + 1)),
    )
    expect(Math.max(...bps.map(Math.abs))).toBeLessThan(most)
    expect(Math.max(...bps.map(Math.abs))).toBeGreaterThan(least)
    if (hours === 12) expect(Math.min(...bps)).toBeLessThan(-least)
  })
})

it('swaps happen in every pool that has liquidity, in every cycle, near the reference value, and never empty it', () => {
  const settings = { ...demoSettings(SEED), transactionsPerFlashblock: 0.2 }
  const { chain } = openScriptedChain(settings, WEDNESDAY_MS + 12 * HOUR_MS)
  const readNav = createNavCurve(SEED)
  const from = Math.floor(chain.head.number / CYCLE_BLOCKS - 1) * CYCLE_BLOCKS + 1
  const blocks = Array.from({ length: CYCLE_BLOCKS }, (_, at) => chain.block(from + at) ?? expect.unreachable())
  for (const pool of pools) {
    const traded = blocks.filter(({ logs }) =>
      logs.some(({ address, topics }) => address === pool.token && topics.slice(1).includes(toWord(poolContract(pool)))),
    )
    expect([pool.symbol, pool.kind, traded.length > 0]).toEqual([pool.symbol, pool.kind, pool.liquidity > 0n])
    for (const { number } of traded) {
      const { sqrtPriceX96 } = readPoolState((key) => chain.valueAt(key, number), pool)
      const price = priceOf(sqrtPriceX96, isTokenFirst(pool), 8, pool.currency.decimals) ?? ''
      const startMs = GENESIS_MS + (number - 1) * settings.blockMs
      for (const bps of bpsAbove(readNav, pool, price, startMs)) expect(Math.abs(bps)).toBeLessThan(50)
      expect(chain.valueAt(tokenBalanceKey(pool.token, poolContract(pool)), number)).toBeGreaterThan(0n)
    }
  }
})

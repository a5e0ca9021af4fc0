import { describe, expect, it } from 'vitest'
import { GENESIS_MS } from '../../../../src/devnet/chain/chain-builder.ts'
import type { DevnetBlock } from '../../../../src/devnet/chain/chain-types.ts'
import { createNavCurve } from '../../../../src/devnet/life/nav-curve.ts'
import { createPoolPrice } from '../../../../src/devnet/life/pool-price.ts'
import { CYCLE_BLOCKS } from '../../../../src/devnet/life/trading-cycle.ts'
import { activityAt } from '../../../../src/devnet/life/trading-week.ts'
import { openScriptedChain } from '../../../../src/devnet/scripted-chain.ts'
import { type DevnetPool, isTokenFirst, poolContract, pools } from '../../../../src/devnet/tokens/devnet-pools.ts'
import { tokens } from '../../../../src/devnet/tokens/issued-tokens.ts'
import { readPoolState } from '../../../../src/devnet/tokens/pool-storage.ts'
import { tokenBalanceKey } from '../../../../src/devnet/tokens/token-storage.ts'
import { decodeLog } from '../../../../src/relay/chain/logs/event-decoder.ts'
import { parseLogs } from '../../../../src/relay/chain/logs/log-parser.ts'
import { basisBps, priceOf } from '../../../../src/relay/tokens/quote-math.ts'
import { tradeNumbersOf } from '../../../../src/relay/tokens/trades.ts'
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
    ['within tens of basis points of the reference value, above and below, while the market is open', WEDNESDAY_MS, 24, 10, 60],
    ['up to some hundred basis points away on a weekend', SUNDAY_MS + 12 * HOUR_MS, 1, 100, 800],
    ['at the reference value where a weekend begins', SATURDAY_MS, 0, 0, 20],
    ['at the next reference value where a weekend ends', MONDAY_MS - 1, 0, 0, 20],
  ])('is %s', (_, fromMs, hours, least, most) => {
    const [readNav, readPrice] = [createNavCurve(SEED), createPoolPrice(SEED, activityAt)]
    const times = Array.from({ length: hours * 30 + 1 }, (__, at) => fromMs + at * 120_000)
    // The feed has the next value from Monday on.
    const bps = times.flatMap((atMs) =>
      pools.flatMap((pool) => bpsAbove(readNav, pool, readPrice(pool, atMs, `${atMs}`), atMs + 1)),
    )
    expect(Math.max(...bps.map(Math.abs))).toBeLessThan(most)
    expect(Math.max(...bps.map(Math.abs))).toBeGreaterThan(least)
    if (hours === 24) expect(Math.min(...bps)).toBeLessThan(-least)
  })
})

const tradesIn = ({ number, logs }: DevnetBlock) =>
  parseLogs(logs).logs.flatMap((log) => {
    const swap = decodeLog(log)
    const pool = pools.find(({ id }) => id === log.address || id === log.topics[1])
    if (swap?.event !== 'Swap' || !pool) return []
    const { raw, side, currency_amount } = tradeNumbersOf(pool, swap, 8)
    return [{ pool, number, hash: log.transactionHash, raw, side, value: Number(currency_amount) }]
  })

/** A chain in the middle of its day, and the blocks of its last whole cycle. */
const openTraded = (transactionsPerFlashblock: number, atMs = WEDNESDAY_MS + 12 * HOUR_MS) => {
  const { chain } = openScriptedChain({ ...demoSettings(SEED), transactionsPerFlashblock }, atMs)
  const from = Math.floor(chain.head.number / CYCLE_BLOCKS - 1) * CYCLE_BLOCKS + 1
  const blocks = Array.from({ length: CYCLE_BLOCKS }, (_, at) => chain.block(from + at) ?? expect.unreachable())
  return { chain, blocks, trades: blocks.flatMap(tradesIn) }
}

it('a swap is worth a dollar, but perhaps for the last one of a pool in a cycle', () => {
  const trades = [1, 4, 6, 9, 11, 14.9, 17, 21].flatMap((hour) => openTraded(2, WEDNESDAY_MS + hour * HOUR_MS).trades)
  const dust = trades.filter(({ value }) => value < 1)
  expect(trades.length).toBeGreaterThan(1_000)
  expect(dust.length).toBeLessThan(2)
})

it('swaps happen in every pool that has liquidity, in every cycle, near the reference value, and never empty it', () => {
  const { chain, trades } = openTraded(0.2)
  const readNav = createNavCurve(SEED)
  for (const pool of pools) {
    const traded = trades.filter((trade) => trade.pool === pool)
    expect([pool.symbol, pool.kind, traded.length > 0]).toEqual([pool.symbol, pool.kind, pool.liquidity > 0n])
    for (const { number } of traded) {
      const { sqrtPriceX96 } = readPoolState((key) => chain.valueAt(key, number), pool)
      const price = priceOf(sqrtPriceX96, isTokenFirst(pool), 8, pool.currency.decimals) ?? ''
      const startMs = GENESIS_MS + (number - 1) * demoSettings(SEED).blockMs
      for (const bps of bpsAbove(readNav, pool, price, startMs)) expect(Math.abs(bps)).toBeLessThan(60)
      expect(chain.valueAt(tokenBalanceKey(pool.token, poolContract(pool)), number)).toBeGreaterThan(0n)
    }
  }
})

it('some swaps are routes through two pools of a token, which transfer nothing', () => {
  const { blocks, trades } = openTraded(2, WEDNESDAY_MS + 14.9 * HOUR_MS)
  const routes = [...Map.groupBy(trades, ({ hash }) => hash)].filter(([, { length }]) => length > 1)
  expect(routes.length).toBeGreaterThan(1)
  for (const [hash, [first, second]] of routes) {
    expect([first?.pool.symbol, first?.raw]).toEqual([second?.pool.symbol, second?.raw])
    expect([first?.side, second?.side].toSorted()).toEqual(['buy', 'sell'])
    expect(blocks.flatMap(({ logs }) => logs.filter(({ transactionHash }) => transactionHash === hash))).toHaveLength(2)
  }
})

it('most swaps are small, and more and larger ones follow the open and precede the close of the market in New York', () => {
  const tradesAt = (hour: number) => openTraded(2, WEDNESDAY_MS + hour * HOUR_MS).trades
  // In the deepest pool of a stock somebody trades every few seconds, at night too.
  const isSteady = (pool: DevnetPool) => pool.symbol === 'AAPLc' && pool.kind === 'uniswap_v4' && pool.hooks === 'none'
  const valuesAt = (hour: number) => tradesAt(hour).flatMap(({ pool, value }) => (isSteady(pool) ? [] : [value]))
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  const mean = (values: readonly number[]) => sum(values) / values.length
  const { blockMs } = demoSettings(SEED)
  const steady = tradesAt(6).filter(({ pool }) => isSteady(pool))
  for (const [nth, { number }] of steady.entries())
    expect((number - (steady[nth - 1]?.number ?? steady[0]?.number ?? 0)) * blockMs).toBeLessThanOrEqual(6_000)
  // In winter the session is from 14:30 to 21:00.
  const [night, noon] = [valuesAt(6), valuesAt(17.75)]
  expect(noon.length).toBeGreaterThan(2 * night.length)
  for (const busy of [valuesAt(14.9), valuesAt(21)]) {
    expect(busy.length).toBeGreaterThan(1.3 * noon.length)
    expect(mean(busy)).toBeGreaterThan(1.3 * mean(noon))
    const largest = busy.toSorted((one, other) => other - one).slice(0, busy.length / 10)
    expect(sum(largest)).toBeGreaterThan(sum(busy) / 4)
  }
})

import { describe, expect, it } from 'vitest'
import { GENESIS_MS } from '../../../../src/devnet/chain/chain-builder.ts'
import { createNavCurve } from '../../../../src/devnet/life/nav-curve.ts'
import { createPoolPrice } from '../../../../src/devnet/life/pool-price.ts'
import { CYCLE_BLOCKS } from '../../../../src/devnet/life/trading-cycle.ts'
import { openScriptedChain, type ScriptedChain, type ScriptedChainSettings } from '../../../../src/devnet/scripted-chain.ts'
import { type DevnetPool, isTokenFirst, poolContract, pools } from '../../../../src/devnet/tokens/devnet-pools.ts'
import { tokens } from '../../../../src/devnet/tokens/issued-tokens.ts'
import { readPoolState } from '../../../../src/devnet/tokens/pool-storage.ts'
import { tokenBalanceKey } from '../../../../src/devnet/tokens/token-storage.ts'
import { toWord } from '../../../../src/lib/hex.ts'
import { basisBps, priceOf } from '../../../../src/relay/tokens/quote-math.ts'

const WORLD_SETTINGS: ScriptedChainSettings = {
  seed: 'swaps',
  chainId: 84_532_001,
  blockMs: 2_000,
  flashblockMs: 2_000,
  transactionsPerFlashblock: 3,
  calendar: true,
}
const WEDNESDAY_MS = Date.UTC(2026, 10, 18, 12)
const [SATURDAY_MS, SUNDAY_MS, MONDAY_MS] = [21, 22, 23].map((day) => Date.UTC(2026, 10, day)) as [number, number, number]
const CHECKED_BLOCKS = 300

const priceAt = ({ chain }: ScriptedChain, pool: DevnetPool, block: number): string => {
  const { sqrtPriceX96 } = readPoolState((key) => chain.valueAt(key, block), pool)
  return priceOf(sqrtPriceX96, isTokenFirst(pool), 8, pool.currency.decimals) ?? ''
}
/** How many basis points a price is above the reference value of a time; none for a token without such a value. */
const bpsAbove = (readNav: ReturnType<typeof createNavCurve>, pool: DevnetPool, price: string, atMs: number): number[] => {
  const token = tokens.find(({ address }) => address === pool.token)
  const nav = token && readNav(token, atMs)
  return nav ? [Number(basisBps(price, String(nav.price)))] : []
}
/** The transfers from or to a pool in a block. */
const swapsIn = ({ chain }: ScriptedChain, pool: DevnetPool, block: number) =>
  (chain.block(block)?.logs ?? []).filter(
    ({ address, topics }) => address === pool.token && topics.slice(1).includes(toWord(poolContract(pool))),
  )

/** How far the swaps of the newest blocks are from the reference value of their time, and where they happened. */
const basesOf = (world: ScriptedChain): readonly { pool: DevnetPool; bps: number }[] => {
  const readNav = createNavCurve(WORLD_SETTINGS.seed)
  const { number: head } = world.chain.head
  return Array.from({ length: CHECKED_BLOCKS }, (_, at) => head - CHECKED_BLOCKS + 1 + at).flatMap((number) =>
    pools
      .filter((pool) => swapsIn(world, pool, number).length > 0)
      .flatMap((pool) => {
        const atMs = GENESIS_MS + (number - 1) * WORLD_SETTINGS.blockMs
        return bpsAbove(readNav, pool, priceAt(world, pool, number), atMs).map((bps) => ({ pool, bps }))
      }),
  )
}

describe('the swaps of the market', () => {
  it('keep each pool within some tens of basis points of the reference value while the market is open, and never empty it', () => {
    const world = openScriptedChain(WORLD_SETTINGS, WEDNESDAY_MS)
    const bases = basesOf(world)
    const sizes = bases.map(({ bps }) => bps)
    expect(new Set(bases.map(({ pool }) => pool.id)).size).toBe(pools.length - 2)
    expect([Math.max(...sizes) > 2, Math.min(...sizes) < -2]).toEqual([true, true])
    expect(Math.max(...sizes.map(Math.abs))).toBeLessThan(50)
    for (const pool of pools.filter(({ liquidity }) => liquidity > 0n))
      expect(world.chain.valueAt(tokenBalanceKey(pool.token, poolContract(pool)), 'pending')).toBeGreaterThan(0n)
  })

  it('drift by up to some hundred basis points on a weekend', () => {
    const sizes = basesOf(openScriptedChain(WORLD_SETTINGS, SUNDAY_MS + 43_200_000)).map(({ bps }) => Math.abs(bps))
    expect(Math.max(...sizes)).toBeGreaterThan(100)
    expect(Math.max(...sizes)).toBeLessThan(800)
  })

  it('begin a weekend without drift, and end it at the value that the feed opens with', () => {
    const [readNav, readPrice] = [createNavCurve('edges'), createPoolPrice('edges')]
    // The feed's value is the next one from Monday on.
    for (const atMs of [SATURDAY_MS, MONDAY_MS - 1, MONDAY_MS])
      for (const pool of pools)
        for (const bps of bpsAbove(readNav, pool, readPrice(pool, atMs, ''), atMs + 1)) expect(Math.abs(bps)).toBeLessThan(20)
  })

  it('happen in every pool that has liquidity, in every cycle', () => {
    const world = openScriptedChain({ ...WORLD_SETTINGS, transactionsPerFlashblock: 0.2 }, WEDNESDAY_MS)
    const from = Math.floor(world.chain.head.number / CYCLE_BLOCKS - 1) * CYCLE_BLOCKS + 1
    const blocks = Array.from({ length: CYCLE_BLOCKS }, (_, at) => from + at)
    for (const pool of pools) {
      const isTraded = blocks.some((block) => swapsIn(world, pool, block).length > 0)
      expect([pool.symbol, pool.kind, isTraded]).toEqual([pool.symbol, pool.kind, pool.liquidity > 0n])
    }
  })

  it('do not happen where the market is closed, and the pools then have the value of the start', () => {
    const closed = openScriptedChain({ ...WORLD_SETTINGS, transactionsPerFlashblock: 0, calendar: false }, WEDNESDAY_MS)
    const readNav = createNavCurve(WORLD_SETTINGS.seed)
    const { head, oldest } = closed.chain
    for (const pool of pools) {
      const price = priceAt(closed, pool, head.number)
      expect(price).toBe(priceAt(closed, pool, oldest))
      for (const bps of bpsAbove(readNav, pool, price, WEDNESDAY_MS)) expect(Math.abs(bps)).toBeLessThan(30)
    }
  })
})

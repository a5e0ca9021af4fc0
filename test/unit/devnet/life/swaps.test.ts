import { beforeAll, describe, expect, it } from 'vitest'
import { GENESIS_MS } from '../../../../src/devnet/chain/chain.ts'
import { createNavCurve } from '../../../../src/devnet/life/nav-curve.ts'
import { createPoolPrice } from '../../../../src/devnet/life/pool-price.ts'
import { CYCLE_BLOCKS } from '../../../../src/devnet/life/trading-cycle.ts'
import { openScriptedChain, type ScriptedChain, type ScriptedChainSettings } from '../../../../src/devnet/scripted-chain.ts'
import { type DevnetPool, isTokenFirst, poolContract, pools } from '../../../../src/devnet/tokens/devnet-pools.ts'
import { tokens } from '../../../../src/devnet/tokens/issued-tokens.ts'
import { isFeedFrozen } from '../../../../src/devnet/tokens/oracle-registry.ts'
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
const SUNDAY_MS = Date.UTC(2026, 10, 22, 12)
const CHECKED_BLOCKS = 300

const priceAt = ({ chain }: ScriptedChain, pool: DevnetPool, block: number): string => {
  const { sqrtPriceX96 } = readPoolState((key) => chain.valueAt(key, block), pool)
  return priceOf(sqrtPriceX96, isTokenFirst(pool), 8, pool.currency.decimals) ?? ''
}

/** How far the swaps of the newest blocks are from the reference value of their time, and where they happened. */
const basesOf = (world: ScriptedChain): readonly { pool: DevnetPool; bps: number }[] => {
  const readNav = createNavCurve(WORLD_SETTINGS.seed)
  const { head } = world.chain
  return Array.from({ length: CHECKED_BLOCKS }, (_, back) => head.number - CHECKED_BLOCKS + 1 + back).flatMap((number) =>
    pools.flatMap((pool) => {
      const contract = toWord(poolContract(pool))
      const isTraded = world.chain
        .block(number)
        ?.logs.some(({ address, topics }) => address === pool.token && topics.includes(contract))
      const token = tokens.find(({ address }) => address === pool.token)
      const nav = token && readNav(token, GENESIS_MS + (number - 1) * WORLD_SETTINGS.blockMs)
      return isTraded && nav ? [{ pool, bps: Number(basisBps(priceAt(world, pool, number), String(nav.price))) }] : []
    }),
  )
}

let [weekday, weekend]: ScriptedChain[] = []
beforeAll(() => {
  weekday = openScriptedChain(WORLD_SETTINGS, WEDNESDAY_MS)
  weekend = openScriptedChain(WORLD_SETTINGS, SUNDAY_MS)
})
const given = (world: ScriptedChain | undefined): ScriptedChain => {
  if (!world) throw new Error('no world')
  return world
}

describe('the swaps of the market', () => {
  it('keep each pool within some tens of basis points of the reference value while the market is open', () => {
    const bases = basesOf(given(weekday))
    expect(new Set(bases.map(({ pool }) => pool.id)).size).toBe(pools.length - 2)
    expect(Math.max(...bases.map(({ bps }) => Math.abs(bps)))).toBeLessThan(50)
    expect(Math.max(...bases.map(({ bps }) => bps))).toBeGreaterThan(2)
    expect(Math.min(...bases.map(({ bps }) => bps))).toBeLessThan(-2)
  })

  it('drift by up to some hundred basis points on a weekend', () => {
    const sizes = basesOf(given(weekend)).map(({ bps }) => Math.abs(bps))
    expect(Math.max(...sizes)).toBeGreaterThan(100)
    expect(Math.max(...sizes)).toBeLessThan(800)
  })

  it('begin a weekend without drift, and end it at the value that the feed opens with', () => {
    const [readNav, readPrice] = [createNavCurve('edges'), createPoolPrice('edges')]
    for (const atMs of [Date.UTC(2026, 10, 21), Date.UTC(2026, 10, 23) - 1, Date.UTC(2026, 10, 23)])
      for (const pool of pools) {
        const token = tokens.find(({ address }) => address === pool.token)
        // The feed's value is the next one from Monday on.
        const nav = token && readNav(token, atMs + 1)
        if (nav) expect(Math.abs(Number(basisBps(readPrice(pool, atMs, ''), String(nav.price))))).toBeLessThan(20)
      }
  })

  it('are transfers from or to every pool that has liquidity, in every cycle', () => {
    const { chain } = openScriptedChain({ ...WORLD_SETTINGS, transactionsPerFlashblock: 0.2 }, WEDNESDAY_MS)
    const from = Math.floor(chain.head.number / CYCLE_BLOCKS - 1) * CYCLE_BLOCKS + 1
    const logs = Array.from({ length: CYCLE_BLOCKS }, (_, at) => chain.block(from + at)?.logs ?? []).flat()
    for (const pool of pools) {
      const contract = toWord(poolContract(pool))
      const own = logs.filter(({ address, topics }) => address === pool.token && topics.slice(1).includes(contract))
      expect([pool.symbol, pool.kind, own.length > 0]).toEqual([pool.symbol, pool.kind, pool.liquidity > 0n])
    }
  })

  it('send tokens that become dearer, and receive those that become cheaper', () => {
    const { chain } = given(weekday)
    const directions = new Set<string>()
    for (let number = chain.head.number - CHECKED_BLOCKS; number <= chain.head.number; number++) {
      const traded = chain.block(number)?.logs.flatMap(({ address, topics }) => {
        const pool = pools.find(
          (candidate) => candidate.token === address && topics.slice(1).includes(toWord(poolContract(candidate))),
        )
        return pool ? [{ pool, isSent: topics[1] === toWord(poolContract(pool)) }] : []
      })
      for (const { pool, isSent } of traded ?? []) {
        if (traded?.some((other) => other.pool === pool && other.isSent !== isSent)) continue
        const [before, after] = [number - 1, number].map((at) => Number(priceAt(given(weekday), pool, at)))
        expect([pool.symbol, number, (after ?? 0) >= (before ?? 0)]).toEqual([pool.symbol, number, isSent])
        directions.add(`${isSent} ${isTokenFirst(pool)}`)
      }
    }
    expect(directions.size).toBe(4)
  })

  it('leave the price as it is without a swap', () => {
    const { chain } = given(weekday)
    for (const pool of pools) {
      const contract = toWord(poolContract(pool))
      for (let number = chain.head.number - 100; number <= chain.head.number; number++) {
        const isTraded = chain
          .block(number)
          ?.logs.some(({ address, topics }) => address === pool.token && topics.includes(contract))
        if (!isTraded) expect(priceAt(given(weekday), pool, number)).toBe(priceAt(given(weekday), pool, number - 1))
      }
    }
  })

  it('hold no more tokens than the pools have, and pools never run empty', () => {
    const { chain } = given(weekday)
    for (const pool of pools.filter(({ liquidity }) => liquidity > 0n))
      expect(chain.valueAt(tokenBalanceKey(pool.token, poolContract(pool)), 'pending')).toBeGreaterThan(0n)
  })

  it('do not happen where the market is closed, and the pools then have the value of the start', () => {
    const closed = openScriptedChain({ ...WORLD_SETTINGS, transactionsPerFlashblock: 0, calendar: false }, WEDNESDAY_MS)
    const readNav = createNavCurve(WORLD_SETTINGS.seed)
    for (const pool of pools) {
      const token = tokens.find(({ address }) => address === pool.token)
      const nav = token && readNav(token, WEDNESDAY_MS)
      if (nav)
        expect(Math.abs(Number(basisBps(priceAt(closed, pool, closed.chain.head.number), String(nav.price))))).toBeLessThan(30)
      expect(priceAt(closed, pool, closed.chain.head.number)).toBe(priceAt(closed, pool, closed.chain.oldest))
    }
  })
})

describe('the calendar', () => {
  it('freezes the feed of one token around its dividend, in every cycle', () => {
    const { chain } = given(weekday)
    const from = Math.floor(chain.head.number / CYCLE_BLOCKS - 1) * CYCLE_BLOCKS + 1
    const frozenBlocks = (symbol: string) => {
      const token = tokens.find((candidate) => candidate.symbol === symbol)
      if (!token) throw new Error(`no token ${symbol}`)
      return Array.from({ length: CYCLE_BLOCKS }, (_, at) => at).filter((at) =>
        isFeedFrozen((key) => chain.valueAt(key, from + at), token.address),
      )
    }
    expect([frozenBlocks('GOOGLc').at(0), frozenBlocks('GOOGLc').at(-1)]).toEqual([28, 63])
    expect(frozenBlocks('GOOGLc')).toHaveLength(36)
    expect(frozenBlocks('AAPLc')).toEqual([])
  })
})

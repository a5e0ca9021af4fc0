import type { Hex } from '../../lib/hex.ts'
import { type StateValues, writeValue } from '../chain/account-state.ts'
import { GENESIS_MS } from '../chain/chain-builder.ts'
import type { DeferredTransaction } from '../chain/chain-types.ts'
import { addressFrom } from '../chain/hashes.ts'
import { type DevnetPool, poolContract, pools, routePartnerOf } from '../tokens/devnet-pools.ts'
import { tokenOf } from '../tokens/issued-tokens.ts'
import { poolValues, readPoolState } from '../tokens/pool-storage.ts'
import { rootOfPrice } from '../tokens/sqrt-price.ts'
import { buildRoute, buildSwap, reserveBoundOf, reserveOf, SWAP_GAS, valueBetween } from '../tokens/swap-call.ts'
import { tokenBalanceKey } from '../tokens/token-storage.ts'
import type { ReadPoolPrice } from './pool-price.ts'
import { drawCount, pick, seededRandom } from './seeded-random.ts'
import { CYCLE_BLOCKS, cycleOf, senderValues } from './trading-cycle.ts'
import type { ReadActivity } from './trading-week.ts'

/** Average number of swaps for each transaction of the market, when most is traded. */
const SWAP_SHARE = 0.25
/** Share of the swaps of a pool that are routes, if it has a partner. */
const ROUTE_SHARE = 0.5
/** Least value of a swap, in dollars. The price of less is imprecise, because amounts have whole units. */
const LEAST_VALUE = 1
/** Share of the swaps of a token that seek its deepest pool, wherever they would have been. */
const DEEPEST_SHARE = 0.6
/** Stock whose deepest pool trades at night too, so that a client soon receives a swap. */
const STEADY_SYMBOL = 'AAPLc'
/** In a past that is only outlined, one block of this number has a swap. */
const OUTLINED_BLOCKS = 2
/** Longest pause between two swaps of such a pool. */
const STEADY_MS = 6_000

type SwapSettings = { blockMs: number; flashblocksPerBlock: number; transactionsPerFlashblock: number; activityAt: ReadActivity }
/**
 * A swap that cycles repeat, at another price, and that does the opposite in the `partner`, if there is one. A quiet cycle
 * omits many of them, but none that is steady, and no `isLast`: the last swap in its pool.
 */
type ScheduledSwap = DrawnSwap & { index: number; partner?: DevnetPool | undefined; isLast: boolean }
type DrawnSwap = { pool: DevnetPool; flashblock: number; isSteady: boolean }

/**
 * Makes the swaps in the pools, which depend only on the seed and the block number. Each swap sets the price of its pool
 * to a function of its block. So the last swap of each pool in a cycle gives the state at the start of the next cycle,
 * without a replay.
 */
export const createSwaps = (seed: string, settings: SwapSettings, readPrice: ReadPoolPrice) => {
  const { blockMs, flashblocksPerBlock, activityAt } = settings
  const trader = traderOf(seed)
  const schedule = drawSchedule(seed, settings)
  const byFlashblock = Map.groupBy(schedule, ({ flashblock }) => flashblock)
  const lastSwaps = new Map(schedule.filter(({ isLast }) => isLast).map((swap) => [swap.pool, swap]))

  const blockStartMs = (block: number) => GENESIS_MS + (block - 1) * blockMs
  const timeOf = (cycle: number, { flashblock }: ScheduledSwap): number =>
    blockStartMs(cycle * CYCLE_BLOCKS + 1 + Math.floor(flashblock / flashblocksPerBlock))
  const rootAfter = (cycle: number, swap: ScheduledSwap): bigint =>
    rootOfPrice(swap.pool, readPrice(swap.pool, timeOf(cycle, swap), `${cycle} ${swap.index}`))
  // At the busiest times the other swaps of the pool suffice.
  const happens = (cycle: number, swap: ScheduledSwap): boolean => {
    const activity = activityAt(timeOf(cycle, swap))
    return swap.isLast || (swap.isSteady ? activity < 1 : seededRandom(seed, 'swap happens', cycle, swap.index)() < activity)
  }
  /** Nonce and ether of the trader before a swap. They count omitted swaps too, whose number is unknown without a replay. */
  const traderValues = (cycle: number, index: number) => {
    const count = cycle * schedule.length + index
    return senderValues(trader, 1, { count, gas: count * SWAP_GAS })
  }
  const build =
    (cycle: number, swap: ScheduledSwap): DeferredTransaction =>
    (context) => {
      const { pool, partner, index, isLast } = swap
      const root = rootAfter(cycle, swap)
      const transaction = partner ? buildRoute(pool, partner, trader, root) : buildSwap(pool, trader, { sqrtPriceX96: root })
      const { logs, writes, ...others } = transaction(context)
      const counted = traderValues(cycle, index + 1).map(([key, value]) => writeValue(key, value))
      // The last swap of a pool leaves the price with which the next cycle begins, whatever it is worth.
      if (!isLast && valueBetween(pool, readPoolState(context.readState, pool).sqrtPriceX96, root) < LEAST_VALUE)
        return { ...others, logs: [], writes: counted }
      return { ...others, logs, writes: [...writes, ...counted] }
    }
  const swapsOf = (block: number, first: number, count: number): readonly ScheduledSwap[] => {
    const at = ((block - 1) % CYCLE_BLOCKS) * flashblocksPerBlock + first
    const scheduled = Array.from({ length: count }, (_, index) => byFlashblock.get(at + index) ?? []).flat()
    return scheduled.filter((swap) => happens(cycleOf(block), swap))
  }
  const rootAtStart = (cycle: number, pool: DevnetPool): bigint => {
    const lastSwap = lastSwaps.get(pool)
    if (cycle > 0 && lastSwap) return rootAfter(cycle - 1, lastSwap)
    return rootOfPrice(pool, readPrice(pool, blockStartMs(1), 'opening'))
  }
  return {
    stateAtStart: (cycle: number): StateValues =>
      new Map([...openingValues(trader, (pool) => rootAtStart(cycle, pool)), ...traderValues(cycle, 0)]),
    transactions: (block: number, flashblock: number): readonly DeferredTransaction[] => {
      if (block < 1) return []
      return swapsOf(block, flashblock, 1).map((swap) => build(cycleOf(block), swap))
    },
    /** One of the swaps of a block, or none. */
    outline: (block: number): readonly DeferredTransaction[] => {
      if (block < 1 || block % OUTLINED_BLOCKS > 0) return []
      const swaps = swapsOf(block, 0, flashblocksPerBlock)
      return swaps.length === 0 ? [] : [build(cycleOf(block), pick(seededRandom(seed, 'outlined swap', block), swaps))]
    },
  }
}

/** Makes pools in which only tests trade. */
export const createQuietSwaps = (seed: string, nowMs: number, readPrice: ReadPoolPrice) => {
  const values = openingValues(traderOf(seed), (pool) => rootOfPrice(pool, readPrice(pool, nowMs, 'opening')))
  return { stateAtStart: () => values, transactions: () => [], outline: () => [] }
}

export const traderOf = (seed: string): Hex => addressFrom(seed, 'swap trader')

/** Returns the greatest number of tokens that the trader and the pools hold together. */
export const swappableSupplyOf = (token: Hex): bigint =>
  pools.reduce((sum, pool) => (pool.token === token ? sum + reserveBoundOf(pool) : sum), 0n)

const openingValues = (trader: Hex, rootOf: (pool: DevnetPool) => bigint): Map<string, bigint> => {
  const values = new Map<string, bigint>()
  const add = (key: string, raw: bigint) => values.set(key, (values.get(key) ?? 0n) + raw)
  for (const pool of pools) {
    const root = rootOf(pool)
    const reserve = reserveOf(pool, root)
    for (const [key, value] of poolValues(pool, root)) values.set(key, value)
    add(tokenBalanceKey(pool.token, poolContract(pool)), reserve)
    add(tokenBalanceKey(pool.token, trader), reserveBoundOf(pool) - reserve)
  }
  return values
}

const deepestOf = (token: Hex): DevnetPool =>
  pools.filter((pool) => pool.token === token).reduce((deepest, pool) => (pool.liquidity > deepest.liquidity ? pool : deepest))

/** The swaps of every cycle, with at least one in each pool that has liquidity. */
const drawSchedule = (
  seed: string,
  { blockMs, flashblocksPerBlock, transactionsPerFlashblock }: SwapSettings,
): readonly ScheduledSwap[] => {
  const random = seededRandom(seed, 'swaps')
  const liquidPools = pools.filter(({ liquidity }) => liquidity > 0n)
  const flashblocks = CYCLE_BLOCKS * flashblocksPerBlock
  const swapOf = (pool: DevnetPool, flashblock: number, isSteady = false): DrawnSwap => ({ pool, flashblock, isSteady })
  const pickPool = () => {
    const pool = pick(random, liquidPools)
    return random() < DEEPEST_SHARE ? deepestOf(pool.token) : pool
  }
  const atLeast = liquidPools.map((pool) => swapOf(pool, Math.floor(random() * flashblocks)))
  const more = Array.from({ length: flashblocks }, (_, flashblock) =>
    Array.from({ length: drawCount(random, transactionsPerFlashblock * SWAP_SHARE) }, () => swapOf(pickPool(), flashblock)),
  ).flat()
  const step = Math.max(1, Math.floor(STEADY_MS / blockMs)) * flashblocksPerBlock
  const steadyPool = deepestOf(tokenOf(STEADY_SYMBOL).address)
  const steady = Array.from({ length: Math.ceil(flashblocks / step) }, (_, nth) => swapOf(steadyPool, nth * step, true))
  const swaps = [...atLeast, ...more, ...steady].toSorted((left, right) => left.flashblock - right.flashblock)
  const lastIndexes = new Map(swaps.map(({ pool }, index) => [pool, index]))
  return swaps.map((swap, index) => {
    const { pool } = swap
    const partner = routePartnerOf(pool)
    // A later swap sets the price of the partner, so that the state at the end of a cycle is known.
    const isRoute = partner !== undefined && index < (lastIndexes.get(partner) ?? 0) && random() < ROUTE_SHARE
    return { ...swap, index, partner: isRoute ? partner : undefined, isLast: lastIndexes.get(pool) === index }
  })
}

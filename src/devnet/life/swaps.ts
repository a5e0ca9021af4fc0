import type { Hex } from '../../lib/hex.ts'
import type { StateValues } from '../chain/account-state.ts'
import { GENESIS_MS } from '../chain/chain-builder.ts'
import type { DeferredTransaction } from '../chain/chain-types.ts'
import { addressFrom } from '../chain/hashes.ts'
import { type DevnetPool, poolContract, pools } from '../tokens/devnet-pools.ts'
import { poolValues } from '../tokens/pool-storage.ts'
import { rootOfPrice } from '../tokens/sqrt-price.ts'
import { buildSwap, reserveBoundOf, reserveOf, SWAP_GAS } from '../tokens/swap-call.ts'
import { tokenBalanceKey } from '../tokens/token-storage.ts'
import type { ReadPoolPrice } from './pool-price.ts'
import { drawCount, pick, seededRandom } from './seeded-random.ts'
import { CYCLE_BLOCKS, cycleOf, senderValues } from './trading-cycle.ts'

/** Average number of swaps for each transaction of the market. */
const SWAP_SHARE = 0.1

type SwapSettings = { blockMs: number; flashblocksPerBlock: number; transactionsPerFlashblock: number }
/** A swap that every cycle repeats, at another price. */
type ScheduledSwap = { pool: DevnetPool; flashblock: number; index: number }

/**
 * Makes the swaps in the pools, which depend only on the seed and the block number. Each swap sets the price of its pool
 * to a function of its block. So the last swap of each pool in a cycle gives the state at the start of the next cycle,
 * without a replay.
 */
export const createSwaps = (seed: string, settings: SwapSettings, readPrice: ReadPoolPrice) => {
  const { blockMs, flashblocksPerBlock } = settings
  const trader = traderOf(seed)
  const schedule = drawSchedule(seed, settings)
  const byFlashblock = Map.groupBy(schedule, ({ flashblock }) => flashblock)
  const lastSwaps = new Map(schedule.map((swap) => [swap.pool, swap]))

  const blockStartMs = (block: number) => GENESIS_MS + (block - 1) * blockMs
  const rootAfter = (cycle: number, { pool, flashblock, index }: ScheduledSwap): bigint => {
    const block = cycle * CYCLE_BLOCKS + 1 + Math.floor(flashblock / flashblocksPerBlock)
    return rootOfPrice(pool, readPrice(pool, blockStartMs(block), `${cycle} ${index}`))
  }
  const rootAtStart = (cycle: number, pool: DevnetPool): bigint => {
    const lastSwap = lastSwaps.get(pool)
    if (cycle > 0 && lastSwap) return rootAfter(cycle - 1, lastSwap)
    return rootOfPrice(pool, readPrice(pool, blockStartMs(1), 'opening'))
  }
  return {
    stateAtStart: (cycle: number): StateValues =>
      new Map([
        ...openingValues(trader, (pool) => rootAtStart(cycle, pool)),
        ...senderValues(trader, cycle, { count: schedule.length, gas: schedule.length * SWAP_GAS }),
      ]),
    transactions: (block: number, flashblock: number): readonly DeferredTransaction[] => {
      if (block < 1) return []
      const cycle = cycleOf(block)
      const scheduled = byFlashblock.get(((block - 1) % CYCLE_BLOCKS) * flashblocksPerBlock + flashblock) ?? []
      return scheduled.map((swap) => buildSwap(swap.pool, trader, { sqrtPriceX96: rootAfter(cycle, swap) }))
    },
  }
}

/** Makes pools in which only tests trade. */
export const createQuietSwaps = (seed: string, nowMs: number, readPrice: ReadPoolPrice) => {
  const values = openingValues(traderOf(seed), (pool) => rootOfPrice(pool, readPrice(pool, nowMs, 'opening')))
  return { stateAtStart: () => values, transactions: () => [] }
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

/** The swaps of every cycle, with at least one in each pool that has liquidity. */
const drawSchedule = (seed: string, { flashblocksPerBlock, transactionsPerFlashblock }: SwapSettings): readonly ScheduledSwap[] => {
  const random = seededRandom(seed, 'swaps')
  const liquidPools = pools.filter(({ liquidity }) => liquidity > 0n)
  const flashblocks = CYCLE_BLOCKS * flashblocksPerBlock
  const atLeast = liquidPools.map((pool) => ({ pool, flashblock: Math.floor(random() * flashblocks) }))
  const more = Array.from({ length: flashblocks }, (_, flashblock) =>
    Array.from({ length: drawCount(random, transactionsPerFlashblock * SWAP_SHARE) }, () => ({
      pool: pick(random, liquidPools),
      flashblock,
    })),
  ).flat()
  return [...atLeast, ...more]
    .toSorted((left, right) => left.flashblock - right.flashblock)
    .map((swap, index) => ({ ...swap, index }))
}

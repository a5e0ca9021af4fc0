import { toFunctionSelector } from 'viem/utils'
import { type Hex, toWord } from '../../lib/hex.ts'
import { type ReadState, type StateWrite, writeValue } from '../chain/account-state.ts'
import type { DeferredTransaction } from '../chain/chain-types.ts'
import { type DevnetPool, isTokenFirst, poolContract } from './devnet-pools.ts'
import { TOKEN_DECIMALS } from './issued-tokens.ts'
import { packPoolState, poolLiquidityKey, poolStateKey, readPoolState } from './pool-storage.ts'
import { Q96, rootOfPrice } from './sqrt-price.ts'
import { swapLog } from './swap-event.ts'
import { buildTransfer } from './token-transfers.ts'

const SWAP = toFunctionSelector('swap(address,bool,int256,uint160,bytes)')
export const SWAP_GAS = 128_000
/** Prices with liquidity are between the average price divided by this number and the average price multiplied by it. */
const RANGE = 1.25

/** New values of a pool. An omitted field does not change. */
export type SwapEffect = { sqrtPriceX96?: bigint | undefined; liquidity?: bigint | undefined }

/**
 * Trades with a pool until it has the price, and sets the liquidity. The pool sends tokens if they become dearer, and
 * receives tokens if they become cheaper.
 */
export const buildSwap =
  (pool: DevnetPool, trader: Hex, effect: SwapEffect): DeferredTransaction =>
  ({ readState }) => {
    const { received, logs: swapLogs, writes: poolWrites } = swapIn(readState, pool, trader, effect)
    const contract = poolContract(pool)
    const [from, to] = received > 0n ? [trader, contract] : [contract, trader]
    const { logs, writes } = buildTransfer({ token: pool.token, from, to, raw: received < 0n ? -received : received }, trader)
    return {
      from: trader,
      to: contract,
      input: swapInput(trader, effect.sqrtPriceX96 ?? 0n, effect.liquidity ?? 0n),
      gasUsed: SWAP_GAS,
      logs: [...logs, ...swapLogs],
      writes: [...writes, ...poolWrites],
    }
  }

/**
 * Trades with a pool of Uniswap v4 until it has the price, and does the opposite in another pool of the manager. All
 * tokens stay in the manager, so that nothing is transferred.
 */
export const buildRoute =
  (pool: DevnetPool, other: DevnetPool, trader: Hex, sqrtPriceX96: bigint): DeferredTransaction =>
  ({ readState }) => {
    const swap = swapIn(readState, pool, trader, { sqrtPriceX96 })
    const { sqrtPriceX96: before } = readPoolState(readState, other)
    const after = before === 0n ? before : rootAfter(other, before, -swap.received)
    const opposite = swapIn(readState, other, trader, { sqrtPriceX96: after })
    return {
      from: trader,
      to: poolContract(pool),
      input: swapInput(trader, sqrtPriceX96, BigInt(other.id)),
      gasUsed: SWAP_GAS,
      logs: [...swap.logs, ...opposite.logs],
      writes: [...swap.writes, ...opposite.writes],
    }
  }

/** The event of a swap, none if the price stays, and the number of tokens that the pool receives: below zero if it sends them. */
const swapIn = (readState: ReadState, pool: DevnetPool, trader: Hex, effect: SwapEffect) => {
  const before = readPoolState(readState, pool).sqrtPriceX96
  const after = effect.sqrtPriceX96 ?? before
  const received = reserveOf(pool, after) - reserveOf(pool, before)
  const liquidity = effect.liquidity ?? readState(poolLiquidityKey(pool))
  const isSwap = before !== after && before !== 0n && after !== 0n
  const logs = isSwap ? [swapLog(pool, { trader, before, after, liquidity, received })] : []
  return { received, logs, writes: effectWrites(pool, effect) }
}

/** The input must not depend on the state, because the hash is known without the state. */
const swapInput = (trader: Hex, ...values: readonly bigint[]): Hex =>
  `${SWAP}${[trader, ...values].map((value) => toWord(value).slice(2)).join('')}`

export const reserveOf = (pool: DevnetPool, sqrtPriceX96: bigint): bigint => {
  if (sqrtPriceX96 === 0n) return 0n
  const { least, most } = reserveBoundsOf(pool)
  const held = tokensAt(pool, sqrtPriceX96)
  if (held >= most) return most - least
  return held > least ? held - least : 0n
}

/** Returns about how many dollars a swap between two prices is worth. */
export const valueBetween = (pool: DevnetPool, before: bigint, after: bigint): number =>
  (Math.abs(Number(reserveOf(pool, after) - reserveOf(pool, before))) * pool.averagePrice) / 10 ** TOKEN_DECIMALS

/** Returns the greatest number of tokens that a pool holds at any price. */
export const reserveBoundOf = (pool: DevnetPool): bigint => reserveBoundsOf(pool).most - reserveBoundsOf(pool).least

const boundsByPool = new Map<DevnetPool, { least: bigint; most: bigint }>()
const reserveBoundsOf = (pool: DevnetPool) => {
  const known = boundsByPool.get(pool)
  if (known) return known
  const tokensAtPrice = (price: number) => tokensAt(pool, rootOfPrice(pool, price.toFixed(8)))
  const bounds = { least: tokensAtPrice(pool.averagePrice * RANGE), most: tokensAtPrice(pool.averagePrice / RANGE) }
  boundsByPool.set(pool, bounds)
  return bounds
}

/** Returns the number of tokens that the liquidity would hold if it had no range. */
const tokensAt = (pool: DevnetPool, sqrtPriceX96: bigint): bigint =>
  isTokenFirst(pool) ? (pool.liquidity * Q96) / sqrtPriceX96 : (pool.liquidity * sqrtPriceX96) / Q96

/** Returns the root after a pool received tokens, or sent them if the number is below zero. The pool then holds exactly these. */
export const rootAfter = (pool: DevnetPool, sqrtPriceX96: bigint, received: bigint): bigint => {
  const held = tokensAt(pool, sqrtPriceX96) + received
  return isTokenFirst(pool) ? (pool.liquidity * Q96) / held : (held * Q96 + pool.liquidity - 1n) / pool.liquidity
}

const effectWrites = (pool: DevnetPool, { sqrtPriceX96, liquidity }: SwapEffect): readonly StateWrite[] => [
  ...(sqrtPriceX96 === undefined ? [] : [writeValue(poolStateKey(pool), packPoolState(pool, sqrtPriceX96))]),
  ...(liquidity === undefined ? [] : [writeValue(poolLiquidityKey(pool), liquidity)]),
]

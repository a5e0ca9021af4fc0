import { toEventSelector } from 'viem/utils'
import { type Hex, toWord } from '../../lib/hex.ts'
import type { EmittedLog } from '../chain/chain-types.ts'
import { type DevnetPool, isTokenFirst, poolContract } from './devnet-pools.ts'
import { Q96, tickOf } from './sqrt-price.ts'

const SWAP_OF_POOL = toEventSelector('Swap(address,address,int256,int256,uint160,uint128,int24)')
const SWAP_OF_MANAGER = toEventSelector('Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)')
/** Denominator of a fee: hundredths of a basis point. */
const FEE_UNIT = 1_000_000n

type Swapped = { trader: Hex; before: bigint; after: bigint; liquidity: bigint; received: bigint }

/** Makes the event of a swap that changed the root of a pool's price. `received` is the token's amount, below zero if the pool sent it. */
export const swapLog = (pool: DevnetPool, { trader, before, after, liquidity, received }: Swapped): EmittedLog => {
  const currency = currencyReceived(pool, before, after)
  const inOrder = isTokenFirst(pool) ? [received, currency] : [currency, received]
  const state = [after, liquidity, BigInt(tickOf(after))]
  if (pool.kind !== 'uniswap_v4')
    return {
      address: poolContract(pool),
      topics: [SWAP_OF_POOL, toWord(trader), toWord(trader)],
      data: encodeWords([...inOrder, ...state]),
    }
  // The amounts of Uniswap v4 are those of the trader.
  const ofTrader = inOrder.map((amount) => -amount)
  return {
    address: poolContract(pool),
    topics: [SWAP_OF_MANAGER, pool.id, toWord(trader)],
    data: encodeWords([...ofTrader, ...state, BigInt(pool.fee)]),
  }
}

/** The pool keeps its fee from the currency in both directions. Real pools keep it from what they receive. */
const currencyReceived = (pool: DevnetPool, before: bigint, after: bigint): bigint => {
  const held = (root: bigint) => (isTokenFirst(pool) ? (pool.liquidity * root) / Q96 : (pool.liquidity * Q96) / root)
  const change = held(after) - held(before)
  const fee = BigInt(pool.fee)
  return change < 0n ? (change * (FEE_UNIT - fee)) / FEE_UNIT : (change * FEE_UNIT) / (FEE_UNIT - fee)
}

const encodeWords = (values: readonly bigint[]): Hex =>
  `0x${values.map((value) => toWord(BigInt.asUintN(256, value)).slice(2)).join('')}`

import { type Hex, toWord } from '../../lib/hex.ts'
import { codeKey, mappingSlot, type ReadState, type StateValues, storageKey } from '../chain/account-state.ts'
import { type DevnetPool, poolContract } from './devnet-pools.ts'
import { tickOf } from './sqrt-price.ts'

/** Code of a pool. Like MANAGER_CODE it is a marker that never runs, because the devnet itself implements pools. */
export const POOL_CODE = 0x6081n
export const MANAGER_CODE = 0x6082n

// Slots of the real contracts. Only those of Slipstream are the devnet's own, since its pools are read by calls.
const V3_SLOTS = { state: toWord(0n), liquidity: toWord(4n) }
const SLIPSTREAM_SLOTS = { state: toWord(16n), liquidity: toWord(17n) }
const V4_POOLS_SLOT = toWord(6n)
const V4_LIQUIDITY_OFFSET = 3n
const ROOT_BITS = 160
const TICK_BITS = 24
const TICK_SHIFT = 160n
/** Number of bits below the fee in a v4 manager: price, tick and protocol fee. */
const V4_FEE_SHIFT = 208n
/** The upper bits of the slot in a v3 pool: room for one observation, and no swap in progress. */
const V3_IDLE = (1n << 200n) | (1n << 216n) | (1n << 240n)

export const poolStateKey = (pool: DevnetPool): string => storageKey(poolContract(pool), slotsOf(pool).state)
export const poolLiquidityKey = (pool: DevnetPool): string => storageKey(poolContract(pool), slotsOf(pool).liquidity)

export const packPoolState = ({ kind, fee }: DevnetPool, sqrtPriceX96: bigint): bigint => {
  const tick = BigInt.asUintN(TICK_BITS, BigInt(tickOf(sqrtPriceX96)))
  return sqrtPriceX96 | (tick << TICK_SHIFT) | (kind === 'uniswap_v4' ? BigInt(fee) << V4_FEE_SHIFT : V3_IDLE)
}

export const readPoolState = (readState: ReadState, pool: DevnetPool): { sqrtPriceX96: bigint; tick: number } => {
  const packed = readState(poolStateKey(pool))
  return { sqrtPriceX96: BigInt.asUintN(ROOT_BITS, packed), tick: Number(BigInt.asIntN(TICK_BITS, packed >> TICK_SHIFT)) }
}

export const poolValues = (pool: DevnetPool, sqrtPriceX96: bigint): StateValues =>
  new Map([
    [codeKey(poolContract(pool)), pool.manager ? MANAGER_CODE : POOL_CODE],
    [poolStateKey(pool), packPoolState(pool, sqrtPriceX96)],
    [poolLiquidityKey(pool), pool.liquidity],
  ])

const slotsOf = ({ kind, id }: DevnetPool): { state: Hex; liquidity: Hex } => {
  if (kind === 'uniswap_v3') return V3_SLOTS
  if (kind === 'slipstream') return SLIPSTREAM_SLOTS
  const state = mappingSlot(id, V4_POOLS_SLOT)
  return { state, liquidity: toWord(BigInt(state) + V4_LIQUIDITY_OFFSET) }
}

import { concat, keccak256 } from 'viem/utils'
import { type Hex, toWord, ZERO_ADDRESS } from '../../../lib/hex.ts'
import type { Hooks, PoolKey, PoolSetting } from '../../config/pool-settings.ts'

/** A pool of the settings. `token` is the address of its stock token. The hooks are known if the settings have the key. */
export type Pool = Omit<PoolSetting, 'id'> & { readonly token: Hex; readonly id: Hex; readonly hooks?: Hooks }

/** The square root of the price of a pool in units of 2^-96, and the liquidity at this price. */
export type PoolState = { readonly sqrtPriceX96: bigint; readonly liquidity: bigint }

export const SQRT_PRICE_BOUNDS = { min: 4295128739n, max: 1461446703485210103287273052203988822378723970342n } as const

/** Returns the account whose movements concern the pool: the manager of a v4 pool, or else the pool itself. */
export const poolAccount = ({ id, manager }: Pool): Hex => manager ?? id

/** Whether the stock token is the first token of the pool, which is the token with the lower address. */
export const isToken0 = ({ token, currency }: Pick<Pool, 'token' | 'currency'>): boolean => BigInt(token) < BigInt(currency.address)

/** Returns the pool that a setting names, if this is the address of its token. */
export function poolOf(setting: PoolSetting, token: Hex): Pool {
  const { id, currency } = setting
  if (typeof id === 'string') return { ...setting, token, id }
  return { ...setting, token, id: v4IdOf(id, { token, currency }), hooks: id.hooks }
}

/** Hashes the five words of the key as the pool manager does. The tokens are in the order of their addresses. */
function v4IdOf({ fee, tickSpacing, hooks }: PoolKey, sides: Pick<Pool, 'token' | 'currency'>): Hex {
  const pair = [sides.token, sides.currency.address]
  const tokens = isToken0(sides) ? pair : pair.toReversed()
  return keccak256(concat([...tokens, BigInt(fee), BigInt(tickSpacing), hooks === 'none' ? ZERO_ADDRESS : hooks].map(toWord)))
}

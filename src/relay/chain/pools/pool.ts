import type { Hex } from '../../../lib/hex.ts'
import type { PoolSetting } from '../../config/pool-settings.ts'

/** A pool of the settings. `token` is the address of its stock token. */
export type Pool = PoolSetting & { readonly token: Hex }

/** The square root of the price of a pool in units of 2^-96, and the liquidity at this price. */
export type PoolState = { readonly sqrtPriceX96: bigint; readonly liquidity: bigint }

export const SQRT_PRICE_BOUNDS = { min: 4295128739n, max: 1461446703485210103287273052203988822378723970342n } as const

/** Returns the account whose movements concern the pool: the manager of a v4 pool, or else the pool itself. */
export const poolAccount = ({ id, manager }: Pool): Hex => manager ?? id

/** Whether the stock token is the first token of the pool, which is the token with the lower address. */
export const isToken0 = ({ token, currency }: Pool): boolean => BigInt(token) < BigInt(currency.address)

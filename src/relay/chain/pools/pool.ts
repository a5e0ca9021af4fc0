import type { Hex } from '../../../lib/hex.ts'

export type VenueKind = 'uniswap_v3' | 'uniswap_v4' | 'slipstream'

/** A currency that a stock token is traded for. The relay counts it as one dollar. */
type Currency = { readonly symbol: string; readonly address: Hex; readonly decimals: number }

export type Pool = {
  /** Address of the stock token. */
  readonly token: Hex
  readonly kind: VenueKind
  /** Address of the pool; in Uniswap v4 the 32 bytes that name it in its manager. */
  readonly id: Hex
  /** The contract that holds all pools of Uniswap v4; null for other kinds of pools. */
  readonly manager: Hex | null
  readonly currency: Currency
}

/** The square root of the price of a pool in units of 2^-96, and the liquidity at this price. */
export type PoolState = { readonly sqrtPriceX96: bigint; readonly liquidity: bigint }

export const SQRT_PRICE_BOUNDS = { min: 4295128739n, max: 1461446703485210103287273052203988822378723970342n } as const

/** Returns the account whose movements concern the pool: the manager of a v4 pool, or else the pool itself. */
export const poolAccount = ({ id, manager }: Pool): Hex => manager ?? id

/** Whether the stock token is the first token of the pool, which is the token with the lower address. */
export const isToken0 = ({ token, currency }: Pool): boolean => BigInt(token) < BigInt(currency.address)

import type { Hex } from '../../../lib/hex.ts'

export type VenueKind = 'uniswap_v3' | 'uniswap_v4' | 'slipstream'

/** A token that a stock is traded for. It is worth one dollar by definition. */
type Currency = { readonly symbol: string; readonly address: Hex; readonly decimals: number }

export type Pool = {
  /** Address of the stock token. */
  readonly token: Hex
  readonly kind: VenueKind
  /** Address of the pool; in Uniswap v4 the 32 bytes that name it in its manager. */
  readonly id: Hex
  /** The contract that holds all pools of Uniswap v4. */
  readonly manager: Hex | null
  readonly currency: Currency
}

/** The root of the price in units of 2^-96, and the liquidity in range. */
export type PoolState = { readonly sqrtPriceX96: bigint; readonly liquidity: bigint }

export const SQRT_PRICE_BOUNDS = { min: 4295128739n, max: 1461446703485210103287273052203988822378723970342n } as const

/** The contract whose movements concern the pool. */
export const poolAccount = ({ id, manager }: Pool): Hex => manager ?? id

/** The token with the lower address is a pool's first token. */
export const isToken0 = ({ token, currency }: Pool): boolean => BigInt(token) < BigInt(currency.address)

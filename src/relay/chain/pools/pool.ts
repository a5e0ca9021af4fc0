import type { Hex } from '../../../lib/hex.ts'

export type VenueKind = 'uniswap_v3' | 'uniswap_v4' | 'slipstream'

/** What a token is traded against; taken as one dollar. */
type Currency = { readonly symbol: string; readonly address: Hex; readonly decimals: number }

/** A pool on the chain where a token trades. */
export type Pool = {
  /** The token's address. */
  readonly token: Hex
  readonly kind: VenueKind
  /** Its address; in Uniswap v4 the 32 bytes that name it in its manager. */
  readonly id: Hex
  /** The contract that holds all pools of Uniswap v4. */
  readonly manager: Hex | null
  readonly currency: Currency
}

/** What a pool stores: the root of its price in units of 2^-96, and the liquidity in range. */
export type PoolState = { readonly sqrtPriceX96: bigint; readonly liquidity: bigint }

/** The lowest and the highest root of a price in any pool. */
export const SQRT_PRICE_BOUNDS = { min: 4295128739n, max: 1461446703485210103287273052203988822378723970342n } as const

/** The contract whose movements concern the pool. */
export const poolAccount = ({ id, manager }: Pool): Hex => manager ?? id

/** The lower address comes first in a pool. */
export const isToken0 = ({ token, currency }: Pool): boolean => BigInt(token) < BigInt(currency.address)

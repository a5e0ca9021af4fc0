import type { Hex } from '../../protocol/fields.ts'

export type VenueKind = 'uniswap_v3' | 'uniswap_v4' | 'slipstream'

/** What a token is traded against; taken as one dollar. */
export type Currency = { readonly symbol: string; readonly address: Hex; readonly decimals: number }

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

/** The contract whose movements concern the pool. */
export const poolAccount = ({ id, manager }: Pool): Hex => manager ?? id

/** The lower address comes first in a pool. */
export const isToken0 = ({ token, currency }: Pool): boolean => BigInt(token) < BigInt(currency.address)

import { amountOf, unitPriceOf } from '../../protocol/decimal.ts'
import type { DecodedEvent } from '../chain/logs/event-decoder.ts'
import { isToken0, type Pool, SQRT_PRICE_BOUNDS } from '../chain/pools/pool.ts'
import { priceOf } from './quote-math.ts'

export type Swap = Extract<DecodedEvent, { readonly event: 'Swap' }>

/** Amounts and prices of a trade. Those that need the decimals of the token are null while these are unknown. */
type TradeNumbers = {
  /** `buy`: the token left the pool. Null if nothing moved. */
  readonly side: 'buy' | 'sell' | null
  readonly raw: bigint
  readonly amount: string | null
  readonly currency_amount: string
  readonly price: string | null
  readonly pool_price: string | null
}

/** The factor with which an amount of the event is positive if it went into the pool. */
const intoPool: Readonly<Record<Pool['kind'], bigint>> = { uniswap_v3: 1n, slipstream: 1n, uniswap_v4: -1n }

export function tradeNumbersOf(pool: Pool, { amounts, sqrtPriceX96 }: Swap, decimals: number | null): TradeNumbers {
  const inOrder = isToken0(pool) ? amounts : ([amounts[1], amounts[0]] as const)
  const [token, currency] = [intoPool[pool.kind] * inOrder[0], intoPool[pool.kind] * inOrder[1]]
  const [raw, currencyRaw] = [magnitude(token), magnitude(currency)]
  const { decimals: currencyDecimals } = pool.currency
  const isAtBound = sqrtPriceX96 <= SQRT_PRICE_BOUNDS.min || sqrtPriceX96 >= SQRT_PRICE_BOUNDS.max
  // If no token moved, the currency says which side it was: it goes the other way.
  const sold = token === 0n ? -currency : token
  return {
    side: sold === 0n ? null : sold > 0n ? 'sell' : 'buy',
    raw,
    amount: decimals === null ? null : amountOf(raw, decimals),
    currency_amount: amountOf(currencyRaw, currencyDecimals),
    price: decimals === null ? null : unitPriceOf({ units: currencyRaw, scale: currencyDecimals }, { units: raw, scale: decimals }),
    pool_price: decimals === null || isAtBound ? null : priceOf(sqrtPriceX96, isToken0(pool), decimals, currencyDecimals),
  }
}

const magnitude = (value: bigint): bigint => (value < 0n ? -value : value)

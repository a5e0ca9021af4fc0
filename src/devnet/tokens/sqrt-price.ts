import { parseUnits } from 'viem/utils'
import { type DevnetPool, isTokenFirst } from './devnet-pools.ts'
import { TOKEN_DECIMALS } from './issued-tokens.ts'

export const Q96 = 2n ** 96n
/** Number of decimals of a price, more than any test needs. */
const PRICE_DECIMALS = 18
/** Limit of the relative error of a root that is estimated with doubles. */
const ESTIMATE_ERROR = 2 ** -50

/** Returns the root of the ratio of a pool's second currency to its first, in units of 2^-96, for a price of the token. */
export const rootOfPrice = (pool: DevnetPool, price: string): bigint => {
  const currencyUnits = parseUnits(price, PRICE_DECIMALS) * 10n ** BigInt(pool.currency.decimals)
  const tokenUnits = 10n ** BigInt(PRICE_DECIMALS + TOKEN_DECIMALS)
  const [first, second] = isTokenFirst(pool) ? [tokenUnits, currencyUnits] : [currencyUnits, tokenUnits]
  if (first <= 0n || second <= 0n) throw new Error(`a price is above zero, not ${price}`)
  return squareRoot((second * Q96 * Q96) / first)
}

/** Returns the tick of a root: the exponent of 1.0001 that gives its price, rounded down; 0 without a price. */
export const tickOf = (sqrtPriceX96: bigint): number =>
  sqrtPriceX96 === 0n ? 0 : Math.floor((2 * Math.log(Number(sqrtPriceX96) / 2 ** 96)) / Math.log(1.0001))

/** Returns the square root, rounded down. Newton's method descends to it from any greater start. */
const squareRoot = (square: bigint): bigint => {
  let root = BigInt(Math.ceil(Math.sqrt(Number(square)) * (1 + ESTIMATE_ERROR))) + 1n
  for (;;) {
    const next = (root + square / root) >> 1n
    if (next >= root) return root
    root = next
  }
}

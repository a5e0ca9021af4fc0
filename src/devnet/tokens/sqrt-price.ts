import { parseUnits } from 'viem/utils'

export const Q96 = 2n ** 96n

/** More digits of a price than any test needs. */
const PRICE_DECIMALS = 18

type PairTerms = { isTokenFirst: boolean; tokenDecimals: number; currencyDecimals: number }

/** The root of the ratio of a pool's second currency to its first, in units of 2^-96, for a price of the token. */
export const sqrtPriceOf = (price: string, { isTokenFirst, tokenDecimals, currencyDecimals }: PairTerms): bigint => {
  const currencyUnits = parseUnits(price, PRICE_DECIMALS) * 10n ** BigInt(currencyDecimals)
  const tokenUnits = 10n ** BigInt(PRICE_DECIMALS + tokenDecimals)
  const [first, second] = isTokenFirst ? [tokenUnits, currencyUnits] : [currencyUnits, tokenUnits]
  if (first <= 0n || second <= 0n) throw new Error(`a price is above zero, not ${price}`)
  return squareRoot((second * Q96 * Q96) / first)
}

/** The tick of a root: how often 1.0001 is a factor of its price, rounded down; 0 before there is a price. */
export const tickOf = (sqrtPriceX96: bigint): number =>
  sqrtPriceX96 === 0n ? 0 : Math.floor((2 * Math.log(Number(sqrtPriceX96) / 2 ** 96)) / Math.log(1.0001))

/** Rounded down, by Newton's method. */
const squareRoot = (square: bigint): bigint => {
  // The estimate has 53 bits, so it takes few steps.
  let root = BigInt(Math.floor(Math.sqrt(Number(square)))) + 1n
  for (;;) {
    const next = (root + square / root) >> 1n
    const isClose = next - root <= 1n && root - next <= 1n
    root = next
    if (isClose) break
  }
  while (root * root > square) root -= 1n
  while ((root + 1n) * (root + 1n) <= square) root += 1n
  return root
}

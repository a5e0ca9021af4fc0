import { compareDecimals, type Decimal, divideHalfEven, formatDecimal, parseDecimal, tenTo } from '../../protocol/decimal.ts'
import { type PoolState, SQRT_PRICE_BOUNDS } from '../chain/pools/pool.ts'

type Terms = {
  readonly isToken0: boolean
  readonly tokenDecimals: number
  readonly currencyDecimals: number
  readonly poolMinDepth: Decimal
}

export type PoolJudgement = {
  readonly state: 'ok' | 'thin' | 'empty'
  readonly price: string | null
  readonly depth: string | null
}

const PRICE_DECIMALS = 8
const DEPTH_DECIMALS = 2
const BPS_DECIMALS = 2
const BPS = 10_000n
const Q96 = 2n ** 96n
/** √1.01 − 1: the change of the price's root for a change of the price by 1 %. */
const ROOT_MOVE: Decimal = { units: 49_875_621n, scale: 10 }

/** Decides whether a pool can be traded in. Only a pool with the state `ok` has a price. */
export function judgePool(pool: PoolState, { isToken0, tokenDecimals, currencyDecimals, poolMinDepth }: Terms): PoolJudgement {
  const { sqrtPriceX96, liquidity } = pool
  const isAtBound = sqrtPriceX96 <= SQRT_PRICE_BOUNDS.min || sqrtPriceX96 >= SQRT_PRICE_BOUNDS.max
  if (liquidity === 0n || isAtBound) return { state: 'empty', price: null, depth: null }
  const depth = depthOf({ ...pool, isToken0, currencyDecimals })
  const price = priceOf(sqrtPriceX96, isToken0, tokenDecimals, currencyDecimals)
  const isThin = price === null || compareDecimals(decimalOf(depth), poolMinDepth) < 0
  return isThin ? { state: 'thin', price: null, depth } : { state: 'ok', price, depth }
}

/** Returns units of the currency for one token; null if they round to 0. */
export function priceOf(sqrtPriceX96: bigint, isToken0: boolean, tokenDecimals: number, currencyDecimals: number): string | null {
  const [root, unit] = isToken0 ? [sqrtPriceX96, Q96] : [Q96, sqrtPriceX96]
  const units = divideHalfEven(root * root * tenTo(tokenDecimals + PRICE_DECIMALS), unit * unit * tenTo(currencyDecimals))
  return units === 0n ? null : formatDecimal({ units, scale: PRICE_DECIMALS })
}

/** Returns the units of the currency that raise the token's price by 1 %, at the current liquidity, rounded down. */
export function depthOf(pool: PoolState & Pick<Terms, 'isToken0' | 'currencyDecimals'>): string {
  const { sqrtPriceX96, liquidity, isToken0, currencyDecimals } = pool
  const [root, unit] = isToken0 ? [sqrtPriceX96, Q96] : [Q96, sqrtPriceX96]
  const units = (liquidity * root * ROOT_MOVE.units * tenTo(DEPTH_DECIMALS)) / (unit * tenTo(ROOT_MOVE.scale + currencyDecimals))
  return formatDecimal({ units, scale: DEPTH_DECIMALS })
}

/** Returns the difference between a price and the NAV, in hundredths of a percent of the NAV. */
export function basisBps(price: string, navPrice: string): string {
  const [a, b] = [decimalOf(price), decimalOf(navPrice)]
  const [paid, value] = [a.units * tenTo(b.scale), b.units * tenTo(a.scale)]
  return formatDecimal({ units: divideHalfEven((paid - value) * BPS * tenTo(BPS_DECIMALS), value), scale: BPS_DECIMALS })
}

function decimalOf(text: string): Decimal {
  const decimal = parseDecimal(text)
  if (!decimal) throw new RangeError(`${text} is not a decimal number`)
  return decimal
}

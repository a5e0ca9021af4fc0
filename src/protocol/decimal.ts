/** An exact number: `units` / 10^`scale`. */
export type Decimal = { readonly units: bigint; readonly scale: number }

/** Limit of digits on either side of the point, more than any price or multiplier needs. It bounds the work for one number. */
const DIGITS_BOUND = 400
/** Length of the longest text that `formatDecimal` writes, which `parseDecimal` must accept. */
const TEXT_BOUND_CHARS = '-.'.length + 2 * DIGITS_BOUND

const decimalPattern = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** Parses a JSON number exactly, without a float. Returns null if it is no number, or has too many digits. */
export function parseDecimal(text: string): Decimal | null {
  const match = text.length > TEXT_BOUND_CHARS ? null : decimalPattern.exec(text)
  if (!match) return null
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const scale = fraction.length - Number(exponent)
  if (scale > DIGITS_BOUND || whole.length + Number(exponent) > DIGITS_BOUND) return null
  const units = BigInt(`${sign}${whole}${fraction}`)
  return scale >= 0 ? { units, scale } : { units: units * tenTo(-scale), scale: 0 }
}

export function formatDecimal({ units, scale }: Decimal): string {
  if (scale === 0) return units.toString()
  const digits = (units < 0n ? -units : units).toString().padStart(scale + 1, '0')
  const point = digits.length - scale
  let end = digits.length
  while (end > point && digits.charCodeAt(end - 1) === ZERO) end -= 1
  const text = end === point ? digits.slice(0, point) : `${digits.slice(0, point)}.${digits.slice(point, end)}`
  return units < 0n ? `-${text}` : text
}

/** Returns a number with the sign of `a - b`. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const scale = Math.max(a.scale, b.scale)
  const difference = a.units * tenTo(scale - a.scale) - b.units * tenTo(scale - b.scale)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

export function addDecimals(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale)
  return { units: a.units * tenTo(scale - a.scale) + b.units * tenTo(scale - b.scale), scale }
}

/** Decimals of a price in a pool. */
const PRICE_DECIMALS = 8

/** Returns the units of the currency that were paid for one token; null if they round to 0, or if nothing was traded. */
export function unitPriceOf(currency: Decimal, amount: Decimal): string | null {
  if (amount.units === 0n) return null
  const units = divideHalfEven(currency.units * tenTo(amount.scale + PRICE_DECIMALS), amount.units * tenTo(currency.scale))
  return units === 0n ? null : formatDecimal({ units, scale: PRICE_DECIMALS })
}

/** Divides, and rounds to the nearest whole number; a half is rounded to the even one. The divisor is positive. */
export function divideHalfEven(dividend: bigint, divisor: bigint): bigint {
  const magnitude = dividend < 0n ? -dividend : dividend
  const [whole, rest] = [magnitude / divisor, magnitude % divisor]
  const isUp = 2n * rest > divisor || (2n * rest === divisor && whole % 2n === 1n)
  const rounded = isUp ? whole + 1n : whole
  return dividend < 0n ? -rounded : rounded
}

export const amountOf = (raw: bigint, decimals: number): string => formatDecimal({ units: raw, scale: decimals })

/** Returns the shares that `raw` stands for, rounded down to base units as in the token contract. */
export const sharesOf = (raw: bigint, multiplier: Decimal, decimals: number): string =>
  amountOf((raw * multiplier.units) / tenTo(multiplier.scale), decimals)

/** Returns the product of amount and price, rounded half up to two decimals. */
export function referenceValueOf(raw: bigint, decimals: number, price: Decimal): string {
  const hundredfold = raw * price.units * 100n
  const unit = tenTo(decimals + price.scale)
  const cents = ((hundredfold + unit / 2n) / unit).toString().padStart(3, '0')
  return `${cents.slice(0, -2)}.${cents.slice(-2)}`
}

const ZERO = '0'.charCodeAt(0)

const KEPT_POWERS_BOUND = 2 * DIGITS_BOUND
const keptPowers: bigint[] = []

export function tenTo(power: number): bigint {
  if (power > KEPT_POWERS_BOUND) return 10n ** BigInt(power)
  keptPowers[power] ??= 10n ** BigInt(power)
  return keptPowers[power]
}

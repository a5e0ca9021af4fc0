/** An exact number, independent of src: nothing is divided before it is compared. The denominator is positive. */
export type ExactFraction = readonly [numerator: bigint, denominator: bigint]

const tenTo = (power: number): bigint => 10n ** BigInt(power)

/** Times a power of ten. */
export const shifted = ([a, b]: ExactFraction, places: number): ExactFraction =>
  places < 0 ? [a, b * tenTo(-places)] : [a * tenTo(places), b]

export const fractionOf = (text: string): ExactFraction => {
  const [whole = '', digits = ''] = text.split('.')
  return [BigInt(whole + digits), tenTo(digits.length)]
}

/** A decimal in units of its last place. Fails if it has more places. */
export const unitsOf = (text: string, places: number): bigint => {
  const [a, b] = shifted(fractionOf(text), places)
  if (a % b !== 0n) throw new Error(`${text} has more than ${places} places`)
  return a / b
}

/** Whether the fraction rounds to these units, a half to the even ones. */
export const isNearest = (units: bigint, [a, b]: ExactFraction): boolean => {
  const twice = 2n * (units * b - a)
  const distance = twice < 0n ? -twice : twice
  return distance < b || (distance === b && units % 2n === 0n)
}

/** Whether a fraction that is not negative rounds down to these units. */
export const isRoundedDown = (units: bigint, [a, b]: ExactFraction): boolean => units * b <= a && a < (units + 1n) * b

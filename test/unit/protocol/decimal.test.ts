import Big from 'big.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  amountOf,
  compareDecimals,
  type Decimal,
  formatDecimal,
  parseDecimal,
  referenceValueOf,
  sharesOf,
} from '../../../src/protocol/decimal.ts'
import { DecimalText } from '../../../src/protocol/fields.ts'

/** An independent implementation with every digit. Powers of ten go into the exponent, so it never divides. */
const ReferenceDecimal = Big()
ReferenceDecimal.PE = 100_000
ReferenceDecimal.NE = -100_000
const DOWN = 0
const HALF_UP = 1
const reference = (text: string) => new ReferenceDecimal(text)
const scaled = (units: bigint, scale = 0) => reference(`${units}e${-scale}`)

const RUNS = { numRuns: 300 }
const MAX_UINT256 = 2n ** 256n - 1n
const MAX_DECIMALS = 77
const MULTIPLIER_SCALE = 18

/** As many small numbers as large ones. Drawn uniformly, nearly all would have every digit. */
const wholes = fc
  .tuple(fc.bigInt({ min: 0n, max: MAX_UINT256 }), fc.integer({ min: 0, max: 256 }))
  .map(([bits, shift]) => bits >> BigInt(shift))
const raws = fc.oneof(wholes, fc.constantFrom(0n, 1n, MAX_UINT256, MAX_UINT256 - 1n, 10n ** 77n, 10n ** 77n - 1n))
const decimals = fc.integer({ min: 0, max: MAX_DECIMALS })
const multipliers = fc.oneof(wholes, fc.constantFrom(1n, 10n ** 18n, 10n ** 18n - 1n, 1_000_537_939_576_369_481n, MAX_UINT256))
/** JSON numbers with many digits, a fraction, an exponent, both or neither. Prices have no sign. */
const prices = fc
  .tuple(wholes, fc.integer({ min: 0, max: 90 }), fc.integer({ min: -60, max: 60 }), fc.constantFrom('', 'e', 'E', 'e+'))
  .map(([units, fraction, power, sign]) => {
    const digits = units.toString().padStart(fraction + 1, '0')
    const mantissa = fraction === 0 ? digits : `${digits.slice(0, -fraction)}.${digits.slice(-fraction)}`
    if (sign === '') return mantissa
    return `${mantissa}${sign}${sign === 'e+' ? Math.abs(power) : power}`
  })

const jsonNumbers = fc.tuple(fc.constantFrom('', '-'), prices).map(([sign, price]) => sign + price)
/** Digits on both sides of the point, up to the bound. */
const longest = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.stringMatching(/^[1-9]?[0-9]{1,399}$/),
    fc.stringMatching(/^[0-9]{0,400}$/),
    fc.integer({ min: -400, max: 400 }),
  )
  .map(([sign, whole, fraction, power]) => `${sign}${whole}${fraction && `.${fraction}`}e${power}`)

const read = (text: string): Decimal => {
  const value = parseDecimal(text)
  if (!value) throw new Error(`${text} does not parse`)
  return value
}

describe('a decimal', () => {
  it.each([
    ['0', '0'],
    ['-0.00', '0'],
    ['0.50', '0.5'],
    ['00012', '12'],
    ['1e3', '1000'],
    ['2.4e-05', '0.000024'],
    ['-0.25', '-0.25'],
    ['1e-399', `0.${'0'.repeat(398)}1`],
    [`-${'9'.repeat(400)}.${'9'.repeat(400)}`, `-${'9'.repeat(400)}.${'9'.repeat(400)}`],
    ['1e-0000000005', '0.00001'],
  ])('%s is formatted as %s', (text, written) => {
    expect(formatDecimal(read(text))).toBe(written)
    expect(formatDecimal(read(written))).toBe(written)
  })

  it.each([
    ...['', ' 1', '1 ', '+1', '.5', '5.', '1,000', '0x10', '1e', 'e5', '1e99999', 'NaN', 'Infinity', '١', '1\n'],
    ...['1e400', '10e399', '1e-401', '0.1e-400', '9'.repeat(401), `0.${'1'.repeat(401)}`, `0.${'0'.repeat(900)}`],
    ...[`1e${'9'.repeat(700)}`, `1e-${'9'.repeat(700)}`],
  ])('does not parse from %j', (text) => {
    expect(parseDecimal(text)).toBeNull()
  })

  it('equals the number that big.js parses, exponent included', () => {
    fc.assert(
      fc.property(jsonNumbers, (text) => {
        expect(reference(formatDecimal(read(text))).eq(reference(text))).toBe(true)
      }),
      RUNS,
    )
  })

  it('is formatted as in the contract, and parses back to itself', () => {
    fc.assert(
      fc.property(fc.oneof(jsonNumbers, longest), (text) => {
        const value = parseDecimal(text)
        if (!value) return
        const written = formatDecimal(value)
        expect(DecimalText.safeParse(written).success && written !== '-0').toBe(true)
        expect(compareDecimals(read(written), value)).toBe(0)
        expect(formatDecimal(read(written))).toBe(written)
      }),
      { numRuns: 2_000 },
    )
  })

  it('compares like big.js', () => {
    fc.assert(
      fc.property(jsonNumbers, jsonNumbers, (a, b) => {
        expect(compareDecimals(read(a), read(b))).toBe(reference(a).cmp(reference(b)))
      }),
      RUNS,
    )
  })
})

describe('ten thousand random movements, large and small', () => {
  it('have the amount, the shares and the reference value that big.js computes', () => {
    fc.assert(
      fc.property(raws, decimals, multipliers, prices, (raw, places, multiplier, price) => {
        const factor = { units: multiplier, scale: MULTIPLIER_SCALE }
        const shares = scaled(raw).times(scaled(multiplier, MULTIPLIER_SCALE)).round(0, DOWN)
        const value = scaled(raw, places).times(reference(price)).round(2, HALF_UP)
        const actual = [
          amountOf(raw, places),
          sharesOf(raw, factor, places),
          sharesOf(raw, read(formatDecimal(factor)), places),
          referenceValueOf(raw, places, read(price)),
        ]
        const expectedShares = scaled(BigInt(shares.toFixed()), places).toFixed()
        const expected = [scaled(raw, places).toFixed(), expectedShares, expectedShares, value.toFixed(2)]
        if (actual.some((one, index) => one !== expected[index])) expect(actual).toEqual(expected)
      }),
      { numRuns: 10_000 },
    )
  })
})

describe('at a rounding boundary', () => {
  const cents = fc.bigInt({ min: 0n, max: 10n ** 30n })

  it('a reference value is rounded half up: exactly at .5 up, just below it down', () => {
    fc.assert(
      fc.property(cents, decimals, fc.integer({ min: 0, max: 60 }), (whole, places, more) => {
        const half = { units: (whole * 10n + 5n) * 10n ** BigInt(more), scale: 3 + more }
        const below = { units: half.units * 10n - 1n, scale: half.scale + 1 }
        const one = 10n ** BigInt(places)
        expect(referenceValueOf(one, places, half)).toBe(scaled(whole + 1n, 2).toFixed(2))
        expect(referenceValueOf(one, places, below)).toBe(scaled(whole, 2).toFixed(2))
      }),
      { numRuns: 500 },
    )
  })

  it('shares are rounded down: a whole number of base units stays, just below it loses one', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 10n ** 59n }), decimals, (whole, places) => {
        const factor = { units: whole * 10n ** 18n, scale: MULTIPLIER_SCALE }
        const below = { ...factor, units: factor.units - 1n }
        expect(sharesOf(1n, factor, places)).toBe(amountOf(whole, places))
        expect(sharesOf(1n, below, places)).toBe(amountOf(whole - 1n, places))
      }),
      { numRuns: 500 },
    )
  })
})

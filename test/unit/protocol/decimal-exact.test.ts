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

/** An independent implementation with every digit. Powers of ten go into the exponent, so it never divides. */
const ReferenceDecimal = Big()
ReferenceDecimal.PE = 100_000
ReferenceDecimal.NE = -100_000
const DOWN = 0
const HALF_UP = 1
const reference = (units: bigint, scale = 0) => new ReferenceDecimal(`${units}e${-scale}`)

const RUNS = { numRuns: 10_000 }
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
/** JSON numbers with many digits, a fraction, an exponent, both or neither. */
const prices = fc
  .tuple(wholes, fc.integer({ min: 0, max: 90 }), fc.integer({ min: -60, max: 60 }), fc.constantFrom('', 'e', 'E', 'e+'))
  .map(([units, fraction, power, sign]) => {
    const digits = units.toString().padStart(fraction + 1, '0')
    const mantissa = fraction === 0 ? digits : `${digits.slice(0, -fraction)}.${digits.slice(-fraction)}`
    if (sign === '') return mantissa
    return `${mantissa}${sign}${sign === 'e+' ? Math.abs(power) : power}`
  })

const read = (text: string): Decimal => {
  const value = parseDecimal(text)
  if (!value) throw new Error(`${text} does not parse`)
  return value
}

describe('ten thousand random movements, large and small', () => {
  it('have the amount, the shares and the reference value that big.js computes', () => {
    fc.assert(
      fc.property(raws, decimals, multipliers, prices, (raw, places, multiplier, price) => {
        const factor = { units: multiplier, scale: MULTIPLIER_SCALE }
        const shares = reference(raw).times(reference(multiplier, MULTIPLIER_SCALE)).round(0, DOWN)
        const value = reference(raw, places).times(new ReferenceDecimal(price)).round(2, HALF_UP)
        const actual = [
          amountOf(raw, places),
          sharesOf(raw, factor, places),
          sharesOf(raw, read(formatDecimal(factor)), places),
          referenceValueOf(raw, places, read(price)),
        ]
        const expectedShares = reference(BigInt(shares.toFixed()), places).toFixed()
        const expected = [reference(raw, places).toFixed(), expectedShares, expectedShares, value.toFixed(2)]
        if (actual.some((one, index) => one !== expected[index])) expect(actual).toEqual(expected)
      }),
      RUNS,
    )
  })
})

describe('at a rounding boundary', () => {
  const cents = fc.bigInt({ min: 0n, max: 10n ** 30n })

  it('a reference value is rounded half up: exactly at .5 up, expectedShares below it down', () => {
    fc.assert(
      fc.property(cents, decimals, fc.integer({ min: 0, max: 60 }), (whole, places, more) => {
        const half = { units: (whole * 10n + 5n) * 10n ** BigInt(more), scale: 3 + more }
        const below = { units: half.units * 10n - 1n, scale: half.scale + 1 }
        const one = 10n ** BigInt(places)
        expect(referenceValueOf(one, places, half)).toBe(reference(whole + 1n, 2).toFixed(2))
        expect(referenceValueOf(one, places, below)).toBe(reference(whole, 2).toFixed(2))
      }),
      { numRuns: 500 },
    )
  })

  it('shares are rounded down: a whole number of base units stays, expectedShares below it loses one', () => {
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

  it.each([
    [MAX_UINT256, 77, '1.15792089237316195423570985008687907853269984665640564039457584007913129639935'],
    [MAX_UINT256, 0, '115792089237316195423570985008687907853269984665640564039457584007913129639935'],
    [1n, 77, `0.${'0'.repeat(76)}1`],
    [0n, 77, '0'],
  ])('the amount of %s at %s decimals is %s', (raw, places, amount) => {
    expect(amountOf(raw, places)).toBe(amount)
  })
})

describe('a parsed decimal', () => {
  /** Digits on both sides of the point, up to the bound. */
  const longest = fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.stringMatching(/^[1-9]?[0-9]{1,399}$/),
      fc.stringMatching(/^[0-9]{0,400}$/),
      fc.integer({ min: -400, max: 400 }),
    )
    .map(([sign, whole, fraction, power]) => `${sign}${whole}${fraction && `.${fraction}`}e${power}`)

  it('equals itself after formatting and parsing', () => {
    fc.assert(
      fc.property(fc.oneof(prices, longest), (text) => {
        const value = parseDecimal(text)
        if (!value) return
        const written = formatDecimal(value)
        expect(compareDecimals(read(written), value)).toBe(0)
        expect(formatDecimal(read(written))).toBe(written)
      }),
      { numRuns: 2_000 },
    )
  })

  it.each([
    ['the smallest', '1e-400', `0.${'0'.repeat(399)}1`],
    ['one that is smaller than any double', '1e-399', `0.${'0'.repeat(398)}1`],
    ['the smallest below zero', '-1e-400', `-0.${'0'.repeat(399)}1`],
    ['the largest', '9.99e399', `999${'0'.repeat(397)}`],
    ['the longest', `-${'9'.repeat(400)}.${'9'.repeat(400)}`, `-${'9'.repeat(400)}.${'9'.repeat(400)}`],
    ['zero of any size', '-0.000e-397', '0'],
    ['a power with zeros before it', '1e-0000000005', '0.00001'],
  ])('survives formatting and parsing at its bounds: %s', (_, text, written) => {
    expect(formatDecimal(read(text))).toBe(written)
    expect(formatDecimal(read(written))).toBe(written)
  })

  it.each([
    '1e400',
    '10e399',
    '1e-401',
    '0.1e-400',
    '9'.repeat(401),
    `0.${'1'.repeat(401)}`,
    `1e${'9'.repeat(700)}`,
    `1e-${'9'.repeat(700)}`,
    `0.${'0'.repeat(900)}`,
  ])('is within its bounds: %s does not parse', (text) => {
    expect(parseDecimal(text)).toBeNull()
  })
})

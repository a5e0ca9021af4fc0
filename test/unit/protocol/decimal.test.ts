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
import { DecimalText, scalars } from '../../../src/protocol/fields.ts'

/** An independent implementation. It never rounds by itself: every divisor is a power of ten, and tests call `round`. */
const ReferenceDecimal = Big()
ReferenceDecimal.DP = 1_000
ReferenceDecimal.PE = 10_000
ReferenceDecimal.NE = -10_000
const DOWN = 0
const HALF_UP = 1
const reference = (text: string) => new ReferenceDecimal(text)
const tenTo = (power: number) => reference(`1e${power}`)

const RUNS = { numRuns: 300 }
const raws = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
const decimals = fc.integer({ min: 0, max: 36 })
const digits = (min: number, max: number) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength: min, maxLength: max }).map((list) => list.join(''))
/** JSON numbers, each with or without a sign, a fraction and an exponent. */
const jsonNumbers = fc
  .tuple(
    fc.constantFrom('', '-'),
    digits(1, 30),
    fc.option(digits(1, 30)),
    fc.option(fc.tuple(fc.constantFrom('e', 'E'), fc.constantFrom('', '+', '-'), fc.integer({ min: 0, max: 60 }))),
  )
  .map(
    ([sign, whole, fraction, exponent]) =>
      `${sign}${whole}${fraction === null ? '' : `.${fraction}`}${exponent ? exponent.join('') : ''}`,
  )
const positives = fc
  .tuple(fc.bigInt({ min: 1n, max: 10n ** 24n }), fc.integer({ min: 0, max: 18 }))
  .map(([units, scale]): Decimal => ({ units, scale }))

const read = (text: string): Decimal => {
  const value = parseDecimal(text)
  if (!value) throw new Error(`${text} does not parse`)
  return value
}

describe('a decimal', () => {
  it.each([
    ['0', '0'],
    ['-0', '0'],
    ['-0.00', '0'],
    ['0.50', '0.5'],
    ['00012', '12'],
    ['1.000', '1'],
    ['1e3', '1000'],
    ['1E+3', '1000'],
    ['12e-1', '1.2'],
    ['2.4e-05', '0.000024'],
    ['-1.50e1', '-15'],
    ['-0.25', '-0.25'],
    ['1.000537939576369481', '1.000537939576369481'],
    ['0.1e-399', `0.${'0'.repeat(399)}1`],
  ])('%s is formatted as %s', (text, written) => {
    expect(formatDecimal(read(text))).toBe(written)
  })

  it.each([
    '',
    ' 1',
    '1 ',
    '+1',
    '.5',
    '5.',
    '1,000',
    '0x10',
    '1e',
    'e5',
    '1e99999',
    '1e401',
    '1e-401',
    'NaN',
    'Infinity',
    '١',
    '1\n',
    '9'.repeat(401),
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
      fc.property(jsonNumbers, (text) => {
        const written = formatDecimal(read(text))
        expect(DecimalText.safeParse(written).success && written !== '-0').toBe(true)
        expect(formatDecimal(read(written))).toBe(written)
      }),
      RUNS,
    )
  })

  it('parses from every float that JSON can contain', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(Number(formatDecimal(read(JSON.stringify(value))))).toBe(value === 0 ? 0 : value)
      }),
      RUNS,
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

  it('equals itself with any number of trailing zeros', () => {
    fc.assert(
      fc.property(jsonNumbers, fc.nat(20), (text, zeros) => {
        const { units, scale } = read(text)
        const longer = { units: units * 10n ** BigInt(zeros), scale: scale + zeros }
        expect(compareDecimals({ units, scale }, longer)).toBe(0)
        expect(formatDecimal(longer)).toBe(formatDecimal({ units, scale }))
      }),
      RUNS,
    )
  })
})

describe('the amount', () => {
  it('is raw / 10^decimals, exactly', () => {
    fc.assert(
      fc.property(raws, decimals, (raw, places) => {
        const amount = amountOf(raw, places)
        expect(reference(amount).eq(reference(raw.toString()).div(tenTo(places)))).toBe(true)
        expect(DecimalText.safeParse(amount).success).toBe(true)
      }),
      RUNS,
    )
  })

  it.each([
    [150_000_000n, 8, '1.5'],
    [1n, 8, '0.00000001'],
    [0n, 8, '0'],
    [7n, 0, '7'],
  ])('of %s at %s decimals is %s', (raw, places, amount) => {
    expect(amountOf(raw, places)).toBe(amount)
  })
})

describe('the shares', () => {
  it('are floor(raw × multiplier) / 10^decimals', () => {
    fc.assert(
      fc.property(raws, positives, decimals, (raw, multiplier, places) => {
        const product = reference(raw.toString()).times(reference(formatDecimal(multiplier)))
        const expected = product.round(0, DOWN).div(tenTo(places))
        expect(reference(sharesOf(raw, multiplier, places)).eq(expected)).toBe(true)
      }),
      RUNS,
    )
  })

  it('are never more than the product and lose less than one base unit', () => {
    expect(sharesOf(1n, read('1.999999999999999999'), 8)).toBe('0.00000001')
    expect(sharesOf(1n, read('0.999999999999999999'), 8)).toBe('0')
    expect(sharesOf(1_000_000_000n, read('1.000537939576369481'), 8)).toBe('10.00537939')
  })

  it('equal the amount when the multiplier is 1', () => {
    fc.assert(
      fc.property(raws, decimals, (raw, places) => {
        expect(sharesOf(raw, read('1'), places)).toBe(amountOf(raw, places))
      }),
    )
  })
})

describe('the reference value', () => {
  it('is amount × price, half up, and always has two decimals', () => {
    fc.assert(
      fc.property(raws, decimals, positives, (raw, places, price) => {
        const value = referenceValueOf(raw, places, price)
        const product = reference(raw.toString())
          .div(tenTo(places))
          .times(reference(formatDecimal(price)))
        expect(value).toBe(product.round(2, HALF_UP).toFixed(2))
        expect(scalars.MoneyText.safeParse(value).success).toBe(true)
      }),
      RUNS,
    )
  })

  it.each([
    ['0.005', '0.01'],
    ['0.00499999999999', '0.00'],
    ['0.015', '0.02'],
    ['2.675', '2.68'],
    ['231.5', '231.50'],
    ['999.995', '1000.00'],
    ['7', '7.00'],
  ])('of one token at %s is %s', (price, value) => {
    expect(referenceValueOf(100_000_000n, 8, read(price))).toBe(value)
  })

  it('of zero tokens is 0.00', () => {
    expect(referenceValueOf(0n, 8, read('324.3014'))).toBe('0.00')
  })
})

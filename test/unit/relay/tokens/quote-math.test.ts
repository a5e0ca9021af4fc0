import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { amountOf } from '../../../../src/protocol/decimal.ts'
import { DecimalText } from '../../../../src/protocol/fields.ts'
import { SQRT_PRICE_BOUNDS } from '../../../../src/relay/chain/pools/pool.ts'
import { basisBps, depthOf, judgePool, priceOf } from '../../../../src/relay/tokens/quote-math.ts'
import { type ExactFraction, fractionOf, isNearest, isRoundedDown, shifted, unitsOf } from '../../../support/exact-fraction.ts'

const Q96 = 2n ** 96n
const { min: MIN, max: MAX } = SQRT_PRICE_BOUNDS
const WIDEST = 2n ** 128n - 1n
const roots = fc.oneof(fc.bigInt({ min: MIN, max: MAX }), fc.integer({ min: 33, max: 159 }).chain(rootsOfBits))
const liquidities = fc.oneof(fc.bigInt({ min: 1n, max: WIDEST }), fc.bigInt({ min: 1n, max: 10n ** 12n }))
const decimals = fc.constantFrom(0, 6, 8, 18)
const prices = fc.bigInt({ min: 1n, max: 10n ** 18n }).map((units) => amountOf(units, 8))
const RUNS = { numRuns: 500 }

/** Roots of one length in bits: of all roots evenly drawn, hardly any is short. */
function rootsOfBits(bits: number) {
  return fc.bigInt({ min: 2n ** BigInt(bits), max: 2n ** BigInt(bits + 1) - 1n })
}

const tenTo = (power: number): bigint => 10n ** BigInt(power)

describe('the price of a pool', () => {
  it.each([
    ['1 at a root of 1', Q96, true, 18, 18, '1'],
    ['324.8 USDC for a stock that comes second', 43_961_405_961_330_268_532_914_657_824n, false, 8, 6, '324.8'],
    ['the even digit at a tie', 5n * Q96, true, 0, 9, '0.00000002'],
    ['the even digit at the next tie', 15n * Q96, true, 0, 9, '0.00000022'],
    ['more where it is just above a tie', 5n * Q96 + 1n, true, 0, 9, '0.00000003'],
    ['null where it rounds to 0', Q96, true, 6, 18, null],
    ['exact at the lowest root', MIN, false, 8, 8, '340256786698763678858396856460488307819.97909056'],
    ['exact at the highest root', MAX, true, 8, 8, '340256786836388094070642339899681172762.18483191'],
  ])('is %s', (_, root, isToken0, tokenDecimals, currencyDecimals, price) => {
    expect(priceOf(root, isToken0, tokenDecimals, currencyDecimals)).toBe(price)
  })

  it('is the exact fraction, half even, in both orders and any decimals', () => {
    fc.assert(
      fc.property(roots, fc.boolean(), decimals, decimals, (root, isToken0, tokenDecimals, currencyDecimals) => {
        const square: ExactFraction = isToken0 ? [root ** 2n, Q96 ** 2n] : [Q96 ** 2n, root ** 2n]
        const price = priceOf(root, isToken0, tokenDecimals, currencyDecimals)
        expect(price === null || (DecimalText.safeParse(price).success && price !== '0')).toBe(true)
        expect(isNearest(unitsOf(price ?? '0', 8), shifted(square, 8 + tokenDecimals - currencyDecimals))).toBe(true)
      }),
      RUNS,
    )
  })
})

describe('the depth of a pool', () => {
  it('is the exact fraction, rounded down to two decimals', () => {
    fc.assert(
      fc.property(roots, liquidities, fc.boolean(), decimals, (sqrtPriceX96, liquidity, isToken0, currencyDecimals) => {
        const [over, under] = isToken0 ? [sqrtPriceX96, Q96] : [Q96, sqrtPriceX96]
        const exact: ExactFraction = [liquidity * over * 49_875_621n, under * tenTo(10 + currencyDecimals)]
        const depth = depthOf({ sqrtPriceX96, liquidity, isToken0, currencyDecimals })
        expect(isRoundedDown(unitsOf(depth, 2), shifted(exact, 2))).toBe(true)
        expect(DecimalText.safeParse(depth).success).toBe(true)
      }),
      RUNS,
    )
  })

  it('is what moves the price by 1 %, within a millionth', () => {
    const [root, liquidity] = [12n * Q96, 10n ** 20n]
    const raw = unitsOf(depthOf({ sqrtPriceX96: root, liquidity, isToken0: true, currencyDecimals: 6 }), 6)
    const moved = root + (raw * Q96) / liquidity
    expect(Number((moved ** 2n * 10n ** 12n) / root ** 2n)).toBeCloseTo(1.01e12, -5)
  })
})

describe('the basis', () => {
  it.each([
    ['100.00005', '100', '0'],
    ['100.00015', '100', '0.02'],
    ['99.99995', '100', '0'],
    ['99.99985', '100', '-0.02'],
    ['1.1', '1.10', '0'],
  ])('of %s over a NAV of %s is %s', (price, nav, basis) => {
    expect(basisBps(price, nav)).toBe(basis)
  })

  it('is the exact fraction, half even, and never -0', () => {
    fc.assert(
      fc.property(prices, prices, (price, nav) => {
        const [[a, b], [c, d]] = [fractionOf(price), fractionOf(nav)]
        const basis = basisBps(price, nav)
        expect(isNearest(unitsOf(basis, 2), shifted([a * d - c * b, c * b], 6))).toBe(true)
        expect(DecimalText.safeParse(basis).success && basis !== '-0').toBe(true)
      }),
      RUNS,
    )
  })
})

describe('a pool', () => {
  const terms = { isToken0: true, tokenDecimals: 8, currencyDecimals: 6, poolMinDepth: { units: 1_000n, scale: 0 } }
  const deep = { sqrtPriceX96: Q96, liquidity: 10n ** 15n }
  /** The least liquidity with a depth of 1,000 at a root of 1. */
  const enough = 200_498_756_698n

  it.each([
    ['deep enough', deep, terms, { state: 'ok', price: '100', depth: '4987562.1' }],
    ['just deep enough', { ...deep, liquidity: enough }, terms, { state: 'ok', price: '100', depth: '1000' }],
    ['a little too shallow', { ...deep, liquidity: enough - 1n }, terms, { state: 'thin', price: null, depth: '999.99' }],
    ['of a price that rounds to 0', { ...deep, sqrtPriceX96: 2n ** 78n }, terms, { state: 'thin', price: null, depth: '19.02' }],
    [
      'deep, of a price that rounds to 0',
      { sqrtPriceX96: 2n ** 78n, liquidity: 10n ** 25n },
      { ...terms, tokenDecimals: 6 },
      { state: 'thin', price: null, depth: '190260395050.04' },
    ],
    [
      'of little depth where none is required',
      { ...deep, liquidity: 1n },
      { ...terms, poolMinDepth: { units: 0n, scale: 0 } },
      { state: 'ok', price: '100', depth: '0' },
    ],
    ['without liquidity', { ...deep, liquidity: 0n }, terms, { state: 'empty', price: null, depth: null }],
    [
      'at the lowest root',
      { ...deep, sqrtPriceX96: MIN },
      { ...terms, isToken0: false },
      { state: 'empty', price: null, depth: null },
    ],
    ['at the highest root', { ...deep, sqrtPriceX96: MAX }, terms, { state: 'empty', price: null, depth: null }],
    ['just above the lowest root', { ...deep, sqrtPriceX96: MIN + 1n }, terms, { state: 'thin', price: null, depth: '0' }],
  ] as const)('%s', (_, pool, poolTerms, judgement) => {
    expect(judgePool(pool, poolTerms)).toEqual(judgement)
  })
})

import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { type Pool, SQRT_PRICE_BOUNDS } from '../../../../src/relay/chain/pools/pool.ts'
import { type Swap, tradeNumbersOf } from '../../../../src/relay/tokens/trades.ts'
import { isNearest, shifted, unitsOf } from '../../../support/exact-fraction.ts'

const Q96 = 2n ** 96n
const [low, high]: readonly [Hex, Hex] = [`0x${'1'.repeat(40)}`, `0x${'2'.repeat(40)}`]

const poolOf = (kind: Pool['kind'], isToken0: boolean, decimals = 6): Pool => ({
  ...{ kind, id: `0x${'3'.repeat(40)}`, manager: null, token: isToken0 ? low : high },
  currency: { symbol: 'USDC', address: isToken0 ? high : low, decimals },
})
const swapOf = (amounts: readonly [bigint, bigint], sqrtPriceX96 = Q96): Swap => ({
  ...{ event: 'Swap', poolId: null, sender: low, recipient: high, fee: null, liquidity: 1n },
  ...{ amounts, sqrtPriceX96 },
})

// Someone sells 1.5 tokens of 8 decimals for 487.356584 USDC, whatever the order of the tokens and the signs of the event.
it.each<[Pool['kind'], boolean, readonly [bigint, bigint], 'buy' | 'sell' | null]>([
  ['uniswap_v3', true, [150_000_000n, -487_356_584n], 'sell'],
  ['uniswap_v3', false, [-487_356_584n, 150_000_000n], 'sell'],
  ['uniswap_v3', true, [-150_000_000n, 487_356_584n], 'buy'],
  ['slipstream', true, [150_000_000n, -487_356_584n], 'sell'],
  ['slipstream', false, [487_356_584n, -150_000_000n], 'buy'],
  ['uniswap_v4', true, [-150_000_000n, 487_356_584n], 'sell'],
  ['uniswap_v4', false, [487_356_584n, -150_000_000n], 'sell'],
  ['uniswap_v4', false, [-487_356_584n, 150_000_000n], 'buy'],
])('a swap of %s, with the token first: %s, of %s is a %s', (kind, isToken0, amounts, side) => {
  expect(tradeNumbersOf(poolOf(kind, isToken0), swapOf(amounts), 8)).toMatchObject({
    ...{ side, raw: 150_000_000n, amount: '1.5', currency_amount: '487.356584', price: '324.90438933' },
  })
})

it.each<[readonly [bigint, bigint], object]>([
  [[0n, 5n], { side: 'buy', raw: 0n, price: null }],
  [[0n, -5n], { side: 'sell', raw: 0n, price: null }],
  [[0n, 0n], { side: null, raw: 0n, price: null }],
  [[7n, 0n], { side: 'sell', raw: 7n, price: null, currency_amount: '0' }],
  [[10n ** 20n, -1n], { side: 'sell', price: null }],
])('a swap of %s has a side and a price only as far as something moved', (amounts, numbers) => {
  expect(tradeNumbersOf(poolOf('uniswap_v3', true), swapOf(amounts), 8)).toMatchObject(numbers)
})

it('the price of the pool is null at its bounds, and everything that needs unknown decimals is null', () => {
  const pool = poolOf('uniswap_v3', true)
  const priceAt = (root: bigint, decimals: number | null = 8) => tradeNumbersOf(pool, swapOf([1n, -1n], root), decimals).pool_price
  expect([SQRT_PRICE_BOUNDS.min, SQRT_PRICE_BOUNDS.max, Q96].map((root) => priceAt(root))).toEqual([null, null, '100'])
  expect(tradeNumbersOf(pool, swapOf([3n, -4n]), null)).toEqual({
    ...{ side: 'sell', raw: 3n, amount: null, currency_amount: '0.000004', price: null, pool_price: null },
  })
})

it('the price is the exact fraction of both amounts, half even', () => {
  const raws = fc.bigInt({ min: 1n, max: 2n ** 127n - 1n })
  const places = fc.constantFrom(0, 6, 8, 18)
  fc.assert(
    fc.property(raws, raws, places, places, fc.boolean(), (raw, currencyRaw, tokenDecimals, currencyDecimals, isToken0) => {
      const amounts = isToken0 ? ([raw, -currencyRaw] as const) : ([-currencyRaw, raw] as const)
      const { price } = tradeNumbersOf(poolOf('uniswap_v3', isToken0, currencyDecimals), swapOf(amounts), tokenDecimals)
      expect(isNearest(unitsOf(price ?? '0', 8), shifted([currencyRaw, raw], 8 + tokenDecimals - currencyDecimals))).toBe(true)
    }),
    { numRuns: 500 },
  )
})

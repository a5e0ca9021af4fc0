import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Nav } from '../../../../src/protocol/fields.ts'
import type { Pool } from '../../../../src/relay/chain/pools/pool.ts'
import { navAt } from '../../../../src/relay/tokens/nav.ts'
import {
  isSameQuote,
  mainQuote,
  type QuoteFields,
  quoteFrom,
  venueOf,
  withNav,
  withQuote,
} from '../../../../src/relay/tokens/quotes.ts'

const NOW = Date.UTC(2026, 10, 20, 12)
const BOUND_MS = 93_600_000
const USDC = { symbol: 'USDC', address: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', decimals: 6 } as const
const pool: Pool = {
  token: '0xb200000000000000000000c2e324d24d7eecd1fb',
  kind: 'uniswap_v3',
  id: '0x97f35d1e92795327614be000cd18cba1be2c1931',
  manager: null,
  currency: USDC,
}
const block = { number: 100, hash: null, timestamp: null }
/** 2^192 / root² × 10^(8 − 6) is about 250 USDC for one token of 8 decimals. */
const ROOT = 50_108_279_220_000_000_000_000_000_000n
const DEEP = { kind: 'read', sqrtPriceX96: ROOT, liquidity: 10n ** 16n, feeBps: '30' } as const
const nav = (fields: Partial<Nav> = {}): Nav => ({ ...navAt({ price: '250', updatedAt: NOW }, NOW, BOUND_MS, null), ...fields })
const quote = (
  fields: { decimals?: number | null; nav?: Nav; poolMinDepth?: bigint; reading?: Parameters<typeof quoteFrom>[0]['reading'] } = {},
) =>
  quoteFrom(
    { pool, reading: fields.reading ?? DEEP, block },
    {
      decimals: fields.decimals === undefined ? 8 : fields.decimals,
      nav: fields.nav ?? nav(),
      poolMinDepth: { units: fields.poolMinDepth ?? 1_000n, scale: 0 },
    },
  )

describe('a quote', () => {
  it('has its fields in the order of the contract', () => {
    const fields = quote()
    expect(Object.keys(fields)).toEqual(['venue', 'price', 'state', 'depth', 'basis_bps', 'basis', 'nav', 'block'])
    const { decimals: _decimals, ...currency } = USDC
    expect(fields.venue).toEqual({ kind: 'uniswap_v3', pool: pool.id, fee_bps: '30', currency, hooks: 'none' })
    expect(fields).toMatchObject({ state: 'ok', basis: 'premium', block })
    expect(Number(fields.price)).toBeCloseTo(250, 3)
    expect(Math.abs(Number(fields.basis_bps))).toBeLessThan(0.01)
  })

  it.each<[string, Partial<Pool>, QuoteFields['venue']['hooks']]>([
    ['of Slipstream', { kind: 'slipstream' }, 'none'],
    ['of Uniswap v4 by its id', { kind: 'uniswap_v4' }, null],
    ['of Uniswap v4 by its key', { kind: 'uniswap_v4', hooks: 'none' }, 'none'],
    ['of Uniswap v4 with hooks', { kind: 'uniswap_v4', hooks: pool.id }, pool.id],
  ])('of a pool %s says its hooks', (_, fields, hooks) => {
    expect(venueOf({ ...pool, ...fields }, null).hooks).toBe(hooks)
  })

  it.each<[string, Parameters<typeof quote>[0], string]>([
    ['of a pool that cannot be read', { reading: { kind: 'unreadable', reason: 'no answer' } }, 'unreadable'],
    ['of a token with unknown decimals', { decimals: null }, 'unreadable'],
    ['of a pool without liquidity', { reading: { ...DEEP, liquidity: 0n } }, 'empty'],
    ['of a pool with little depth', { poolMinDepth: 10n ** 15n }, 'thin'],
  ])('%s has neither a price nor a basis', (_, fields, state) => {
    const { depth: _depth, ...rest } = quote(fields)
    expect(rest).toMatchObject({ state, price: null, basis_bps: null, basis: null })
  })

  it('is a premium only against a fresh NAV that is not frozen, else a drift, and nothing without two prices', () => {
    const updatedAt = fc.option(fc.integer({ min: NOW - 3 * BOUND_MS, max: NOW + 300_000 }), { nil: null })
    const price = fc.option(fc.constantFrom('250', '0', '-3', 'junk', '249.99'), { nil: null })
    const frozen = fc.constantFrom(true, false, null)
    const reading = fc.constantFrom(DEEP, { ...DEEP, liquidity: 0n }, { kind: 'unreadable' as const, reason: 'no answer' })
    fc.assert(
      fc.property(fc.record({ price, updatedAt, frozen, reading }), ({ reading, frozen, ...listed }) => {
        const held = navAt(listed, NOW, BOUND_MS, frozen)
        const { basis, basis_bps, price: poolPrice } = quote({ nav: held, reading })
        const isPriced = poolPrice !== null && held.price !== null
        expect(basis_bps !== null).toBe(isPriced)
        // By the age and the registry, in another way than the code.
        const ageMs = listed.updatedAt === null ? Number.NaN : NOW - listed.updatedAt
        expect(basis).toBe(!isPriced ? null : ageMs <= BOUND_MS && frozen !== true ? 'premium' : 'drift')
      }),
    )
  })

  it('changes its basis with the NAV, and keeps its price', () => {
    const fresh = quote()
    const frozen = withNav(fresh, nav({ frozen: true }))
    expect(frozen).toEqual({ ...fresh, basis: 'drift', nav: nav({ frozen: true }) })
    expect(withNav(fresh, nav({ price: null, state: 'missing' }))).toMatchObject({
      price: fresh.price,
      basis: null,
      basis_bps: null,
    })
    expect(Number(withNav(fresh, nav({ price: '200' })).basis_bps)).toBeCloseTo(2_500, 0)
  })

  it.each<[string, Partial<QuoteFields>, boolean]>([
    ['another price', { price: '251' }, false],
    ['another state', { state: 'thin' }, false],
    ['another basis', { basis: 'drift' }, false],
    [
      'another depth, fee, NAV or block',
      { depth: '1', basis_bps: '7', nav: nav({ price: '1' }), block: { ...block, number: 101 } },
      true,
    ],
  ])('with %s is news or not', (_, fields, isSame) => {
    expect(isSameQuote(quote(), { ...quote(), ...fields })).toBe(isSame)
  })
})

describe('the quotes of a token', () => {
  const [first, second, third] = ['0x01', '0x02', '0x03'].map((id) => ({
    ...quote(),
    venue: { ...quote().venue, pool: id as Pool['id'] },
  }))
  const order: readonly Pool['id'][] = ['0x01', '0x02', '0x03']

  it('stand in the order of the pools, one each', () => {
    const quotes = [third, first, second].reduce<readonly QuoteFields[]>(
      (known, one) => (one ? withQuote(known, one, order) : known),
      [],
    )
    expect(quotes.map(({ venue }) => venue.pool)).toEqual(order)
    if (second)
      expect(withQuote(quotes, { ...second, price: '7' }, order).map(({ price }) => price)).toEqual([
        first?.price,
        '7',
        third?.price,
      ])
  })

  it('are led by the deepest one with a price, or by the first one where none has a price', () => {
    const ok = (depth: string) => ({ ...quote(), depth })
    const thin = { ...quote({ poolMinDepth: 10n ** 15n }), depth: '99999' }
    expect(mainQuote([ok('9.5'), ok('10000'), thin])?.depth).toBe('10000')
    expect(mainQuote([{ ...thin, depth: '1' }, thin])?.depth).toBe('1')
    expect(mainQuote([])).toBeNull()
  })
})

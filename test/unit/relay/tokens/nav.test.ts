import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Nav } from '../../../../src/protocol/fields.ts'
import { isSameNav, navAt } from '../../../../src/relay/tokens/nav.ts'
import { apple, NOON, parsedList } from './stock-records.ts'

const BOUND_MS = 93_600_000
const HOUR_MS = 3_600_000
const navOf = (price: string | null, updatedAt: number | null) => navAt({ price, updatedAt }, NOON, BOUND_MS, null)

describe('a NAV', () => {
  it('is fresh up to its bound and stale beyond it', () => {
    const fresh = {
      price: '324.3014',
      updated_at: '2026-11-19T10:00:00.000Z',
      age_s: 93_600,
      state: 'fresh',
      stale_after_s: 93_600,
      frozen: null,
    }
    expect(navOf('324.3014', NOON - BOUND_MS)).toEqual(fresh)
    expect(navOf('324.3014', NOON - BOUND_MS - 1)).toMatchObject({ state: 'stale', price: '324.3014', age_s: 93_600 })
  })

  it('is missing without a price', () => {
    expect(navOf(null, NOON)).toEqual({
      price: null,
      updated_at: null,
      age_s: null,
      state: 'missing',
      stale_after_s: 93_600,
      frozen: null,
    })
  })

  it.each<[string, string]>([
    ['zero', '0'],
    ['zero in decimals', '0.000'],
    ['zero with an exponent', '0e5'],
    ['negative', '-1.5'],
    ['a word', 'string'],
    ['not a number', 'NaN'],
    ['infinite', 'Infinity'],
    ['longer than any price', '1'.repeat(401)],
  ])('is invalid and has no price if it is %s', (_, price) => {
    expect(navOf(price, NOON)).toMatchObject({ state: 'invalid', price: null, age_s: 0 })
  })

  it.each<[string, number | null, object]>([
    ['is stale after a weekend without a change, with its age', -60 * HOUR_MS, { state: 'stale', price: '1', age_s: 216_000 }],
    ['of 1970 is stale', -NOON, { state: 'stale', updated_at: '1970-01-01T00:00:00.000Z', age_s: NOON / 1_000 }],
    ['has an age in whole seconds, rounded down', -1_999, { age_s: 1 }],
    ['has age 0 if its clock is ahead', 1, { state: 'fresh', age_s: 0 }],
    [
      'has age 0 if its clock is ahead by up to two minutes, and is invalid beyond',
      120_000,
      { state: 'fresh', age_s: 0, price: '1' },
    ],
    ['more than two minutes ahead is invalid and has no price', 120_001, { state: 'invalid', price: null, age_s: null }],
    ['without a readable time is invalid and has no price', null, { state: 'invalid', price: null, age_s: null }],
  ])('%s', (_, ms, expected) => {
    expect(navOf('1', ms === null ? null : NOON + ms)).toMatchObject(expected)
  })

  it('is published even if it jumps', () => {
    expect(navOf('1000000', NOON)).toMatchObject({ state: 'fresh', price: '1000000' })
  })

  it('keeps its exact digits', () => {
    expect(navOf('324.301400000000000010', NOON).price).toBe('324.30140000000000001')
    expect(navOf('3.243014e2', NOON).price).toBe('324.3014')
  })

  it('equals another with the same price, time and state, independent of the age', () => {
    expect(
      isSameNav(navOf('1.0', NOON - 5_000), navAt({ price: '1', updatedAt: NOON - 5_000 }, NOON + 9_000, BOUND_MS, null)),
    ).toBe(true)
    expect(isSameNav(navOf('1', NOON), navOf('1', NOON - 1_000))).toBe(false)
    expect(isSameNav(navOf('1', NOON), navOf('2', NOON))).toBe(false)
    const older = navAt({ price: '1', updatedAt: NOON }, NOON + BOUND_MS + 1, BOUND_MS, null)
    expect(isSameNav(navOf('1', NOON), older)).toBe(false)
  })
})

it('a NAV of the list beyond the doubles is invalid', () => {
  const [listed] = parsedList(JSON.stringify(apple({ nav_price: 'placeholder' })).replace('"placeholder"', '1e309'))
  expect(navOf(listed?.nav.price ?? null, NOON)).toMatchObject({ state: 'invalid', price: null })
})

it.each(['9999-12-31T23:59:59-01:00', '0000-01-01T00:00:00+01:00'])(
  'a NAV of %s has a time in the format of the contract',
  (time) => {
    const [listed] = parsedList(apple({ nav_price_updated_at: time }))
    const { updated_at } = navOf('1', listed?.nav.updatedAt ?? null)
    expect(updated_at ?? '2026-11-20T00:00:00.000Z').toMatch(/^\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  },
)

it('a NAV of any JSON in the list fits the schema', () => {
  fc.assert(
    fc.property(
      fc.jsonValue(),
      fc.oneof(
        fc.jsonValue(),
        fc
          .date({ noInvalidDate: true, min: new Date('1970-01-02'), max: new Date('9990-01-01') })
          .map((date) => date.toISOString()),
      ),
      (nav_price, nav_price_updated_at) => {
        const [token] = parsedList(apple({ nav_price, nav_price_updated_at }))
        if (!token) throw new Error('no token')
        const nav = navAt(token.nav, NOON, BOUND_MS, null)
        expect(Nav.parse(nav)).toEqual(nav)
        expect(nav.price !== null).toBe(nav.state === 'fresh' || nav.state === 'stale')
        if (typeof nav_price !== 'number' || nav_price <= 0) expect(nav.price).toBeNull()
      },
    ),
  )
})

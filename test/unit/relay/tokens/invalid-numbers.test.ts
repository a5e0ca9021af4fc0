import { describe, expect, it } from 'vitest'
import { diffFullList } from '../../../../src/relay/tokens/list/list-diff.ts'
import { navAt } from '../../../../src/relay/tokens/nav.ts'
import { TokenDirectory } from '../../../../src/relay/tokens/token-directory.ts'
import { APPLE, apple, listTime, listTimeAfter, NOON, parsedList, tokenOf } from './stock-records.ts'

const withRawDigits = (field: string, digits: string) =>
  JSON.stringify(apple({ [field]: 'placeholder' })).replace('"placeholder"', digits)

describe('a number beyond the doubles', () => {
  it('is no NAV', () => {
    const [token] = parsedList(withRawDigits('nav_price', '1e309'))
    expect(navAt(token?.nav ?? { price: null, updatedAt: null }, NOON, listTime.navStaleAfterMs, null)).toMatchObject({
      state: 'invalid',
      price: null,
    })
  })

  it.each(['1e400', '-0'])('is no change after a restart: %s', (digits) => {
    const record = withRawDigits('total_supply', digits)
    const token = JSON.parse(JSON.stringify(tokenOf(record)))
    expect(diffFullList(new Map([[token.address, token]]), parsedList(record), listTime).drafts).toEqual([])
  })
})

it('a NAV of the far future does not block later ones', () => {
  const future = apple({ nav_price: 9, nav_price_updated_at: '2099-01-01T00:00:00Z' })
  const token = tokenOf(future)
  const { drafts } = diffFullList(new Map([[token.address, token]]), parsedList(apple()), listTimeAfter(1_000))
  expect(drafts).toMatchObject([{ type: 'nav', nav: { price: '324.3014', state: 'fresh' } }])
})

it('a symbol that came and went twice still finds its token', () => {
  let token = tokenOf(apple({ symbol: 'A' }))
  for (const symbol of ['B', 'A', 'B']) {
    token = diffFullList(new Map([[token.address, token]]), parsedList(apple({ symbol })), listTime).tokens[0] ?? token
  }
  expect(token.symbol).toBe('B')
  expect(new TokenDirectory([token]).find('A')).toMatchObject({ kind: 'found', token: { address: APPLE } })
})

it('a time at the edge of the calendar has the format of the contract', () => {
  for (const time of ['9999-12-31T23:59:59-01:00', '0000-01-01T00:00:00+01:00']) {
    const [listed] = parsedList(apple({ nav_price_updated_at: time }))
    const nav = navAt(listed?.nav ?? { price: null, updatedAt: null }, NOON, listTime.navStaleAfterMs, null)
    expect(nav.updated_at ?? '2026-11-20T00:00:00.000Z').toMatch(/^\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  }
})

it('repeated and invalid ordinals are removed', () => {
  expect(tokenOf(apple({ paused_features: [2, 0, 0, -1, 1.5] })).paused).toEqual([0, 2])
})

import { expect, it } from 'vitest'
import { alignedPrices, PriceSeries } from '../../../../src/board/chart/price-series.ts'
import type { StockState, Update } from '../../../../src/sdk/client/index.ts'

const at = (second: number) => ({ address: '0xa', time: new Date(second * 1_000).toISOString() })
const nav = (second: number, price: string | null) => ({ type: 'nav', ...at(second), nav: { price } }) as unknown as Update
const quote = (second: number, pool: string, price: string | null) =>
  ({ type: 'quote', ...at(second), venue: { pool }, price }) as unknown as Update
const stockOf = (pool: string | null) =>
  ({ address: '0xa', quote: pool === null ? null : { venue: { pool } } }) as unknown as Pick<StockState, 'address' | 'quote'>
const pricesOf = (series: PriceSeries, pool: string | null) => series.of(stockOf(pool)).quote.map(({ price }) => price)

it('draws the price of the pool that stands for the stock, and no other', () => {
  const series = new PriceSeries()
  for (const update of [quote(3, 'p', '10'), quote(4, 'q', '99'), quote(5, 'p', null), nav(5, '11')]) series.apply(update)
  series.prepend([quote(2, 'q', '98'), quote(1, 'p', '9'), nav(1, '8')])
  expect(pricesOf(series, 'p')).toEqual([9, 10, null])
  expect(pricesOf(series, 'q')).toEqual([98, 99])
  expect(pricesOf(series, null)).toEqual([])
  expect(series.of(stockOf('p')).nav).toEqual([
    { atMs: 1_000, price: 8 },
    { atMs: 5_000, price: 11 },
  ])
})

it('is the same line while nothing came, also where there is none', () => {
  const series = new PriceSeries()
  expect(series.of(stockOf('p')).quote).toBe(series.of(stockOf('q')).quote)
})

it('a line of steps reaches the time at which its price ends, and the last price reaches the present', () => {
  const points = (...all: (readonly [number, number | null])[]) => all.map(([atMs, price]) => ({ atMs, price }))
  const nav = points([1_000, 5], [4_000, null], [6_000, 7])
  expect(alignedPrices({ nav, quote: points([2_000, 3]), nowMs: 9_000 })).toEqual([
    [1, 2, 3.999, 4, 6, 9],
    [5, 5, 5, null, 7, 7],
    [undefined, 3, 3, 3, 3, 3],
  ])
})

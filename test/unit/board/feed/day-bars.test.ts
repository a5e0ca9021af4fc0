import { expect, it } from 'vitest'
import { commonChange, DayBars, type ReadBars } from '../../../../src/board/feed/day-bars.ts'
import type { Bar, StockState } from '../../../../src/sdk/client/index.ts'

const HOUR_MS = 3_600_000
const now = Date.parse('2026-11-24T15:30:00Z')
const stock = (price: string | null, symbol = 'AAPLc') =>
  ({ symbol, address: symbol, quote: price === null ? null : { price } }) as unknown as StockState
/** A stock whose quote has no price. */
const unquoted = (state: 'unreadable' | 'thin') =>
  ({ symbol: 'AAPLc', address: 'AAPLc', quote: { state, price: null } }) as unknown as StockState
/** A bar of an hour that began so many hours before 15:00. */
const hour = (before: number, prices: readonly [string, string] | null, more: Partial<Bar> = {}) => {
  const start = Date.parse('2026-11-24T15:00:00Z') - before * HOUR_MS
  return {
    ...{ symbol: 'AAPLc', start: new Date(start).toISOString(), end: new Date(start + HOUR_MS).toISOString() },
    ...{ open: prices?.[0] ?? null, close: prices?.[1] ?? null, trades: 2, currency_volume: '10.5', ...more },
  } as Bar
}
const page = (bars: readonly Bar[], next: string | null = null) => ({ as_of: 'e.1', interval: '1h', bars, next }) as const

/** The bars of answers in their order, and the parameters of the requests. */
function openDay(answers: readonly ReturnType<typeof page>[]) {
  const asked: Readonly<Record<string, string>>[] = []
  const read: ReadBars = async (parameters) => answers[asked.push(parameters) - 1] ?? page([])
  return { day: new DayBars(read), asked }
}

it('sums the last day, and ends with the present price', async () => {
  const { day } = openDay([
    page([
      hour(30, ['1', '1']),
      hour(2, ['100', '104']),
      hour(1, null, { trades: 0, currency_volume: '0' }),
      hour(0, ['104', '105']),
    ]),
  ])
  await day.refresh(1, null)
  const { closes, volume, trades, change } = day.of(stock('110'), now)
  expect(closes.map(({ price }) => price)).toEqual([104, 110])
  expect(closes.map(({ atMs }) => (now - atMs) / HOUR_MS)).toEqual([1.5, 0])
  expect([volume, trades]).toEqual([21, 4])
  expect(change).toEqual({ percent: expect.closeTo(10), sinceMs: Date.parse('2026-11-24T13:00:00Z'), base: 100, isClose: false })
})

it('measures the change from the last price before the market closed', async () => {
  const closedAt = '2026-11-23T21:00:00.000Z'
  const { day, asked } = openDay([page([hour(2, ['100', '104'])]), page([hour(19, ['70', '80']), hour(20, ['60', '70'])])])
  await day.refresh(3, closedAt)
  expect(asked[1]).toEqual({ interval: '1h', until: closedAt, order: 'desc', limit: '6' })
  expect(day.of(stock('100'), now).change).toEqual({
    ...{ percent: expect.closeTo(25), sinceMs: Date.parse(closedAt), base: 80, isClose: true },
  })
  expect(day.of(stock('100', 'TSLAc'), now).change).toBeNull()
})

it('without a close, measures all changes from the end of the first hour, in which the relay may have begun', async () => {
  const tesla = { symbol: 'TSLAc' }
  const { day } = openDay([page([hour(3, ['90', '100']), hour(2, ['20', '25'], tesla), hour(1, ['104', '105'])])])
  await day.refresh(2, null)
  const changeOf = (symbol: string, price: string) => day.of(stock(price, symbol), now).change
  const sinceMs = Date.parse('2026-11-24T13:00:00Z')
  expect(changeOf('AAPLc', '110')).toEqual({ percent: expect.closeTo(10), sinceMs, base: 100, isClose: false })
  expect(changeOf('TSLAc', '30')).toEqual({ percent: expect.closeTo(50), sinceMs, base: 20, isClose: false })
})

it('without a quote takes the last trade; without trades is empty', async () => {
  const { day } = openDay([page([hour(1, ['10', '12'])])])
  expect(day.of(stock(null), now).isRead).toBe(false)
  await day.refresh(1, null)
  expect(day.isRead).toBe(true)
  expect(day.of(stock(null), now).change?.percent).toBeCloseTo(20)
  expect(day.of(stock('5', 'TSLAc'), now)).toMatchObject({ isRead: true, closes: [], volume: 0, trades: 0, change: null })
})

it('keeps the last quoted price while a pool cannot be read, and takes the last trade of one that is thin', async () => {
  const { day } = openDay([page([hour(1, ['10', '12'])])])
  await day.refresh(1, null)
  const changeOf = (state: StockState) => day.of(state, now).change?.percent
  expect([day.of(stock('9'), now).priceFrom, changeOf(stock('9'))]).toEqual(['now', expect.closeTo(-10)])
  day.keepQuote(unquoted('unreadable'))
  expect([day.of(unquoted('unreadable'), now).priceFrom, changeOf(unquoted('unreadable'))]).toEqual([
    'last trade',
    expect.closeTo(20),
  ])
  day.keepQuote(stock('9'))
  expect([day.of(unquoted('unreadable'), now).priceFrom, changeOf(unquoted('unreadable'))]).toEqual([
    'last quote',
    expect.closeTo(-10),
  ])
  expect(day.of(unquoted('unreadable'), now).closes.at(-1)?.price).toBe(9)
  expect([day.of(unquoted('thin'), now).priceFrom, changeOf(unquoted('thin'))]).toEqual(['last trade', expect.closeTo(20)])
})

it('reads page after page at first, and once more, then the newest hours, which replace those known', async () => {
  const whole = [page([hour(1, ['1', '2'])], 'next'), page([hour(0, ['2', '3'])])]
  const { day, asked } = openDay([...whole, ...whole, page([hour(0, ['2', '4'], { trades: 3 })])])
  await day.refresh(1, null)
  const before = day.of(stock(null), now)
  for (let time = 0; time < 2; time += 1) await day.refresh(1, null)
  expect(asked.map(({ since }) => since)).toEqual(['24h', 'next', '24h', 'next', '2h'])
  expect([before.closes.at(-1)?.price, day.of(stock(null), now).closes.at(-1)?.price]).toEqual([3, 4])
  expect(day.of(stock(null), now).trades).toBe(5)
})

it('reads the whole day again while the relay still reads its past', async () => {
  const open = { state: 'open' } as const
  const past = [3, 2, 1, 0].map((before) => hour(before, ['1', '2']))
  const { day, asked } = openDay([
    page([hour(0, ['1', '2'], open)]),
    page(past.map((bar) => ({ ...bar, ...open }))),
    page(past.map((bar) => ({ ...bar, ...open }))),
    page(past),
    page([]),
  ])
  const waits: number[] = []
  for (let time = 0; time < 5; time += 1) {
    await day.refresh(1, null)
    waits.push(day.intervalMs)
  }
  expect(asked.map(({ since }) => since)).toEqual(['24h', '24h', '24h', '24h', '2h'])
  expect(waits).toEqual([10_000, 10_000, 10_000, 60_000, 60_000])
  expect(day.of(stock(null), now).trades).toBe(8)
})

it('is the same object for the same stock and time, so that a row is not drawn again', async () => {
  const { day } = openDay([])
  const apple = stock('1')
  expect(day.of(apple, now)).toBe(day.of(apple, now))
})

it('keeps the day of a token that gets another symbol', async () => {
  const closedAt = '2026-11-23T21:00:00.000Z'
  const { day } = openDay([page([hour(2, ['100', '104'])]), page([hour(19, ['70', '80'])])])
  await day.refresh(1, closedAt)
  const before = day.of(stock('100'), now)
  day.rename('AAPLc', 'APLc')
  expect(day.of(stock('100', 'APLc'), now)).toEqual(before)
  expect(day.of(stock('100', 'AAPLc'), now + 1)).toMatchObject({ trades: 0 })
})

it('does not give a token the day of another one whose symbol it takes', async () => {
  const { day } = openDay([page([hour(2, ['100', '104']), hour(2, ['5', '6'], { symbol: 'COINc', trades: 7 })])])
  await day.refresh(2, null)
  day.rename('COINc', 'AAPLc')
  expect(day.of(stock('100'), now).trades).toBe(2)
})

it('names the base that most changes have, which is none without a change', () => {
  const changes = [9, 10, 10, null].map((sinceMs) => ({
    change: sinceMs === null ? null : { percent: 1, sinceMs, base: 1, isClose: false },
  }))
  expect([commonChange(changes)?.sinceMs, commonChange(changes.slice(3))]).toEqual([10, null])
})

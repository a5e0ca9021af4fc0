import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { book, type StockState } from '../../../../src/sdk/client/book.ts'
import { mainQuotes } from '../../../../src/sdk/client/premium.ts'
import type { StreamItem } from '../../../../src/sdk/client/stream-types.ts'
import type { QuoteMessage } from '../../../../src/sdk/generated/messages.ts'
import { gap } from './fake-relay.ts'

const A = '0xa'

const fakeTimers = (): void => {
  vi.useFakeTimers()
  onTestFinished(() => {
    vi.useRealTimers()
  })
}

const fresh = { price: '10', updated_at: null, age_s: 1, state: 'fresh', stale_after_s: 9, frozen: null }
const quote = (pool: string, price: string | null, depth: string | null, state = 'ok') => ({
  venue: { pool },
  ...{ price, depth, state, basis: null, basis_bps: null },
})
const quoteOf = (pool: string, price: string | null, depth: string | null, state = 'ok') => ({
  type: 'quote',
  ...quote(pool, price, depth, state),
})
const multiplier = (phase: 'effective' | 'cancelled' | 'scheduled', to: string | null = '3') => ({
  type: 'multiplier',
  phase,
  multiplier: to,
})
const scheduled = (to = '3') => ({ ...multiplier('scheduled', to), source: 'log', key: 'k', effective_at: 'T' })
const retract = (fact_type: string, restored: object | null, key = 'k') => ({ type: 'retract', key, fact_type, restored })
const seal = (key: string, block = {}) => ({ type: 'seal', keys: [key], block })
const transfer = (key: string, more: object = {}) => ({
  type: 'transfer',
  ...{ key, stage: 'preconfirmed', shares: '1', memo: null, block: { number: 1, hash: null } },
  ...more,
})
const snapshotOf = (symbol = 'A', address = A, as_of = 'e.10', more: object = {}) => ({
  type: 'snapshot',
  ...{ id: as_of, as_of, symbol, address, token: { symbol }, multiplier: '1', scheduled: null, paused: [], nav: fresh },
  ...{ quote: quote('0x1', '10', '5'), session: { state: 'open' }, ...more },
})

let seq = 10
/** A message after the snapshot, of the first stock unless it says otherwise. */
const next = (message: object): StreamItem => {
  seq += 1
  return { id: `e.${seq}`, prev: null, symbol: 'A', address: A, ...message } as unknown as StreamItem
}

function bookOf(...messages: readonly object[]) {
  const stocks = book()
  stocks.apply(snapshotOf() as unknown as StreamItem)
  for (const message of messages) stocks.apply('as_of' in message || 'reason' in message ? (message as StreamItem) : next(message))
  return stocks
}

const stagesOf = (state: StockState | undefined) => state?.movements.map(({ key, stage, type }) => `${key} ${type} ${stage}`)

it('the main pool over time is the deepest one with a price at each time', () => {
  const prices: readonly (readonly [pool: string, price: string | null, depth: string | null, state?: string])[] = [
    ['0x1', '10', '5'],
    ['0x2', '11', '4'],
    ['0x2', '12', '6'],
    ['0x1', '13', '5'],
    ['0x2', null, null, 'empty'],
    ['0x1', '14', '5'],
  ]
  const quotes = prices.map((given, second) => ({ ...quoteOf(...given), time: `T${second}` }) as unknown as QuoteMessage)
  expect(mainQuotes(quotes).map(({ venue, price, time }) => [venue.pool, price, time])).toEqual([
    ['0x1', '10', 'T0'],
    ['0x1', '10', 'T1'],
    ['0x2', '12', 'T2'],
    ['0x2', '12', 'T3'],
    ['0x1', '13', 'T4'],
    ['0x1', '14', 'T5'],
  ])
})

describe('a book', () => {
  it.each<[string, readonly object[], object]>([
    ['a snapshot', [], { symbol: 'A', multiplier: '1', nav: { price: '10' }, quote: { price: '10' }, session: { state: 'open' } }],
    ['a nav', [{ type: 'nav', nav: { ...fresh, price: '11' } }], { nav: { price: '11' } }],
    ['a pause', [{ type: 'pause', paused: ['MINT'] }], { paused: ['MINT'] }],
    ['a session', [{ type: 'session', symbol: '*', address: null, state: 'post' }], { session: { state: 'post' } }],
    ['a record', [{ type: 'token', change: 'changed', token: { symbol: 'A', name: 'New' } }], { token: { name: 'New' } }],
    ['another symbol', [{ type: 'token', change: 'changed', symbol: 'AA', token: { symbol: 'AA' } }], { symbol: 'AA' }],
    ['a schedule', [scheduled()], { multiplier: '1', scheduled: { multiplier: '3', effective_at: 'T' } }],
    ['its effect', [scheduled(), multiplier('effective')], { multiplier: '3', scheduled: null }],
    ['its cancellation', [scheduled(), multiplier('cancelled')], { multiplier: '1', scheduled: null }],
    ['its retraction', [scheduled(), retract('multiplier', { multiplier: '1' })], { scheduled: null }],
    [
      'the retraction of a multiplier',
      [scheduled(), retract('multiplier', { multiplier: '2' }, 'other')],
      { multiplier: '2', scheduled: { multiplier: '3' } },
    ],
    ['an amended schedule', [scheduled(), { type: 'amend', key: 'k', update: scheduled('4') }], { scheduled: { multiplier: '4' } }],
    ['the retraction of a pause', [retract('pause', { paused: ['BURN'] })], { paused: ['BURN'] }],
    ['the retraction of a record', [retract('token', { token: { name: 'Old' } })], { token: { name: 'Old' } }],
    ['a multiplier that nobody knows any more', [multiplier('effective', null)], { multiplier: null }],
    ['a deeper pool', [quoteOf('0x2', '11', '6')], { quote: { price: '11' } }],
    ['a pool that is less deep', [quoteOf('0x2', '11', '4')], { quote: { price: '10' } }],
    ['a pool without a price', [quoteOf('0x1', null, null, 'empty'), quoteOf('0x2', '11', '4')], { quote: { price: '11' } }],
    [
      'no pool with a price',
      [quoteOf('0x2', null, null, 'empty'), quoteOf('0x1', null, null, 'thin')],
      { quote: { state: 'thin' } },
    ],
    ['what the snapshot includes already', [{ type: 'nav', id: 'e.9', nav: { ...fresh, price: '9' } }], { nav: { price: '10' } }],
    [
      'a session that the snapshot includes already',
      [{ type: 'session', id: 'e.9', symbol: '*', address: null, state: 'pre' }],
      { session: { state: 'open' } },
    ],
    ['types that it does not know', [{ type: 'weather' }, { type: 'finality', symbol: '*', address: null }], { multiplier: '1' }],
  ])('knows %s', (_, messages, expected) => {
    const stocks = bookOf(...messages)
    expect(stocks.all()).toHaveLength(1)
    expect(stocks.all()[0]).toMatchObject(expected)
  })

  it.each<[string, readonly object[], readonly string[]]>([
    ['sealed', [transfer('1'), seal('1', { hash: '0x' })], ['1 transfer sealed']],
    ['retracted', [transfer('1'), retract('transfer', null, '1')], ['1 transfer retracted']],
    [
      'amended, also in its type',
      [transfer('1'), { type: 'amend', key: '1', update: transfer('1', { type: 'seize' }) }],
      ['1 seize preconfirmed'],
    ],
    [
      'retold after a retraction, once',
      [transfer('1'), retract('transfer', null, '1'), transfer('1', { stage: 'sealed' })],
      ['1 transfer sealed'],
    ],
    [
      'no more than the bound, newest first',
      [transfer('1'), transfer('2'), transfer('3')],
      ['3 transfer preconfirmed', '2 transfer preconfirmed'],
    ],
    ['older than the snapshot', [{ id: 'e.9', ...transfer('1') }], ['1 transfer preconfirmed']],
    ['that it never heard of', [seal('7'), retract('transfer', null, '7')], []],
  ])('keeps movements: %s', (_, messages, expected) => {
    const stocks = book(undefined, { movements: 2 })
    for (const item of [snapshotOf(), ...messages.map(next)]) stocks.apply(item as unknown as StreamItem)
    expect(stagesOf(stocks.get('A'))).toEqual(expected)
  })

  it('lists and delists', () => {
    const listed = { type: 'token', change: 'listed', symbol: 'B', address: '0xb', token: { symbol: 'B' } }
    const stocks = bookOf(listed, { type: 'nav', symbol: 'B', address: '0xb', nav: fresh })
    expect(stocks.get('B')).toMatchObject({ address: '0xb', multiplier: null, nav: { price: '10' }, movements: [] })
    const before = stocks.all()
    stocks.apply(next({ type: 'token', change: 'delisted', symbol: 'B', address: '0xb', token: {} }))
    expect(stocks.get('B')).toBeUndefined()
    expect([before.length, stocks.all().length]).toEqual([2, 1])
  })

  it('forgets the stocks that have no snapshot after a gap, and says so', () => {
    fakeTimers()
    const stocks = bookOf(snapshotOf('B', '0xb'), transfer('1'), gap('f.5', 'e.20', 'epoch'), snapshotOf('A', A, 'f.5'))
    expect(stocks.all()).toHaveLength(2)
    let calls = 0
    vi.runAllTimers()
    stocks.subscribe(() => (calls += 1))
    stocks.apply({ ...next({ type: 'finality', symbol: '*', address: null }), id: 'f.6' } as StreamItem)
    vi.runAllTimers()
    expect([stocks.all().map(({ symbol }) => symbol), calls]).toEqual([['A'], 1])
    expect(stagesOf(stocks.get('A'))).toEqual(['1 transfer preconfirmed'])
    stocks.apply({ ...next({ type: 'nav', nav: { ...fresh, price: '1' } }), id: 'f.6' } as StreamItem)
    expect(stocks.get(A)?.nav.price).toBe('1')
  })

  it('keeps its stocks where a gap is followed by no snapshots, or is only a loss', () => {
    for (const reason of ['expired', 'missed']) {
      const stocks = bookOf(snapshotOf('B', '0xb'), gap('e.50', 'e.20', reason), { type: 'nav', nav: fresh })
      expect(stocks.all()).toHaveLength(2)
    }
  })

  it('makes a new object for each change, and only for that', () => {
    const stocks = bookOf(snapshotOf('B', '0xb'))
    const [a, b, all] = [stocks.get('A'), stocks.get('B'), stocks.all()]
    stocks.apply(next({ type: 'finality', symbol: '*', address: null }))
    expect(stocks.all()).toBe(all)
    stocks.apply(next({ type: 'nav', nav: { ...fresh, price: '11' } }))
    expect(stocks.get('B')).toBe(b)
    expect(stocks.get('A')).not.toBe(a)
    expect(a?.nav.price).toBe('10')
  })

  it('calls its listeners once for a burst, and never after they left', () => {
    fakeTimers()
    const stocks = bookOf()
    let calls = 0
    const leave = stocks.subscribe(() => (calls += 1))
    for (let times = 0; times < 5; times += 1) stocks.apply(next({ type: 'nav', nav: fresh }))
    vi.runAllTimers()
    expect(calls).toBe(1)
    stocks.apply(next({ type: 'nav', nav: fresh }))
    leave()
    vi.runAllTimers()
    expect(calls).toBe(1)
  })
})

it('the functions of a book work without it, as a framework calls them', () => {
  const { subscribe, all, get, apply } = book()
  const listener = vi.fn()
  const stop = subscribe(listener)
  apply(snapshotOf() as unknown as StreamItem)
  expect(all()).toEqual([get('A')])
  stop()
})

it('a book whose stream fails says why, and ends no process', async () => {
  const failure = new Error('refused')
  const stocks = book(
    (async function* () {
      yield snapshotOf() as unknown as StreamItem
      throw failure
    })(),
  )
  expect(stocks.error).toBeNull()
  await new Promise<void>((resolve) => stocks.subscribe(() => stocks.error && resolve()))
  expect(stocks.error).toBe(failure)
  expect(stocks.get('A')).toBeDefined()
  await expect(stocks.done).rejects.toBe(failure)
})

it('a stock has the newest quote of each pool, the deepest with a price first', () => {
  const stock = bookOf(quoteOf('0x2', '11', '50'), quoteOf('0x3', null, null, 'empty'), quoteOf('0x1', '12', '5')).get('A')
  expect(stock?.quotes.map(({ venue, price }) => [venue.pool, price])).toEqual([
    ['0x2', '11'],
    ['0x1', '12'],
    ['0x3', null],
  ])
  expect(stock?.quote).toBe(stock?.quotes[0])
})

describe('the trades of a stock', () => {
  const trade = (nth: number, more: object = {}) => ({
    ...{
      type: 'trade',
      key: `k${nth}`,
      stage: 'preconfirmed',
      shares: '1',
      tx: { log_index: nth },
      block: { number: 5, hash: null },
    },
    ...more,
  })
  const inBlock4 = { stage: 'sealed', block: { number: 4, hash: '0x4' } }
  const amend = (update: { readonly key: string }) => ({ type: 'amend', key: update.key, fact_type: 'trade', changed: [], update })

  it.each<[string, readonly object[], last: string, trades: readonly string[]]>([
    ['stay in chain order where one is late', [trade(20), trade(5, { stage: 'sealed' })], 'k20 preconfirmed', ['k5', 'k20']],
    ['stay in chain order where one is amended', [trade(5), trade(20), amend(trade(5))], 'k20 preconfirmed', ['k20', 'k5']],
    ['end with an amended one', [trade(5), amend(trade(5, { shares: '2' }))], 'k5 preconfirmed', ['k5']],
    ['are sealed with their block', [trade(5), seal('k5', inBlock4.block)], 'k5 sealed', ['k5']],
    ['lose one that is a transfer after all', [trade(5), amend(transfer('k5'))], 'null', []],
    [
      'lose the last one',
      [trade(20), trade(9, inBlock4), trade(30), retract('trade', null, 'k30')],
      'k20 preconfirmed',
      ['k30', 'k9', 'k20'],
    ],
    ['begin with that of the snapshot', [snapshotOf('A', A, 'e.10', { last_trade: trade(7) }), seal('k7')], 'k7 sealed', []],
  ])('%s', (_, messages, last, keys) => {
    const { last_trade, trades = [] } = bookOf(...messages).get('A') ?? {}
    expect(last_trade ? `${last_trade.key} ${last_trade.stage}` : 'null').toBe(last)
    expect(trades.map(({ key }) => key)).toEqual(keys)
  })

  it('come from the pools that are followed', () => {
    const venue = (pool: string, change: string) => next({ type: 'venue', change, venue: { pool }, from_block: 5, reason: null })
    const stocks = bookOf(snapshotOf('A', A, 'e.10', { venues: [{ venue: { pool: '0x1' }, from_block: 3 }] }))
    const followed = () => stocks.get('A')?.venues.map(({ venue: { pool }, from_block }) => `${pool} from ${from_block}`)
    stocks.apply(venue('0x2', 'followed'))
    expect(followed()).toEqual(['0x1 from 3', '0x2 from 5'])
    stocks.apply(venue('0x1', 'dropped'))
    expect(followed()).toEqual(['0x2 from 5'])
  })
})

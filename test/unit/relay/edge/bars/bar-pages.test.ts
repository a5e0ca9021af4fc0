import { beforeEach, describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { readBarsQuery } from '../../../../../src/protocol/bars/bars-query.ts'
import { csvLineOf } from '../../../../../src/relay/edge/bars/bar-csv.ts'
import { readBars } from '../../../../../src/relay/edge/bars/bar-reader.ts'
import { barFaultsNote, barTimesNote, blockTradesNotes, tokenKeyOf } from '../../../../../src/relay/notes/bar-notes.ts'
import { barRowOf, type MinuteBar } from '../../../../../src/relay/tape/bars/bar-row.ts'
import { Notes } from '../../../../../src/relay/tape/notes.ts'
import { type NotedTrade, poolMinutesOf } from '../../../../../src/relay/tokens/minute-bars.ts'
import type { TestTape } from '../../../../support/local-tape.ts'
import { openTestEdge } from '../edge-fixture.ts'

const APPLE: Hex = `0x${'a'.repeat(40)}`
const TESLA: Hex = `0x${'b'.repeat(40)}`
const POOL: Hex = `0x${'1'.repeat(40)}`
const OTHER: Hex = `0x${'2'.repeat(40)}`
/** Noon of a day. The minutes of the tests are counted from it. */
const NOON = 1_795_003_200
const OPEN_FROM = 12

const trade = (block: number, price: string, more: Partial<NotedTrade> = {}): NotedTrade => ({
  ...{
    block,
    logIndex: 0,
    pool: POOL,
    side: 'buy',
    amount: '2',
    shares: '2',
    price,
    key: `${block}`,
    isMain: true,
    isSealed: true,
  },
  ...{ currencyAmount: String(2 * Number(price)), basisBps: null, basis: null, second: null },
  nav: { price: '100', updated_at: null, age_s: null, state: 'fresh', stale_after_s: 60, frozen: null },
  ...more,
})

const minute = (at: number, trades: readonly NotedTrade[], more: Partial<MinuteBar> = {}): MinuteBar => ({
  ...{ address: APPLE, start: NOON + at * 60, edition: 1, revision: 1, partial: null, closedBy: at * 10 },
  pools: poolMinutesOf(trades),
  ...more,
})

let tape: TestTape

beforeEach(async () => {
  ;({ tape } = openTestEdge())
  const bars = [
    minute(0, [trade(1, '100'), trade(2, '101')]),
    minute(1, [trade(11, '90')], { revision: 3, edition: 4 }),
    minute(3, [], { revision: 0, partial: 'refused' }),
    minute(4, [trade(41, '95'), trade(42, '7', { pool: OTHER, isMain: false })], { partial: 'pruned' }),
    minute(6, [], { revision: 2, edition: 2 }),
    minute(7, [trade(71, '8', { pool: OTHER, isMain: false })], { revision: 0 }),
    minute(0, [trade(3, '50')], { address: TESLA }),
  ]
  const notes = new Notes()
    .set(barTimesNote, { keptFrom: NOON, openFrom: NOON + OPEN_FROM * 60 })
    .set(barFaultsNote, [
      { reason: 'unreadable', token: null, pool: null, from: NOON + 480, to: NOON + 480, firstBlock: 80, lastBlock: 80 },
    ])
    .set(blockTradesNotes.at(tokenKeyOf(APPLE, 121)), [trade(121, '103', { isSealed: false, second: NOON + 721 })])
    .set(blockTradesNotes.at(tokenKeyOf(APPLE, 111)), [trade(111, '102', { second: NOON + 660 })])
  await tape.writer.append({ first: tape.next, updates: [], notes, bars: bars.map(barRowOf), keepAfter: 0 })
})

/** The bars of a query, each as its minute since noon, state, revision and prices. */
async function told(parameters: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const { interval, pools = null, order, open: hasOpen, ...times } = readBarsQuery(new URLSearchParams(parameters))
  const seconds = { '1m': 60, '5m': 300, '15m': 900, '1h': 3_600, '4h': 14_400, '1d': 86_400 }[interval]
  const time = (name: 'since' | 'until', fallback: number) =>
    times[name]?.from === 'time' ? (times[name].time ?? 0) / 1_000 : fallback
  const range = { seconds, pools, order, hasOpen, expected: 64, since: time('since', 0), until: time('until', 2 ** 40) }
  const context = { tape, navStaleAfterMs: 60_000, finalized: 15 }
  const tokens = [
    { address: APPLE, symbol: 'AAPLc' },
    { address: TESLA, symbol: 'TSLAc' },
  ]
  const bars: string[] = []
  for (const read of readBars(context, tokens, range)) {
    if (!read) continue
    const { symbol, start, state, revision, open, high, low, close, trades, partial } = read.bar
    const at = (Date.parse(start) / 1_000 - NOON) / 60
    bars.push(`${symbol} ${at} ${state} r${revision} ${open} ${high} ${low} ${close} of ${trades}${partial ? ` ${partial}` : ''}`)
  }
  return bars
}

const minutes = [
  'AAPLc 0 final r1 100 101 100 101 of 2',
  'TSLAc 0 final r1 50 50 50 50 of 1',
  'AAPLc 1 final r3 90 90 90 90 of 1',
  'AAPLc 4 closed r1 95 95 95 95 of 1 pruned',
  'AAPLc 6 closed r2 null null null null of 0',
]
const isoAt = (at: number) => new Date((NOON + at * 60) * 1_000).toISOString()

// Ranges, orders, pools and open bars against an independent calculation are in the tests of e2e/bars.
describe('the bars of a query', () => {
  it.each([
    ['are minutes in the order of their start, then of their symbol', {}, minutes],
    [
      'are folds of minutes once their last minute is over',
      { interval: '5m' },
      [
        'AAPLc 0 closed r5 100 101 90 95 of 4 refused',
        'TSLAc 0 final r1 50 50 50 50 of 1',
        'AAPLc 5 closed r2 null null null null of 0 unreadable',
      ],
    ],
    [
      'are the same folds in both orders',
      { interval: '5m', order: 'desc', symbols: 'AAPLc' },
      [
        'AAPLc 5 closed r2 null null null null of 0 unreadable',
        'AAPLc 0 closed r5 100 101 90 95 of 4 refused',
        'TSLAc 0 final r1 50 50 50 50 of 1',
      ],
    ],
    [
      'have open ones of pre-confirmed trades too',
      { interval: '15m', open: 'true' },
      ['AAPLc 0 open r8 100 103 90 103 of 5 refused', 'TSLAc 0 open r1 50 50 50 50 of 1 unreadable'],
    ],
    [
      'are of the pools that the query names, against any currency',
      { pools: OTHER },
      ['AAPLc 4 closed r1 7 7 7 7 of 1 pruned', 'AAPLc 7 closed r1 8 8 8 8 of 1'],
    ],
    [
      'are of several pools together',
      { pools: `${OTHER},${POOL}`, since: isoAt(4), until: isoAt(5) },
      ['AAPLc 4 closed r1 95 95 7 7 of 2 pruned'],
    ],
  ])('%s', async (_, parameters, expected) => {
    expect(await told(parameters)).toEqual(expected)
  })
})

describe('a minute that ends while a reader waits', () => {
  const NVIDIA = `0x${'c3'.repeat(20)}` as Hex
  const range = { since: 0, until: 2 ** 40, order: 'asc', hasOpen: true, pools: null, expected: 64 } as const
  const context = () => ({ tape, navStaleAfterMs: 60_000, finalized: null })
  const openTrade = (address: Hex, more: Partial<NotedTrade> = {}) =>
    [blockTradesNotes.at(tokenKeyOf(address, 121)), [trade(121, '103', { second: NOON + 721, ...more })]] as const
  const append = (bars: readonly MinuteBar[], notes: Notes) =>
    tape.writer.append({ first: tape.next, updates: [], notes, bars: bars.map(barRowOf), keepAfter: 0 })
  /** The minute of the open trades ends. */
  const endMinute = (...bars: readonly MinuteBar[]) =>
    append(bars, new Notes().set(barTimesNote, { keptFrom: NOON, openFrom: NOON + 780 }))

  it('is in its hour once', async () => {
    const past = Array.from({ length: 70 }, (_, hour) => minute((hour - 70) * 60, [trade(1, '100')], { address: NVIDIA }))
    const own = minute(2, [trade(21, '100')], { address: NVIDIA })
    await append([...past, own], new Notes().set(...openTrade(NVIDIA)))
    const counts: number[] = []
    for (const read of readBars(context(), [{ address: NVIDIA, symbol: 'NVDAc' }], { ...range, seconds: 3_600 })) {
      if (read) counts.push(read.bar.trades)
      else await endMinute(minute(12, [trade(121, '103')], { address: NVIDIA }))
    }
    expect(counts).toEqual([...past.map(() => 1), 2])
  })

  it('is over for all tokens of a request or for none', async () => {
    const long = Array.from({ length: 70 }, (_, at) => minute(at - 70, [trade(1, '100')], { address: TESLA }))
    const inOther = { pool: OTHER, isMain: false }
    await append(long, new Notes().set(...openTrade(APPLE, inOther)).set(...openTrade(NVIDIA, inOther)))
    const tokens = [APPLE, TESLA, NVIDIA].map((address) => ({ address, symbol: address }))
    const bars: string[] = []
    for (const read of readBars(context(), tokens, { ...range, seconds: 60, since: 0, until: NOON + 900, pools: [OTHER] })) {
      if (!read) await endMinute(...[APPLE, NVIDIA].map((address) => minute(12, [trade(121, '103', inOther)], { address })))
      else if (read.start > NOON + 600) bars.push(`${read.bar.symbol} ${read.bar.state}`)
    }
    expect(bars).toEqual([`${APPLE} open`, `${NVIDIA} open`])
  })
})

it.each([
  ['interval=2m', /interval/],
  ['since=k3f9a1.1', /since: must be start, now, a duration back from chain time/],
  ['limit=5001', /limit: must be a number of bars, 1 to 5000/],
  ['format=xml', /format/],
  ['pools=0x12', /pools/],
  ['symbols=', /symbols: names no token/],
  ['types=bar', /Unknown parameter "types"/],
])('a query with %s is refused with what is wrong', (query, message) => {
  expect(() => readBarsQuery(new URLSearchParams(query))).toThrow(message)
})

it('a line of CSV has a symbol in quotes where it needs them', async () => {
  const context = { tape, navStaleAfterMs: 60_000, finalized: null }
  const range = { seconds: 60, since: 0, until: NOON + 60, order: 'asc', pools: null, hasOpen: false, expected: 64 } as const
  const [read] = [...readBars(context, [{ address: APPLE, symbol: 'A"c,' }], range)].filter((one) => one !== null)
  expect(read && csvLineOf(read.bar)).toBe(`"A""c,",${isoAt(0)},${isoAt(1)},1,100,101,100,101,100.5,2,4,4,402,4,402,,,,closed`)
})

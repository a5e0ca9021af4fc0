import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ServerClock } from '../../../src/board/feed/server-clock.ts'
import { programFor } from '../../../src/board/pages/program-for-filter.ts'
import { type BoardRoute, formatRoute, parseRoute, sortKeys, tapeShows } from '../../../src/board/shared/board-route.ts'
import {
  formatAmount,
  formatBps,
  formatCount,
  formatDecimal,
  formatMoney,
  formatPercent,
  formatPrice,
  formatQuantity,
  formatRight,
  formatShare,
  formatTokens,
  plainAmount,
} from '../../../src/board/shared/number-text.ts'
import { navStateOf, navWords, stageByHead } from '../../../src/board/shared/state-words.ts'
import { isNavOld } from '../../../src/board/shared/stock-texts.ts'
import { formatAge, formatCountdown, formatDuration, formatMoment } from '../../../src/board/shared/time-text.ts'
import { wallPageOf } from '../../../src/board/symbols/shown-symbols.ts'
import type { ReferenceValue, StockState } from '../../../src/sdk/client/index.ts'
import { premium } from '../../../src/sdk/client/premium.ts'

describe('a number', () => {
  it.each([
    [formatDecimal('1234567.891', 2), '1,234,567.89'],
    [formatTokens('12345.678'), '12,345.6780'],
    [formatTokens('123.45678'), '123.4568'],
    [formatTokens('0.01234'), '0.0123'],
    [formatTokens('0.00001'), '< 0.0001'],
    [formatTokens('7'), '7.0000'],
    [formatTokens('0'), '0'],
    [formatPercent(1.234), '+1.23 %'],
    [formatPercent(-0.5), '−0.50 %'],
    [formatPercent(-0.001), '0.00 %'],
    [formatDecimal('0.005', 2), '0.0050'],
    [formatDecimal('-0.004', 1), '−0.0040'],
    [formatDecimal('999.995', 2), '1,000.00'],
    [formatDecimal('0', 2), '0.00'],
    [formatDecimal('1.5', 0), '2'],
    [formatDecimal('1e21', 2), '–'],
    [formatDecimal(null, 2), '–'],
    [formatPrice('327.1949'), '327.19'],
    [formatPrice('0.12345'), '0.1235'],
    [formatAmount('12.5'), '12.5'],
    [formatAmount('0.00000123'), '0.0000012'],
    [formatAmount('20'), '20'],
    [formatCount(108_804_445), '108,804,445'],
    [formatMoney(12_400), '$12.4k'],
    [formatMoney(999_960), '$1.0M'],
    [formatMoney(0.2), '$0'],
    [formatRight(9, 11), '9 of 11'],
    [formatRight(12_344, 12_345), '99.99 % of 12,345'],
    [formatBps('4.9'), '+4.9'],
    [formatBps('-12300.25'), '−12,300'],
    [formatBps('-0.03'), '0.0'],
    [formatBps('0.04'), '0.0'],
    [formatQuantity(0.000012), '0.000012'],
    [formatQuantity(12.5), '12.5'],
    [formatQuantity(1_234_567.8), '1,234,567'],
    [formatShare(9_999, 10_000), '99.99 %'],
    [formatShare(99_999, 100_000), '99.99 %'],
    [formatShare(7, 7), '100 %'],
    [formatShare(0, 0), '–'],
  ])('is shown as %s', (text, expected) => {
    expect(text).toBe(expected)
  })

  it('is never rounded away: what is not 0 has a digit that is not 0', () => {
    const decimal = fc.tuple(fc.nat(5), fc.integer({ min: 1, max: 99 }), fc.integer({ min: 0, max: 14 }))
    fc.assert(
      fc.property(decimal, fc.integer({ min: 0, max: 6 }), ([whole, digits, zeros], places) => {
        expect(formatDecimal(`${whole}.${'0'.repeat(zeros)}${digits}`, places)).toMatch(/[1-9]/)
      }),
    )
  })
})

it.each([
  ['10,000', '10000'],
  ['$10k', '10000'],
  ['1.25 k', '1250'],
  ['0.0005k', '0.5'],
  ['2m', '2000000'],
  ['0.5', '0.5'],
  ['1,00', '1,00'],
  ['ten', 'ten'],
])('the amount %s is read as %s', (text, plain) => {
  expect(plainAmount(text)).toBe(plain)
})

describe('a time', () => {
  const friday = new Date(2026, 10, 20, 20, 0)
  it.each([
    [formatDuration(240), '0.2 s'],
    [formatDuration(39_900), '39 s'],
    [formatDuration(119_999), '119 s'],
    [formatDuration(120_000), '2 min'],
    [formatDuration(23 * 3_600_000), '23 h'],
    [formatDuration(49 * 3_600_000), '2 d'],
    [formatAge(240), '1 s'],
    [formatAge(119_999), '1 min'],
    [formatCountdown(19_000), '19 s'],
    [formatCountdown(249_000), '4 min 9 s'],
    [formatCountdown(3_849_000), '1 h 4 min'],
    [formatCountdown(187_200_000), '2 d 4 h'],
    [formatMoment(friday.toISOString(), friday.getTime() + 3_600_000), '20:00'],
    [formatMoment(friday.toISOString(), friday.getTime() + 86_400_000), 'Fri 20:00'],
    [formatMoment(friday.toISOString(), friday.getTime() + 9 * 86_400_000), 'Nov 20 20:00'],
  ])('is shown as %s', (text, expected) => {
    expect(text).toBe(expected)
  })

  it('follows the clock of the relay where that of the reader is wrong', () => {
    let readerMs = 1_000_000
    const clock = new ServerClock(() => readerMs)
    clock.observe(new Date(readerMs - 300).toISOString())
    expect(clock.nowMs()).toBe(readerMs)
    const wrong = new ServerClock(() => readerMs)
    wrong.observe(new Date(readerMs + 60_000 - 900).toISOString())
    wrong.observe(new Date(readerMs + 60_000 - 200).toISOString())
    readerMs += 5_000
    expect(wrong.nowMs()).toBe(readerMs + 59_800)
    // The reader's clock is set while the page is open.
    for (let nth = 0; nth < 3; nth += 1) {
      readerMs += 61_000
      wrong.observe(new Date(readerMs - 100).toISOString())
    }
    expect(wrong.nowMs()).toBe(readerMs)
  })
})

describe('a NAV', () => {
  const friday = new Date(2026, 10, 20, 20, 0).toISOString()
  const nav: ReferenceValue = { price: '1', updated_at: friday, age_s: 1, state: 'fresh', stale_after_s: 93_600, frozen: false }
  const closed = { market: 'XNYS', state: 'closed', ends_at: null, reason: null } as const
  const sunday = Date.parse(friday) + 40 * 3_600_000
  it.each([
    [nav, closed, 'fresh', 'fresh'],
    [{ ...nav, state: 'stale' }, closed, 'stale', 'held since Fri 20:00 · market closed'],
    [
      { ...nav, state: 'stale' },
      { ...closed, reason: 'Thanksgiving' },
      'stale',
      'held since Fri 20:00 · market closed (Thanksgiving)',
    ],
    [{ ...nav, state: 'stale' }, { ...closed, state: 'open' }, 'stale', 'held since Fri 20:00 · older than 26 h'],
    [{ ...nav, state: 'stale' }, null, 'stale', 'held since Fri 20:00 · older than 26 h'],
    [{ ...nav, frozen: true }, closed, 'frozen', 'frozen at Fri 20:00 · corporate action'],
    [{ ...nav, price: null, updated_at: null, state: 'missing', frozen: true }, closed, 'missing', 'missing'],
    [{ ...nav, price: null, state: 'invalid' }, closed, 'invalid', 'invalid'],
  ] as const)('says how far it can be trusted: %o in %o', (value, session, state, words) => {
    expect([navStateOf(value), navWords(value, session, sunday)]).toEqual([state, words])
  })
})

describe('the basis', () => {
  const nav = { price: '200', updated_at: null, age_s: 1, state: 'fresh', stale_after_s: 9, frozen: false } as const
  const quoteAt = (price: string | null, navPrice: string, basis_bps: string | null) =>
    ({ price, basis_bps, nav: { ...nav, price: navPrice } }) as StockState['quote']
  it.each([
    ['as the relay computed it, where it is of the same NAV', nav, quoteAt('201', '200', '50'), { bps: '50', kind: 'premium' }],
    ['anew, where the NAV has changed', { ...nav, price: '202' }, quoteAt('201', '200', '50'), { bps: '-49.50', kind: 'premium' }],
    ['as a drift, where the NAV is held', { ...nav, state: 'stale' }, quoteAt('200', '200', '0'), { bps: '0', kind: 'drift' }],
    ['unsigned, if nothing', { ...nav, price: '200.0000001' }, quoteAt('200', '200', '0'), { bps: '0.00', kind: 'premium' }],
    ['not at all without a price', nav, quoteAt(null, '200', null), null],
    ['not at all without a NAV', { ...nav, price: null, state: 'missing' }, quoteAt('200', '200', '0'), null],
    ['not at all without a pool', nav, null, null],
  ] as const)('is shown %s', (_, shownNav, quote, expected) => {
    expect(premium({ nav: shownNav, quote })).toEqual(expected)
  })
})

it.each([
  [10, 'finalized'],
  [11, 'safe'],
  [20, 'safe'],
  [21, 'sealed'],
] as const)('a sealed block %i is %s by the watermarks', (block, stage) => {
  expect(stageByHead(block, { safe: 20, finalized: 10 })).toBe(stage)
})

describe('the URL', () => {
  const text = fc.stringMatching(/^[A-Za-z0-9.&=?#/%+ö-]{1,12}$/)
  const word = fc.stringMatching(/^[A-Za-z0-9.%ö-]{1,12}$/)
  const route: fc.Arbitrary<BoardRoute> = fc.record({
    page: fc.oneof(
      fc.constantFrom({ name: 'symbols' } as const, { name: 'health' } as const, { name: 'play' } as const),
      text.map((symbol) => ({ name: 'symbol', symbol: `x${symbol}` }) as const),
      text.map((key) => ({ name: 'fact', key }) as const),
    ),
    filter: fc.record({
      symbols: fc.array(word),
      types: fc.array(word),
      minValue: fc.oneof(fc.constant(''), word),
      account: fc.array(word),
    }),
    view: fc.record({
      layout: fc.constantFrom('table', 'tiles'),
      sort: fc.constantFrom(...sortKeys),
      isDescending: fc.boolean(),
      search: fc.oneof(fc.constant(''), text),
      pins: fc.array(word),
      isWall: fc.boolean(),
      show: fc.constantFrom(...tapeShows),
      tab: fc.constantFrom('symbols', 'tape'),
    }),
  })

  it('holds everything that is selected', () => {
    fc.assert(
      fc.property(route, (shown) => {
        expect(parseRoute(formatRoute(shown))).toEqual(shown)
      }),
    )
  })

  it.each(['', '#', '#/', '#/?sort=nothing&layout=x&wall=%', '#/%E0%A4%A'])('shows something for %o', (hash) => {
    expect(parseRoute(hash).view).toMatchObject({ sort: 'volume', isDescending: true })
  })
})

describe('a copied program', () => {
  const base = new URL('http://127.0.0.1:8080/')
  const filter = { symbols: ['AAPLc', "x'; rm -rf ~"], types: ['transfer', 'mint'], minValue: '10000', account: [] }

  it.each([
    ['curl', '-H "Authorization: Bearer $STOCKTAPE_KEY"'],
    ['wscat', '-H "Authorization: Bearer $STOCKTAPE_KEY"'],
    ['TypeScript', 'key: process.env.STOCKTAPE_KEY'],
    ['Python', 'os.environ["STOCKTAPE_KEY"]'],
  ] as const)('as %s reads the API key of a relay that needs one from the environment', (kind, text) => {
    expect(programFor(kind, filter, base, true)).toContain(text)
    expect(programFor(kind, filter, base)).not.toContain('KEY')
  })

  it('keeps its quotation, also where the URL holds quotes', () => {
    expect(programFor('curl', filter, base).replaceAll("'\\''", '').split("'")).toHaveLength(3)
  })
})

it.each([
  ['all at once where they fit', 9, 620, ['0 to 9']],
  ['page after page, the last one short', 15, 620, ['0 to 9', '9 to 15']],
  ['one row at least', 4, 0, ['0 to 3', '3 to 4']],
  ['none', 0, 620, ['0 to 0']],
])('a wall shows the symbols %s', (_, count, heightPx, pages) => {
  const shown = [...pages, ...pages].map((_, turn) => wallPageOf(count, heightPx, turn * 15_000))
  expect(shown.map(({ from, until }) => `${from} to ${until}`)).toEqual([...pages, ...pages])
})

it.each([
  [3_600_000, 'open', true],
  [3_599_000, 'open', false],
  [3_600_000, 'closed', false],
])('a NAV of %i ms in a market that is %s is old: %s', (ageMs, state, isOld) => {
  const nav = { state: 'fresh', updated_at: new Date(0).toISOString() }
  expect(isNavOld({ nav, session: { state } } as StockState, ageMs)).toBe(isOld)
})

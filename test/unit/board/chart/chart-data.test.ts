import { expect, it } from 'vitest'
import {
  chartSentence,
  marksOf,
  navPoints,
  navSinceOf,
  premiumTitle,
  shadesOf,
  stepsOf,
} from '../../../../src/board/chart/chart-data.ts'
import type { Bar, ReferenceValue, Update } from '../../../../src/sdk/client/index.ts'

const time = (seconds: number) => new Date(seconds * 1_000).toISOString()
const nav = (price: string | null, more: Partial<ReferenceValue> = {}): ReferenceValue => ({
  ...{ price, updated_at: null, age_s: 1, state: price === null ? 'missing' : 'fresh', stale_after_s: 9, frozen: false },
  ...more,
})
const bar = (seconds: number, price: string) => ({ start: time(seconds), nav: nav(price) })
const message = (type: string, seconds: number, more: object) => ({ type, time: time(seconds), ...more }) as unknown as Update

it('the NAV is that of the bars, then of the messages, then of now, once in each step', () => {
  const readings = [message('nav', 190, { nav: nav('3') }), message('nav', 200, { nav: nav('4', { state: 'stale' }) })]
  const points = navPoints([bar(60, '1'), bar(120, '2')], readings, { nav: nav('5', { frozen: true }), seconds: 305 }, 60)
  expect(points).toEqual([
    { time: 60, value: 1, isHeld: false },
    { time: 120, value: 2, isHeld: false },
    { time: 180, value: 4, isHeld: true },
    { time: 300, value: 5, isHeld: true },
  ])
  expect(navPoints([], [message('nav', 1, { nav: nav(null) })], { nav: nav(null), seconds: 2 }, 60)).toEqual([])
})

it('a step is shaded while the NAV is held, and while the market is closed', () => {
  const navs = [0, 120, 240].map((at) => ({ time: at, value: 1, isHeld: at === 120 }))
  const session = (seconds: number, state: string) => message('session', 999, { state, started_at: time(seconds) })
  const shades = shadesOf([0, 60, 120, 180, 240, 300], navs, [session(60, 'closed'), session(300, 'open')])
  expect([...shades]).toEqual([
    [60, 'closed'],
    [120, 'held'],
    [180, 'held'],
    [240, 'closed'],
  ])
})

it('a multiplier that takes effect, a pause and an action are marks; a first multiplier is none', () => {
  const multiplier = (phase: string, previous: string | null) => message('multiplier', 61, { phase, previous, multiplier: '2' })
  const events = [
    ...[multiplier('effective', null), multiplier('scheduled', '1'), multiplier('effective', '1')],
    ...[message('pause', 130, { change: 'paused' }), message('action', 190, {}), message('pause', 191, { change: 'unpaused' })],
  ]
  expect(marksOf(events, 60)).toEqual([
    { time: 60, text: '2 shares per token', short: '2 per token' },
    { time: 120, text: 'paused', short: 'paused' },
    { time: 180, text: 'announcement · 1 more action', short: '2 actions' },
  ])
})

it.each([
  ['Last trade against NAV, bps', ['drift', 'premium'], '7'],
  ['Last trade against held NAV, bps', ['drift', null], '7'],
  ['No NAV for these candles', [null], '7'],
  ['No premium: no trades', [null], null],
] as const)('the part below the volume is named “%s”', (title, kinds, close) => {
  expect(premiumTitle(kinds.map((basis) => ({ basis, close })))).toBe(title)
})

it.each([
  ['the first with one', [null, 'drift', null, 'premium'], 0, 60],
  ['no time, if all have one', ['drift', 'premium'], 0, null],
  ['no time, if none has one', [null, null], 0, null],
  ['no time, if those without one are not shown', [null, 'drift'], 60, null],
] as const)('the NAV of trades is known from %s', (_, kinds, since, known) => {
  const bars = kinds.map((basis, at) => ({ start: time(at * 60), basis, close: '1' }))
  expect(navSinceOf([{ start: time(0), basis: null, close: null }, ...bars], since)).toBe(known)
})

it('has a step for each length of time, the newest ones up to a limit', () => {
  expect(stepsOf(60, 240, 60, 9)).toEqual([60, 120, 180, 240])
  expect(stepsOf(60, 240, 60, 2)).toEqual([180, 240])
})

it('its sentence has the last trade and the range of the prices, and those of the NAV', () => {
  const bars = [
    { high: '3', low: '1', close: '2.5' },
    { high: null, low: null, close: null },
  ] as readonly Pick<Bar, 'high' | 'low' | 'close'>[]
  expect(chartSentence(bars, [])).toBe('Chart. Last trade 2.50, between 1.00 and 3.00; NAV not known.')
  const navs = [4, 2, 3].map((value, time) => ({ time, value, isHeld: false }))
  expect(chartSentence([], navs)).toBe('Chart. Last trade not known; NAV 3.00, between 2.00 and 4.00.')
})

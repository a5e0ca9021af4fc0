import { describe, expect, it } from 'vitest'
import {
  ALERTS_BOUND,
  type Alerts,
  AlertWatch,
  alertsText,
  noAlert,
  noAlerts,
  parseAlerts,
  withAlert,
} from '../../../../src/board/feed/alerts.ts'
import type { StockState } from '../../../../src/sdk/client/index.ts'

const nowMs = Date.parse('2026-11-24T15:30:00Z')
const scheduledIn = (ms: number) => ({ multiplier: '4', effective_at: new Date(nowMs + ms).toISOString() })

/** A stock at this price, with a NAV of 100. */
const stock = (price: string | null, more: Partial<StockState> = {}, nav: object = {}) =>
  ({
    ...{
      symbol: 'AAPLc',
      address: '0xa',
      scheduled: null,
      paused: [],
      multiplier: '1',
      quote: price === null ? null : { price, basis_bps: null },
    },
    nav: { price: '100', state: 'fresh', frozen: false, ...nav },
    ...more,
  }) as unknown as StockState

const all: Alerts = { source: true, stocks: new Map([['0xa', { premiumBps: 50, multiplier: true, pause: true }]]) }
type Seen = readonly [state: StockState, isDown?: boolean]

/** What a reader is told after each state. */
const told = (states: readonly Seen[], alerts = all) => {
  const watch = new AlertWatch()
  return states.map(([state, isDown = false]) => watch.check(alerts, [state], nowMs, isDown).map(({ text }) => text))
}

describe('an alert', () => {
  it.each<[string, readonly Seen[], readonly (readonly string[])[]]>([
    [
      'is told when the premium passes its bound, and again only after it was well inside',
      ['100.4', '100.6', '100.49', '100.6', '100.4', '99.4'].map((price) => [stock(price)]),
      [[], ['AAPLc: premium +60.0 bps, beyond 50'], [], [], [], ['AAPLc: premium −60.0 bps, beyond 50']],
    ],
    ['is not told of what is so when the page opens', [[stock('102')], [stock('103')]], [[], []]],
    [
      'is not told of a drift, nor twice because of one',
      [
        [stock('100')],
        [stock('102', {}, { state: 'stale' })],
        [stock('102')],
        [stock('102', {}, { state: 'stale' })],
        [stock('102')],
      ],
      [[], [], ['AAPLc: premium +200.0 bps, beyond 50'], [], []],
    ],
    [
      'is told of a multiplier that is scheduled, and once',
      [[stock(null)], [stock(null, { scheduled: scheduledIn(90_000) })], [stock(null, { scheduled: scheduledIn(80_000) })]],
      [[], ['AAPLc: 4 shares per token in 1 min 30 s'], []],
    ],
    ['is told of a pause', [[stock(null)], [stock(null, { paused: ['TRANSFER'] })]], [[], ['AAPLc paused: transfer']]],
    [
      'is told of a feed that is down, each time',
      [
        [stock(null), false],
        [stock(null), true],
        [stock(null), false],
        [stock(null), true],
      ],
      [[], ['The feed is down'], [], ['The feed is down']],
    ],
  ])('%s', (_, states, notices) => {
    expect(told(states)).toEqual(notices)
  })

  it('is not told where it is not set', () => {
    expect(told([[stock('100')], [stock('102', { paused: ['TRANSFER'] }), true]], noAlerts)).toEqual([[], []])
  })
})

describe('the alerts of a reader', () => {
  it('are the same after they were kept', () => {
    expect(parseAlerts(alertsText(all))).toEqual(all)
  })

  it.each(['', 'null', '{', '{"stocks":7}', '{"stocks":[7]}', '[]', null])('are none where %s was kept', (text) => {
    expect(parseAlerts(text)).toEqual(noAlerts)
  })

  it('are those of the last stocks that were set, up to a limit, and none of a stock without a wish', () => {
    const alert = { ...noAlert, pause: true }
    const addresses = Array.from({ length: ALERTS_BOUND + 2 }, (_, nth) => `0x${nth}`)
    const many = addresses.reduce((alerts, address) => withAlert(alerts, address, alert), noAlerts)
    expect([...many.stocks.keys()]).toEqual(addresses.slice(2))
    expect([...withAlert(many, '0x2', noAlert).stocks.keys()]).toEqual(addresses.slice(3))
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MarketCalendar, namesByDate, openCalendar } from '../../../../src/relay/market/market-calendar.ts'
import { xnysDays } from '../../../../src/relay/market/xnys-days.ts'

const VALID_FROM = '2000-01-01T01:00:00.000Z'
const VALID_TO = '2029-01-01T01:00:00.000Z'

const secondsOf = (text: string): number => Date.parse(text) / 1_000
const sessionAt = (text: string) => new MarketCalendar().sessionAt(secondsOf(text))

// The state of every day is compared with QuantLib in e2e/slow/market-calendar.test.ts.
describe('a session', () => {
  it.each([
    // Each change is to the second.
    ['2026-11-24T00:59:59Z', 'post', '2026-11-23T21:00', '2026-11-24T01:00', null],
    ['2026-11-24T01:00:00Z', 'overnight', '2026-11-24T01:00', '2026-11-24T09:00', null],
    ['2026-11-24T09:00:00Z', 'pre', '2026-11-24T09:00', '2026-11-24T14:30', null],
    // Thanksgiving 2026: closed in full, then a night, a morning and an early close that joins the weekend.
    ['2026-11-26T01:00:00Z', 'closed', '2026-11-26T01:00', '2026-11-27T01:00', 'Thanksgiving Day'],
    ['2026-11-27T17:59:59Z', 'open', '2026-11-27T14:30', '2026-11-27T18:00', null],
    ['2026-11-27T18:00:00Z', 'closed', '2026-11-27T18:00', '2026-11-30T01:00', 'Day after Thanksgiving'],
    // An early close, a holiday and a weekend in one stretch: the first of them is the reason, asked at any time of it.
    ['2026-12-24T18:00:00Z', 'closed', '2026-12-24T18:00', '2026-12-28T01:00', 'Christmas Eve'],
    ['2026-12-25T12:00:00Z', 'closed', '2026-12-24T18:00', '2026-12-28T01:00', 'Christmas Eve'],
    // An early close in the middle of a week, before its holiday.
    ['2024-07-03T17:00:00Z', 'closed', '2024-07-03T17:00', '2024-07-05T00:00', 'Day before Independence Day'],
    // An ordinary weekend has no reason.
    ['2026-11-21T01:00:00Z', 'closed', '2026-11-21T01:00', '2026-11-23T01:00', null],
    // A Monday's holiday lengthens the weekend before it.
    ['2026-09-05T12:00:00Z', 'closed', '2026-09-05T00:00', '2026-09-08T00:00', 'Labor Day'],
    // Clocks forward on a Sunday: the weekend has 47 hours. Clocks back: 49.
    ['2026-03-07T12:00:00Z', 'closed', '2026-03-07T01:00', '2026-03-09T00:00', null],
    ['2026-10-31T12:00:00Z', 'closed', '2026-10-31T00:00', '2026-11-02T01:00', null],
    // Several holidays and a weekend in one stretch.
    ['2001-09-11T12:00:00Z', 'closed', '2001-09-11T00:00', '2001-09-17T00:00', 'September 11 attacks'],
    ['2006-12-31T12:00:00Z', 'closed', '2006-12-30T01:00', '2007-01-03T01:00', "New Year's Day"],
    // The first and the last stretch of the table.
    [VALID_FROM, 'closed', '2000-01-01T01:00', '2000-01-03T01:00', null],
    ['2029-01-01T00:59:59Z', 'closed', '2028-12-30T01:00', '2029-01-01T01:00', null],
  ])('at %s is %s from %s to %s because of %s', (time, state, since, until, reason) => {
    const [from, to] = [`${since}:00.000Z`, `${until}:00.000Z`]
    expect(sessionAt(time)).toMatchObject({ market: 'XNYS', state, started_at: from, ends_at: to, reason, valid_to: VALID_TO })
  })

  it.each([
    ['2026-11-24T21:00:00Z', '2026-11-24T21:00'],
    ['2026-11-24T14:30:00Z', '2026-11-23T21:00'],
    ['2026-11-27T09:00:00Z', '2026-11-25T21:00'],
    ['2026-12-25T12:00:00Z', '2026-12-24T18:00'],
    ['2001-09-11T12:00:00Z', '2001-09-10T20:00'],
    ['2000-01-03T01:00:00Z', null],
  ])('at %s the last close was at %s', (time, closedAt) => {
    expect(sessionAt(time).closed_at).toBe(closedAt && `${closedAt}:00.000Z`)
  })

  it.each(['2000-01-01T00:59:59Z', '1970-01-01T00:00:00Z', VALID_TO, '2040-06-03T15:00:00Z'])('at %s is unknown', (time) => {
    const nothing = { started_at: null, ends_at: null, closed_at: null, reason: null }
    expect(sessionAt(time)).toEqual({ market: 'XNYS', state: 'unknown', ...nothing, valid_to: VALID_TO })
  })
})

describe('a calendar', () => {
  it('is none where it is switched off', () => {
    expect(openCalendar('none')).toBeNull()
    expect(openCalendar('XNYS')).toBeInstanceOf(MarketCalendar)
  })

  it('answers with the same object until the state changes', () => {
    const calendar = new MarketCalendar()
    const at = (text: string) => calendar.sessionAt(secondsOf(text))
    const weekend = at('2026-11-21T01:00:00Z')
    expect(at('2026-11-23T00:59:59Z')).toBe(weekend)
    expect(at('2026-11-23T01:00:00Z')).toMatchObject({ state: 'overnight' })
    expect(at('2026-11-23T00:59:59Z')).toEqual(weekend)
    const unknown = at(VALID_TO)
    expect(at('2050-01-01T00:00:00Z')).toBe(unknown)
  })

  it('has one session at every time, from its first second to its last', () => {
    const seconds = fc.integer({ min: secondsOf(VALID_FROM), max: secondsOf(VALID_TO) - 1 })
    fc.assert(
      fc.property(seconds, (time) => {
        const session = new MarketCalendar().sessionAt(time)
        const [since, until] = [session.started_at, session.ends_at].map((text) => secondsOf(text ?? ''))
        expect(since).toBeLessThanOrEqual(time)
        expect(until).toBeGreaterThan(time)
        expect(sessionAt(session.started_at ?? '')).toEqual(session)
        expect(new MarketCalendar().sessionAt((until ?? 0) - 1)).toEqual(session)
        let between = session.closed_at === null ? null : sessionAt(session.closed_at)
        for (; between && between.started_at !== session.started_at; between = sessionAt(between.ends_at ?? ''))
          expect(between).toMatchObject({ state: expect.not.stringMatching('open'), closed_at: session.closed_at })
        const next = sessionAt(session.ends_at ?? '')
        expect(next.state).not.toBe(session.state)
        expect([session.ends_at, null]).toContain(next.started_at)
      }),
      { numRuns: 300 },
    )
  })
})

it('the table of days has each day once, in order under its name, between the first and the last', () => {
  for (const days of [xnysDays.holidays, xnysDays.earlyCloses]) {
    const lists = Object.values(days).map((dates) => dates.split(/\s+/))
    expect(lists).toEqual(lists.map((dates) => dates.toSorted()))
    const all = [...namesByDate(days).keys()].sort()
    expect(all).toEqual(lists.flat().sort())
    expect([xnysDays.first < (all[0] ?? ''), xnysDays.last > (all.at(-1) ?? '')]).toEqual([true, true])
  }
})

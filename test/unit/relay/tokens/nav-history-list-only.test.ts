import { describe, expect, it } from 'vitest'
import { type NavReading, navAt } from '../../../../src/relay/tokens/nav.ts'
import {
  addListReading,
  currentNav,
  emptyNavHistory,
  type NavHistory,
  navReadingAt,
} from '../../../../src/relay/tokens/nav-history.ts'
import { listTime, listTimeAfter, NOON } from './stock-records.ts'

const MINUTE_MS = 60_000
const timeAt = (minutes: number): number => NOON + minutes * MINUTE_MS
const navReading = (price: string | null, updatedAt: number | null): NavReading => ({ price, updatedAt })

const historyOf = (...readings: readonly NavReading[]): NavHistory =>
  readings.reduce((history, reading) => addListReading(history, reading, listTime), emptyNavHistory)
const stateOf = (history: NavHistory, { now, navStaleAfterMs } = listTime) =>
  navAt(currentNav(history, { now, navStaleAfterMs }).reading, now, navStaleAfterMs, null).state

describe('the list without a feed', () => {
  it('has no reading at first', () => {
    expect(currentNav(emptyNavHistory, listTime)).toEqual({ reading: navReading(null, null), source: 'list', missed: false })
    expect(navReadingAt(emptyNavHistory, NOON)).toEqual(navReading(null, null))
  })

  it('may come from several machines, of which the newest time wins', () => {
    const history = historyOf(
      navReading('2', timeAt(-5)),
      navReading('1', timeAt(-9)),
      navReading('2', timeAt(-5)),
      navReading('1', timeAt(-9)),
    )
    expect(currentNav(history, listTime).reading).toEqual(navReading('2', timeAt(-5)))
    expect(addListReading(history, navReading('1', timeAt(-9)), listTime)).toBe(history)
  })

  it('replaces a reading by another of the same time', () => {
    expect(historyOf(navReading('1', timeAt(-5)), navReading('2', timeAt(-5))).list).toEqual([navReading('2', timeAt(-5))])
  })

  it.each([
    ['a zero', navReading('0', timeAt(-1)), 'invalid'],
    ['a word', navReading('string', timeAt(-1)), 'invalid'],
    ['a price without a readable time', navReading('3', null), 'invalid'],
    ['a price of the future', navReading('3', timeAt(60)), 'invalid'],
    ['a time without a price', navReading(null, timeAt(-1)), 'missing'],
    ['neither price nor time', navReading(null, null), 'missing'],
  ])('has %s as its NAV only until the next reading', (_, garbage, state) => {
    const before = historyOf(navReading('2', timeAt(-5)))
    const history = addListReading(before, garbage, listTime)
    expect(currentNav(history, listTime).reading).toEqual(garbage)
    expect(stateOf(history)).toBe(state)
    expect(currentNav(addListReading(history, navReading('3', timeAt(-2)), listTime), listTime).reading).toEqual(
      navReading('3', timeAt(-2)),
    )
    expect(addListReading(history, navReading('2', timeAt(-5)), listTime)).toEqual(before)
    expect(currentNav(addListReading(history, navReading('1', timeAt(-9)), listTime), listTime).reading).toEqual(
      navReading('2', timeAt(-5)),
    )
  })

  it('ignores garbage of an older time', () => {
    const history = historyOf(navReading('2', timeAt(-5)))
    expect(addListReading(history, navReading('0', timeAt(-6)), listTime)).toBe(history)
  })

  it('has a fresh NAV once the clock reaches its future time', () => {
    const history = historyOf(navReading('3', timeAt(10)))
    expect(stateOf(history)).toBe('invalid')
    expect(stateOf(history, listTimeAfter(8 * MINUTE_MS))).toBe('fresh')
  })

  it('replaces a reading of a clock that was ahead once the clock is set back', () => {
    const history = addListReading(emptyNavHistory, navReading('3', timeAt(60)), listTimeAfter(60 * MINUTE_MS))
    expect(currentNav(addListReading(history, navReading('2', timeAt(-1)), listTime), listTime).reading.price).toBe('2')
  })
})

import { describe, expect, it } from 'vitest'
import { type NavReading, navAt } from '../../../src/tokens/nav.ts'
import {
  addListReading,
  currentNav,
  emptyNavHistory,
  type NavHistory,
  navReadingAt,
} from '../../../src/tokens/nav-history.ts'
import { listTime, listTimeAfter, NOON } from './stock-records.ts'

const MINUTE_MS = 60_000
const timeAt = (minutes: number): number => NOON + minutes * MINUTE_MS
const navReading = (price: string | null, updatedAt: number | null): NavReading => ({ price, updatedAt })

const historyOf = (...readings: readonly NavReading[]): NavHistory =>
  readings.reduce((rounds, reading) => addListReading(rounds, reading, listTime), emptyNavHistory)
const stateOf = (rounds: NavHistory, { now, staleMs } = listTime) =>
  navAt(currentNav(rounds, { now, staleMs }).reading, now, staleMs).state

describe('the list alone', () => {
  it('has said nothing at first', () => {
    expect(currentNav(emptyNavHistory, listTime)).toEqual({
      reading: navReading(null, null),
      source: 'list',
      missed: false,
    })
    expect(navReadingAt(emptyNavHistory, NOON)).toEqual(navReading(null, null))
  })

  it('alternates between machines, and the newest time wins', () => {
    const rounds = historyOf(
      navReading('2', timeAt(-5)),
      navReading('1', timeAt(-9)),
      navReading('2', timeAt(-5)),
      navReading('1', timeAt(-9)),
    )
    expect(currentNav(rounds, listTime).reading).toEqual(navReading('2', timeAt(-5)))
    expect(addListReading(rounds, navReading('1', timeAt(-9)), listTime)).toBe(rounds)
  })

  it('corrects itself by another value of the same time', () => {
    expect(historyOf(navReading('1', timeAt(-5)), navReading('2', timeAt(-5))).list).toEqual([
      navReading('2', timeAt(-5)),
    ])
  })

  it.each([
    ['zero', navReading('0', timeAt(-1)), 'invalid'],
    ['a word', navReading('string', timeAt(-1)), 'invalid'],
    ['of no readable time', navReading('3', null), 'invalid'],
    ['of the future', navReading('3', timeAt(60)), 'invalid'],
    ['no price', navReading(null, timeAt(-1)), 'missing'],
    ['nothing at all', navReading(null, null), 'missing'],
  ])('that says what is %s is held to it until its next word, and no longer', (_, garbage, state) => {
    const before = historyOf(navReading('2', timeAt(-5)))
    const rounds = addListReading(before, garbage, listTime)
    expect(currentNav(rounds, listTime).reading).toEqual(garbage)
    expect(stateOf(rounds)).toBe(state)
    expect(currentNav(addListReading(rounds, navReading('3', timeAt(-2)), listTime), listTime).reading).toEqual(
      navReading('3', timeAt(-2)),
    )
    expect(addListReading(rounds, navReading('2', timeAt(-5)), listTime)).toEqual(before)
    expect(currentNav(addListReading(rounds, navReading('1', timeAt(-9)), listTime), listTime).reading).toEqual(
      navReading('2', timeAt(-5)),
    )
  })

  it('that says garbage of an older time is not heard', () => {
    const rounds = historyOf(navReading('2', timeAt(-5)))
    expect(addListReading(rounds, navReading('0', timeAt(-6)), listTime)).toBe(rounds)
  })

  it('that said a time of the future is right once the clock reaches it', () => {
    const rounds = historyOf(navReading('3', timeAt(10)))
    expect(stateOf(rounds)).toBe('invalid')
    expect(stateOf(rounds, listTimeAfter(8 * MINUTE_MS))).toBe('fresh')
  })

  it('said under a clock that ran ahead does not block what it says once the clock is set back', () => {
    const rounds = addListReading(emptyNavHistory, navReading('3', timeAt(60)), listTimeAfter(60 * MINUTE_MS))
    expect(currentNav(addListReading(rounds, navReading('2', timeAt(-1)), listTime), listTime).reading.price).toBe('2')
  })
})

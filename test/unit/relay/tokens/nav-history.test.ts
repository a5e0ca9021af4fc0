import { describe, expect, it } from 'vitest'
import type { NavReading } from '../../../../src/relay/tokens/nav.ts'
import {
  addListReading,
  addRound,
  applySealedRounds,
  currentNav,
  emptyNavHistory,
  type NavHistory,
  type Round,
} from '../../../../src/relay/tokens/nav-history.ts'
import { listTime, NOON } from './stock-records.ts'

// `nav-history-random.test.ts` holds the history to a model. Here is what the model does not draw.

const MINUTE_MS = 60_000
const timeAt = (minutes: number): number => NOON + minutes * MINUTE_MS
const navReading = (price: string | null, updatedAt: number | null): NavReading => ({ price, updatedAt })

const historyOf = (...readings: readonly NavReading[]): NavHistory =>
  readings.reduce((history, reading) => addListReading(history, reading, listTime), emptyNavHistory)
const withRounds = (history: NavHistory, ...all: readonly Round[]): NavHistory => all.reduce(addRound, history)

/** A round from a pre-confirmed log. Its price is its number, and rounds are a minute apart. */
const log = (nth: number, other: Partial<Round> = {}): Round => ({
  price: String(nth),
  updatedAt: timeAt(nth - 100),
  phase: 2,
  round: String(nth),
  position: { block: nth, logIndex: 0 },
  key: `${nth}-0xaa-0`,
  sealed: false,
  ...other,
})
const sealed = (nth: number, other: Partial<Round> = {}): Round => log(nth, { sealed: true, ...other })
const call = (nth: number, other: Partial<Round> = {}): Round => sealed(nth, { position: null, key: null, ...other })

describe('a round', () => {
  it('is ordered by all digits of its number', () => {
    const large = log(1, { round: '18446744073709551616' })
    const lower = log(2, { round: '18446744073709551615', updatedAt: timeAt(-99) })
    expect(currentNav(withRounds(emptyNavHistory, large, lower), listTime).reading.price).toBe('1')
  })

  it.each<[string, NavHistory, (history: NavHistory) => NavHistory]>([
    ['it is repeated', withRounds(emptyNavHistory, log(99), call(100)), (history) => withRounds(history, log(99), call(100))],
    ['it was sealed before', withRounds(emptyNavHistory, sealed(100)), (history) => addRound(history, log(100))],
    [
      'its block seals it again',
      withRounds(emptyNavHistory, sealed(100)),
      (history) => applySealedRounds(history, 100, [log(100)]),
    ],
    ['another block is sealed without it', withRounds(emptyNavHistory, log(99)), (history) => applySealedRounds(history, 100, [])],
  ])('changes nothing where %s', (_, history, change) => {
    expect(change(history)).toBe(history)
  })

  it.each([
    ['its number is higher', log(101, { updatedAt: timeAt(-1) })],
    ['it is sealed', sealed(101, { updatedAt: timeAt(-1) })],
    ['a call returns it', call(101, { updatedAt: timeAt(-1) })],
    ['it is of a new aggregator', log(101, { phase: 3, round: '1', updatedAt: timeAt(-1) })],
  ])('with an older time than the one before does not take the NAV back, although %s', (_, older) => {
    const history = withRounds(emptyNavHistory, log(100), older)
    expect(currentNav(history, listTime)).toEqual({ reading: navReading('100', timeAt(0)), source: 'log' })
    const newer = withRounds(history, log(102, { phase: 3, updatedAt: timeAt(0) }))
    expect(currentNav(newer, listTime).reading.price).toBe('102')
    expect(currentNav(applySealedRounds(history, 100, []), listTime).reading.updatedAt).toBe(timeAt(-1))
  })
})

describe('the list', () => {
  it('may come from several machines, of which the newest time wins', () => {
    const [newer, older] = [navReading('2', timeAt(-5)), navReading('1', timeAt(-9))]
    const history = historyOf(newer, older, newer, older)
    expect(currentNav(history, listTime).reading).toEqual(newer)
    expect(addListReading(history, older, listTime)).toBe(history)
    expect(addListReading(history, navReading('0', timeAt(-6)), listTime)).toBe(history)
  })
})

it('the NAV history keeps the newest 64 readings of list and feed', () => {
  let history = emptyNavHistory
  for (let nth = 1; nth <= 200; nth += 1) {
    history = addListReading(withRounds(history, log(nth)), navReading(String(nth), timeAt(nth - 300)), listTime)
  }
  expect([history.list.length, history.feed.length]).toEqual([64, 64])
  expect([history.list[0]?.price, history.feed[0]?.price]).toEqual(['137', '137'])
  expect(withRounds(history, log(5))).toBe(history)
  expect(addListReading(history, navReading('5', timeAt(-295)), listTime)).toBe(history)
})

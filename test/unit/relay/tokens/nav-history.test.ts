import { describe, expect, it } from 'vitest'
import { type NavReading, navAt } from '../../../../src/relay/tokens/nav.ts'
import {
  addListReading,
  addRound,
  applySealedRounds,
  currentNav,
  emptyNavHistory,
  type NavHistory,
  navReadingAt,
  type Round,
  removeRounds,
} from '../../../../src/relay/tokens/nav-history.ts'
import { priceOf } from '../../../../src/relay/tokens/price-feeds.ts'
import { listTime, NOON } from './stock-records.ts'

const MINUTE_MS = 60_000
const timeAt = (minutes: number): number => NOON + minutes * MINUTE_MS
const navReading = (price: string | null, updatedAt: number | null): NavReading => ({ price, updatedAt })

const historyOf = (...readings: readonly NavReading[]): NavHistory =>
  readings.reduce((history, reading) => addListReading(history, reading, listTime), emptyNavHistory)
const withRounds = (history: NavHistory, ...all: readonly Round[]): NavHistory => all.reduce(addRound, history)
const stateOf = (history: NavHistory) =>
  navAt(currentNav(history, listTime).reading, listTime.now, listTime.navStaleAfterMs, null).state

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
const keys = (...nths: readonly number[]): ReadonlySet<string> => new Set(nths.map((nth) => `${nth}-0xaa-0`))

describe('a round', () => {
  it('is ordered by phase and number, not by arrival', () => {
    const inOrder = withRounds(emptyNavHistory, log(98), log(99), log(100))
    expect(withRounds(emptyNavHistory, log(100), log(98), log(99))).toEqual(inOrder)
    expect(currentNav(inOrder, listTime)).toEqual({ reading: navReading('100', timeAt(0)), source: 'log', missed: false })
  })

  it('is ordered by its number, not by the text of the number', () => {
    expect(currentNav(withRounds(emptyNavHistory, log(100), log(99)), listTime).reading.price).toBe('100')
    const large = withRounds(
      emptyNavHistory,
      log(1, { round: '18446744073709551616' }),
      log(2, { round: '18446744073709551615', updatedAt: timeAt(-99) }),
    )
    expect(currentNav(large, listTime).reading.price).toBe('1')
  })

  it('of a new aggregator is newer, even if that starts at round 1', () => {
    const history = withRounds(emptyNavHistory, log(100), log(1, { phase: 3, price: '7', updatedAt: timeAt(1) }), log(101))
    expect(currentNav(history, listTime).reading).toEqual(navReading('7', timeAt(1)))
  })

  it('does not change the history when it is repeated', () => {
    const history = withRounds(emptyNavHistory, log(99), call(100))
    expect(withRounds(history, log(99), call(100))).toBe(history)
  })

  it('replaces its pre-confirmed version once it is sealed, and stays sealed', () => {
    const history = withRounds(emptyNavHistory, log(100), sealed(100, { price: '3' }))
    expect(history.feed).toEqual([sealed(100, { price: '3' })])
    expect(addRound(history, log(100))).toBe(history)
  })

  it('replaces a round with the same key and other content', () => {
    const history = withRounds(emptyNavHistory, log(99), log(100), log(100, { price: '3', round: '98' }))
    expect(history.feed.map(({ round }) => round)).toEqual(['98', '99'])
  })

  it('is taken from a sealed log first, then from a call, then from a pre-confirmed log', () => {
    const [logged, called, sealedLog] = [log(100, { price: '1' }), call(100, { price: '2' }), sealed(100, { price: '3' })]
    expect(currentNav(withRounds(emptyNavHistory, called, logged), listTime).reading.price).toBe('2')
    expect(
      currentNav(withRounds(emptyNavHistory, { ...sealedLog, key: '101-0xbb-0' }, called, logged), listTime).reading.price,
    ).toBe('3')
  })

  it('in two blocks is taken from the later one', () => {
    const again = log(100, { price: '3', position: { block: 101, logIndex: 0 }, key: '101-0xaa-0' })
    const history = withRounds(emptyNavHistory, again, log(100))
    expect(currentNav(history, listTime).reading.price).toBe('3')
    expect(applySealedRounds(history, 100, []).feed).toEqual([again])
  })

  it.each([
    ['zero', log(100, { price: '0' })],
    ['negative', log(100, { price: priceOf(-5n, 8) })],
    ['of a future time', log(100, { updatedAt: timeAt(3) })],
    ['without a readable time', log(100, { updatedAt: null })],
  ])('that is %s is the NAV, invalid, in spite of an older list', (_, round) => {
    const history = withRounds(historyOf(navReading('99', timeAt(-1))), log(99), round)
    expect(currentNav(history, listTime).source).toBe('log')
    expect(stateOf(history)).toBe('invalid')
    expect(stateOf(withRounds(history, log(101)))).toBe('fresh')
  })

  it.each([
    ['its number is higher', log(101, { updatedAt: timeAt(-1) })],
    ['it is sealed', sealed(101, { updatedAt: timeAt(-1) })],
    ['a call returns it', call(101, { updatedAt: timeAt(-1) })],
    ['it is of a new aggregator', log(101, { phase: 3, round: '1', updatedAt: timeAt(-1) })],
  ])('with an older time than the one before does not take the NAV back, although %s', (_, older) => {
    const history = withRounds(emptyNavHistory, log(100), older)
    expect(currentNav(history, listTime)).toEqual({ reading: navReading('100', timeAt(0)), source: 'log', missed: false })
    const newer = withRounds(history, log(102, { phase: 3, updatedAt: timeAt(0) }))
    expect(currentNav(newer, listTime).reading.price).toBe('102')
    expect(currentNav(removeRounds(history, keys(100)), listTime).reading.updatedAt).toBe(timeAt(-1))
  })

  it('is as old as its sealed log says, whatever a call said of it', () => {
    const history = withRounds(emptyNavHistory, log(99), call(100), sealed(100, { price: '3', updatedAt: timeAt(-0.5) }))
    expect(currentNav(history, listTime).reading).toEqual(navReading('3', timeAt(-0.5)))
  })

  it('has a price with all digits', () => {
    expect(priceOf(32_430_140_000n, 8)).toBe('324.3014')
    expect(priceOf(-1n, 8)).toBe('-0.00000001')
    expect(priceOf(0n, 8)).toBe('0')
  })
})

describe('a removed round', () => {
  it('restores the previous value, although that is older', () => {
    const history = removeRounds(withRounds(emptyNavHistory, log(99), log(100)), keys(100))
    expect(currentNav(history, listTime).reading).toEqual(navReading('99', timeAt(-1)))
  })

  it('leaves the last reading of the list if it was the only round', () => {
    const history = removeRounds(withRounds(historyOf(navReading('99', timeAt(-1)), navReading('0', null)), log(100)), keys(100))
    expect(currentNav(history, listTime)).toEqual({ reading: navReading('0', null), source: 'list', missed: false })
  })

  it('is also removed where a call answered it, and may come again', () => {
    const history = removeRounds(withRounds(emptyNavHistory, call(99), log(100), call(100)), keys(100))
    expect(history.feed).toEqual([call(99)])
    expect(currentNav(withRounds(history, log(100)), listTime).reading.price).toBe('100')
  })

  it('changes nothing if it never arrived', () => {
    const history = withRounds(emptyNavHistory, log(99))
    expect(removeRounds(history, keys(100))).toBe(history)
  })
})

describe('a settled block', () => {
  it('removes the rounds that it lacks, and seals and adds those that it contains', () => {
    const [first, second, third] = [0, 1, 2].map((logIndex) =>
      log(100 + logIndex, { position: { block: 50, logIndex }, key: `50-0xaa-${logIndex}` }),
    )
    if (!first || !second || !third) throw new Error('no rounds')
    const history = withRounds(emptyNavHistory, log(99), call(98), first, second)
    expect(applySealedRounds(history, 50, [second, third]).feed).toEqual([
      call(98),
      log(99),
      { ...second, sealed: true },
      { ...third, sealed: true },
    ])
  })

  it('removes its sealed rounds when another block replaces it', () => {
    expect(applySealedRounds(withRounds(emptyNavHistory, sealed(99), sealed(100)), 100, []).feed).toEqual([sealed(99)])
  })

  it('changes nothing if its rounds are sealed already', () => {
    const history = withRounds(emptyNavHistory, sealed(99), sealed(100))
    expect(applySealedRounds(history, 100, [log(100)])).toBe(history)
  })
})

describe('the list beside a feed', () => {
  it('leaves the same round to the feed', () => {
    const history = withRounds(historyOf(navReading('100.0', timeAt(0))), log(100))
    expect(currentNav(history, listTime)).toEqual({ reading: navReading('100', timeAt(0)), source: 'log', missed: false })
  })

  it('counts if it is newer, and the feed has missed a round until it publishes one', () => {
    const history = withRounds(historyOf(navReading('100', timeAt(0))), log(99))
    expect(currentNav(history, listTime)).toEqual({ reading: navReading('100', timeAt(0)), source: 'list', missed: true })
    expect(currentNav(withRounds(history, log(100)), listTime)).toMatchObject({ source: 'log', missed: false })
  })

  it('does not count with the time of an earlier round, even if the newest round has an older time', () => {
    const history = withRounds(historyOf(navReading('100', timeAt(0))), log(100), log(1, { phase: 3, updatedAt: timeAt(-2) }))
    expect(currentNav(history, listTime)).toMatchObject({ source: 'log', missed: false })
  })

  it.each([
    ['a zero', navReading('0', timeAt(1))],
    ['a price of the future', navReading('200', timeAt(60))],
    ['a price without a readable time', navReading('200', null)],
    ['a missing price', navReading(null, timeAt(1))],
  ])('never displaces a round by %s', (_, garbage) => {
    const history = withRounds(historyOf(navReading('98', timeAt(-2)), garbage), log(99))
    expect(currentNav(history, listTime)).toMatchObject({ reading: { price: '99' }, source: 'log', missed: false })
  })
})

describe('the NAV at a past time', () => {
  it('is the newest published by then, independent of its source and arrival', () => {
    const history = withRounds(historyOf(navReading('94.5', timeAt(-5.5)), navReading('97', timeAt(-3))), log(96), log(95), log(97))
    expect([-9, -5.5, -5, -4, -3.5, -3, 0].map((minutes) => navReadingAt(history, timeAt(minutes)))).toEqual([
      navReading(null, null),
      navReading('94.5', timeAt(-5.5)),
      navReading('95', timeAt(-5)),
      navReading('96', timeAt(-4)),
      navReading('96', timeAt(-4)),
      navReading('97', timeAt(-3)),
      navReading('97', timeAt(-3)),
    ])
  })

  it('includes garbage of the list only while there is no feed', () => {
    const history = historyOf(navReading('1', timeAt(-9)), navReading('0', timeAt(-5)))
    expect(navReadingAt(history, timeAt(-4))).toEqual(navReading('0', timeAt(-5)))
    expect(navReadingAt(withRounds(history, log(99)), timeAt(-4))).toEqual(navReading('1', timeAt(-9)))
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

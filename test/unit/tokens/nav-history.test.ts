import { describe, expect, it } from 'vitest'
import { type NavReading, navAt } from '../../../src/tokens/nav.ts'
import {
  addListReading,
  addRound,
  applySealedRounds,
  currentNav,
  emptyNavHistory,
  type NavHistory,
  navReadingAt,
  priceOf,
  type Round,
  removeRounds,
} from '../../../src/tokens/nav-history.ts'
import { listTime, NOON } from './stock-records.ts'

const MINUTE_MS = 60_000
const timeAt = (minutes: number): number => NOON + minutes * MINUTE_MS
const navReading = (price: string | null, updatedAt: number | null): NavReading => ({ price, updatedAt })

const historyOf = (...readings: readonly NavReading[]): NavHistory =>
  readings.reduce((rounds, reading) => addListReading(rounds, reading, listTime), emptyNavHistory)
const withRounds = (rounds: NavHistory, ...all: readonly Round[]): NavHistory => all.reduce(addRound, rounds)
const stateOf = (rounds: NavHistory) =>
  navAt(currentNav(rounds, listTime).reading, listTime.now, listTime.staleMs).state

/** A round that a log of a pre-confirmed block says: its value is its number, a minute apart from the next. */
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
  it('takes its place by phase and number, whenever it comes', () => {
    const inOrder = withRounds(emptyNavHistory, log(98), log(99), log(100))
    expect(withRounds(emptyNavHistory, log(100), log(98), log(99))).toEqual(inOrder)
    expect(currentNav(inOrder, listTime)).toEqual({
      reading: navReading('100', timeAt(0)),
      source: 'log',
      missed: false,
    })
  })

  it('counts by its number, not by its digits', () => {
    expect(currentNav(withRounds(emptyNavHistory, log(100), log(99)), listTime).reading.price).toBe('100')
    const vast = withRounds(
      emptyNavHistory,
      log(1, { round: '18446744073709551616' }),
      log(2, { round: '18446744073709551615' }),
    )
    expect(currentNav(vast, listTime).reading.price).toBe('1')
  })

  it('of a new aggregator is newer, though that starts at round 1', () => {
    const rounds = withRounds(
      emptyNavHistory,
      log(100),
      log(1, { phase: 3, price: '7', updatedAt: timeAt(1) }),
      log(101),
    )
    expect(currentNav(rounds, listTime).reading).toEqual(navReading('7', timeAt(1)))
  })

  it('said again is the same', () => {
    const rounds = withRounds(emptyNavHistory, log(99), call(100))
    expect(withRounds(rounds, log(99), call(100))).toBe(rounds)
  })

  it('that is sealed confirms the one that was pre-confirmed, and stays so', () => {
    const rounds = withRounds(emptyNavHistory, log(100), sealed(100, { price: '3' }))
    expect(rounds.feed).toEqual([sealed(100, { price: '3' })])
    expect(addRound(rounds, log(100))).toBe(rounds)
  })

  it('of other content under the same key is amended', () => {
    const rounds = withRounds(emptyNavHistory, log(99), log(100), log(100, { price: '3', round: '98' }))
    expect(rounds.feed.map(({ round }) => round)).toEqual(['98', '99'])
  })

  it('is known best by a sealed log, then by a call, then by a pre-confirmed log', () => {
    const [early, asked, right] = [log(100, { price: '1' }), call(100, { price: '2' }), sealed(100, { price: '3' })]
    expect(currentNav(withRounds(emptyNavHistory, asked, early), listTime).reading.price).toBe('2')
    expect(
      currentNav(withRounds(emptyNavHistory, { ...right, key: '101-0xbb-0' }, asked, early), listTime).reading.price,
    ).toBe('3')
  })

  it('that two blocks hold is of the later one, until the earlier is settled', () => {
    const again = log(100, { price: '3', position: { block: 101, logIndex: 0 }, key: '101-0xaa-0' })
    const rounds = withRounds(emptyNavHistory, again, log(100))
    expect(currentNav(rounds, listTime).reading.price).toBe('3')
    expect(applySealedRounds(rounds, 100, []).feed).toEqual([again])
  })

  it.each([
    ['zero', log(100, { price: '0' })],
    ['negative', log(100, { price: priceOf(-5n, 8) })],
    ['of a time that is ahead', log(100, { updatedAt: timeAt(3) })],
    ['of no readable time', log(100, { updatedAt: null })],
  ])('that is %s is held, invalid, over what the list goes on saying', (_, round) => {
    const rounds = withRounds(historyOf(navReading('99', timeAt(-1))), log(99), round)
    expect(currentNav(rounds, listTime).source).toBe('log')
    expect(stateOf(rounds)).toBe('invalid')
    expect(stateOf(withRounds(rounds, log(101)))).toBe('fresh')
  })

  it('is written with all its digits', () => {
    expect(priceOf(32_430_140_000n, 8)).toBe('324.3014')
    expect(priceOf(-1n, 8)).toBe('-0.00000001')
    expect(priceOf(0n, 8)).toBe('0')
  })
})

describe('a round that is taken back', () => {
  it('restores the former value, though that is older', () => {
    const rounds = removeRounds(withRounds(emptyNavHistory, log(99), log(100)), keys(100))
    expect(currentNav(rounds, listTime).reading).toEqual(navReading('99', timeAt(-1)))
  })

  it('and was the only one leaves the list with its last word', () => {
    const rounds = removeRounds(
      withRounds(historyOf(navReading('99', timeAt(-1)), navReading('0', null)), log(100)),
      keys(100),
    )
    expect(currentNav(rounds, listTime)).toEqual({ reading: navReading('0', null), source: 'list', missed: false })
  })

  it('takes what a call said of it along, and returns like any other', () => {
    const rounds = removeRounds(withRounds(emptyNavHistory, call(99), log(100), call(100)), keys(100))
    expect(rounds.feed).toEqual([call(99)])
    expect(currentNav(withRounds(rounds, log(100)), listTime).reading.price).toBe('100')
  })

  it('and never came changes nothing', () => {
    const rounds = withRounds(emptyNavHistory, log(99))
    expect(removeRounds(rounds, keys(100))).toBe(rounds)
  })
})

describe('a settled block', () => {
  it('takes back the rounds that it lacks, and confirms and adds those that it has', () => {
    const [one, two, three] = [0, 1, 2].map((logIndex) =>
      log(100 + logIndex, { position: { block: 50, logIndex }, key: `50-0xaa-${logIndex}` }),
    )
    if (!one || !two || !three) throw new Error('no rounds')
    const rounds = withRounds(emptyNavHistory, log(99), call(98), one, two)
    expect(applySealedRounds(rounds, 50, [two, three]).feed).toEqual([
      call(98),
      log(99),
      { ...two, sealed: true },
      { ...three, sealed: true },
    ])
  })

  it('that is replaced by another takes back what it had sealed', () => {
    expect(applySealedRounds(withRounds(emptyNavHistory, sealed(99), sealed(100)), 100, []).feed).toEqual([sealed(99)])
  })

  it('that says what is known changes nothing', () => {
    const rounds = withRounds(emptyNavHistory, sealed(99), sealed(100))
    expect(applySealedRounds(rounds, 100, [log(100)])).toBe(rounds)
  })
})

describe('the list beside a feed', () => {
  it('that says the same round leaves it to the feed', () => {
    const rounds = withRounds(historyOf(navReading('100.0', timeAt(0))), log(100))
    expect(currentNav(rounds, listTime)).toEqual({
      reading: navReading('100', timeAt(0)),
      source: 'log',
      missed: false,
    })
  })

  it('that is newer is held, and the feed has missed a round until it brings one', () => {
    const rounds = withRounds(historyOf(navReading('100', timeAt(0))), log(99))
    expect(currentNav(rounds, listTime)).toEqual({
      reading: navReading('100', timeAt(0)),
      source: 'list',
      missed: true,
    })
    expect(currentNav(withRounds(rounds, log(100)), listTime)).toMatchObject({ source: 'log', missed: false })
  })

  it('that says a round which the feed had before is behind, whatever the newest one has for a time', () => {
    const rounds = withRounds(
      historyOf(navReading('100', timeAt(0))),
      log(100),
      log(1, { phase: 3, updatedAt: timeAt(-2) }),
    )
    expect(currentNav(rounds, listTime)).toMatchObject({ source: 'log', missed: false })
  })

  it.each([
    ['zero', navReading('0', timeAt(1))],
    ['of the future', navReading('200', timeAt(60))],
    ['of no readable time', navReading('200', null)],
    ['missing', navReading(null, timeAt(1))],
  ])('never displaces a round by what is %s', (_, garbage) => {
    const rounds = withRounds(historyOf(navReading('98', timeAt(-2)), garbage), log(99))
    expect(currentNav(rounds, listTime)).toMatchObject({ reading: { price: '99' }, source: 'log', missed: false })
  })
})

describe('the NAV of a past moment', () => {
  it('is the newest that had been published by then, whoever said it and whenever it was heard', () => {
    const rounds = withRounds(
      historyOf(navReading('94.5', timeAt(-5.5)), navReading('97', timeAt(-3))),
      log(96),
      log(95),
      log(97),
    )
    expect([-9, -5.5, -5, -4, -3.5, -3, 0].map((minutes) => navReadingAt(rounds, timeAt(minutes)))).toEqual([
      navReading(null, null),
      navReading('94.5', timeAt(-5.5)),
      navReading('95', timeAt(-5)),
      navReading('96', timeAt(-4)),
      navReading('96', timeAt(-4)),
      navReading('97', timeAt(-3)),
      navReading('97', timeAt(-3)),
    ])
  })

  it('knows the list’s garbage only while there is no feed', () => {
    const rounds = historyOf(navReading('1', timeAt(-9)), navReading('0', timeAt(-5)))
    expect(navReadingAt(rounds, timeAt(-4))).toEqual(navReading('0', timeAt(-5)))
    expect(navReadingAt(withRounds(rounds, log(99)), timeAt(-4))).toEqual(navReading('1', timeAt(-9)))
  })
})

it('of each witness no more than 64 are remembered, the newest', () => {
  let rounds = emptyNavHistory
  for (let nth = 1; nth <= 200; nth += 1) {
    rounds = addListReading(withRounds(rounds, log(nth)), navReading(String(nth), timeAt(nth - 300)), listTime)
  }
  expect([rounds.list.length, rounds.feed.length]).toEqual([64, 64])
  expect([rounds.list[0]?.price, rounds.feed[0]?.price]).toEqual(['137', '137'])
  expect(withRounds(rounds, log(5))).toBe(rounds)
  expect(addListReading(rounds, navReading('5', timeAt(-295)), listTime)).toBe(rounds)
})

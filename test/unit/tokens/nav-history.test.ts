import { describe, expect, it } from 'vitest'
import { type NavReading, navAt } from '../../../src/tokens/nav.ts'
import {
  blockSays,
  heldAt,
  heldNow,
  listSaid,
  noRounds,
  priceOf,
  type Round,
  type Rounds,
  roundSaid,
  roundsTakenBack,
} from '../../../src/tokens/nav-history.ts'
import { NOON, rule } from './stock-records.ts'

const MINUTE_MS = 60_000
const at = (minutes: number): number => NOON + minutes * MINUTE_MS
const value = (price: string | null, updatedAt: number | null): NavReading => ({ price, updatedAt })

const listed = (...readings: readonly NavReading[]): Rounds =>
  readings.reduce((rounds, reading) => listSaid(rounds, reading, rule), noRounds)
const said = (rounds: Rounds, ...all: readonly Round[]): Rounds => all.reduce(roundSaid, rounds)
const stateOf = (rounds: Rounds) => navAt(heldNow(rounds, rule).reading, rule.now, rule.staleMs).state

/** A round that a log of a pre-confirmed block says: its value is its number, a minute apart from the next. */
const log = (nth: number, other: Partial<Round> = {}): Round => ({
  price: String(nth),
  updatedAt: at(nth - 100),
  phase: 2,
  round: String(nth),
  at: { block: nth, logIndex: 0 },
  key: `${nth}-0xaa-0`,
  sealed: false,
  ...other,
})
const sealed = (nth: number, other: Partial<Round> = {}): Round => log(nth, { sealed: true, ...other })
const call = (nth: number, other: Partial<Round> = {}): Round => sealed(nth, { at: null, key: null, ...other })
const keys = (...nths: readonly number[]): ReadonlySet<string> => new Set(nths.map((nth) => `${nth}-0xaa-0`))

describe('a round', () => {
  it('takes its place by phase and number, whenever it comes', () => {
    const inOrder = said(noRounds, log(98), log(99), log(100))
    expect(said(noRounds, log(100), log(98), log(99))).toEqual(inOrder)
    expect(heldNow(inOrder, rule)).toEqual({ reading: value('100', at(0)), source: 'log', missed: false })
  })

  it('counts by its number, not by its digits', () => {
    expect(heldNow(said(noRounds, log(100), log(99)), rule).reading.price).toBe('100')
    const vast = said(noRounds, log(1, { round: '18446744073709551616' }), log(2, { round: '18446744073709551615' }))
    expect(heldNow(vast, rule).reading.price).toBe('1')
  })

  it('of a new aggregator is newer, though that starts at round 1', () => {
    const rounds = said(noRounds, log(100), log(1, { phase: 3, price: '7', updatedAt: at(1) }), log(101))
    expect(heldNow(rounds, rule).reading).toEqual(value('7', at(1)))
  })

  it('said again is the same', () => {
    const rounds = said(noRounds, log(99), call(100))
    expect(said(rounds, log(99), call(100))).toBe(rounds)
  })

  it('that is sealed confirms the one that was pre-confirmed, and stays so', () => {
    const rounds = said(noRounds, log(100), sealed(100, { price: '3' }))
    expect(rounds.feed).toEqual([sealed(100, { price: '3' })])
    expect(roundSaid(rounds, log(100))).toBe(rounds)
  })

  it('of other content under the same key is amended', () => {
    const rounds = said(noRounds, log(99), log(100), log(100, { price: '3', round: '98' }))
    expect(rounds.feed.map(({ round }) => round)).toEqual(['98', '99'])
  })

  it('is known best by a sealed log, then by a call, then by a pre-confirmed log', () => {
    const [early, asked, right] = [log(100, { price: '1' }), call(100, { price: '2' }), sealed(100, { price: '3' })]
    expect(heldNow(said(noRounds, asked, early), rule).reading.price).toBe('2')
    expect(heldNow(said(noRounds, { ...right, key: '101-0xbb-0' }, asked, early), rule).reading.price).toBe('3')
  })

  it('that two blocks hold is of the later one, until the earlier is settled', () => {
    const again = log(100, { price: '3', at: { block: 101, logIndex: 0 }, key: '101-0xaa-0' })
    const rounds = said(noRounds, again, log(100))
    expect(heldNow(rounds, rule).reading.price).toBe('3')
    expect(blockSays(rounds, 100, []).feed).toEqual([again])
  })

  it.each([
    ['zero', log(100, { price: '0' })],
    ['negative', log(100, { price: priceOf(-5n, 8) })],
    ['of a time that is ahead', log(100, { updatedAt: at(3) })],
    ['of no readable time', log(100, { updatedAt: null })],
  ])('that is %s is held, invalid, over what the list goes on saying', (_, round) => {
    const rounds = said(listed(value('99', at(-1))), log(99), round)
    expect(heldNow(rounds, rule).source).toBe('log')
    expect(stateOf(rounds)).toBe('invalid')
    expect(stateOf(said(rounds, log(101)))).toBe('fresh')
  })

  it('is written with all its digits', () => {
    expect(priceOf(32_430_140_000n, 8)).toBe('324.3014')
    expect(priceOf(-1n, 8)).toBe('-0.00000001')
    expect(priceOf(0n, 8)).toBe('0')
  })
})

describe('a round that is taken back', () => {
  it('restores the former value, though that is older', () => {
    const rounds = roundsTakenBack(said(noRounds, log(99), log(100)), keys(100))
    expect(heldNow(rounds, rule).reading).toEqual(value('99', at(-1)))
  })

  it('and was the only one leaves the list with its last word', () => {
    const rounds = roundsTakenBack(said(listed(value('99', at(-1)), value('0', null)), log(100)), keys(100))
    expect(heldNow(rounds, rule)).toEqual({ reading: value('0', null), source: 'list', missed: false })
  })

  it('takes what a call said of it along, and returns like any other', () => {
    const rounds = roundsTakenBack(said(noRounds, call(99), log(100), call(100)), keys(100))
    expect(rounds.feed).toEqual([call(99)])
    expect(heldNow(said(rounds, log(100)), rule).reading.price).toBe('100')
  })

  it('and never came changes nothing', () => {
    const rounds = said(noRounds, log(99))
    expect(roundsTakenBack(rounds, keys(100))).toBe(rounds)
  })
})

describe('a settled block', () => {
  it('takes back the rounds that it lacks, and confirms and adds those that it has', () => {
    const [one, two, three] = [0, 1, 2].map((logIndex) =>
      log(100 + logIndex, { at: { block: 50, logIndex }, key: `50-0xaa-${logIndex}` }),
    )
    if (!one || !two || !three) throw new Error('no rounds')
    const rounds = said(noRounds, log(99), call(98), one, two)
    expect(blockSays(rounds, 50, [two, three]).feed).toEqual([
      call(98),
      log(99),
      { ...two, sealed: true },
      { ...three, sealed: true },
    ])
  })

  it('that is replaced by another takes back what it had sealed', () => {
    expect(blockSays(said(noRounds, sealed(99), sealed(100)), 100, []).feed).toEqual([sealed(99)])
  })

  it('that says what is known changes nothing', () => {
    const rounds = said(noRounds, sealed(99), sealed(100))
    expect(blockSays(rounds, 100, [log(100)])).toBe(rounds)
  })
})

describe('the list beside a feed', () => {
  it('that says the same round leaves it to the feed', () => {
    const rounds = said(listed(value('100.0', at(0))), log(100))
    expect(heldNow(rounds, rule)).toEqual({ reading: value('100', at(0)), source: 'log', missed: false })
  })

  it('that is newer is held, and the feed has missed a round until it brings one', () => {
    const rounds = said(listed(value('100', at(0))), log(99))
    expect(heldNow(rounds, rule)).toEqual({ reading: value('100', at(0)), source: 'list', missed: true })
    expect(heldNow(said(rounds, log(100)), rule)).toMatchObject({ source: 'log', missed: false })
  })

  it('that says a round which the feed had before is behind, whatever the newest one has for a time', () => {
    const rounds = said(listed(value('100', at(0))), log(100), log(1, { phase: 3, updatedAt: at(-2) }))
    expect(heldNow(rounds, rule)).toMatchObject({ source: 'log', missed: false })
  })

  it.each([
    ['zero', value('0', at(1))],
    ['of the future', value('200', at(60))],
    ['of no readable time', value('200', null)],
    ['missing', value(null, at(1))],
  ])('never displaces a round by what is %s', (_, garbage) => {
    const rounds = said(listed(value('98', at(-2)), garbage), log(99))
    expect(heldNow(rounds, rule)).toMatchObject({ reading: { price: '99' }, source: 'log', missed: false })
  })
})

describe('the NAV of a past moment', () => {
  it('is the newest that had been published by then, whoever said it and whenever it was heard', () => {
    const rounds = said(listed(value('94.5', at(-5.5)), value('97', at(-3))), log(96), log(95), log(97))
    expect([-9, -5.5, -5, -4, -3.5, -3, 0].map((minutes) => heldAt(rounds, at(minutes)))).toEqual([
      value(null, null),
      value('94.5', at(-5.5)),
      value('95', at(-5)),
      value('96', at(-4)),
      value('96', at(-4)),
      value('97', at(-3)),
      value('97', at(-3)),
    ])
  })

  it('knows the list’s garbage only while there is no feed', () => {
    const rounds = listed(value('1', at(-9)), value('0', at(-5)))
    expect(heldAt(rounds, at(-4))).toEqual(value('0', at(-5)))
    expect(heldAt(said(rounds, log(99)), at(-4))).toEqual(value('1', at(-9)))
  })
})

it('of each witness no more than 64 are remembered, the newest', () => {
  let rounds = noRounds
  for (let nth = 1; nth <= 200; nth += 1) {
    rounds = listSaid(said(rounds, log(nth)), value(String(nth), at(nth - 300)), rule)
  }
  expect([rounds.list.length, rounds.feed.length]).toEqual([64, 64])
  expect([rounds.list[0]?.price, rounds.feed[0]?.price]).toEqual(['137', '137'])
  expect(said(rounds, log(5))).toBe(rounds)
  expect(listSaid(rounds, value('5', at(-295)), rule)).toBe(rounds)
})

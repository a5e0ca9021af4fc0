import { describe, expect, it } from 'vitest'
import { type NavReading, navAt } from '../../../src/tokens/nav.ts'
import { heldAt, heldNow, listSaid, noRounds, type Rounds } from '../../../src/tokens/nav-history.ts'
import { later, NOON, rule } from './stock-records.ts'

const MINUTE_MS = 60_000
const at = (minutes: number): number => NOON + minutes * MINUTE_MS
const value = (price: string | null, updatedAt: number | null): NavReading => ({ price, updatedAt })

const listed = (...readings: readonly NavReading[]): Rounds =>
  readings.reduce((rounds, reading) => listSaid(rounds, reading, rule), noRounds)
const stateOf = (rounds: Rounds, { now, staleMs } = rule) =>
  navAt(heldNow(rounds, { now, staleMs }).reading, now, staleMs).state

describe('the list alone', () => {
  it('has said nothing at first', () => {
    expect(heldNow(noRounds, rule)).toEqual({ reading: value(null, null), source: 'list', missed: false })
    expect(heldAt(noRounds, NOON)).toEqual(value(null, null))
  })

  it('alternates between machines, and the newest time wins', () => {
    const rounds = listed(value('2', at(-5)), value('1', at(-9)), value('2', at(-5)), value('1', at(-9)))
    expect(heldNow(rounds, rule).reading).toEqual(value('2', at(-5)))
    expect(listSaid(rounds, value('1', at(-9)), rule)).toBe(rounds)
  })

  it('corrects itself by another value of the same time', () => {
    expect(listed(value('1', at(-5)), value('2', at(-5))).list).toEqual([value('2', at(-5))])
  })

  it.each([
    ['zero', value('0', at(-1)), 'invalid'],
    ['a word', value('string', at(-1)), 'invalid'],
    ['of no readable time', value('3', null), 'invalid'],
    ['of the future', value('3', at(60)), 'invalid'],
    ['no price', value(null, at(-1)), 'missing'],
    ['nothing at all', value(null, null), 'missing'],
  ])('that says what is %s is held to it until its next word, and no longer', (_, garbage, state) => {
    const before = listed(value('2', at(-5)))
    const rounds = listSaid(before, garbage, rule)
    expect(heldNow(rounds, rule).reading).toEqual(garbage)
    expect(stateOf(rounds)).toBe(state)
    expect(heldNow(listSaid(rounds, value('3', at(-2)), rule), rule).reading).toEqual(value('3', at(-2)))
    expect(listSaid(rounds, value('2', at(-5)), rule)).toEqual(before)
    expect(heldNow(listSaid(rounds, value('1', at(-9)), rule), rule).reading).toEqual(value('2', at(-5)))
  })

  it('that says garbage of an older time is not heard', () => {
    const rounds = listed(value('2', at(-5)))
    expect(listSaid(rounds, value('0', at(-6)), rule)).toBe(rounds)
  })

  it('that said a time of the future is right once the clock reaches it', () => {
    const rounds = listed(value('3', at(10)))
    expect(stateOf(rounds)).toBe('invalid')
    expect(stateOf(rounds, later(8 * MINUTE_MS))).toBe('fresh')
  })

  it('said under a clock that ran ahead does not block what it says once the clock is set back', () => {
    const rounds = listSaid(noRounds, value('3', at(60)), later(60 * MINUTE_MS))
    expect(heldNow(listSaid(rounds, value('2', at(-1)), rule), rule).reading.price).toBe('2')
  })
})

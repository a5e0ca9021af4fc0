import { describe, expect, it } from 'vitest'
import { tesla } from '../node-json.ts'
import {
  announced,
  cancelled,
  ended,
  inTx,
  memo,
  multiplied,
  of,
  once,
  paused,
  tell,
  transfer,
  type Word,
} from './fold-fixture.ts'
import { topicOf } from './standard-events.ts'

describe('two tokens in one transaction', () => {
  it('are read apart, whatever lies between', () => {
    const other = (one: Word) => of(tesla, one)
    expect(
      tell(announced('a'), other(announced('a')), once(2), other(paused), multiplied(2), other(ended('a')), ended('a')),
    ).toEqual({
      sayings: [
        '0 Announcement, closed around 4',
        '1 Announcement, closed around 3',
        '3 Paused',
        '4 UIMultiplierUpdated',
      ],
      parts: [2, 5, 6],
    })
  })
})

describe('an announcement', () => {
  it('holds what is said before its end, but not what is only part of that', () => {
    expect(
      tell(announced('a'), cancelled, once(2), multiplied(2), paused, transfer(), memo(7), ended('a'), transfer()),
    ).toEqual({
      sayings: [
        '0 Announcement, closed around 1,3,4,5',
        '1 UIMultiplierUpdateCancelled',
        '3 UIMultiplierUpdated',
        '4 Paused',
        '5 Transfer, memo 7',
        '8 Transfer',
      ],
      parts: [2, 6, 7],
    })
  })

  it('may hold nothing', () => {
    expect(tell(announced('a'), ended('a'))).toEqual({ sayings: ['0 Announcement, closed around '], parts: [1] })
  })

  it('may hold another', () => {
    expect(tell(announced('a'), announced('b'), paused, ended('b'), ended('a'))).toEqual({
      sayings: ['0 Announcement, closed around 1,2', '1 Announcement, closed around 2', '2 Paused'],
      parts: [3, 4],
    })
  })

  it('may lie across another', () => {
    expect(tell(announced('a'), announced('b'), paused, ended('a'), transfer(), ended('b')).sayings).toEqual([
      '0 Announcement, closed around 1,2',
      '1 Announcement, closed around 2,4',
      '2 Paused',
      '4 Transfer',
    ])
  })

  it('of an id that comes twice ends with the nearest', () => {
    expect(tell(announced('a'), ended('a'), announced('a'), paused, ended('a')).sayings).toEqual([
      '0 Announcement, closed around ',
      '2 Announcement, closed around 3',
      '3 Paused',
    ])
    expect(tell(announced('a'), announced('a'), paused, ended('a')).sayings).toEqual([
      '0 Announcement',
      '1 Announcement, closed around 2',
      '2 Paused',
    ])
  })

  it('of an id that is longer than is told ends all the same', () => {
    const long = 'x'.repeat(3_000)
    expect(tell(announced(long), ended(long)).parts).toEqual([1])
  })

  it.each<[string, readonly Word[]]>([
    ['nothing', [announced('a'), paused]],
    ['the end of another', [announced('a'), ended('b')]],
    ['an end before it', [ended('a'), announced('a')]],
    ['the end of another token', [announced('a'), of(tesla, ended('a'))]],
    ['the end of another transaction', [announced('a'), inTx(1, ended('a'))]],
  ])('that %s closes is open, and the end is told by itself', (_, some) => {
    const { sayings, parts } = tell(...some)
    expect(sayings).toContain(`${some.findIndex((one) => one.topics[0] === topicOf('Announcement'))} Announcement`)
    expect(sayings).toHaveLength(2)
    expect(parts).toEqual([])
  })

  it('counts as never closed where too many stand open in it', () => {
    const ids = Array.from({ length: 17 }, (_, at) => `id-${at}`)
    const { sayings } = tell(...ids.map(announced), ...ids.toReversed().map(ended))
    expect(sayings[0]).toBe('0 Announcement')
    expect(sayings[1]).toMatch(/^1 Announcement, closed around 2,3,/)
    expect(sayings.at(-1)).toBe('33 EndAnnouncement')
  })
})

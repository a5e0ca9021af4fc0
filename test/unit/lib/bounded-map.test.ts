import { describe, expect, it } from 'vitest'
import { BoundedMap } from '../../../src/lib/bounded-map.ts'

type Step = readonly ['set' | 'refresh' | 'delete', string]

describe('a bounded map', () => {
  it.each<[string, number, readonly Step[], string]>([
    [
      'keeps all entries up to its bound',
      2,
      [
        ['set', 'a'],
        ['set', 'b'],
      ],
      'ab',
    ],
    [
      'evicts the oldest entry beyond its bound',
      2,
      [
        ['set', 'a'],
        ['set', 'b'],
        ['set', 'c'],
      ],
      'bc',
    ],
    [
      'keeps the place of a key that is set again',
      2,
      [
        ['set', 'a'],
        ['set', 'b'],
        ['set', 'a'],
        ['set', 'c'],
      ],
      'bc',
    ],
    [
      'makes a refreshed entry the newest',
      2,
      [
        ['set', 'a'],
        ['set', 'b'],
        ['refresh', 'a'],
        ['set', 'c'],
      ],
      'ac',
    ],
    [
      'adds a refreshed key that it lacks',
      2,
      [
        ['set', 'a'],
        ['set', 'b'],
        ['refresh', 'c'],
      ],
      'bc',
    ],
    [
      'has room after an entry was deleted',
      2,
      [
        ['set', 'a'],
        ['set', 'b'],
        ['delete', 'b'],
        ['set', 'c'],
      ],
      'ac',
    ],
    [
      'holds one entry with a bound of one',
      1,
      [
        ['set', 'a'],
        ['set', 'b'],
        ['refresh', 'b'],
        ['set', 'c'],
      ],
      'c',
    ],
  ])('%s', (_, bound, steps, keys) => {
    const map = new BoundedMap<string, number>(bound)
    for (const [step, [operation, key]] of steps.entries())
      if (operation === 'delete') map.delete(key)
      else map[operation](key, step)
    expect([...map.keys()].join('')).toBe(keys)
  })

  it('holds the latest value of a key', () => {
    const map = new BoundedMap<string, number>(2).set('a', 1).set('a', 2)
    expect(map.get('a')).toBe(2)
    expect(map.refresh('a', 3).get('a')).toBe(3)
  })
})

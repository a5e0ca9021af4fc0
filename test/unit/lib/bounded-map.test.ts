import { describe, expect, it } from 'vitest'
import { BoundedMap, memoized } from '../../../src/lib/bounded-map.ts'

describe('a bounded map', () => {
  // `a` sets a key, `a!` refreshes it, and `-a` deletes it.
  it.each([
    ['keeps all entries up to its bound', 2, 'a b', 'ab'],
    ['evicts the oldest entry beyond its bound', 2, 'a b c', 'bc'],
    ['keeps the place of a key that is set again', 2, 'a b a c', 'bc'],
    ['makes a refreshed entry the newest', 2, 'a b a! c', 'ac'],
    ['adds a refreshed key that it lacks', 2, 'a b c!', 'bc'],
    ['has room after an entry was deleted', 2, 'a b -b c', 'ac'],
    ['holds one entry with a bound of one', 1, 'a b b! c', 'c'],
  ])('%s', (_, bound, steps, keys) => {
    const map = new BoundedMap<string, number>(bound)
    for (const [at, step] of steps.split(' ').entries()) {
      const key = step.replace(/[-!]/, '')
      if (step.startsWith('-')) map.delete(key)
      else map[step.endsWith('!') ? 'refresh' : 'set'](key, at)
    }
    expect([...map.keys()].join('')).toBe(keys)
  })

  it('holds the latest value of a key', () => {
    const map = new BoundedMap<string, number>(2).set('a', 1).set('a', 2)
    expect(map.get('a')).toBe(2)
    expect(map.refresh('a', 3).get('a')).toBe(3)
  })
})

it('a memoized function computes a result again only when newer ones have replaced it', () => {
  const computed: string[] = []
  const joined = memoized(2, (text: string, nth: number) => {
    computed.push(`${text}${nth}`)
    return `${text}${nth}`
  })
  expect([joined('a', 1), joined('b', 2), joined('a', 1), joined('c', 3), joined('a', 1)].join(' ')).toBe('a1 b2 a1 c3 a1')
  expect(computed).toEqual(['a1', 'b2', 'c3', 'a1'])
})

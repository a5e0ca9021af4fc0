import { Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { inTurns, nextTurn, stepsInTurns } from '../../../src/lib/turns.ts'

/** Items whose letters are their parts, and what has been emitted so far. */
const openSplit = () => {
  const items = new Subject<string>()
  const emitted: string[] = []
  const subscription = items
    .pipe(inTurns((item) => [...item]))
    .subscribe({
      next: (part) => emitted.push(part),
      error: (failure) => emitted.push(`failed: ${failure}`),
      complete: () => emitted.push('complete'),
    })
  return { items, subscription, seen: () => emitted.join(' ') }
}

describe('an item', () => {
  it('of one part passes at once, and one of none is left out', () => {
    const { items, seen } = openSplit()
    for (const item of ['a', '', 'b']) items.next(item)
    items.complete()
    expect(seen()).toBe('a b complete')
  })

  it('of several parts is emitted in as many turns, and what comes meanwhile waits', async () => {
    const { items, seen } = openSplit()
    for (const item of ['abc', 'd']) items.next(item)
    expect(seen()).toBe('a')
    await nextTurn()
    expect(seen()).toBe('a b')
    for (const item of ['ef', 'g']) items.next(item)
    await nextTurn()
    expect(seen()).toBe('a b c d e')
    items.complete()
    await nextTurn()
    expect(seen()).toBe('a b c d e f g complete')
  })

  it('is emitted no further once the subscription ends', async () => {
    const { items, subscription, seen } = openSplit()
    items.next('abc')
    subscription.unsubscribe()
    await nextTurn()
    expect(seen()).toBe('a')
  })

  it('does not delay a failure', () => {
    const { items, seen } = openSplit()
    items.next('abc')
    items.error('gone')
    expect(seen()).toBe('a failed: gone')
  })
})

describe('what follows an item of several steps', () => {
  it('has a turn of its own, and one after a single step does not wait', async () => {
    const turns: string[][] = [[]]
    const items = new Subject<string>()
    items.pipe(stepsInTurns(lettersOf)).subscribe((letter) => turns.at(-1)?.push(letter))
    for (const item of ['a', 'bc', 'd', 'e']) items.next(item)
    for (let nth = 0; nth < 3; nth += 1) {
      turns.push([])
      await nextTurn()
    }
    expect(turns).toEqual([['a', 'b'], ['c'], ['d', 'e'], []])
  })
})

function* lettersOf(item: string): Generator<string, string> {
  const [first = '', ...rest] = item
  if (rest.length > 0) yield first
  return rest.at(-1) ?? first
}

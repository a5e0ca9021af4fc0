import { expect, it } from 'vitest'
import { PerTickQueue } from '../../../../src/edge/limits/per-tick.ts'

const nextTick = () => new Promise((resolve) => setImmediate(resolve))

it('does so much in a turn, at once while there is room, and all of it in its order', async () => {
  const limiter = new PerTickQueue(3)
  const done: number[] = []
  for (let thing = 1; thing <= 8; thing += 1) limiter.run(() => done.push(thing))
  expect(done).toEqual([1, 2, 3])
  await nextTick()
  expect(done).toEqual([1, 2, 3, 4, 5, 6])
  limiter.run(() => done.push(9))
  await nextTick()
  await nextTick()
  expect(done).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  limiter.run(() => done.push(10))
  expect(done.at(-1)).toBe(10)
})

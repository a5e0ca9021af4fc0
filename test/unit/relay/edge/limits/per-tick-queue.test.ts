import { expect, it } from 'vitest'
import { PerTickQueue } from '../../../../../src/relay/edge/limits/per-tick-queue.ts'

const nextTick = () => new Promise((resolve) => setImmediate(resolve))

it('runs a bounded number of tasks per turn of the event loop, in order, the first ones at once', async () => {
  const queue = new PerTickQueue(3)
  const done: number[] = []
  for (let task = 1; task <= 8; task += 1) queue.run(() => done.push(task))
  expect(done).toEqual([1, 2, 3])
  await nextTick()
  expect(done).toEqual([1, 2, 3, 4, 5, 6])
  queue.run(() => done.push(9))
  await nextTick()
  await nextTick()
  expect(done).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  queue.run(() => done.push(10))
  expect(done.at(-1)).toBe(10)
})

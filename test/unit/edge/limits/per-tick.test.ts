import { expect, it } from 'vitest'
import { Pace } from '../../../../src/edge/limits/per-tick.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

it('does so much in a turn, at once while there is room, and all of it in its order', async () => {
  const pace = new Pace(3)
  const done: number[] = []
  for (let thing = 1; thing <= 8; thing += 1) pace.do(() => done.push(thing))
  expect(done).toEqual([1, 2, 3])
  await turn()
  expect(done).toEqual([1, 2, 3, 4, 5, 6])
  pace.do(() => done.push(9))
  await turn()
  await turn()
  expect(done).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  pace.do(() => done.push(10))
  expect(done.at(-1)).toBe(10)
})

import { expect, it } from 'vitest'
import { Budget } from '../../../../../src/relay/edge/limits/budget.ts'

// A step is a number of bytes to reserve, with `!` if that is refused, or with `-` to release.
it.each([
  ['what is left, and refuses more', 100, '60 41! 40 1! 0'],
  ['nothing when it refuses', 10, '11! 11! 10'],
  ['released bytes again', 10, '10 -4 5! 4'],
])('reserves %s', (_, bytes, steps) => {
  const budget = new Budget(bytes)
  for (const step of steps.split(' '))
    if (step.startsWith('-')) budget.release(Number(step.slice(1)))
    else expect(budget.reserve(Number.parseInt(step, 10)), step).toBe(!step.endsWith('!'))
})

it('bounds each client by its share and all clients by the total', () => {
  const budget = new Budget(10, 4)
  expect(budget.reserve(5, 'first')).toBe(false)
  expect(budget.reserve(4, 'first')).toBe(true)
  expect(budget.reserve(1, 'first')).toBe(false)
  expect([budget.reserve(4, 'other'), budget.reserve(4, 'third'), budget.reserve(2, 'third')]).toEqual([true, false, true])
  budget.release(4, 'first')
  expect(budget.reserve(3, 'first')).toBe(true)
})

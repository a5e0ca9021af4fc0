import { expect, it } from 'vitest'
import { Budget } from '../../../../../src/relay/edge/limits/budget.ts'

it('bounds each client by its share and all clients by the total', () => {
  const budget = new Budget(10, 4)
  expect(budget.reserve(5, 'first')).toBe(false)
  expect(budget.reserve(4, 'first')).toBe(true)
  expect(budget.reserve(1, 'first')).toBe(false)
  expect([budget.reserve(4, 'other'), budget.reserve(4, 'third'), budget.reserve(2, 'third')]).toEqual([true, false, true])
  budget.release(4, 'first')
  expect(budget.reserve(3, 'first')).toBe(true)
})

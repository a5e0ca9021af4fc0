import { expect, it } from 'vitest'
import { Budget } from '../../../../src/edge/limits/byte-budget.ts'

it('gives what there is, and no more', () => {
  const budget = new Budget(100)
  expect(budget.take(60)).toBe(true)
  expect(budget.take(41)).toBe(false)
  expect(budget.take(40)).toBe(true)
  expect(budget.take(1)).toBe(false)
  expect(budget.take(0)).toBe(true)
})

it('takes nothing of what it does not give', () => {
  const budget = new Budget(10)
  for (let time = 0; time < 5; time += 1) expect(budget.take(11)).toBe(false)
  expect(budget.take(10)).toBe(true)
})

it('gives again what was given back', () => {
  const budget = new Budget(10)
  expect(budget.take(10)).toBe(true)
  budget.give(4)
  expect(budget.take(5)).toBe(false)
  expect(budget.take(4)).toBe(true)
})

it('gives no one more than its share, and everybody what is left of it', () => {
  const budget = new Budget(10, 4)
  expect(budget.take(5, 'much')).toBe(false)
  expect(budget.take(4, 'much')).toBe(true)
  expect(budget.take(1, 'much')).toBe(false)
  expect([budget.take(4, 'other'), budget.take(4, 'third'), budget.take(2, 'third')]).toEqual([true, false, true])
  budget.give(4, 'much')
  expect(budget.take(3, 'much')).toBe(true)
})

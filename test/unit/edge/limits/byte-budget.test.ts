import { expect, it } from 'vitest'
import { ByteBudget } from '../../../../src/edge/limits/byte-budget.ts'

it('gives what there is, and no more', () => {
  const budget = new ByteBudget(100)
  expect(budget.reserve(60)).toBe(true)
  expect(budget.reserve(41)).toBe(false)
  expect(budget.reserve(40)).toBe(true)
  expect(budget.reserve(1)).toBe(false)
  expect(budget.reserve(0)).toBe(true)
})

it('takes nothing of what it does not give', () => {
  const budget = new ByteBudget(10)
  for (let time = 0; time < 5; time += 1) expect(budget.reserve(11)).toBe(false)
  expect(budget.reserve(10)).toBe(true)
})

it('gives again what was given back', () => {
  const budget = new ByteBudget(10)
  expect(budget.reserve(10)).toBe(true)
  budget.release(4)
  expect(budget.reserve(5)).toBe(false)
  expect(budget.reserve(4)).toBe(true)
})

it('gives no one more than its share, and everybody what is left of it', () => {
  const budget = new ByteBudget(10, 4)
  expect(budget.reserve(5, 'much')).toBe(false)
  expect(budget.reserve(4, 'much')).toBe(true)
  expect(budget.reserve(1, 'much')).toBe(false)
  expect([budget.reserve(4, 'other'), budget.reserve(4, 'third'), budget.reserve(2, 'third')]).toEqual([
    true,
    false,
    true,
  ])
  budget.release(4, 'much')
  expect(budget.reserve(3, 'much')).toBe(true)
})

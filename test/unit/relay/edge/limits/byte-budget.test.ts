import { expect, it } from 'vitest'
import { ByteBudget } from '../../../../../src/relay/edge/limits/byte-budget.ts'

it('reserves what is left and refuses more', () => {
  const budget = new ByteBudget(100)
  expect(budget.reserve(60)).toBe(true)
  expect(budget.reserve(41)).toBe(false)
  expect(budget.reserve(40)).toBe(true)
  expect(budget.reserve(1)).toBe(false)
  expect(budget.reserve(0)).toBe(true)
})

it('takes nothing when it refuses', () => {
  const budget = new ByteBudget(10)
  for (let time = 0; time < 5; time += 1) expect(budget.reserve(11)).toBe(false)
  expect(budget.reserve(10)).toBe(true)
})

it('reserves released bytes again', () => {
  const budget = new ByteBudget(10)
  expect(budget.reserve(10)).toBe(true)
  budget.release(4)
  expect(budget.reserve(5)).toBe(false)
  expect(budget.reserve(4)).toBe(true)
})

it('bounds each client by its share and all clients by the total', () => {
  const budget = new ByteBudget(10, 4)
  expect(budget.reserve(5, 'first')).toBe(false)
  expect(budget.reserve(4, 'first')).toBe(true)
  expect(budget.reserve(1, 'first')).toBe(false)
  expect([budget.reserve(4, 'other'), budget.reserve(4, 'third'), budget.reserve(2, 'third')]).toEqual([true, false, true])
  budget.release(4, 'first')
  expect(budget.reserve(3, 'first')).toBe(true)
})

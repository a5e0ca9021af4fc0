import { expect, it } from 'vitest'
import { Patience } from '../../src/edge/patience.ts'

it('waits for nothing where a round costs next to nothing', () => {
  const patience = new Patience(30)
  expect(patience.ms).toBe(0)
  patience.took(1.5)
  expect(patience.ms).toBe(0)
})

it('waits for half of what a round takes, and never longer than its bound', () => {
  const patience = new Patience(30)
  patience.took(20)
  expect(patience.ms).toBe(10)
  patience.took(500)
  expect(patience.ms).toBe(30)
})

it('forgets a dear round by and by', () => {
  const patience = new Patience(30)
  patience.took(500)
  for (let round = 0; round < 60; round += 1) patience.took(0.1)
  expect(patience.ms).toBe(0)
})

import { expect, it } from 'vitest'
import { BatchDelay } from '../../../../src/edge/live/batch-delay.ts'

it('waits for nothing where a round costs next to nothing', () => {
  const patience = new BatchDelay(30)
  expect(patience.delayMs(0)).toBe(0)
  patience.recordRound(0, 1.5)
  expect(patience.delayMs(1.5)).toBe(0)
})

it('waits for half of what a round takes, and never longer than its bound', () => {
  const patience = new BatchDelay(30)
  patience.recordRound(1_000, 1_020)
  expect(patience.delayMs(1_020)).toBe(10)
  patience.recordRound(1_020, 1_520)
  expect(patience.delayMs(1_520)).toBe(30)
})

it('does not forget a dear round for cheap ones that come right behind it', () => {
  const patience = new BatchDelay(30)
  patience.recordRound(0, 40)
  for (let at = 41; at < 51; at += 1) patience.recordRound(at, at + 0.1)
  expect(patience.delayMs(51)).toBeGreaterThan(18)
})

it.each([0, 10])(
  'forgets a round of half a second within one more, also where only %i rounds come meanwhile',
  (rounds) => {
    const patience = new BatchDelay(30)
    patience.recordRound(0, 500)
    expect(patience.delayMs(600)).toBe(30)
    for (let round = 1; round <= rounds; round += 1) patience.recordRound(500 + 100 * round, 501 + 100 * round)
    expect(patience.delayMs(1_600)).toBe(0)
  },
)

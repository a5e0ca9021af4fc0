import { expect, it } from 'vitest'
import { BatchDelay } from '../../../../../src/relay/edge/live/batch-delay.ts'

it('is a quarter of the time of a round, at most its bound, and zero when a round is cheap', () => {
  const delay = new BatchDelay(30)
  expect(delay.delayMs(0)).toBe(0)
  delay.recordRound(0, 1.5)
  expect(delay.delayMs(1.5)).toBe(0)
  delay.recordRound(1_000, 1_020)
  expect(delay.delayMs(1_020)).toBe(5)
  delay.recordRound(1_020, 1_520)
  expect(delay.delayMs(1_520)).toBe(30)
})

it('stays long when cheap rounds follow a slow one', () => {
  const delay = new BatchDelay(30)
  delay.recordRound(0, 40)
  for (let at = 41; at < 51; at += 1) delay.recordRound(at, at + 0.1)
  expect(delay.delayMs(51)).toBeGreaterThan(9)
})

it.each([0, 10])('forgets a round of half a second within a second, with %i rounds in between', (rounds) => {
  const delay = new BatchDelay(30)
  delay.recordRound(0, 500)
  expect(delay.delayMs(600)).toBe(30)
  for (let round = 1; round <= rounds; round += 1) delay.recordRound(500 + 100 * round, 501 + 100 * round)
  expect(delay.delayMs(1_600)).toBe(0)
})

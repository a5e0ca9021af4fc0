import { expect, it } from 'vitest'
import { clockStepsMs, openSteadyClock } from '../../../src/lib/steady-clock.ts'

it.each([
  ['equals a wall clock that is never set', [0, 5, 1_000_000], [0, 5, 1_000_000]],
  ['follows small corrections, and waits where they go back', [0, 400, -500, 0], [0, 400, 400, 400]],
  ['leaves out a step forward and its end', [0, 3_600_000, 3_600_010, 20], [0, 0, 10, 20]],
  ['leaves out a step back and its end', [0, -3_600_000, -3_599_990, 20], [0, 0, 10, 20]],
])('the steady clock %s', (_, offsets, expected) => {
  const NOON = 1_790_000_000_000
  // The process runs for the milliseconds that the wall clock shows beyond its steps.
  const uptimes = expected
  const reading = { wall: NOON, uptime: 0 }
  const now = openSteadyClock(
    () => reading.wall,
    () => reading.uptime,
  )
  const readings = offsets.map((offset, index) => {
    Object.assign(reading, { wall: NOON + offset, uptime: uptimes[index] })
    return now() - NOON
  })
  expect(readings).toEqual(expected)
})

it.each([
  ['the next millisecond begins between two reads', [5, 5, 6, 6, 6], 0],
  ['the wall clock was set', [3_600_005, 5, 3_600_006, 6, 3_600_006], 3_600_000],
])('the steps of the wall clock are exact where %s', (_, reads, expected) => {
  const left = [...reads]
  const next = () => left.shift() ?? Number.NaN
  expect(clockStepsMs(next, next)).toBe(expected)
})

import { expect, it } from 'vitest'
import { lagOutcome } from '../../../../src/tools/doctor/head-lag.ts'

const seen = (...heads: readonly (readonly [number: number, at: number])[]) => heads.map(([number, at]) => ({ number, at }))

it.each([
  ['nothing to compare with', seen([100, 10]), [], null],
  ['others that were seen later', seen([100, 10]), seen([109, 11]), null],
  ['the same block', seen([100, 10]), seen([100, 9]), ['ok', 0]],
  ['a newer block than others', seen([103, 10]), seen([100, 9]), ['ok', 0]],
  ['two blocks less', seen([100, 10]), seen([102, 9]), ['ok', 2]],
  ['three blocks less', seen([100, 10]), seen([103, 9], [90, 8]), ['warn', 3]],
  ['three blocks less in one of two answers', seen([100, 10], [105, 20]), seen([103, 9], [105, 19]), ['ok', 0]],
] as const)('the lag of a node with %s', (_, heads, others, expected) => {
  const outcome = lagOutcome(heads, others)
  expect(outcome && [outcome.state, outcome.value]).toEqual(expected)
})

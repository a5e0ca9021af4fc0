import { expect, it } from 'vitest'
import { Outage } from '../../../../../src/relay/chain/sealed/outage.ts'

const SILENCE_MS = 3_000

it('an outage ends with the first head, covers all blocks up to it, and is open until they are limited by age', () => {
  const outage = new Outage(true, SILENCE_MS)
  expect([outage.isOpen, outage.isUnbounded]).toEqual([true, false])
  outage.end(100)
  expect([outage.isOpen, outage.isUnbounded]).toEqual([true, true])
  outage.isUnbounded = false
  outage.end(110)
  expect([outage.isOpen, outage.isUnbounded]).toEqual([false, false])
  expect([99, 100, 101].map((block) => outage.covers(block))).toEqual([true, true, false])
})

it('an outage may begin again, and never covers less than before', () => {
  const outage = new Outage(true, SILENCE_MS)
  outage.end(100)
  outage.isUnbounded = false
  outage.begin()
  outage.end(90)
  expect([outage.isUnbounded, outage.covers(100)]).toEqual([true, true])
  outage.extend(120)
  expect(outage.covers(120)).toBe(true)
})

it.each([
  ['includes requests that fail for too long', [[1_000, 3_900, 4_001]], true],
  ['does not include short failures, however often', [[1_000, 4_000], [5_000, 8_000], [9_000, 12_000], [60_000]], false],
])('an outage %s', (_, tries, isCovered) => {
  const outage = new Outage(false, SILENCE_MS)
  for (const times of tries) {
    for (const failedAt of times.slice(0, -1)) outage.requestFailed(failedAt)
    outage.requestSucceeded(times.at(-1) ?? 0, 50)
  }
  expect(outage.covers(50)).toBe(isCovered)
})

import { expect, it } from 'vitest'
import { Outage } from '../../../../../src/relay/chain/sealed/outage.ts'

const SILENCE_MS = 3_000

it('an outage after a restart covers all blocks up to the first head', () => {
  const outage = new Outage(true, SILENCE_MS)
  outage.end(100)
  expect(outage.isUnbounded).toBe(true)
  expect([99, 100, 101].map((block) => outage.covers(block))).toEqual([true, true, false])
})

it('an outage ends with the first head only', () => {
  const outage = new Outage(true, SILENCE_MS)
  outage.end(100)
  outage.isUnbounded = false
  outage.end(110)
  expect(outage.isUnbounded).toBe(false)
  expect(outage.covers(101)).toBe(false)
})

it('an outage is open until its blocks are limited by age', () => {
  const outage = new Outage(true, SILENCE_MS)
  expect(outage.isOpen).toBe(true)
  outage.end(100)
  expect(outage.isOpen).toBe(true)
  outage.isUnbounded = false
  expect(outage.isOpen).toBe(false)
  expect(new Outage(false, SILENCE_MS).isOpen).toBe(false)
})

it('an outage that never began covers nothing', () => {
  const outage = new Outage(false, SILENCE_MS)
  outage.end(100)
  expect(outage.isUnbounded).toBe(false)
  expect(outage.covers(0)).toBe(false)
})

it('an outage may begin again, and never covers less than before', () => {
  const outage = new Outage(true, SILENCE_MS)
  outage.end(100)
  outage.isUnbounded = false
  outage.begin()
  outage.end(90)
  expect(outage.isUnbounded).toBe(true)
  expect(outage.covers(100)).toBe(true)
  outage.extend(120)
  expect(outage.covers(120)).toBe(true)
})

it('an outage includes requests that fail for too long', () => {
  const outage = new Outage(false, SILENCE_MS)
  outage.requestFailed(1_000)
  outage.requestFailed(3_900)
  outage.requestSucceeded(4_001, 50)
  expect(outage.covers(50)).toBe(true)
})

it('an outage does not include short failures, however often', () => {
  const outage = new Outage(false, SILENCE_MS)
  for (const at of [1_000, 5_000, 9_000]) {
    outage.requestFailed(at)
    outage.requestSucceeded(at + 3_000, 50)
  }
  outage.requestSucceeded(60_000, 60)
  expect(outage.covers(0)).toBe(false)
})

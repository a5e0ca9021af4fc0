import { expect, it } from 'vitest'
import { Outage } from '../../../../src/chain/sealed/outage.ts'

const SILENCE_MS = 3_000

it('after a restart, all up to the first head was sealed while nobody looked', () => {
  const absence = new Outage(true, SILENCE_MS)
  absence.end(100)
  expect(absence.isUnbounded).toBe(true)
  expect([99, 100, 101].map((block) => absence.covers(block))).toEqual([true, true, false])
})

it('an absence ends with the first head, not with each', () => {
  const absence = new Outage(true, SILENCE_MS)
  absence.end(100)
  absence.isUnbounded = false
  absence.end(110)
  expect(absence.isUnbounded).toBe(false)
  expect(absence.covers(101)).toBe(false)
})

it('an absence is open until it was looked at how far back it began', () => {
  const absence = new Outage(true, SILENCE_MS)
  expect(absence.isOpen).toBe(true)
  absence.end(100)
  expect(absence.isOpen).toBe(true)
  absence.isUnbounded = false
  expect(absence.isOpen).toBe(false)
  expect(new Outage(false, SILENCE_MS).isOpen).toBe(false)
})

it('who was never away missed nothing', () => {
  const absence = new Outage(false, SILENCE_MS)
  absence.end(100)
  expect(absence.isUnbounded).toBe(false)
  expect(absence.covers(0)).toBe(false)
})

it('an absence may begin again, and never covers less than the former', () => {
  const absence = new Outage(true, SILENCE_MS)
  absence.end(100)
  absence.isUnbounded = false
  absence.begin()
  absence.end(90)
  expect(absence.isUnbounded).toBe(true)
  expect(absence.covers(100)).toBe(true)
  absence.extend(120)
  expect(absence.covers(120)).toBe(true)
})

it('questions that cannot be asked for too long are an absence', () => {
  const absence = new Outage(false, SILENCE_MS)
  absence.requestFailed(1_000)
  absence.requestFailed(3_900)
  absence.requestSucceeded(4_001, 50)
  expect(absence.covers(50)).toBe(true)
})

it('questions that cannot be asked for a while are none, however often', () => {
  const absence = new Outage(false, SILENCE_MS)
  for (const at of [1_000, 5_000, 9_000]) {
    absence.requestFailed(at)
    absence.requestSucceeded(at + 3_000, 50)
  }
  absence.requestSucceeded(60_000, 60)
  expect(absence.covers(0)).toBe(false)
})

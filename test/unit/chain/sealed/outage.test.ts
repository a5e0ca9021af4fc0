import { expect, it } from 'vitest'
import { Absence } from '../../../../src/chain/sealed/outage.ts'

const SILENCE_MS = 3_000

it('after a restart, all up to the first head was sealed while nobody looked', () => {
  const absence = new Absence(true, SILENCE_MS)
  absence.ends(100)
  expect(absence.unbounded).toBe(true)
  expect([99, 100, 101].map((block) => absence.covers(block))).toEqual([true, true, false])
})

it('an absence ends with the first head, not with each', () => {
  const absence = new Absence(true, SILENCE_MS)
  absence.ends(100)
  absence.unbounded = false
  absence.ends(110)
  expect(absence.unbounded).toBe(false)
  expect(absence.covers(101)).toBe(false)
})

it('an absence is open until it was looked at how far back it began', () => {
  const absence = new Absence(true, SILENCE_MS)
  expect(absence.open).toBe(true)
  absence.ends(100)
  expect(absence.open).toBe(true)
  absence.unbounded = false
  expect(absence.open).toBe(false)
  expect(new Absence(false, SILENCE_MS).open).toBe(false)
})

it('who was never away missed nothing', () => {
  const absence = new Absence(false, SILENCE_MS)
  absence.ends(100)
  expect(absence.unbounded).toBe(false)
  expect(absence.covers(0)).toBe(false)
})

it('an absence may begin again, and never covers less than the former', () => {
  const absence = new Absence(true, SILENCE_MS)
  absence.ends(100)
  absence.unbounded = false
  absence.begins()
  absence.ends(90)
  expect(absence.unbounded).toBe(true)
  expect(absence.covers(100)).toBe(true)
  absence.extend(120)
  expect(absence.covers(120)).toBe(true)
})

it('questions that cannot be asked for too long are an absence', () => {
  const absence = new Absence(false, SILENCE_MS)
  absence.failed(1_000)
  absence.failed(3_900)
  absence.succeeded(4_001, 50)
  expect(absence.covers(50)).toBe(true)
})

it('questions that cannot be asked for a while are none, however often', () => {
  const absence = new Absence(false, SILENCE_MS)
  for (const at of [1_000, 5_000, 9_000]) {
    absence.failed(at)
    absence.succeeded(at + 3_000, 50)
  }
  absence.succeeded(60_000, 60)
  expect(absence.covers(0)).toBe(false)
})

import { expect, it } from 'vitest'
import type { Update } from '../../../../../src/protocol/updates.ts'
import { RecentUpdates } from '../../../../../src/relay/edge/live/recent-updates.ts'
import type { Entry } from '../../../../../src/relay/tape/tape.ts'

const entries = (from: number, to: number, text = '{}'): readonly Entry[] =>
  Array.from({ length: to - from + 1 }, (_, index) => ({ seq: from + index, update: {} as Update, text }))
const sequencesAfter = (recent: RecentUpdates, seq: number) => recent.after(seq)?.map((entry) => entry.seq)

it('returns the updates after a sequence number, or nothing if some are missing', () => {
  const recent = new RecentUpdates(7)
  recent.add(entries(8, 10))
  expect(sequencesAfter(recent, 7)).toEqual([8, 9, 10])
  expect(sequencesAfter(recent, 9)).toEqual([10])
  expect(sequencesAfter(recent, 10)).toEqual([])
  expect(sequencesAfter(recent, 6)).toBeUndefined()
})

it.each([
  ['number', '{}', 2_048, 4_096],
  ['size', 'x'.repeat(65_536), 64, 128],
])('keeps its bound by %s, and never twice that and one batch more', (_, text, kept, most) => {
  const recent = new RecentUpdates(0)
  let largest = 0
  for (let seq = 1; seq <= 3 * most; seq += 1) {
    recent.add(entries(seq, seq, text))
    const held = recent.after(recent.sinceSeq)?.length ?? 0
    expect(held).toBe(seq - recent.sinceSeq)
    largest = Math.max(largest, held)
    if (seq > most) expect(held).toBeGreaterThanOrEqual(kept)
  }
  expect(largest).toBe(most)
})

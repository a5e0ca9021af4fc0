import { expect, it, onTestFinished, vi } from 'vitest'
import { HistoryUnderLoad, type QueryFigures } from '../bench/history-under-load.ts'
import { isNightly } from '../support/test-length.ts'

/** Generating a million updates takes minutes. */
vi.setConfig({ testTimeout: 900_000 })

const UPDATES = isNightly ? 1_000_000 : 100_000
const QUERY_MS = isNightly ? 150 : 50
/** Far more than it takes; whatever reads the tape through takes longer. */
const ANSWER_BOUND_MS = 250
const HELD_UP_BOUND_MS = 100
/** Until a hundred messages have come, or there are no more: what was taken back takes some looking up in the sealed view. */
const requestsOf = (what: string): number => (/^types=retract, .*sealed$/.test(what) ? 2 : 1)
/** The machine may be busy with something else: what takes long once is asked again. */
const ATTEMPTS = 4
/** Whoever filters by value has most of the tape looked at, page after page. */
const filtered = new Set(['one party', 'more than there is'])

const isQuick = ({ worstMs, maxStallMs, liveWorstMs }: QueryFigures): boolean =>
  worstMs < ANSWER_BOUND_MS && Math.max(maxStallMs, liveWorstMs) < HELD_UP_BOUND_MS

it('history over a full tape answers each kind of question at once, and holds up nobody who listens', async () => {
  const past = await HistoryUnderLoad.open(UPDATES)
  onTestFinished(() => past.end())
  const slow: QueryFigures[] = []
  for (const question of past.queries) {
    let asked = await past.measureQuery(question, QUERY_MS)
    for (let tries = 1; tries < ATTEMPTS && !isQuick(asked); tries += 1)
      asked = await past.measureQuery(question, QUERY_MS)
    if (!isQuick(asked)) slow.push(asked)
    expect(asked.wrong, asked.what).toBe(0)
    if (!filtered.has(asked.what)) expect(asked.requests, asked.what).toBeLessThanOrEqual(requestsOf(asked.what))
  }
  expect(slow).toEqual([])
})

import { expect, it, onTestFinished, vi } from 'vitest'
import { HistoryUnderLoad, type QueryFigures } from '../bench/history-under-load.ts'
import { isNightly } from '../support/test-length.ts'

/** Generating a million updates takes minutes. */
vi.setConfig({ testTimeout: 900_000 })

const UPDATES = isNightly ? 1_000_000 : 100_000
const QUERY_MS = isNightly ? 150 : 50
/** Far more than an answer takes. Reading the whole tape takes longer. */
const ANSWER_BOUND_MS = 250
const DELAY_BOUND_MS = 100
/**
 * Requests until a hundred messages have come, or there are no more. The sealed view looks up what was retracted, and
 * on a larger tape retracts are further apart.
 */
const RETRACT_REQUESTS = isNightly ? 3 : 2
const allowedRequests = (query: string): number => (/^types=retract, .*sealed$/.test(query) ? RETRACT_REQUESTS : 1)
/** The machine may be busy with something else, so a slow query is measured again. */
const ATTEMPTS = 4
/** Filters by value read most of the tape, page after page. */
const filteredQueries = new Set(['one party', 'a value that no update has'])

const isQuick = ({ worstMs, maxStallMs, liveWorstMs }: QueryFigures): boolean =>
  worstMs < ANSWER_BOUND_MS && Math.max(maxStallMs, liveWorstMs) < DELAY_BOUND_MS

it('history over a full tape answers every kind of query quickly, and does not delay live listeners', async () => {
  const load = await HistoryUnderLoad.open(UPDATES)
  onTestFinished(() => load.close())
  const slow: QueryFigures[] = []
  for (const query of load.queries) {
    let figures = await load.measureQuery(query, QUERY_MS)
    for (let tries = 1; tries < ATTEMPTS && !isQuick(figures); tries += 1) figures = await load.measureQuery(query, QUERY_MS)
    if (!isQuick(figures)) slow.push(figures)
    expect(figures.wrong, figures.what).toBe(0)
    if (!filteredQueries.has(figures.what))
      expect(figures.requests, figures.what).toBeLessThanOrEqual(allowedRequests(figures.what))
  }
  expect(slow).toEqual([])
})

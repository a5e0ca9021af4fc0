import { expect, it, onTestFinished, vi } from 'vitest'
import { generateFullTape } from '../bench/full-tape-generator.ts'
import { HistoryUnderLoad, type QueryFigures } from '../bench/history-under-load.ts'
import { fetchTokenNames } from '../bench/measured-servers.ts'
import { createTempFolder } from '../support/child-program.ts'
import { isNightly } from '../support/test-length.ts'
import { openDevnet } from '../support/test-stack.ts'
import { MonitoredRelay } from './monitored-relay.ts'

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
const filteredQueries = new Set(['one account', 'a value that no update has'])

const isQuick = ({ maxMs, healthMaxMs, liveMaxMs }: QueryFigures): boolean =>
  maxMs < ANSWER_BOUND_MS && Math.max(healthMaxMs, liveMaxMs) < DELAY_BOUND_MS

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

const MEMORY_UPDATES = isNightly ? 1_000_000 : 400_000
/** What a relay on a full tape may hold more than one on an empty tape. */
const MORE_BYTES = (isNightly ? 100 : 20) * 2 ** 20
/** When the garbage of the start is collected is the engine's choice, so the least of these starts counts. */
const STARTS = 3

it('a restart on a full tape leaves little more in memory than a start on an empty one', async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const dir = await createTempFolder(test)
  const head = devnet.chain.head.number
  await generateFullTape({ dir, tokens: await fetchTokenNames(devnet.url), updates: MEMORY_UPDATES, now: Date.now(), head })
  const residentBytesOn = async (settings: Record<string, string>) => {
    const relay = await MonitoredRelay.open(test, devnet, settings)
    const readScore = async () => ((await (await fetch(`${relay.url}/v1/status`)).json()) as { score: unknown }).score
    await relay.until(async () => (await readScore()) !== null)
    const bytes = relay.residentBytes
    relay.signal('SIGKILL')
    await relay.waitForExit()
    return bytes
  }
  const empty = await residentBytesOn({})
  let full = await residentBytesOn({ DATA_DIR: dir })
  for (let start = 1; start < STARTS && full > empty + MORE_BYTES; start += 1)
    full = Math.min(full, await residentBytesOn({ DATA_DIR: dir }))
  expect(full).toBeLessThan(empty + MORE_BYTES)
})

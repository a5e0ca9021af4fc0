import { HistoryUnderLoad, type QueryFigures } from './history-under-load.ts'
import { formatNumber, print } from './result-table.ts'

/** History over a full tape: how fast each kind of query gets its first page, and how that affects live listeners. */

const ALONE_MS = 5_000
const QUERY_MS = 1_500

/** Generates a full tape, starts a relay on it, and runs the queries. */
export async function benchmarkHistory(updates: number): Promise<void> {
  const load = await HistoryUnderLoad.open(updates)
  try {
    const { tape, generatingMs, startingMs } = load
    const counts = Object.entries(tape.counts).map(([type, count]) => `${formatNumber(count, 0)} ${type}`)
    print(
      `a tape of ${formatNumber(updates, 0)} updates, generated in ${formatNumber(generatingMs / 1_000, 1)} s: ${counts.join(', ')}`,
    )
    print(`the relay started on it in ${formatNumber(startingMs / 1_000, 2)} s`)
    print(''.padEnd(NAME_CHARS) + columns.map(({ name }) => name.padStart(COLUMN_CHARS)).join(''))
    print(row({ ...noQuery, ...(await load.measureIdle(ALONE_MS)) }))
    for (const query of load.queries) print(row(await load.measureQuery(query, QUERY_MS)))
    print(row({ ...noQuery, ...(await load.measureIdle(ALONE_MS)) }))
    print('messages: on the first page; requests: until a hundred have come, there are no more, or the bound is reached')
    print('live: from the upstream to a listener; held: how long /healthz took, polled all the while')
    for (const path of ['/v1/events?format=ndjson', '/v1/events?format=ndjson&stage=sealed']) {
      const { lines, bytes, seconds, liveP99Ms, stallP99Ms } = await load.measureRead(path)
      const read = `${formatNumber(lines, 0)} lines, ${formatNumber(bytes / 2 ** 20, 0)} MiB in ${formatNumber(seconds, 1)} s`
      const live = `live p99 ${formatNumber(liveP99Ms, 1)} ms, held p99 ${formatNumber(stallP99Ms, 1)} ms`
      print(`${path}: ${read}, ${formatNumber(lines / seconds, 0)} lines a second; ${live}`)
    }
  } finally {
    await load.close()
  }
}

const noQuery = {
  what: 'no queries',
  medianMs: Number.NaN,
  p99Ms: Number.NaN,
  worstMs: Number.NaN,
  answers: 0,
  messages: 0,
  requests: 0,
  wrong: 0,
}

const NAME_CHARS = 40
const COLUMN_CHARS = 11
const columns: readonly { readonly name: string; readonly of: (figures: QueryFigures) => number; readonly digits: number }[] = [
  { name: 'answers', of: (figures) => figures.answers, digits: 0 },
  { name: 'median ms', of: (figures) => figures.medianMs, digits: 1 },
  { name: 'p99 ms', of: (figures) => figures.p99Ms, digits: 1 },
  { name: 'worst ms', of: (figures) => figures.worstMs, digits: 1 },
  { name: 'messages', of: (figures) => figures.messages, digits: 0 },
  { name: 'requests', of: (figures) => figures.requests, digits: 0 },
  { name: 'wrong', of: (figures) => figures.wrong, digits: 0 },
  { name: 'live p99', of: (figures) => figures.liveP99Ms, digits: 1 },
  { name: 'live worst', of: (figures) => figures.liveWorstMs, digits: 1 },
  { name: 'held p99', of: (figures) => figures.stallP99Ms, digits: 1 },
  { name: 'held worst', of: (figures) => figures.maxStallMs, digits: 1 },
]

const row = (figures: QueryFigures): string =>
  figures.what.padEnd(NAME_CHARS) +
  columns.map(({ of, digits }) => formatNumber(of(figures), digits).padStart(COLUMN_CHARS)).join('')

import { HistoryUnderLoad, type QueryFigures } from './history-under-load.ts'
import { formatNumber, print, tableOf } from './result-table.ts'

/** History over a full tape: how fast each kind of query gets its first page, and how that affects live listeners. */

const ALONE_MS = 5_000
const QUERY_MS = 1_500

const table = tableOf<Partial<QueryFigures>>(
  '',
  (
    [
      ['answers', 'answers', 0],
      ['median ms', 'p50Ms', 1],
      ['p99 ms', 'p99Ms', 1],
      ['worst ms', 'maxMs', 1],
      ['messages', 'messages', 0],
      ['requests', 'requests', 0],
      ['wrong', 'wrong', 0],
      ['live p99', 'liveP99Ms', 1],
      ['live worst', 'liveWorstMs', 1],
      ['held p99', 'stallP99Ms', 1],
      ['held worst', 'maxStallMs', 1],
    ] as const
  ).map(([name, figure, digits]) => [name, (figures) => figures[figure] ?? Number.NaN, digits]),
)

/** Generates a full tape, starts a relay on it, and runs the queries. */
export async function benchmarkHistory(updates: number): Promise<void> {
  const load = await HistoryUnderLoad.open(updates)
  try {
    const { tape, generatingMs, startingMs } = load.opened
    const counts = Object.entries(tape.counts).map(([type, count]) => `${formatNumber(count, 0)} ${type}`)
    const seconds = formatNumber(generatingMs / 1_000, 1)
    print(`a tape of ${formatNumber(updates, 0)} updates, generated in ${seconds} s: ${counts.join(', ')}`)
    print(`the relay started on it in ${formatNumber(startingMs / 1_000, 2)} s`)
    table.printHead()
    table.printRow('no queries', [await load.measureIdle(ALONE_MS)])
    for (const query of load.queries) table.printRow(query.name, [await load.measureQuery(query, QUERY_MS)])
    table.printRow('no queries', [await load.measureIdle(ALONE_MS)])
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

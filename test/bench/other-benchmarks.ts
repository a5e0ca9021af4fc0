import { HistoryUnderLoad } from './history-under-load.ts'
import type { LoadCommand, LoadReply } from './http-load-process.ts'
import { type Work, withLoad } from './listener-load.ts'
import { openRelay, startPeer } from './measured-servers.ts'
import { type PinnedProcess, PinnedWorker } from './pinned-processes.ts'
import type { Figures, Report } from './results.ts'

/** Benchmarks of the ingest, of reads over JSON-RPC and of history queries: what is no fan-out. */

const rates = { ingest: [100, 1_000, 10_000, 20_000], nats: [1_000, 10_000] } as const
const [INGEST_TOKENS, INGEST_LISTENERS] = [10, 10]
/** A block of the greatest rate still fits into one answer of a node: 16 MiB. */
const BLOCK_MS = 1_000
const FLASHBLOCK_MS = 200
const MEASURED_MS = 10_000
/** One write to a listener may contain a whole flashblock, and what waits must not end a listener here. */
const settings = { MAX_BACKLOG: '256MiB' }

const workOf = (rate: number, ms: number): Work => ({
  ...{ burst: (rate * FLASHBLOCK_MS) / 1_000, everyMs: FLASHBLOCK_MS, bursts: ms / FLASHBLOCK_MS, blockMs: BLOCK_MS },
})

/** Measures the cost of a pushed log with its seal, at each rate: in one relay, or in an ingester whose tape is over NATS. */
export async function measureIngest(part: 'ingest' | 'nats', dir: string, report: Report): Promise<void> {
  for (const rate of rates[part]) {
    const opening = openRelay({ tokens: INGEST_TOKENS, settings, dir, isOverNats: part === 'nats' })
    await withLoad(opening, async (load, { server }) => {
      await load.join('ws', INGEST_LISTENERS, '')
      // So that the code is optimised.
      await load.deliver(workOf(2_000, MEASURED_MS / 2))
      await load.sealAll()
      const cpuBefore = server.cpuSeconds()
      const figures = await load.deliver(workOf(rate, MEASURED_MS))
      const unsealed = await load.sealAll()
      report(part, `${rate}/s`, {
        ...figures,
        'CPU µs': ((server.cpuSeconds() - cpuBefore) * 1e9) / (rate * MEASURED_MS),
        unsealed,
      })
    })
  }
}

const CONNECTIONS = 32
const ANSWERS = 60_000
const SINGLE_ANSWERS = 4_000
/** Above every rate here, so that the rate limit does not act. */
const RPC_RATE = '1000000'

const queryOf = (method: string, ...params: readonly unknown[]) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
const balance = queryOf('eth_getBalance', '0xb200000000000000000000c2e324d24d7eecd1fb', 'latest')

/** Reads from the cache: concurrently on many connections, and one at a time on one. */
async function readAgain(server: PinnedProcess, port: number, body: string): Promise<Figures> {
  const client = new PinnedWorker<LoadCommand, LoadReply>('http-load-process.ts')
  try {
    const command = { do: 'repeat', port, requests: [body], connections: CONNECTIONS } as const
    // The first requests run before the code is optimised.
    await client.command({ ...command, answers: ANSWERS / 3 })
    const cpuBefore = server.cpuSeconds()
    const many = await client.command({ ...command, answers: ANSWERS })
    const cpuMicros = ((server.cpuSeconds() - cpuBefore) * 1e6) / ANSWERS
    const lone = await client.command({ ...command, connections: 1, answers: SINGLE_ANSWERS })
    return {
      ...{ 'per second': ANSWERS / many.seconds, 'CPU µs': cpuMicros, 'p99 ms': many.p99Ms },
      ...{ 'lone p50 ms': lone.p50Ms, wrong: many.wrong + lone.wrong },
    }
  } finally {
    await client.end()
  }
}

/** The relay with each request, or a server that returns a constant. */
export async function measureReads(dir: string | null, report: Report): Promise<void> {
  if (dir === null) {
    const peer = startPeer('bare Node')
    const [, port] = await peer.waitForOutput(/listens on (\d+)/)
    report('rpc', 'bare Node', await readAgain(peer, Number(port), balance))
    return peer.end()
  }
  const { server, port, end } = await openRelay({ dir, settings: { RPC_RATE } })
  report('rpc', 'a balance', await readAgain(server, port, balance))
  report('rpc', 'a block', await readAgain(server, port, queryOf('eth_getBlockByNumber', 'latest', false)))
  await end()
}

const ALONE_MS = 5_000
const QUERY_MS = 1_500

/** History over a full tape: how fast each kind of query gets its first page, and how that affects live listeners. */
export async function measureHistory(updates: number, dir: string, report: Report): Promise<void> {
  const load = await HistoryUnderLoad.open(updates, dir)
  try {
    report('history', 'no queries', await load.measureIdle(ALONE_MS))
    for (const query of load.queries) {
      const { what, ...figures } = await load.measureQuery(query, QUERY_MS)
      report('history', what, figures)
    }
    for (const path of ['/v1/events?format=ndjson', '/v1/events?format=ndjson&stage=sealed'])
      report('history', path, await load.measureExport(path))
  } finally {
    await load.close()
  }
}

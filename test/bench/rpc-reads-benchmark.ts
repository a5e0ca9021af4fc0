import type { LoadCommand, LoadReply } from './http-load-process.ts'
import { openRelay, startPeer } from './measured-servers.ts'
import { type PinnedProcess, PinnedWorker } from './pinned-processes.ts'
import { median, print, tableOf } from './result-table.ts'

/** Reads that the relay answers from its cache, compared with a server that returns a constant. */

/** What one server achieved: concurrently on many connections, and one at a time on one. */
export type ReadFigures = {
  readonly server: string
  readonly perSecond: number
  readonly perCpuSecond: number
  readonly p99Ms: number
  readonly loneP50Ms: number
  readonly wrong: number
}

const CONNECTIONS = 32
const ANSWERS = 60_000
const SINGLE_ANSWERS = 4_000
/** Above every rate here, so that the rate limit does not act. */
const RATE = '1000000'

const queryOf = (method: string, ...params: readonly unknown[]) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
const balance = queryOf('eth_getBalance', '0xb200000000000000000000c2e324d24d7eecd1fb', 'latest')

/** One round: the relay with each request, and the constant. */
export async function measureReads(): Promise<readonly ReadFigures[]> {
  const relay = await openRelay({ settings: { RPC_RATE: RATE } })
  const constant = startPeer('constant')
  try {
    const [, port] = await constant.waitForOutput(/listens on (\d+)/)
    return [
      await measureServer('relay, a balance', relay.server, relay.port, balance),
      await measureServer('relay, a block', relay.server, relay.port, queryOf('eth_getBlockByNumber', 'latest', false)),
      await measureServer('bare Hono, a constant', constant, Number(port), balance),
    ]
  } finally {
    await Promise.all([relay.end(), constant.end()])
  }
}

async function measureServer(name: string, server: PinnedProcess, port: number, body: string): Promise<ReadFigures> {
  const loadProcess = new PinnedWorker<LoadCommand, LoadReply>('http-load-process.ts')
  try {
    const command = { do: 'repeat', port, requests: [body], connections: CONNECTIONS } as const
    // The first requests run before the code is optimised.
    await loadProcess.command({ ...command, answers: ANSWERS / 3 })
    const cpuBefore = server.cpuSeconds()
    const parallel = await loadProcess.command({ ...command, answers: ANSWERS })
    const cpuSeconds = server.cpuSeconds() - cpuBefore
    const single = await loadProcess.command({ ...command, connections: 1, answers: SINGLE_ANSWERS })
    return {
      ...{ server: name, perSecond: ANSWERS / parallel.seconds, perCpuSecond: ANSWERS / cpuSeconds },
      ...{ p99Ms: parallel.p99Ms, loneP50Ms: single.p50Ms, wrong: parallel.wrong + single.wrong },
    }
  } finally {
    await loadProcess.end()
  }
}

const table = tableOf<ReadFigures>('', [
  ['reads/s', ({ perSecond }) => perSecond, 0],
  ['per CPU-s', ({ perCpuSecond }) => perCpuSecond, 0],
  ['p99 ms', ({ p99Ms }) => p99Ms, 2],
  ['lone p50 ms', ({ loneP50Ms }) => loneP50Ms, 3],
  ['wrong', ({ wrong }) => wrong, 0],
])

/** The medians of the rounds, and the ratios within each. */
export function reportReads(rounds: readonly (readonly ReadFigures[])[]): void {
  print()
  print(`reads from the cache on one core, ${CONNECTIONS} connections; medians of ${rounds.length} rounds`)
  table.printHead()
  for (const [server, figures] of Map.groupBy(rounds.flat(), (figures) => figures.server)) table.printRow(server, figures)
  const ratios = rounds.map(([one, , constant]) => (one?.perCpuSecond ?? Number.NaN) / (constant?.perCpuSecond ?? Number.NaN))
  print(`  reads per CPU-second, a balance : a constant     ${median(ratios).toFixed(2)}`)
}

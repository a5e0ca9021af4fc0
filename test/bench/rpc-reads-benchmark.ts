import { fileURLToPath } from 'node:url'
import { startFlags } from '../support/child-program.ts'
import { openRelay } from './measured-servers.ts'
import { PinnedProcess, PinnedWorker } from './pinned-processes.ts'
import { formatNumber, median, print } from './result-table.ts'
import type { LoadCommand, LoadReply } from './rpc-load-process.ts'

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

const queries = {
  'a balance': { method: 'eth_getBalance', params: ['0xb200000000000000000000c2e324d24d7eecd1fb', 'latest'] },
  'a block': { method: 'eth_getBlockByNumber', params: ['latest', false] },
} as const

/** One round: the relay with each request, and the constant. */
export async function measureReads(): Promise<readonly ReadFigures[]> {
  const relay = await openRelay(1, { RPC_RATE: RATE })
  const measured: ReadFigures[] = []
  try {
    for (const [what, query] of Object.entries(queries))
      measured.push(await measureServer(`relay, ${what}`, relay.server, relay.port, JSON.stringify(bodyOf(query))))
  } finally {
    await relay.end()
  }
  const constant = new PinnedProcess('server', [
    process.execPath,
    ...startFlags,
    fileURLToPath(new URL('constant-rpc-server.ts', import.meta.url)),
  ])
  try {
    const [, port] = await constant.waitForOutput(/listens on (\d+)/)
    const body = JSON.stringify(bodyOf(queries['a balance']))
    measured.push(await measureServer('bare Hono, a constant', constant, Number(port), body))
  } finally {
    await constant.end()
  }
  return measured
}

const bodyOf = (query: object): object => ({ jsonrpc: '2.0', id: 1, ...query })

async function measureServer(name: string, server: PinnedProcess, port: number, body: string): Promise<ReadFigures> {
  const loadProcess = new PinnedWorker<LoadCommand, LoadReply>('rpc-load-process.ts')
  try {
    const command = { do: 'query', port, body } as const
    // The first requests run before the code is optimised.
    await loadProcess.command({ ...command, connections: CONNECTIONS, answers: ANSWERS / 3 })
    const cpuBefore = server.cpuSeconds()
    const parallel = await loadProcess.command({ ...command, connections: CONNECTIONS, answers: ANSWERS })
    const cpuSeconds = server.cpuSeconds() - cpuBefore
    const single = await loadProcess.command({ ...command, connections: 1, answers: SINGLE_ANSWERS })
    return {
      server: name,
      perSecond: ANSWERS / parallel.seconds,
      perCpuSecond: ANSWERS / cpuSeconds,
      p99Ms: parallel.p99Ms,
      loneP50Ms: single.p50Ms,
      wrong: parallel.wrong + single.wrong,
    }
  } finally {
    await loadProcess.end()
  }
}

/** The medians of the rounds, and the ratios within each. */
export function reportReads(rounds: readonly (readonly ReadFigures[])[]): void {
  const all = rounds.flat()
  print()
  print(`reads from the cache on one core, ${CONNECTIONS} connections; medians of ${rounds.length} rounds`)
  print(`${''.padEnd(24)}      reads/s    per CPU-s     p99 ms   lone p50 ms   wrong`)
  for (const server of new Set(all.map((figures) => figures.server))) {
    const of = (figure: Exclude<keyof ReadFigures, 'server'>) =>
      median(all.filter((figures) => figures.server === server).map((figures) => figures[figure]))
    const figures = [
      formatNumber(of('perSecond'), 0).padStart(13),
      formatNumber(of('perCpuSecond'), 0).padStart(13),
      formatNumber(of('p99Ms'), 2).padStart(11),
      formatNumber(of('loneP50Ms'), 3).padStart(14),
      formatNumber(of('wrong'), 0).padStart(8),
    ]
    print(`${server.padEnd(24)}${figures.join('')}`)
  }
  const ratios = rounds.map((round) => {
    const [balance, , constant] = round
    return (balance?.perCpuSecond ?? Number.NaN) / (constant?.perCpuSecond ?? Number.NaN)
  })
  print(`  reads per CPU-second, a balance : a constant     ${median(ratios).toFixed(2)}`)
}

import { fileURLToPath } from 'node:url'
import { startFlags } from '../support/child-program.ts'
import { openRelay } from './measured-servers.ts'
import { Runner, Worker } from './pinned-processes.ts'
import { median, print, shown } from './result-table.ts'
import type { AskerOrder, AskerReport } from './rpc-load-process.ts'

/** Reads that are answered from memory, beside a server that has nothing to remember. */

/** What one server did: all at once on many connections, and one after the other on one. */
export type Reads = {
  readonly who: string
  readonly perSecond: number
  readonly perCpuSecond: number
  readonly p99Ms: number
  readonly loneP50Ms: number
  readonly wrong: number
}

const CONNECTIONS = 32
const ANSWERS = 60_000
const LONE_ANSWERS = 4_000
/** More than anybody asks here. */
const RATE = '1000000'

const questions = {
  'a balance': { method: 'eth_getBalance', params: ['0xb200000000000000000000c2e324d24d7eecd1fb', 'latest'] },
  'a block': { method: 'eth_getBlockByNumber', params: ['latest', false] },
} as const

/** One round: the relay with each question, and the constant. */
export async function reads(): Promise<readonly Reads[]> {
  const relay = await openRelay(1, { RPC_RATE: RATE })
  const measured: Reads[] = []
  try {
    for (const [what, question] of Object.entries(questions))
      measured.push(await readsOf(`relay, ${what}`, relay.server, relay.port, JSON.stringify(bodyOf(question))))
  } finally {
    await relay.end()
  }
  const constant = new Runner('server', [
    process.execPath,
    ...startFlags,
    fileURLToPath(new URL('constant-rpc-server.ts', import.meta.url)),
  ])
  try {
    const [, port] = await constant.says(/listens on (\d+)/)
    const body = JSON.stringify(bodyOf(questions['a balance']))
    measured.push(await readsOf('bare Hono, a constant', constant, Number(port), body))
  } finally {
    await constant.end()
  }
  return measured
}

const bodyOf = (question: object): object => ({ jsonrpc: '2.0', id: 1, ...question })

async function readsOf(who: string, server: Runner, port: number, body: string): Promise<Reads> {
  const asker = new Worker<AskerOrder, AskerReport>('rpc-load-process.ts')
  try {
    const order = { do: 'ask', port, body } as const
    // The first ones find the code cold.
    await asker.order({ ...order, connections: CONNECTIONS, answers: ANSWERS / 3 })
    const cpuBefore = server.cpuSeconds()
    const crowd = await asker.order({ ...order, connections: CONNECTIONS, answers: ANSWERS })
    const cpuSeconds = server.cpuSeconds() - cpuBefore
    const lone = await asker.order({ ...order, connections: 1, answers: LONE_ANSWERS })
    return {
      who,
      perSecond: ANSWERS / crowd.seconds,
      perCpuSecond: ANSWERS / cpuSeconds,
      p99Ms: crowd.p99Ms,
      loneP50Ms: lone.p50Ms,
      wrong: crowd.wrong + lone.wrong,
    }
  } finally {
    await asker.end()
  }
}

/** The medians of the rounds, and the ratios within each. */
export function reportReads(rounds: readonly (readonly Reads[])[]): void {
  const all = rounds.flat()
  print()
  print(`reads from memory on one core, ${CONNECTIONS} connections; medians of ${rounds.length} rounds`)
  print(`${''.padEnd(24)}      reads/s    per CPU-s     p99 ms   lone p50 ms   wrong`)
  for (const who of new Set(all.map((one) => one.who))) {
    const of = (figure: Exclude<keyof Reads, 'who'>) =>
      median(all.filter((one) => one.who === who).map((one) => one[figure]))
    const figures = [
      shown(of('perSecond'), 0).padStart(13),
      shown(of('perCpuSecond'), 0).padStart(13),
      shown(of('p99Ms'), 2).padStart(11),
      shown(of('loneP50Ms'), 3).padStart(14),
      shown(of('wrong'), 0).padStart(8),
    ]
    print(`${who.padEnd(24)}${figures.join('')}`)
  }
  const ratios = rounds.map((round) => {
    const [balance, , constant] = round
    return (balance?.perCpuSecond ?? Number.NaN) / (constant?.perCpuSecond ?? Number.NaN)
  })
  print(`  reads per CPU-second, a balance : a constant     ${median(ratios).toFixed(2)}`)
}

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { startCommand } from '../support/child-program.ts'
import { NatsServer } from '../support/nats-server.ts'
import type { Comparison } from './asked-values.ts'
import { type Figures, ListenerLoad, type Work } from './listener-load.ts'
import { type MeasuredServer, openTraffic } from './measured-servers.ts'
import { PinnedProcess } from './pinned-processes.ts'
import type { AuditResult } from './publication-audit.ts'
import { formatNumber, isBehind, median, type Percentiles, percentilesOf } from './result-table.ts'

/** A tape over NATS: one ingester, nats-server with its defaults, and edges, each in a process of its own. */

const TOKENS = 10
const BLOCK_MS = 1_000
const EVERY_MS = 5
const MEASURED_MS = 10_000
const WARM_UP: Work = { burst: 5, everyMs: EVERY_MS, bursts: 1_000, blockMs: BLOCK_MS }
const LISTENERS_PER_EDGE = 50
const EDGE_COUNTS = [1, 2, 4] as const
/** The rate whose latency is asked for, and the rate that an ingester has to sustain. */
const [LATENCY_RATE, INGEST_RATE] = [1_000, 10_000]
const MAX_BACKLOG = '256MiB'

/** One rate with so many edges. */
export type NatsFigures = {
  readonly rate: number
  readonly edges: number
  readonly figures: Figures
  readonly audit: AuditResult
  /** Processor time of the ingester for each log. */
  readonly ingesterMicros: number
  /** From the publication of a movement in the ingester to a client of an edge. */
  readonly published: Percentiles
}

type Cluster = { readonly servers: readonly MeasuredServer[]; end(): Promise<void> }

/** The ingester is what is measured; each of the servers has the port of one edge. */
async function openCluster(edges: number): Promise<Cluster> {
  const nats = await NatsServer.start()
  const traffic = openTraffic()
  const { rpcUrl, wsUrl, url, symbols } = await traffic.command({ do: 'chain', tokens: TOKENS, isLight: true })
  const folder = await mkdtemp(join(tmpdir(), 'stocktape-bench-'))
  const open = async (name: string, settings: NodeJS.ProcessEnv) => {
    const server = new PinnedProcess(null, startCommand, {
      ...{ NATS_URL: nats.url, PORT: '0', DATA_DIR: join(folder, name), LOG_LEVEL: 'error' },
      ...{ MAX_BACKLOG, MAX_CLIENTS_PER_ADDRESS: '1000', ...settings },
    })
    const [, port] = await server.waitForOutput(/listens on http:\/\/[^:]+:(\d+),/)
    return { server, port: Number(port) }
  }
  const upstream = { UPSTREAM_RPC_URL: rpcUrl, UPSTREAM_WS_URL: wsUrl, STOCKS_API_URL: url }
  const { server } = await open('ingester', { ROLE: 'ingest', ...upstream })
  await traffic.command({ do: 'waitForSubscription' })
  const opened = await Promise.all(Array.from({ length: edges }, (_, nth) => open(`edge-${nth}`, { ROLE: 'edge' })))
  const end = async () => {
    await Promise.all([server, ...opened.map((edge) => edge.server), traffic].map((process) => process.end()))
    await nats.remove()
    await rm(folder, { recursive: true })
  }
  return { servers: opened.map(({ port }) => ({ server, traffic, port, symbols, sendsLive: true, end })), end }
}

/** How long after its publication each movement comes to one more client; up to a millisecond too long. */
async function openStopwatch(port: number) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/ws?symbols=*&types=transfer&snapshot=false`)
  let delays: number[] = []
  const live = Promise.withResolvers<void>()
  socket.on('message', (data) => {
    const text = String(data)
    if (text.includes('"type":"live"')) live.resolve()
    const [, publishedAt] = /"stage":"preconfirmed".*"published_at":"([^"]+)"/.exec(text) ?? []
    if (publishedAt) delays.push(performance.timeOrigin + performance.now() - Date.parse(publishedAt))
  })
  await live.promise
  return {
    restart: () => {
      delays = []
    },
    stop: (): Percentiles => {
      socket.terminate()
      return percentilesOf(delays)
    },
  }
}

async function measure(rate: number, edges: number): Promise<NatsFigures> {
  const cluster = await openCluster(edges)
  const loads = cluster.servers.map((server) => new ListenerLoad(server))
  try {
    const selections = [{ path: '/v1/ws?symbols=*&snapshot=false' }]
    const group = { kind: 'ws', listeners: LISTENERS_PER_EDGE, selections, every: 1, atOnce: LISTENERS_PER_EDGE } as const
    for (const [nth, load] of loads.entries()) await load.join({ ...group, isAudited: nth === 0 })
    const [load] = loads as [ListenerLoad]
    const [{ server }] = cluster.servers as [MeasuredServer]
    const stopwatch = await openStopwatch(cluster.servers[0]?.port ?? 0)
    await load.deliver(WARM_UP)
    await load.sealAll()
    stopwatch.restart()
    const cpuBefore = server.cpuSeconds()
    const figures = await load.deliver({
      burst: (rate * EVERY_MS) / 1_000,
      everyMs: EVERY_MS,
      bursts: MEASURED_MS / EVERY_MS,
      blockMs: BLOCK_MS,
    })
    const audit = await load.sealAll()
    if (!audit) throw new Error('no listener followed the seals')
    const ingesterMicros = ((server.cpuSeconds() - cpuBefore) * 1e9) / (rate * MEASURED_MS)
    return { rate, edges, figures, audit, ingesterMicros, published: stopwatch.stop() }
  } finally {
    for (const load of loads) await load.end()
    await cluster.end()
  }
}

export async function measureNats(report: (figures: NatsFigures) => void): Promise<void> {
  for (const edges of EDGE_COUNTS) report(await measure(LATENCY_RATE, edges))
  report(await measure(INGEST_RATE, 1))
}

const lostOf = ({ figures, audit }: NatsFigures): number => figures.missing + audit.unpublished + audit.unsealed + figures.lost

export const natsHead = (): string =>
  `${'over NATS'.padEnd(24)}${['µs per log', 'published p50', 'p99', 'made p50', 'p99', 'lost'].map((name) => name.padStart(13)).join('')}`

export function natsRow(measured: NatsFigures): string {
  const { rate, edges, figures, ingesterMicros, published } = measured
  const name = `${formatNumber(rate, 0)}/s, ${edges} edge${edges === 1 ? '' : 's'}${isBehind(figures) ? ' *' : ''}`
  const numbers = [ingesterMicros, published.p50Ms, published.p99Ms, figures.p50Ms, figures.p99Ms].map((number) =>
    formatNumber(number, 1).padStart(13),
  )
  return [name.padEnd(24), ...numbers, String(lostOf(measured)).padStart(13)].join('')
}

/** What is asked of a tape over NATS. */
export function compareNats(rounds: readonly NatsFigures[]): readonly Comparison[] {
  if (rounds.length === 0) return []
  const of = (rate: number, edges: number, figure: (figures: NatsFigures) => number) =>
    median(rounds.filter((one) => one.rate === rate && one.edges === edges).map(figure))
  const ingesterCost = (edges: number) => of(LATENCY_RATE, edges, ({ ingesterMicros }) => ingesterMicros)
  return [
    ...(['p50Ms', 'p99Ms'] as const).map((figure) => ({
      what: `published to received over NATS at 1,000/s, ${figure.slice(0, 3)} ms`,
      measured: of(LATENCY_RATE, 1, ({ published }) => published[figure]),
      ...{ digits: 2, asked: { atMost: figure === 'p50Ms' ? 3 : 25 } },
    })),
    {
      what: 'logs lost or late over NATS at 10,000/s',
      measured: of(INGEST_RATE, 1, (one) => lostOf(one) + (isBehind(one.figures) ? 1 : 0)),
      ...{ digits: 0, asked: { atMost: 0 } },
    },
    ...EDGE_COUNTS.slice(1).map((edges) => ({
      what: `cost of a log to the ingester, ${edges} edges to 1`,
      measured: ingesterCost(edges) / ingesterCost(1),
      ...{ digits: 2, asked: null, note: 'all processes share the cores of this machine' },
    })),
  ]
}

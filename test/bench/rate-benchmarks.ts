import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { NatsServer } from '../support/nats-server.ts'
import type { Comparison } from './asked-values.ts'
import { type Figures, isBehind, ListenerLoad, nameOf, type Work, withLoad } from './listener-load.ts'
import { type MeasuredServer, openRelay, openTraffic, startRelay } from './measured-servers.ts'
import { ROOT } from './pinned-processes.ts'
import type { AuditResult } from './publication-audit.ts'
import { formatNumber, median, type Percentiles, percentilesOf, print, tableOf } from './result-table.ts'

/** What a pushed log costs, its seal included, at a rate: of one relay, and of an ingester whose tape is over NATS. */

/** How the logs come: in flashblocks, or spread evenly. */
export type Pace = 'bursts' | 'evenly'

const TOKENS = 10
/** A block of the greatest rate still fits into one answer of a node: 16 MiB. */
const BLOCK_MS = 1_000
const FLASHBLOCK_MS = 200
/** Spread evenly, logs come at this interval, or one by one where they are fewer. */
const EVEN_MS = 5
const MEASURED_MS = 10_000
/** One write to a listener may contain a whole flashblock, and what waits must not end a listener here. */
const MAX_BACKLOG = '256MiB'
const everything = [{ path: '/v1/ws?symbols=*&snapshot=false' }]

/** One rate on servers of its own. */
type RateFigures = {
  readonly rate: number
  readonly figures: Figures
  readonly audit: AuditResult
  /** Processor time of the process that ingests, for each log. */
  readonly microsPerLog: number
}

const lostOf = ({ figures, audit }: RateFigures): number => figures.missing + audit.unpublished + audit.unsealed + figures.lost
const wrongOf = ({ figures, audit }: RateFigures): number => figures.wrong + audit.repeated + audit.sealedTwice + audit.corrections

const workOf = (rate: number, pace: Pace): Work => {
  const everyMs = pace === 'bursts' ? FLASHBLOCK_MS : Math.max(EVEN_MS, 1_000 / rate)
  return { burst: (rate * everyMs) / 1_000, everyMs, bursts: MEASURED_MS / everyMs, blockMs: BLOCK_MS }
}

/** Warms up, so that the code is optimised, and measures a rate. */
async function measureRate(
  load: ListenerLoad,
  { server }: MeasuredServer,
  rate: number,
  pace: Pace,
  onWarm = () => {},
): Promise<RateFigures> {
  await load.deliver(pace === 'bursts' ? { ...workOf(2_000, pace), bursts: 25 } : { ...workOf(1_000, pace), bursts: 1_000 })
  await load.sealAll()
  onWarm()
  const cpuBefore = server.cpuSeconds()
  const figures = await load.deliver(workOf(rate, pace))
  const audit = await load.sealAll()
  return { rate, figures, audit, microsPerLog: ((server.cpuSeconds() - cpuBefore) * 1e9) / (rate * MEASURED_MS) }
}

const LISTENERS = 10
const RATES = [100, 1_000, 10_000, 20_000] as const
const P99_BOUND_MS = 250
const ASKED_RATE = 20_000
const ASKED_MICROS = 60
const ASKED_COST_AT = 10_000
const RATE_STEP = 1_000
const FIRST_RATE = 8_000
const RATE_BOUND = 64_000

export type IngestFigures = RateFigures & {
  readonly pace: Pace
  /** The share of their core that the upstream and the listeners used. */
  readonly harnessLoad: number
}

const ingestTable = tableOf<IngestFigures>('logs pushed', [
  ['µs per log', ({ microsPerLog }) => microsPerLog, 1],
  ['p50 ms', ({ figures }) => figures.p50Ms, 1],
  ['p99 ms', ({ figures }) => figures.p99Ms, 1],
  ['max ms', ({ figures }) => figures.maxMs, 1],
  ['lost', lostOf, 0],
  ['wrong', wrongOf, 0],
  ['others %', ({ harnessLoad }) => harnessLoad * 100, 0],
])
const printIngest = (...rounds: readonly IngestFigures[]): void => {
  const [{ rate, pace } = { rate: 0, pace: 'bursts' }] = rounds
  ingestTable.printRow(
    nameOf(
      `${formatNumber(rate, 0)}/s, ${pace}`,
      rounds.map(({ figures }) => figures),
    ),
    rounds,
  )
}

const ingestAt = (rate: number, pace: Pace, dir = ROOT): Promise<IngestFigures> =>
  withLoad(openRelay({ tokens: TOKENS, settings: { MAX_BACKLOG }, dir, isLight: true }), async (load, relay) => {
    await load.join({ listeners: LISTENERS, selections: everything, isAudited: true })
    let before = 0
    const measured = await measureRate(load, relay, rate, pace, () => {
      before = relay.traffic.cpuSeconds()
    })
    const { load: listenersLoad, seconds } = measured.figures
    const trafficLoad = (relay.traffic.cpuSeconds() - before) / Math.max(MEASURED_MS / 1_000, seconds)
    const all = { ...measured, pace, harnessLoad: listenersLoad + trafficLoad }
    printIngest(all)
    return all
  })

/** The cost of a log at each rate, to the relay of a source folder. */
export async function measureIngestRates(dir: string): Promise<readonly IngestFigures[]> {
  ingestTable.printHead()
  const measured: IngestFigures[] = []
  for (const rate of RATES) measured.push(await ingestAt(rate, 'bursts', dir))
  return measured
}

/** Whether everything was published once and sealed once, in time. */
const isIngested = (measured: IngestFigures): boolean =>
  lostOf(measured) === 0 && wrongOf(measured) === 0 && !isBehind(measured.figures) && measured.figures.p99Ms < P99_BOUND_MS

/** The greatest rate that is ingested: first away from `start` in growing steps, then by halves. 0 where none is. */
export async function findGreatestRate(pace: Pace, start: number): Promise<number> {
  let [low, high] = [0, RATE_BOUND]
  let step = RATE_STEP
  let rate = start > 0 ? start : FIRST_RATE
  while (high - low > RATE_STEP) {
    const isReached = isIngested(await ingestAt(rate, pace))
    if (isReached) low = rate
    else high = rate
    const isBracketed = low > 0 && high < RATE_BOUND
    const middle = Math.round((low + high) / 2 / RATE_STEP) * RATE_STEP
    rate = isBracketed ? middle : Math.min(high - RATE_STEP, Math.max(low + RATE_STEP, isReached ? rate + step : rate - step))
    step *= 2
  }
  return low
}

/** The medians of all rounds. Returns them with what is asked. */
export function reportIngest(
  measured: readonly IngestFigures[],
  greatest: ReadonlyMap<Pace, readonly number[]>,
): readonly Comparison[] {
  if (measured.length === 0) return []
  print()
  print(`pushed logs, one in each message, ${TOKENS} tokens, blocks of ${BLOCK_MS} ms, ${LISTENERS} WebSocket listeners; medians`)
  ingestTable.printHead()
  const roundsOf = (rate: number) => measured.filter((round) => round.rate === rate)
  for (const rate of RATES) printIngest(...roundsOf(rate))
  print('lost: not published or not sealed; wrong: published or sealed twice, amended, retracted or out of order')
  print('others: the share of their core that the upstream and the listeners used; *: the relay was behind')
  const costs = RATES.map(
    (rate): Comparison => ({
      what: `CPU per pushed log at ${formatNumber(rate, 0)}/s, µs`,
      measured: median(roundsOf(rate).map(({ microsPerLog }) => microsPerLog)),
      ...{ digits: 0, asked: rate === ASKED_COST_AT ? { atMost: ASKED_MICROS } : null },
    }),
  )
  const rates = [...greatest].map(
    ([pace, all]): Comparison => ({
      what: `greatest rate with p99 < ${P99_BOUND_MS} ms, ${pace}, logs/s`,
      measured: median(all),
      ...{ digits: 0, asked: { atLeast: ASKED_RATE }, note: `(${all.map((rate) => formatNumber(rate, 0)).join(', ')})` },
    }),
  )
  return [...costs, ...rates]
}

const LISTENERS_PER_EDGE = 50
const EDGE_COUNTS = [1, 2, 4] as const
/** The rate whose latency is asked for, and the rate that an ingester has to sustain. */
const [LATENCY_RATE, INGEST_RATE] = [1_000, 10_000]

/** One rate with so many edges. */
export type NatsFigures = RateFigures & {
  readonly edges: number
  /** From the publication of a movement in the ingester to a client of an edge. */
  readonly published: Percentiles
}

const natsTable = tableOf<NatsFigures>('over NATS', [
  ['µs per log', ({ microsPerLog }) => microsPerLog, 1],
  ['published p50', ({ published }) => published.p50Ms, 1],
  ['p99', ({ published }) => published.p99Ms, 1],
  ['made p50', ({ figures }) => figures.p50Ms, 1],
  ['p99', ({ figures }) => figures.p99Ms, 1],
  ['lost', lostOf, 0],
])

/** One ingester, nats-server with its defaults, and edges. The ingester is what is measured; each server has the port of one edge. */
async function openCluster(edges: number): Promise<readonly [MeasuredServer, ...MeasuredServer[]]> {
  const nats = await NatsServer.start()
  const traffic = openTraffic()
  const { rpcUrl, wsUrl, url, symbols } = await traffic.command({ do: 'chain', tokens: TOKENS, isLight: true })
  const folder = await mkdtemp(join(tmpdir(), 'stocktape-bench-'))
  const start = (name: string, settings: NodeJS.ProcessEnv) =>
    startRelay(null, { NATS_URL: nats.url, DATA_DIR: join(folder, name), MAX_BACKLOG, ...settings })
  const upstream = { UPSTREAM_RPC_URL: rpcUrl, UPSTREAM_WS_URL: wsUrl, STOCKS_API_URL: url }
  const { server } = await start('ingester', { ROLE: 'ingest', ...upstream })
  await traffic.command({ do: 'waitForSubscription' })
  const opened = await Promise.all(Array.from({ length: edges }, (_, nth) => start(`edge-${nth}`, { ROLE: 'edge' })))
  const end = async () => {
    await Promise.all([server, ...opened.map((edge) => edge.server), traffic].map((process) => process.end()))
    await nats.remove()
    await rm(folder, { recursive: true })
  }
  return opened.map(({ port }) => ({ server, traffic, port, symbols, sendsLive: true, end })) as [MeasuredServer]
}

/** How long after its publication each movement comes to one more client; up to a millisecond too long. */
async function openStopwatch(port: number) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/ws?symbols=*&types=transfer&snapshot=false`)
  const delays: number[] = []
  const live = Promise.withResolvers<void>()
  socket.on('message', (data) => {
    const text = String(data)
    if (text.includes('"type":"live"')) live.resolve()
    const [, publishedAt] = /"stage":"preconfirmed".*"published_at":"([^"]+)"/.exec(text) ?? []
    if (publishedAt) delays.push(performance.timeOrigin + performance.now() - Date.parse(publishedAt))
  })
  await live.promise
  const restart = () => void delays.splice(0)
  const stop = (): Percentiles => {
    socket.terminate()
    return percentilesOf(delays)
  }
  return { restart, stop }
}

async function natsAt(rate: number, edges: number): Promise<NatsFigures> {
  const [first, ...others] = await openCluster(edges)
  const beside = others.map((server) => new ListenerLoad(server))
  try {
    return await withLoad(Promise.resolve(first), async (load) => {
      const group = { listeners: LISTENERS_PER_EDGE, selections: everything }
      await load.join({ ...group, isAudited: true })
      for (const other of beside) await other.join(group)
      const stopwatch = await openStopwatch(first.port)
      const measured = await measureRate(load, first, rate, 'evenly', stopwatch.restart)
      const all = { ...measured, edges, published: stopwatch.stop() }
      natsTable.printRow(nameOf(`${formatNumber(rate, 0)}/s, ${edges} edge${edges === 1 ? '' : 's'}`, [all.figures]), [all])
      return all
    })
  } finally {
    for (const other of beside) await other.end()
  }
}

export async function measureNats(): Promise<readonly NatsFigures[]> {
  natsTable.printHead()
  const measured: NatsFigures[] = []
  for (const edges of EDGE_COUNTS) measured.push(await natsAt(LATENCY_RATE, edges))
  return [...measured, await natsAt(INGEST_RATE, 1)]
}

/** What is asked of a tape over NATS. */
export function compareNats(rounds: readonly NatsFigures[]): readonly Comparison[] {
  if (rounds.length === 0) return []
  const of = (rate: number, edges: number, figure: (figures: NatsFigures) => number) =>
    median(rounds.filter((one) => one.rate === rate && one.edges === edges).map(figure))
  const ingesterCost = (edges: number) => of(LATENCY_RATE, edges, ({ microsPerLog }) => microsPerLog)
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

import type { Comparison } from './asked-values.ts'
import { type Figures, ListenerLoad, type Work } from './listener-load.ts'
import { openRelay } from './measured-servers.ts'
import { ROOT } from './pinned-processes.ts'
import type { AuditResult } from './publication-audit.ts'
import { formatNumber, isBehind, median, print } from './result-table.ts'

/** What it costs to ingest a pushed log, its seal included, and how many a relay on one core can take. */

/** How the logs come: in flashblocks, or spread evenly. */
export type Pace = 'bursts' | 'evenly'

const LISTENERS = 10
const TOKENS = 10
/** A block of the greatest rate still fits into one answer of a node: 16 MiB. */
const BLOCK_MS = 1_000
const FLASHBLOCK_MS = 200
/** Spread evenly, logs come at this interval, or one by one where they are fewer. */
const EVEN_MS = 5
const MEASURED_MS = 10_000
/** Before each measurement, so that the code is optimised. */
const WARM_UP: Work = { burst: 400, everyMs: FLASHBLOCK_MS, bursts: 25, blockMs: BLOCK_MS }
const RATES = [100, 1_000, 10_000, 20_000] as const
const P99_BOUND_MS = 250
const ASKED_RATE = 20_000
const ASKED_MICROS = 60
const ASKED_COST_AT = 10_000
const RATE_STEP = 1_000
const FIRST_RATE = 8_000
const RATE_BOUND = 64_000
/** One write to a listener may contain a whole flashblock, and what waits must not end a listener here. */
const MAX_BACKLOG = '256MiB'

/** One rate on a relay of its own. */
export type IngestFigures = {
  readonly rate: number
  readonly pace: Pace
  readonly microsPerLog: number
  readonly figures: Figures
  readonly audit: AuditResult
  /** The share of their core that the upstream and the listeners used. */
  readonly harnessLoad: number
}

const workOf = (rate: number, pace: Pace): Work => {
  const everyMs = pace === 'bursts' ? FLASHBLOCK_MS : Math.max(EVEN_MS, 1_000 / rate)
  return { burst: (rate * everyMs) / 1_000, everyMs, bursts: MEASURED_MS / everyMs, blockMs: BLOCK_MS }
}

async function measureRate(rate: number, pace: Pace, dir = ROOT): Promise<IngestFigures> {
  const relay = await openRelay(TOKENS, { MAX_BACKLOG }, { dir, isLight: true })
  const load = new ListenerLoad(relay)
  try {
    const selections = [{ path: '/v1/ws?symbols=*&snapshot=false' }]
    await load.join({ kind: 'ws', listeners: LISTENERS, selections, every: 1, atOnce: LISTENERS, isAudited: true })
    await load.deliver(WARM_UP)
    await load.sealAll()
    const [cpuBefore, trafficBefore] = [relay.server.cpuSeconds(), relay.traffic.cpuSeconds()]
    const figures = await load.deliver(workOf(rate, pace))
    const audit = await load.sealAll()
    if (!audit) throw new Error('no listener followed the seals')
    const logs = (rate * MEASURED_MS) / 1_000
    const trafficSeconds = relay.traffic.cpuSeconds() - trafficBefore
    return {
      ...{ rate, pace, figures, audit },
      microsPerLog: ((relay.server.cpuSeconds() - cpuBefore) * 1e6) / logs,
      harnessLoad: figures.listenersLoad + (trafficSeconds * 1_000) / Math.max(MEASURED_MS, figures.seconds * 1_000),
    }
  } finally {
    await load.end()
    await relay.end()
  }
}

const lostOf = ({ figures, audit }: IngestFigures): number => figures.missing + audit.unpublished + audit.unsealed + figures.lost
const wrongOf = ({ figures, audit }: IngestFigures): number =>
  figures.wrong + audit.repeated + audit.sealedTwice + audit.corrections

/** Whether everything was published once and sealed once, in time. */
const isIngested = (measured: IngestFigures): boolean =>
  lostOf(measured) === 0 && wrongOf(measured) === 0 && !isBehind(measured.figures) && measured.figures.p99Ms < P99_BOUND_MS

/** The cost of a log at each rate, to the relay of a source folder. */
export async function measureIngestRates(dir: string, report: (figures: IngestFigures) => void): Promise<void> {
  for (const rate of RATES) report(await measureRate(rate, 'bursts', dir))
}

/** The greatest rate that is ingested: first away from `start` in growing steps, then by halves. 0 where none is. */
export async function findGreatestRate(pace: Pace, start: number, report: (figures: IngestFigures) => void): Promise<number> {
  const succeeds = async (rate: number): Promise<boolean> => {
    const measured = await measureRate(rate, pace)
    report(measured)
    return isIngested(measured)
  }
  let [low, high] = [0, RATE_BOUND]
  let step = RATE_STEP
  let rate = start > 0 ? start : FIRST_RATE
  while (high - low > RATE_STEP) {
    const isReached = await succeeds(rate)
    if (isReached) low = rate
    else high = rate
    const isBracketed = low > 0 && high < RATE_BOUND
    const middle = Math.round((low + high) / 2 / RATE_STEP) * RATE_STEP
    rate = isBracketed ? middle : Math.min(high - RATE_STEP, Math.max(low + RATE_STEP, isReached ? rate + step : rate - step))
    step *= 2
  }
  return low
}

export const ingestHead = (): string =>
  `${'logs pushed'.padEnd(24)}${['µs per log', 'p50 ms', 'p99 ms', 'max ms', 'lost', 'wrong', 'others %'].map((name) => name.padStart(13)).join('')}`

export function ingestRow(rounds: readonly IngestFigures[]): string {
  const of = (figure: (measured: IngestFigures) => number, digits: number) =>
    formatNumber(median(rounds.map(figure)), digits).padStart(13)
  const [first] = rounds
  const name = `${formatNumber(first?.rate ?? 0, 0)}/s, ${first?.pace}${rounds.some(({ figures }) => isBehind(figures)) ? ' *' : ''}`
  return [
    name.padEnd(24),
    of(({ microsPerLog }) => microsPerLog, 1),
    of(({ figures }) => figures.p50Ms, 1),
    of(({ figures }) => figures.p99Ms, 1),
    of(({ figures }) => figures.maxMs, 1),
    of(lostOf, 0),
    of(wrongOf, 0),
    of(({ harnessLoad }) => harnessLoad * 100, 0),
  ].join('')
}

/** The medians of all rounds. Returns them with what is asked. */
export function reportIngest(
  measured: readonly IngestFigures[],
  greatest: ReadonlyMap<Pace, readonly number[]>,
): readonly Comparison[] {
  print()
  print(`pushed logs, one in each message, ${TOKENS} tokens, blocks of ${BLOCK_MS} ms, ${LISTENERS} WebSocket listeners; medians`)
  print(ingestHead())
  const roundsOf = (rate: number) => measured.filter((round) => round.rate === rate)
  for (const rate of RATES) print(ingestRow(roundsOf(rate)))
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

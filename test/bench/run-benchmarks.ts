import { spawnSync } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { EXIT_OK, EXIT_USAGE, runToExitCode } from '../../src/lib/exit-codes.ts'
import { canPin } from '../support/cpu-cores.ts'
import type { AddedLatency } from './added-latency.ts'
import { type Comparison, compareCommits, compareRatios, printComparisons } from './asked-values.ts'
import { type BenchRequest, type Part, readBenchFlags } from './bench-flags.ts'
import {
  type BenchmarkSettings,
  benchmarkCapacity,
  benchmarkDeflate,
  benchmarkFanOut,
  benchmarkGrowth,
  benchmarkJoining,
  benchmarkMemory,
  benchmarkMixed,
  benchmarkWorkers,
  type CapacityFigures,
  growthListeners,
  type JoiningFigures,
  type MemoryFigures,
  type ReportFigures,
} from './benchmarks.ts'
import { checkOutCommit } from './compared-commit.ts'
import { benchmarkHistory } from './history-benchmark.ts'
import {
  findGreatestRate,
  type IngestFigures,
  ingestHead,
  ingestRow,
  measureIngestRates,
  type Pace,
  reportIngest,
} from './ingest-benchmark.ts'
import type { Figures } from './listener-load.ts'
import { buildMinimalFanOut, removeMinimalFanOut, type ServerName, takeSample } from './measured-servers.ts'
import { compareNats, measureNats, type NatsFigures, natsHead, natsRow } from './nats-benchmark.ts'
import { filesBound, RESERVED_FILES, ROOT } from './pinned-processes.ts'
import { measureQuoteCost } from './quote-cost.ts'
import { formatNumber, head, median, print, row } from './result-table.ts'
import { measureReads, type ReadFigures, reportReads } from './rpc-reads-benchmark.ts'

let request: BenchRequest | null = null
const exitCode = await runToExitCode('bench', async () => {
  request = readBenchFlags(process.argv.slice(2))
  return EXIT_OK
})
if (!request) process.exit(exitCode)
const { selected, against, rounds, listeners, updates } = request as BenchRequest
const isSelected = (...wanted: readonly Part[]) => wanted.some((part) => selected.has(part))

/** The measurements of each server, round by round. */
const figuresByName = new Map<string, Figures[]>()
const joiningRounds: JoiningFigures[] = []
const memoryRounds: MemoryFigures[] = []
const latencyRounds: AddedLatency[] = []
const readRounds: (readonly ReadFigures[])[] = []
const ingestRounds: IngestFigures[] = []
const natsRounds: NatsFigures[] = []
const greatestRates = new Map<Pace, number[]>()
let capacity: CapacityFigures | null = null

const addFigures = (name: string, figures: Figures): void => {
  figuresByName.set(name, [...(figuresByName.get(name) ?? []), figures])
  print(row(name, [figures]))
}

print(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}`)
print(
  canPin
    ? 'The server has one core, its upstream and its listeners the other.'
    : 'Processes are not pinned to cores: taskset or a second core is missing.',
)

print(`Load of the machine before: ${formatNumber(loadavg()[0] ?? 0, 1)}. Other programs that run now affect the results.`)
if (listeners + RESERVED_FILES > filesBound()) {
  print(`Only ${filesBound()} files may be open: raise the limit (ulimit -n), or use fewer --listeners.`)
  process.exit(EXIT_USAGE)
}

const other = against === null ? null : checkOutCommit(against)
if (against !== null && !other) {
  print(`--against ${against}: this repository has no such commit.`)
  process.exit(EXIT_USAGE)
}
/** The measured relays: the folder of each, and what distinguishes the names of its figures. */
const relays = [{ dir: ROOT, suffix: '' }, ...(other ? [{ dir: other.dir, suffix: ` at ${other.name}` }] : [])]
type MeasuredRelay = (typeof relays)[number]

const hasFloor = await buildMinimalFanOut()
if (!hasFloor) print('There is no C compiler (cc), so the minimal server in C is not measured.')
const peers = new Set<ServerName>(['relay', 'naive ws', 'hono streamSSE', ...(hasFloor ? (['C floor'] as const) : [])])
const began = performance.now()
try {
  const needsSample = isSelected('ws', 'sse', 'lone', 'growth', 'deflate', 'mixed', 'join', 'memory', 'workers')
  const sample = needsSample ? await takeSample(20, 10) : null
  for (let round = 1; round <= rounds; round += 1) await measureRound(round, sample && { listeners, peers, sample, dir: ROOT })
  if (isSelected('held')) capacity = await benchmarkCapacity()
} finally {
  await removeMinimalFanOut()
}
printComparisons(report())
if (readRounds.length > 0) reportReads(readRounds)
if (isSelected('quotes')) await measureQuoteCost()
if (isSelected('history')) {
  print()
  await benchmarkHistory(updates)
}
print()
print(`${formatNumber((performance.now() - began) / 60_000, 1)} minutes`)
process.exit()

async function measureRound(round: number, settings: BenchmarkSettings | null): Promise<void> {
  print()
  print(`round ${round} of ${rounds}`)
  // The relay that was measured first in one round comes last in the next, so that neither always follows the peers.
  const inOrder = round % 2 === 1 ? relays : relays.toReversed()
  if (isSelected('ingest')) await measureIngest(inOrder)
  if (settings) await measureListeners(settings, inOrder)
  if (isSelected('latency')) latencyRounds.push(measureLatency())
  if (isSelected('nats')) await measureOverNats()
  if (isSelected('rpc')) readRounds.push(await measureReads())
}

async function measureListeners(settings: BenchmarkSettings, inOrder: readonly MeasuredRelay[]): Promise<void> {
  print(head())
  const measure = async (part: (settings: BenchmarkSettings, report: ReportFigures) => Promise<void>) => {
    for (const { dir, suffix } of inOrder) {
      // Peers are measured once in a round, beside this commit.
      const measured = dir === ROOT ? peers : new Set<ServerName>(['relay'])
      await part({ ...settings, dir, peers: measured }, (name, figures) => addFigures(name + suffix, figures))
    }
  }
  const kinds = { bursts: isSelected('ws'), lone: isSelected('lone') }
  if (kinds.bursts || kinds.lone) await measure((at, report) => benchmarkFanOut('ws', kinds, at, report))
  if (isSelected('sse')) await measure((at, report) => benchmarkFanOut('sse', { bursts: true, lone: false }, at, report))
  if (isSelected('growth')) await measure(benchmarkGrowth)
  if (isSelected('deflate')) await measure(benchmarkDeflate)
  if (isSelected('workers')) await measure(benchmarkWorkers)
  if (isSelected('mixed')) await measure(benchmarkMixed)
  if (isSelected('join')) joiningRounds.push(await benchmarkJoining(settings))
  if (isSelected('memory')) await benchmarkMemory(settings, (figures) => memoryRounds.push(figures))
}

async function measureIngest(inOrder: readonly MeasuredRelay[]): Promise<void> {
  print(ingestHead())
  const printRow = (figures: IngestFigures) => print(ingestRow([figures]))
  for (const { dir, suffix } of inOrder)
    await measureIngestRates(dir, (measured) => {
      printRow(measured)
      if (dir === ROOT) ingestRounds.push(measured)
      if (other) addFigures(`${measured.rate} logs/s${suffix}`, measured.figures)
    })
  if (other) return
  for (const pace of ['bursts', 'evenly'] as const) {
    const found = greatestRates.get(pace) ?? []
    // The search begins where the last one ended.
    greatestRates.set(pace, [...found, await findGreatestRate(pace, found.at(-1) ?? 0, printRow)])
  }
}

async function measureOverNats(): Promise<void> {
  print(natsHead())
  await measureNats((figures) => {
    natsRounds.push(figures)
    print(natsRow(figures))
  })
}

function measureLatency(): AddedLatency {
  const script = fileURLToPath(new URL('added-latency.ts', import.meta.url))
  const { stdout } = spawnSync(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' })
  return JSON.parse(stdout)
}

/** Prints the medians of all rounds. Returns what to compare with the asked values. */
function report(): readonly Comparison[] {
  if (figuresByName.size > 0) {
    print()
    print(`Medians of ${rounds} rounds, ${formatNumber(listeners, 0)} listeners where the name has no number`)
    print(head())
    for (const [name, figures] of figuresByName) print(row(name, figures))
    print('writes: calls that write to sockets and files, per delivered message')
    print('clients: the share of its core that the listeners’ own process used')
    print('wrong: repeated, out of order or not selected; lost: listeners whose connection ended')
    print('*: was behind; waiting messages are sent together, so they cost less than the same work in time')
  }
  const ingest = ingestRounds.length > 0 ? reportIngest(ingestRounds, greatestRates) : []
  reportJoiningAndCapacity()
  return [
    ...ingest,
    ...compareRatios(figuresByName, growthListeners()),
    ...(other ? compareCommits(figuresByName, ` at ${other.name}`) : []),
    ...compareMemory(),
    ...compareLatency(),
    ...compareNats(natsRounds),
  ]
}

function reportJoiningAndCapacity(): void {
  if (joiningRounds.length > 0) {
    const all = (figure: keyof JoiningFigures) => median(joiningRounds.map((round) => round[figure]))
    print()
    print(
      `${formatNumber(listeners, 0)} join at once: all live in ${formatNumber(all('seconds'), 2)} s, ${formatNumber((all('cpuSeconds') * 1e6) / listeners, 0)} µs of processor time each;`,
    )
    print(
      `  meanwhile a transfer every 100 ms reached 100 others after ${formatNumber(all('worstMs'), 1)} ms at worst, ${all('missing')} missing`,
    )
  }
  if (capacity) {
    const { live, filesBound, bytesPerListener, figures, seconds } = capacity
    print()
    print(
      `held ${formatNumber(live, 0)} WebSocket listeners (of ${formatNumber(filesBound, 0)} files), in ${formatNumber(seconds, 1)} s, ${formatNumber(bytesPerListener / 1_024, 1)} KiB each;`,
    )
    print(`  a transfer reached all of them within ${formatNumber(figures.maxMs, 0)} ms, ${figures.missing} missing`)
  }
}

function compareMemory(): readonly Comparison[] {
  const servers = [...new Set(memoryRounds.map(({ server }) => server))]
  return servers.map((server) => {
    const all = memoryRounds.filter((round) => round.server === server)
    const base = formatNumber(median(all.map(({ baseBytes }) => baseBytes)) / 2 ** 20, 0)
    return {
      what: `idle listener, ${server}, KiB`,
      measured: median(all.map(({ bytesPerListener }) => bytesPerListener)) / 1_024,
      ...{ digits: 1, asked: server.endsWith('relay') ? { atMost: 5 } : null, note: `plus ${base} MiB without listeners` },
    }
  })
}

function compareLatency(): readonly Comparison[] {
  if (latencyRounds.length === 0) return []
  const of = (what: string, figure: (round: AddedLatency) => number, asked: Comparison['asked'] = null): Comparison => ({
    ...{ what, measured: median(latencyRounds.map(figure)), digits: 3, asked },
  })
  return [
    of('lone transfer, socket to socket, p50 ms', ({ added }) => added.p50Ms, { atMost: 1.5 }),
    of('the same, p99 ms', ({ added }) => added.p99Ms),
    of('the same, to the last of 100 listeners, p50 ms', ({ addedToLast }) => addedToLast.p50Ms),
    of('the same, to the last of 100 listeners, p99 ms', ({ addedToLast }) => addedToLast.p99Ms),
    of('flashblock made to message received, p50 ms', ({ endToEnd }) => endToEnd.p50Ms),
    of('flashblock made to message received, p99 ms', ({ endToEnd }) => endToEnd.p99Ms),
  ]
}

import { spawnSync } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { EXIT_OK, EXIT_USAGE, runToExitCode } from '../../src/lib/exit-codes.ts'
import { canPin } from '../support/cpu-cores.ts'
import type { AddedLatency } from './added-latency.ts'
import { type Comparison, compareCommits, compareRatios, printComparisons } from './asked-values.ts'
import { type BenchRequest, type Part, readBenchFlags } from './bench-flags.ts'
import { checkOutCommit } from './compared-commit.ts'
import { benchmarkHistory } from './history-benchmark.ts'
import {
  type CapacityFigures,
  growthListeners,
  type JoiningFigures,
  type MemoryFigures,
  measureCapacity,
  measureJoining,
  measureMemory,
  measureScenario,
  memoryServers,
  scenariosWith,
} from './listener-benchmarks.ts'
import { type Figures, figuresTable, nameOf } from './listener-load.ts'
import { buildMinimalFanOut, removeMinimalFanOut, type ServerName, takeSample } from './measured-servers.ts'
import { filesBound, RESERVED_FILES, ROOT } from './pinned-processes.ts'
import { measureQuoteCost } from './quote-cost.ts'
import {
  compareNats,
  findGreatestRate,
  type IngestFigures,
  measureIngestRates,
  measureNats,
  type NatsFigures,
  type Pace,
  reportIngest,
} from './rate-benchmarks.ts'
import { formatNumber, median, print } from './result-table.ts'
import { measureReads, type ReadFigures, reportReads } from './rpc-reads-benchmark.ts'
import type { Sample } from './sample-messages.ts'

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
  figuresTable.printRow(nameOf(name, [figures]), [figures])
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

const hasFloor = await buildMinimalFanOut()
if (!hasFloor) print('There is no C compiler (cc), so the minimal server in C is not measured.')
const isHere = (server: ServerName) => server !== 'C floor' || hasFloor
const began = performance.now()
try {
  const needsSample = isSelected('ws', 'sse', 'lone', 'growth', 'deflate', 'mixed', 'memory', 'workers')
  const sample = needsSample ? await takeSample(20, 10) : null
  for (let round = 1; round <= rounds; round += 1) await measureRound(round, sample)
  if (isSelected('held')) capacity = await measureCapacity()
} finally {
  await removeMinimalFanOut()
}
report()
if (isSelected('quotes')) await measureQuoteCost()
if (isSelected('history')) {
  print()
  await benchmarkHistory(updates)
}
print()
print(`${formatNumber((performance.now() - began) / 60_000, 1)} minutes`)
process.exit()

async function measureRound(round: number, sample: Sample | null): Promise<void> {
  print()
  print(`round ${round} of ${rounds}`)
  // The relay that was measured first in one round comes last in the next, so that neither always follows the peers.
  const inOrder = round % 2 === 1 ? relays : relays.toReversed()
  if (isSelected('ingest')) await measureIngest(inOrder)
  if (sample) await measureListeners(inOrder, sample)
  if (isSelected('join')) joiningRounds.push(await measureJoining(listeners))
  if (isSelected('latency')) latencyRounds.push(measureLatency())
  if (isSelected('nats')) natsRounds.push(...(await measureNats()))
  if (isSelected('rpc')) readRounds.push(await measureReads())
}

async function measureListeners(inOrder: typeof relays, sample: Sample): Promise<void> {
  figuresTable.printHead()
  for (const scenario of scenariosWith(listeners)) {
    const works = scenario.works.filter(({ part }) => isSelected(part))
    if (works.length === 0 || !isHere(scenario.server)) continue
    // Peers are measured once in a round.
    for (const { dir, suffix } of scenario.server === 'relay' ? inOrder : relays.slice(0, 1))
      await measureScenario({ ...scenario, works }, { sample, dir }, (name, figures) => addFigures(name + suffix, figures))
  }
  if (!isSelected('memory')) return
  for (const [kind, server] of memoryServers) memoryRounds.push(await measureMemory(kind, server, sample, listeners))
}

async function measureIngest(inOrder: typeof relays): Promise<void> {
  for (const { dir, suffix } of inOrder) {
    const measured = await measureIngestRates(dir)
    if (dir === ROOT) ingestRounds.push(...measured)
    if (other) for (const { rate, figures } of measured) addFigures(`${rate} logs/s${suffix}`, figures)
  }
  if (other) return
  for (const pace of ['bursts', 'evenly'] as const) {
    const found = greatestRates.get(pace) ?? []
    // The search begins where the last one ended.
    greatestRates.set(pace, [...found, await findGreatestRate(pace, found.at(-1) ?? 0)])
  }
}

function measureLatency(): AddedLatency {
  const script = fileURLToPath(new URL('added-latency.ts', import.meta.url))
  const { stdout } = spawnSync(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' })
  return JSON.parse(stdout)
}

/** Prints the medians of all rounds, and what is asked. */
function report(): void {
  if (figuresByName.size > 0) {
    print()
    print(`Medians of ${rounds} rounds, ${formatNumber(listeners, 0)} listeners where the name has no number`)
    figuresTable.printHead()
    for (const [name, figures] of figuresByName) figuresTable.printRow(nameOf(name, figures), figures)
    print('writes: calls that write to sockets and files, per delivered message')
    print('clients: the share of its core that the listeners’ own process used')
    print('wrong: repeated, out of order or not selected; lost: listeners whose connection ended')
    print('*: was behind; waiting messages are sent together, so they cost less than the same work in time')
  }
  const ingest = reportIngest(ingestRounds, greatestRates)
  reportJoiningAndCapacity()
  printComparisons([
    ...ingest,
    ...compareRatios(figuresByName, growthListeners()),
    ...(other ? compareCommits(figuresByName, ` at ${other.name}`) : []),
    ...compareMemory(),
    ...compareLatency(),
    ...compareNats(natsRounds),
  ])
  if (readRounds.length > 0) reportReads(readRounds)
}

function reportJoiningAndCapacity(): void {
  if (joiningRounds.length > 0) {
    const all = (figure: 'seconds' | 'cpuSeconds' | 'maxMs' | 'missing') => median(joiningRounds.map((round) => round[figure]))
    const each = `${formatNumber((all('cpuSeconds') * 1e6) / listeners, 0)} µs of processor time each`
    const worst = formatNumber(all('maxMs'), 1)
    print()
    print(`${formatNumber(listeners, 0)} join at once: all live in ${formatNumber(all('seconds'), 2)} s, ${each};`)
    print(`  meanwhile a transfer every 100 ms reached 100 others after ${worst} ms at worst, ${all('missing')} missing`)
  }
  if (capacity) {
    const { live, filesBound, bytesPerListener, figures, seconds } = capacity
    const held = `held ${formatNumber(live, 0)} WebSocket listeners (of ${formatNumber(filesBound, 0)} files)`
    print()
    print(`${held}, in ${formatNumber(seconds, 1)} s, ${formatNumber(bytesPerListener / 1_024, 1)} KiB each;`)
    print(`  a transfer reached all of them within ${formatNumber(figures.maxMs, 0)} ms, ${figures.missing} missing`)
  }
}

function compareMemory(): readonly Comparison[] {
  return [...Map.groupBy(memoryRounds, ({ server }) => server)].map(([server, all]) => {
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
  const asked: readonly (readonly [string, keyof AddedLatency, 'p50Ms' | 'p99Ms'])[] = [
    ['lone transfer, socket to socket, p50 ms', 'added', 'p50Ms'],
    ['the same, p99 ms', 'added', 'p99Ms'],
    ['the same, to the last of 100 listeners, p50 ms', 'addedToLast', 'p50Ms'],
    ['the same, to the last of 100 listeners, p99 ms', 'addedToLast', 'p99Ms'],
    ['flashblock made to message received, p50 ms', 'endToEnd', 'p50Ms'],
    ['flashblock made to message received, p99 ms', 'endToEnd', 'p99Ms'],
  ]
  return asked.map(([what, part, figure], nth) => ({
    ...{ what, measured: median(latencyRounds.map((round) => round[part][figure])), digits: 3 },
    asked: nth === 0 ? { atMost: 1.5 } : null,
  }))
}

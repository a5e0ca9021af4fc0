import { spawnSync } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import {
  type BenchmarkSettings,
  benchmarkCapacity,
  benchmarkFanOut,
  benchmarkJoining,
  benchmarkMemory,
  benchmarkMixed,
  type CapacityFigures,
  type JoiningFigures,
  type MemoryFigures,
} from './benchmarks.ts'
import { benchmarkHistory } from './history-benchmark.ts'
import type { Figures } from './listener-load.ts'
import { buildMinimalFanOut, removeMinimalFanOut, type ServerName, takeSample } from './measured-servers.ts'
import { canPin, filesBound, RESERVED_FILES } from './pinned-processes.ts'
import { formatNumber, head, median, print, ratioOf, row } from './result-table.ts'
import { measureReads, type ReadFigures, reportReads } from './rpc-reads-benchmark.ts'

const HELP = `npm run bench [-- <part>…] [--rounds <n>] [--listeners <n>]

  ws        bursts of 20 transfers to WebSocket listeners: the relay, a naive ws server, a minimal server in C (the floor)
  sse       the same over SSE: the relay, Hono's streamSSE, the floor
  lone      one transfer at a time to WebSocket listeners
  mixed     listeners with five random tokens of fifty each, and listeners that all have the same five
  join      all listeners join at once while 100 others keep receiving
  memory    memory per idle listener
  held      as many listeners as the machine's file limit allows
  rpc       JSON-RPC reads from the cache, compared with a bare Hono route that returns a constant
  history   latency of each kind of history query on a full tape, and its effect on live listeners
  latency   latency that the relay adds between the upstream's socket and a listener's

  --rounds     rounds of the first five parts; the medians are printed (3)
  --listeners  number of listeners (10000)
  --updates    number of updates on the full tape (1000000)
`

const parts = ['ws', 'sse', 'lone', 'mixed', 'join', 'memory', 'held', 'rpc', 'history', 'latency'] as const
type Part = (typeof parts)[number]
const isPart = (text: string): text is Part => parts.some((part) => part === text)

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '3' },
    listeners: { type: 'string', default: '10000' },
    updates: { type: 'string', default: '1000000' },
    help: { type: 'boolean', default: false },
  },
})
const [rounds, listeners, updates] = [Number(values.rounds), Number(values.listeners), Number(values.updates)]
const unknown = positionals.filter((text) => !isPart(text))
if (values.help || unknown.length > 0 || !(rounds >= 1) || !(listeners >= 1) || !(updates >= 1)) {
  process.stdout.write(HELP)
  process.exit(values.help ? 0 : 2)
}
const selected = new Set<Part>(positionals.length > 0 ? positionals.filter(isPart) : parts)
const isSelected = (...wanted: readonly Part[]) => wanted.some((part) => selected.has(part))

/** The measurements of each server, round by round. */
const figuresByName = new Map<string, Figures[]>()
const joiningRounds: JoiningFigures[] = []
const memoryRounds: MemoryFigures[] = []
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
  process.exit(2)
}

const hasFloor = await buildMinimalFanOut()
if (!hasFloor) print('There is no C compiler (cc), so the minimal server in C is not measured.')
const peers = new Set<ServerName>(['relay', 'naive ws', 'hono streamSSE', ...(hasFloor ? (['C floor'] as const) : [])])
const began = performance.now()
try {
  if (isSelected('ws', 'sse', 'lone', 'mixed', 'join', 'memory'))
    await measure({ listeners, peers, sample: await takeSample(20, 10) })
  if (isSelected('held')) capacity = await benchmarkCapacity()
} finally {
  await removeMinimalFanOut()
}
report()
if (isSelected('rpc')) {
  const measured: (readonly ReadFigures[])[] = []
  for (let round = 1; round <= rounds; round += 1) measured.push(await measureReads())
  reportReads(measured)
}
if (isSelected('history')) {
  print()
  await benchmarkHistory(updates)
}
if (isSelected('latency')) {
  print()
  spawnSync(process.execPath, [fileURLToPath(new URL('added-latency.ts', import.meta.url))], { stdio: 'inherit' })
}
print()
print(`${formatNumber((performance.now() - began) / 60_000, 1)} minutes`)
process.exit()

async function measure(setting: BenchmarkSettings): Promise<void> {
  print()
  print(head())
  for (let round = 1; round <= rounds; round += 1) {
    if (isSelected('ws', 'lone'))
      await benchmarkFanOut('ws', { bursts: isSelected('ws'), lone: isSelected('lone') }, setting, addFigures)
    if (isSelected('sse')) await benchmarkFanOut('sse', { bursts: true, lone: false }, setting, addFigures)
    if (isSelected('mixed')) await benchmarkMixed(setting, addFigures)
    if (isSelected('join')) joiningRounds.push(await benchmarkJoining(setting))
  }
  if (isSelected('memory')) await benchmarkMemory(setting, (figures) => memoryRounds.push(figures))
}

function report(): void {
  if (figuresByName.size > 0) {
    print()
    print(`Medians of ${rounds} rounds, ${formatNumber(listeners, 0)} listeners`)
    print(head())
    for (const [name, figures] of figuresByName) print(row(name, figures))
    print('clients: the share of its core that the listeners’ own process used')
    print('wrong: repeated, out of order or not selected; lost: listeners whose connection ended')
    print('*: was behind; waiting messages are sent together, so they cost less than the same work in time')
    print()
    reportRatios()
  }
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
  for (const { server, bytesPerListener, baseBytes } of memoryRounds)
    print(
      `idle ${server.padEnd(22)} ${formatNumber(bytesPerListener / 1_024, 1).padStart(6)} KiB per listener (${formatNumber(listeners, 0)} of them), plus ${formatNumber(baseBytes / 2 ** 20, 0)} MiB without listeners`,
    )
  if (capacity) {
    const { live, filesBound, bytesPerListener, figures, seconds } = capacity
    print()
    print(
      `held ${formatNumber(live, 0)} WebSocket listeners (of ${formatNumber(filesBound, 0)} files), in ${formatNumber(seconds, 1)} s, ${formatNumber(bytesPerListener / 1_024, 1)} KiB each;`,
    )
    print(`  a transfer reached all of them within ${formatNumber(figures.maxMs, 0)} ms, ${figures.missing} missing`)
  }
}

function reportRatios(): void {
  const ratios: readonly (readonly [what: string, figure: keyof Figures, first: string, second: string])[] = [
    ['CPU per WebSocket delivery, relay : floor', 'cpuSecondsPerMillion', 'ws, relay', 'ws, C floor'],
    ['CPU per SSE delivery, relay : floor', 'cpuSecondsPerMillion', 'sse, relay', 'sse, C floor'],
    ['CPU per lone delivery, relay : floor', 'cpuSecondsPerMillion', 'lone ws, relay', 'lone ws, C floor'],
    ['CPU per delivery, SSE : WebSocket', 'cpuSecondsPerMillion', 'sse, relay', 'ws, relay'],
    ['deliveries per CPU-second, relay : naive ws', 'deliveriesPerCpuSecond', 'ws, relay', 'ws, naive ws'],
    ['the same, lone transfers', 'deliveriesPerCpuSecond', 'lone ws, relay', 'lone ws, naive ws'],
    ['the same, own sets : naive ws', 'deliveriesPerCpuSecond', 'mixed, own set', 'ws, naive ws'],
    ['deliveries per CPU-second, relay : streamSSE', 'deliveriesPerCpuSecond', 'sse, relay', 'sse, hono streamSSE'],
    ['deliveries per CPU-second, own sets : same set', 'deliveriesPerCpuSecond', 'mixed, own set', 'mixed, same set'],
  ]
  print('medians of the ratios within each round (least to most), from the rounds in which relay and floor kept up')
  // A ratio to a slow peer is still meaningful.
  const mustKeepUp = (name: string) => /relay|floor|mixed/.test(name)
  for (const [what, figure, first, second] of ratios) {
    const pair = [figuresByName.get(first) ?? [], figuresByName.get(second) ?? []] as const
    const ratio = ratioOf(figure, pair, [mustKeepUp(first), mustKeepUp(second)])
    if (ratio !== null) print(`  ${what.padEnd(48)} ${ratio}`)
  }
}

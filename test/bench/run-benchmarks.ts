import { spawnSync } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import {
  fanOut,
  type Held,
  held,
  type Joining,
  joining,
  type Memory,
  memory,
  mixed,
  type Setting,
} from './benchmarks.ts'
import { history } from './history-benchmark.ts'
import type { Figures } from './listener-load.ts'
import { buildFloor, dropFloor, type Name, takeSample } from './measured-servers.ts'
import { canPin, FILES_SPARED, filesBound } from './pinned-processes.ts'
import { head, median, print, ratioOf, row, shown } from './result-table.ts'
import { type Reads, reads, reportReads } from './rpc-reads-benchmark.ts'

const HELP = `npm run bench [-- <part>…] [--rounds <n>] [--listeners <n>]

  ws        bursts of 20 transfers to WebSocket listeners: the relay, a naive ws server, the floor in C
  sse       the same over SSE: the relay, Hono's streamSSE, the floor
  lone      one transfer at a time to WebSocket listeners
  mixed     listeners with their own five of fifty tokens, and listeners who all have the same five
  join      everybody comes in at once, and those who are there go on hearing
  memory    what an idle listener costs
  held      as many listeners as the machine's files allow
  rpc       JSON-RPC reads from memory, beside a bare Hono route that answers a constant
  history   how soon each kind of question about a full tape is answered, and what that does to who listens live
  latency   what the relay adds between the upstream's socket and a listener's

  --rounds     how often the first five are measured, in turn; the medians are printed (3)
  --listeners  (10000)
  --updates    what a full tape holds (1000000)
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
const picked = new Set<Part>(positionals.length > 0 ? positionals.filter(isPart) : parts)
const picks = (...some: readonly Part[]) => some.some((part) => picked.has(part))

/** What was measured of each, round by round. */
const told = new Map<string, Figures[]>()
const joinings: Joining[] = []
const memories: Memory[] = []
let holding: Held | null = null

const tell = (who: string, figures: Figures): void => {
  told.set(who, [...(told.get(who) ?? []), figures])
  print(row(who, [figures]))
}

print(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}`)
print(
  canPin
    ? 'The server has one core, its upstream and its listeners the other.'
    : 'Nothing is pinned: taskset or a second core is missing.',
)

print(`Load of the machine before: ${shown(loadavg()[0] ?? 0, 1)}. Whatever else runs now is in the figures.`)
if (listeners + FILES_SPARED > filesBound()) {
  print(`Only ${filesBound()} files may be open: raise it (ulimit -n), or have fewer --listeners.`)
  process.exit(2)
}

const hasFloor = await buildFloor()
if (!hasFloor) print('There is no C compiler (cc), so the floor is not measured.')
const peers = new Set<Name>(['relay', 'naive ws', 'hono streamSSE', ...(hasFloor ? (['C floor'] as const) : [])])
const began = performance.now()
try {
  if (picks('ws', 'sse', 'lone', 'mixed', 'join', 'memory'))
    await measure({ listeners, peers, sample: await takeSample(20, 10) })
  if (picks('held')) holding = await held()
} finally {
  await dropFloor()
}
report()
if (picks('rpc')) {
  const measured: (readonly Reads[])[] = []
  for (let round = 1; round <= rounds; round += 1) measured.push(await reads())
  reportReads(measured)
}
if (picks('history')) {
  print()
  await history(updates)
}
if (picks('latency')) {
  print()
  spawnSync(process.execPath, [fileURLToPath(new URL('added-latency.ts', import.meta.url))], { stdio: 'inherit' })
}
print()
print(`${shown((performance.now() - began) / 60_000, 1)} minutes`)
process.exit()

async function measure(setting: Setting): Promise<void> {
  print()
  print(head())
  for (let round = 1; round <= rounds; round += 1) {
    if (picks('ws', 'lone')) await fanOut('ws', { bursts: picks('ws'), lone: picks('lone') }, setting, tell)
    if (picks('sse')) await fanOut('sse', { bursts: true, lone: false }, setting, tell)
    if (picks('mixed')) await mixed(setting, tell)
    if (picks('join')) joinings.push(await joining(setting))
  }
  if (picks('memory')) await memory(setting, (one) => memories.push(one))
}

function report(): void {
  if (told.size > 0) {
    print()
    print(`Medians of ${rounds} rounds, ${shown(listeners, 0)} listeners`)
    print(head())
    for (const [who, figures] of told) print(row(who, figures))
    print('ears: the share of its core that the listeners’ own process used')
    print('wrong: twice, out of order or not asked for; lost: listeners whose connection ended')
    print('*: was behind; what waits goes out together, so it costs less than the same work in time')
    print()
    reportRatios()
  }
  if (joinings.length > 0) {
    const all = (figure: keyof Joining) => median(joinings.map((one) => one[figure]))
    print()
    print(
      `${shown(listeners, 0)} join at once: all live in ${shown(all('seconds'), 2)} s, ${shown((all('cpuSeconds') * 1e6) / listeners, 0)} µs of processor time each;`,
    )
    print(
      `  meanwhile a transfer every 100 ms reached 100 others after ${shown(all('worstMs'), 1)} ms at worst, ${all('missing')} missing`,
    )
  }
  for (const { who, bytesPerListener, baseBytes } of memories)
    print(
      `idle ${who.padEnd(22)} ${shown(bytesPerListener / 1_024, 1).padStart(6)} KiB for each of ${shown(listeners, 0)} listeners, beside ${shown(baseBytes / 2 ** 20, 0)} MiB without any`,
    )
  if (holding) {
    const { live, filesBound, bytesPerListener, figures, seconds } = holding
    print()
    print(
      `held ${shown(live, 0)} WebSocket listeners (of ${shown(filesBound, 0)} files), in ${shown(seconds, 1)} s, ${shown(bytesPerListener / 1_024, 1)} KiB each;`,
    )
    print(`  a transfer reached all of them within ${shown(figures.maxMs, 0)} ms, ${figures.missing} missing`)
  }
}

function reportRatios(): void {
  const ratios: readonly (readonly [what: string, figure: keyof Figures, one: string, other: string])[] = [
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
  print('medians of the ratios within each round (least to most), of the rounds in which relay and floor kept up')
  // A peer that cannot keep up is what its ratio is about.
  const mustKeepUp = (who: string) => /relay|floor|mixed/.test(who)
  for (const [what, figure, one, other] of ratios) {
    const pair = [told.get(one) ?? [], told.get(other) ?? []] as const
    const ratio = ratioOf(figure, pair, [mustKeepUp(one), mustKeepUp(other)])
    if (ratio !== null) print(`  ${what.padEnd(48)} ${ratio}`)
  }
}

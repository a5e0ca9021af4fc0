import { readFileSync, writeFileSync } from 'node:fs'
import { defaultSelectionOptions } from '../../src/protocol/parameters/selection.ts'
import { settings } from '../../src/relay/config/settings.ts'
import { Clients } from '../../src/relay/edge/clients/clients.ts'
import { Hub } from '../../src/relay/edge/live/hub.ts'
import { CurrentState } from '../../src/relay/edge/select/current-state.ts'
import type { Outlet } from '../../src/relay/edge/transport/socket-outlet.ts'
import { openMetrics } from '../../src/relay/metrics.ts'
import { Connection } from '../../src/sdk/client/connection.ts'
import type { OpenConnection } from '../../src/sdk/client/connection-openers.ts'
import { ConnectionError, RelayError } from '../../src/sdk/client/errors.ts'
import { SeededRandom } from '../simulation/seeded-random.ts'
import { openLocalTape } from '../support/local-tape.ts'

/**
 * The plan of docs/cluster.md for a million listeners. `node test/bench/million-listeners.ts` writes its tables, from the costs in
 * docs/benchmarks.md. Clients that lose their connection are those of the SDK, in virtual time.
 */

const LISTENERS = 1_000_000
const REGIONS = 3
const BATCHES_PER_SECOND = 5
const MESSAGE_BYTES = 1_000
/** Share of its core that an edge uses, so that the edges of two regions can take the listeners of the third. */
const PLANNED_LOAD = 0.4
/** The SDK notices a lost connection after three of these without a message. */
const HEARTBEAT_S = 5
const MAX_CLIENTS = Number(settings.get('MAX_CLIENTS')?.default)
/** A storm that is not over by then is a mistake in the plan. */
const STORM_LIMIT_MS = 600_000

const pageUrl = new URL('../../docs/cluster.md', import.meta.url)
const benchmarks = readFileSync(new URL('../../docs/benchmarks.md', import.meta.url), 'utf8').replaceAll('**', '')

/** The numbers of the row of docs/benchmarks.md that begins with these cells. */
function measured(...cells: readonly string[]): readonly number[] {
  const row = benchmarks.split('\n').find((line) => line.startsWith(`| ${cells.join(' | ')} |`))
  if (row === undefined) throw new Error(`docs/benchmarks.md has no row of ${cells.join(', ')}`)
  const others = row.split('|').slice(cells.length + 1, -1)
  return others.map((cell) => Number(cell.replaceAll(',', '')))
}

const BURST = 20
const [, burstMessageUs = 0] = measured('WebSocket', 'relay')
const [loneMessageUs = 0] = measured('10,000', '200 ms', 'relay')
const [listenerKib = 0, , relayMib = 0, ...connectUs] = measured('relay')
const CONNECT_US = Math.max(...connectUs)
/** Microseconds to write a batch to one listener, by the number of its messages. */
const markets = [
  { messages: 1, writeUs: loneMessageUs },
  { messages: BURST, writeUs: burstMessageUs * BURST },
] as const
const BUSY_WRITE_US = Math.max(...markets.map(({ writeUs }) => writeUs))

const coresFor = (listeners: number, writeUs: number): number => (listeners * BATCHES_PER_SECOND * writeUs) / 1e6
const EDGES_PER_REGION = Math.ceil(coresFor(LISTENERS, BUSY_WRITE_US) / PLANNED_LOAD / REGIONS)
const EDGES = EDGES_PER_REGION * REGIONS
const LISTENERS_PER_EDGE = Math.ceil(LISTENERS / EDGES)

/** How the connections end: with a `bye`, by a reset, or without a sign, so that heartbeats are missed. */
type Loss = 'bye' | 'reset' | 'silence'
/** `clients` connect to an edge that has `present` listeners, all at once unless their own waits spread them. */
type Storm = { readonly name: string; readonly loss: Loss; readonly clients: number; readonly present: number }

const movedBy = (lost: number): number => Math.ceil((lost * LISTENERS_PER_EDGE) / (EDGES - lost))
const storms: readonly Storm[] = [
  { name: 'an edge is upgraded', loss: 'bye', clients: movedBy(1), present: LISTENERS_PER_EDGE },
  { name: 'an edge is killed', loss: 'reset', clients: movedBy(1), present: LISTENERS_PER_EDGE },
  { name: 'a region is lost', loss: 'silence', clients: movedBy(EDGES_PER_REGION), present: LISTENERS_PER_EDGE },
  { name: 'all load balancers restart', loss: 'reset', clients: LISTENERS_PER_EDGE, present: 0 },
]

class VirtualTime {
  now = 0
  readonly #due = new Map<number, (() => void)[]>()

  readonly after = (ms: number, callback: () => void): (() => void) => {
    const at = Math.ceil(this.now + ms)
    let isCancelled = false
    const run = () => isCancelled || callback()
    this.#due.set(at, [...(this.#due.get(at) ?? []), run])
    return () => {
      isCancelled = true
    }
  }

  runUntil(isOver: () => boolean): void {
    for (; !isOver(); this.now += 1) {
      if (this.now > STORM_LIMIT_MS) throw new Error('the storm does not end')
      for (let callbacks = this.#due.get(this.now); callbacks; callbacks = this.#due.get(this.now)) {
        this.#due.delete(this.now)
        for (const callback of callbacks) callback()
      }
    }
  }
}

/** It opens one connection after the other, in the time that the writes to its listeners leave, up to the relay's limit. */
class BusyEdge {
  readonly attemptedAt: number[] = []
  readonly waitsMs: number[] = []
  readonly liveAt: number[] = []
  readonly #time: VirtualTime
  readonly #present: number
  #connected: number
  #freeAt = 0

  constructor(time: VirtualTime, present: number) {
    this.#time = time
    this.#present = present
    this.#connected = present
  }

  connect(answer: (isAccepted: boolean) => void): void {
    const { now } = this.#time
    const idleShare = 1 - coresFor(this.#present + this.liveAt.length, BUSY_WRITE_US)
    this.#freeAt = Math.max(now, this.#freeAt) + CONNECT_US / 1_000 / idleShare
    this.attemptedAt.push(now)
    this.waitsMs.push(this.#freeAt - now)
    this.#time.after(this.#freeAt - now, () => {
      const isAccepted = this.#connected < MAX_CLIENTS
      if (isAccepted) this.#connected += 1
      answer(isAccepted)
    })
  }
}

/** The messages with which an edge of the plan ends its connections when it is stopped. */
function byesOf(random: () => number): readonly string[] {
  const now = () => 0
  const tape = openLocalTape({ dataDir: ':memory:', tapeRetentionMs: 1, tapeMaxMessages: 1, now, random })
  const ports = { wallTime: now, uptime: now, random, metrics: openMetrics(), log: () => {} }
  const limits = { maxClients: MAX_CLIENTS, maxClientsPerAddress: MAX_CLIENTS, maxBacklogBytes: 1, backlogPatienceMs: 0 }
  const clients = new Clients({ ...ports, ...limits, keys: null, workers: 1, isOneOfMany: true })
  const hub = new Hub({ ...ports, clients, tape, current: new CurrentState(tape.notes), maxSelections: 1, batchDelayBoundMs: 0 })
  const byes: string[] = []
  const outlet: Outlet = {
    ...{ backlog: 0, takenBytes: 0, drained: () => Promise.resolve(), ping: () => false, end: () => {}, cut: () => {} },
    write: (bytes) => void byes.push(String(bytes)),
  }
  const shared = {
    ...({ id: '', transport: 'ndjson', heartbeatMs: null } as const),
    outlet,
    selection: { tokens: null, options: defaultSelectionOptions },
  }
  for (let nth = 0; nth < LISTENERS_PER_EDGE; nth += 1) clients.add(hub.createListener({ ...shared, address: `listener ${nth}` }))
  hub.drain()
  hub.close()
  void tape.close()
  return byes
}

const RELAY = 'http://relay/'

/** Opens a client of the SDK whose first connection is lost at once. */
function openClient(loss: Loss, edge: BusyEdge, time: VirtualTime, { random, bye }: { random: () => number; bye: string }): void {
  const lose: OpenConnection = (_, { onMessage, onEnd }) => {
    onMessage(JSON.stringify({ type: 'hello', heartbeat_s: HEARTBEAT_S }))
    if (loss === 'bye') onMessage(bye)
    const error = loss === 'bye' ? new RelayError(4_200, {}) : new ConnectionError('lost', RELAY, null)
    return loss === 'silence' ? () => {} : time.after(0, () => onEnd(error))
  }
  const reconnect: OpenConnection = (_, { onEnd }) => {
    let isOpen = true
    edge.connect((isAccepted) => {
      if (!isOpen) return
      if (!isAccepted) return onEnd(new RelayError(4_100, { reason: 'full' }))
      edge.liveAt.push(time.now)
      connection.close()
    })
    return () => {
      isOpen = false
    }
  }
  let attempt = 0
  const websocket: OpenConnection = (query, events) => (attempt++ === 0 ? lose : reconnect)(query, events)
  const ignore = () => {}
  const connection = new Connection(
    {
      ...{ transport: 'websocket', open: { websocket, sse: () => ignore } },
      ...{ now: () => time.now, wallTime: () => time.now, random, after: time.after },
      http: {
        isKnown: true,
        probe: async () => null,
        errorOf: (code, cause) => new ConnectionError(code, RELAY, cause),
        retry: undefined,
      },
    },
    { query: () => new URLSearchParams(), onMessage: ignore, onState: ignore, onError: ignore },
  )
  connection.open()
}

/** Simulates a storm until every client is live again. */
function rowOf({ name, loss, clients, present }: Storm): readonly string[] {
  const time = new VirtualTime()
  const edge = new BusyEdge(time, present)
  const generator = new SeededRandom('storm', name)
  const random = () => generator.next()
  const byes = byesOf(random)
  for (let nth = 0; nth < clients; nth += 1) openClient(loss, edge, time, { random, bye: byes[nth] ?? '' })
  time.runUntil(() => edge.liveAt.length === clients)
  const perSecond = Map.groupBy(edge.attemptedAt, (at) => Math.floor(at / 1_000))
  const attempts = Math.max(...[...perSecond.values()].map(({ length }) => length))
  const seconds = (ms = 0) => `${(ms / 1_000).toFixed(1)} s`
  return [
    ...[name, numberText(clients), numberText(attempts), (edge.attemptedAt.length / clients).toFixed(1)],
    ...[`${numberText(Math.max(...edge.waitsMs))} ms`, seconds(edge.liveAt[Math.floor(clients / 2)]), seconds(edge.liveAt.at(-1))],
  ]
}

const numberText = (value: number): string => Math.round(value).toLocaleString('en')
const bitRate = (bytesPerSecond: number): string => {
  const megabits = (bytesPerSecond * 8) / 1e6
  return megabits < 1_000 ? `${megabits.toFixed(0)} Mbit/s` : `${(megabits / 1_000).toFixed(0)} Gbit/s`
}
const percent = (share: number): string => `${Math.round(share * 100)} %`

const tableOf = ([head = [], ...rows]: readonly (readonly string[])[]): string => {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const rule = `|---|${'--:|'.repeat(head.length - 1)}`
  return [line(head), rule, ...rows.map(line)].join('\n')
}

/** The two tables, as the page has them between its marks. */
export function tables(): string {
  const each = (cellOf: (market: (typeof markets)[number]) => string) => markets.map(cellOf)
  const bytesFor = (listeners: number) => each(({ messages }) => bitRate(listeners * BATCHES_PER_SECOND * messages * MESSAGE_BYTES))
  const loadWithout = (regions: number) => {
    const listeners = LISTENERS_PER_EDGE + movedBy(regions * EDGES_PER_REGION)
    return each(({ writeUs }) => percent(coresFor(listeners, writeUs)))
  }
  const plan = tableOf([
    ['', '1 message a batch', `${BURST} messages a batch`],
    ['edges, each with one core', ...each(() => numberText(EDGES))],
    ['listeners of an edge', ...each(() => numberText(LISTENERS_PER_EDGE))],
    ['load of its core', ...loadWithout(0)],
    ['load of its core without one region', ...loadWithout(1)],
    ['load of its core without two regions', ...loadWithout(2)],
    ['memory of an edge', ...each(() => `${numberText(relayMib + (LISTENERS_PER_EDGE * listenerKib) / 1_024)} MiB`)],
    ['from an edge to its listeners', ...bytesFor(LISTENERS_PER_EDGE)],
    ['from all edges to all listeners', ...bytesFor(LISTENERS)],
    ['from NATS to the edges of a region', ...bytesFor(EDGES_PER_REGION)],
  ])
  const heads = [
    'what happens',
    'new clients of an edge',
    'most attempts in a second',
    'attempts of a client',
    'longest wait for the edge',
    'half of them live after',
    'all live after',
  ]
  return `${plan}\n\n${tableOf([heads, ...storms.map(rowOf)])}`
}

const [BEGIN, END] = ['<!-- by test/bench/million-listeners.ts -->', '<!-- end -->']

/** The part of the page that this program writes. */
export const pageParts = (page: string): readonly [before: string, tables: string, after: string] => {
  const [begin, end] = [page.indexOf(BEGIN) + BEGIN.length, page.indexOf(END)]
  return [page.slice(0, begin), page.slice(begin, end).trim(), page.slice(end)]
}

if (import.meta.main) {
  const [before, , after] = pageParts(readFileSync(pageUrl, 'utf8'))
  writeFileSync(pageUrl, `${before}\n\n${tables()}\n\n${after}`)
}

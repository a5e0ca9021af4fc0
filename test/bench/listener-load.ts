import type { DeliveryResult, Joining, ListenersCommand, ListenersReply, StreamKind } from './listeners-process.ts'
import type { MeasuredServer } from './measured-servers.ts'
import { FIRST_NUMBER } from './message-stamp.ts'
import { PinnedWorker } from './pinned-processes.ts'
import type { AuditResult } from './publication-audit.ts'
import { tableOf } from './result-table.ts'

/** One server, its listeners and its work: what it delivered, and what that cost. */

/** Memory is read once it has not grown for this long. */
const SETTLED_MS = 1_000
const SETTLING_BOUND_MS = 10_000
const POLL_MS = 100
/** Smaller growth is ignored. */
const GROWTH_BYTES = 1_024 * 1_024
const CONCURRENT_JOINS = 200

export type Work = { readonly burst: number; readonly everyMs: number; readonly bursts: number; readonly blockMs?: number }

/** How many listeners joined, in what time, and at what cost to the server. */
export type Joined = Extract<ListenersReply, { done: 'join' }> & { readonly cpuSeconds: number }

/** How a server performed on some work. */
export type Figures = Pick<DeliveryResult, 'missing' | 'wrong' | 'lost' | 'p50Ms' | 'p99Ms' | 'maxMs' | 'seconds' | 'load'> & {
  readonly deliveriesPerSecond: number
  /** The share of messages that was delivered within the time of the work. Below 1 the server was behind. */
  readonly pace: number
  readonly deliveriesPerCpuSecond: number
  readonly cpuSecondsPerMillion: number
  readonly bytesPerMessage: number
  readonly writesPerMessage: number
}

/** Below this a server was behind: it sent waiting messages together, so they cost less than the same work in time. */
const KEEPING_UP_PACE = 0.95
export const isBehind = ({ pace }: Figures): boolean => pace < KEEPING_UP_PACE
/** The name of figures; marked where the server was behind. */
export const nameOf = (name: string, rounds: readonly Figures[]): string => `${name}${rounds.some(isBehind) ? ' *' : ''}`

export const figuresTable = tableOf<Figures>('', [
  ['deliveries/s', (figures) => figures.deliveriesPerSecond, 0],
  ['per CPU-s', (figures) => figures.deliveriesPerCpuSecond, 0],
  ['CPU-s/M', (figures) => figures.cpuSecondsPerMillion, 3],
  ['p50 ms', (figures) => figures.p50Ms, 1],
  ['p99 ms', (figures) => figures.p99Ms, 1],
  ['max ms', (figures) => figures.maxMs, 1],
  ['missing', (figures) => figures.missing, 0],
  ['wrong', (figures) => figures.wrong, 0],
  ['lost', (figures) => figures.lost, 0],
  ['bytes', (figures) => figures.bytesPerMessage, 0],
  ['writes', (figures) => figures.writesPerMessage, 3],
  ['clients %', (figures) => figures.load * 100, 0],
])

export const pathOf = (kind: StreamKind, symbols: string): string =>
  `${kind === 'ws' ? '/v1/ws' : '/v1/stream'}?symbols=${symbols}&types=transfer&snapshot=false`

/** Which listeners join: by default over WebSocket, and all receive everything. */
export type ListenerGroup = Partial<Omit<Joining, 'do' | 'port' | 'listeners'>> & {
  readonly listeners: number
  /** Whether it is no failure if some cannot join. */
  readonly mayBeFewer?: boolean
}

/** Connected listeners of a server, and the work that they receive. */
export class ListenerLoad {
  readonly #server: MeasuredServer
  readonly #listeners = new PinnedWorker<ListenersCommand, ListenersReply>('listeners-process.ts')
  #lastNumber = FIRST_NUMBER - 1

  constructor(measured: MeasuredServer) {
    this.#server = measured
  }

  async join({ kind = 'ws', mayBeFewer = false, ...group }: ListenerGroup): Promise<Joined> {
    const { server, port, sendsLive } = this.#server
    const selections = [{ path: sendsLive ? pathOf(kind, '*') : '/' }]
    const cpuBefore = server.cpuSeconds()
    const joining = { port, kind, selections, sendsLive, every: 1, atOnce: CONCURRENT_JOINS, ...group }
    const joined = await this.#listeners.command({ do: 'join', ...joining })
    if (joined.live < group.listeners && !mayBeFewer)
      throw new Error(`only ${joined.live} of ${group.listeners} listeners became live`)
    return { ...joined, cpuSeconds: server.cpuSeconds() - cpuBefore }
  }

  /** Gives the server work and waits until all listeners have received it. */
  async deliver(work: Work): Promise<Figures> {
    const { burst, everyMs, bursts } = work
    const { server, traffic } = this.#server
    await this.#listeners.command({ do: 'countFrom', from: this.#lastNumber + 1 })
    const [cpuBefore, writesBefore] = [server.cpuSeconds(), server.writes()]
    this.#lastNumber += burst * bursts
    const delivering = this.#listeners.command({ do: 'waitForNumber', to: this.#lastNumber })
    await traffic.command({ do: 'work', ...work })
    const { received, bytes, ...result } = await delivering
    const [cpuSeconds, writes] = [server.cpuSeconds() - cpuBefore, server.writes() - writesBefore]
    const offeredSeconds = (bursts * everyMs) / 1_000
    return {
      ...result,
      pace: Math.min(1, offeredSeconds / result.seconds),
      deliveriesPerSecond: received / Math.max(result.seconds, offeredSeconds),
      deliveriesPerCpuSecond: received / cpuSeconds,
      cpuSecondsPerMillion: (cpuSeconds * 1e6) / received,
      bytesPerMessage: bytes / received,
      writesPerMessage: writes / received,
    }
  }

  /** How endless work reaches the connected listeners while something else happens. */
  async deliverDuring(burst: number, everyMs: number, something: () => Promise<void>): Promise<DeliveryResult> {
    const { traffic } = this.#server
    await this.#listeners.command({ do: 'countFrom', from: this.#lastNumber + 1 })
    const working = traffic.command({ do: 'work', burst, everyMs, bursts: null })
    await something()
    await traffic.command({ do: 'stopWork' })
    const { to } = await working
    this.#lastNumber = to
    return this.#listeners.command({ do: 'waitForNumber', to })
  }

  /** Seals what has been made. Returns what became of every log since the last count began. */
  async sealAll(): Promise<AuditResult> {
    await this.#server.traffic.command({ do: 'seal' })
    const { audit } = await this.#listeners.command({ do: 'waitForSeals', to: this.#lastNumber })
    if (!audit) throw new Error('no listener followed the seals')
    return audit
  }

  end(): Promise<void> {
    return this.#listeners.end()
  }
}

/** Opens a server and a load on it, which both end with what is done with them. */
export async function withLoad<T>(
  opening: Promise<MeasuredServer>,
  use: (load: ListenerLoad, server: MeasuredServer) => Promise<T>,
): Promise<T> {
  const server = await opening
  const load = new ListenerLoad(server)
  try {
    return await use(load, server)
  } finally {
    await load.end()
    await server.end()
  }
}

/** A server's resident memory once it stops growing. No garbage collection is forced. */
export async function settledBytes({ server }: MeasuredServer): Promise<number> {
  const from = performance.now()
  let bytes = server.residentBytes()
  let sameSince = from
  while (performance.now() - sameSince < SETTLED_MS && performance.now() - from < SETTLING_BOUND_MS) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    const now = server.residentBytes()
    if (Math.abs(now - bytes) <= GROWTH_BYTES) continue
    bytes = now
    sameSince = performance.now()
  }
  return server.residentBytes()
}

import type { DeliveryResult, ListenersCommand, ListenersReply, Selection, StreamKind } from './listeners-process.ts'
import type { MeasuredServer } from './measured-servers.ts'
import { FIRST_NUMBER } from './message-stamp.ts'
import { PinnedWorker } from './pinned-processes.ts'
import type { AuditResult } from './publication-audit.ts'

/** One server, its listeners and its work: what it delivered, and what that cost. */

/** Memory is read once it has not grown for this long. */
const SETTLED_MS = 1_000
const SETTLING_BOUND_MS = 10_000
const POLL_MS = 100
/** Smaller growth is ignored. */
const GROWTH_BYTES = 1_024 * 1_024

export type Work = { readonly burst: number; readonly everyMs: number; readonly bursts: number; readonly blockMs?: number }

/** How many listeners joined, in what time, and at what cost to the server. */
export type Joined = {
  readonly live: number
  readonly seconds: number
  readonly cpuSeconds: number
  /** The connections on which compression was agreed. */
  readonly deflated: number
}

/** How a server performed on some work. */
export type Figures = {
  readonly deliveriesPerSecond: number
  /** The share of messages that was delivered within the time of the work. Below 1 the server was behind. */
  readonly pace: number
  readonly deliveriesPerCpuSecond: number
  readonly cpuSecondsPerMillion: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  readonly missing: number
  readonly wrong: number
  readonly lost: number
  readonly bytesPerMessage: number
  readonly writesPerMessage: number
  /** From the first of the work to the last message. */
  readonly seconds: number
  /** The share of its core that the listeners' process used. Near 1 the listeners were the bottleneck. */
  readonly listenersLoad: number
}

/** Which listeners join: how many, where, and how many at once. */
export type ListenerGroup = {
  readonly kind: StreamKind
  readonly listeners: number
  readonly selections: readonly Selection[]
  readonly every: number
  readonly atOnce: number
  readonly offersDeflate?: boolean
  /** One in this many reads its messages and counts for all. */
  readonly readersEvery?: number
  /** Whether the first of them follows what becomes of every log. */
  readonly isAudited?: boolean
}

/** Connected listeners of a server, and the work that they receive. */
export class ListenerLoad {
  readonly #server: MeasuredServer
  readonly #listeners = new PinnedWorker<ListenersCommand, ListenersReply>('listeners-process.ts')
  #lastNumber = FIRST_NUMBER - 1

  constructor(measured: MeasuredServer) {
    this.#server = measured
  }

  /** Connects listeners. Returns how many became live, and the cost. */
  async join(group: ListenerGroup): Promise<Joined> {
    const { server, port, sendsLive } = this.#server
    const cpuBefore = server.cpuSeconds()
    const { live, seconds, deflated } = await this.#listeners.command({ do: 'join', port, sendsLive, ...group })
    return { live, seconds, deflated, cpuSeconds: server.cpuSeconds() - cpuBefore }
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
    const result = await delivering
    const used = { cpuSeconds: server.cpuSeconds() - cpuBefore, writes: server.writes() - writesBefore }
    return figuresOf(result, used, (bursts * everyMs) / 1_000)
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
  async sealAll(): Promise<AuditResult | null> {
    await this.#server.traffic.command({ do: 'seal' })
    const { audit } = await this.#listeners.command({ do: 'waitForSeals', to: this.#lastNumber })
    return audit
  }

  end(): Promise<void> {
    return this.#listeners.end()
  }
}

type Used = { readonly cpuSeconds: number; readonly writes: number }

function figuresOf(result: DeliveryResult, { cpuSeconds, writes }: Used, offeredSeconds: number): Figures {
  return {
    pace: Math.min(1, offeredSeconds / result.seconds),
    deliveriesPerSecond: result.received / Math.max(result.seconds, offeredSeconds),
    deliveriesPerCpuSecond: result.received / cpuSeconds,
    cpuSecondsPerMillion: (cpuSeconds * 1e6) / result.received,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    maxMs: result.maxMs,
    missing: result.missing,
    wrong: result.wrong,
    lost: result.lost,
    bytesPerMessage: result.bytes / result.received,
    writesPerMessage: writes / result.received,
    seconds: result.seconds,
    listenersLoad: result.load,
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

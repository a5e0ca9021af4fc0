import type { CrowdOrder, CrowdReport, Heard, Kind, Selection } from './listeners-process.ts'
import type { Served } from './measured-servers.ts'
import { FIRST } from './message-stamp.ts'
import { Worker } from './pinned-processes.ts'

/** One server, its listeners and its work: what it delivered, and what that cost. */

/** Memory is read once it has not grown for this long. */
const SETTLED_MS = 1_000
const SETTLING_BOUND_MS = 10_000
const LOOK_MS = 100
/** Growth below this is no growth. */
const GROWTH_BYTES = 1_024 * 1_024

export type Work = { readonly burst: number; readonly everyMs: number; readonly bursts: number }

/** How many came in, in what time, at what cost to the server. */
export type Joined = { readonly live: number; readonly seconds: number; readonly cpuSeconds: number }

/** What a server did with some work. */
export type Figures = {
  readonly deliveriesPerSecond: number
  /** The share of what was offered that was delivered in the time in which it was offered; below 1 the server was behind. */
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
  /** The share of its core that the listeners' process used: near 1 it is what was measured. */
  readonly listenersLoad: number
}

/** Who comes in: how many, where to, and how many may be on their way at once. */
export type Guests = {
  readonly kind: Kind
  readonly listeners: number
  readonly selections: readonly Selection[]
  readonly every: number
  readonly atOnce: number
}

/** Listeners that are connected to a server, and the work that they hear. */
export class Gathering {
  readonly #served: Served
  readonly #crowd = new Worker<CrowdOrder, CrowdReport>('listeners-process.ts')
  #last = FIRST - 1

  constructor(served: Served) {
    this.#served = served
  }

  /** Lets listeners in: how many became live, and what that took. */
  async join(guests: Guests): Promise<Joined> {
    const { server, port, saysLive } = this.#served
    const cpuBefore = server.cpuSeconds()
    const { live, seconds } = await this.#crowd.order({ do: 'join', port, saysLive, ...guests })
    return { live, seconds, cpuSeconds: server.cpuSeconds() - cpuBefore }
  }

  /** Gives the server work and waits until everybody has heard it. */
  async hear({ burst, everyMs, bursts }: Work): Promise<Figures> {
    const { server, source } = this.#served
    await this.#crowd.order({ do: 'mark', from: this.#last + 1 })
    const cpuBefore = server.cpuSeconds()
    this.#last += burst * bursts
    const hearing = this.#crowd.order({ do: 'hear', to: this.#last })
    await source.order({ do: 'work', burst, everyMs, bursts })
    const heard = await hearing
    return figuresOf(heard, server.cpuSeconds() - cpuBefore, (bursts * everyMs) / 1_000)
  }

  /** What work without an end does to those who are here, while something else happens. */
  async during(burst: number, everyMs: number, something: () => Promise<void>): Promise<Heard> {
    const { source } = this.#served
    await this.#crowd.order({ do: 'mark', from: this.#last + 1 })
    const working = source.order({ do: 'work', burst, everyMs, bursts: null })
    await something()
    await source.order({ do: 'rest' })
    const { to } = await working
    this.#last = to
    return this.#crowd.order({ do: 'hear', to })
  }

  end(): Promise<void> {
    return this.#crowd.end()
  }
}

function figuresOf(heard: Heard, cpuSeconds: number, offeredSeconds: number): Figures {
  return {
    pace: Math.min(1, offeredSeconds / heard.seconds),
    deliveriesPerSecond: heard.heard / Math.max(heard.seconds, offeredSeconds),
    deliveriesPerCpuSecond: heard.heard / cpuSeconds,
    cpuSecondsPerMillion: (cpuSeconds * 1e6) / heard.heard,
    p50Ms: heard.p50Ms,
    p99Ms: heard.p99Ms,
    maxMs: heard.maxMs,
    missing: heard.missing,
    wrong: heard.wrong,
    lost: heard.lost,
    bytesPerMessage: heard.bytes / heard.heard,
    listenersLoad: heard.load,
  }
}

/** The memory of a server once it has stopped growing, as the system counts it: nothing is collected for the occasion. */
export async function settledBytes({ server }: Served): Promise<number> {
  const from = performance.now()
  let bytes = server.residentBytes()
  let sameSince = from
  while (performance.now() - sameSince < SETTLED_MS && performance.now() - from < SETTLING_BOUND_MS) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    const now = server.residentBytes()
    if (Math.abs(now - bytes) <= GROWTH_BYTES) continue
    bytes = now
    sameSince = performance.now()
  }
  return server.residentBytes()
}

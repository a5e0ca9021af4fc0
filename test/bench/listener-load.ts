import type { ListenersCommand, ListenersReply, StreamKind } from './listeners-process.ts'
import type { MeasuredServer } from './measured-servers.ts'
import { FIRST_NUMBER } from './message-stamp.ts'
import { PinnedWorker } from './pinned-processes.ts'
import type { Figures } from './results.ts'

/** One server, its listeners and its work: what it delivered, and what that cost. */

/** Memory is read once it has not grown for this long. */
const SETTLED_MS = 1_000
const SETTLING_BOUND_MS = 10_000
const POLL_MS = 100
/** Smaller growth is ignored. */
const GROWTH_BYTES = 1_024 * 1_024

export type Work = { readonly burst: number; readonly everyMs: number; readonly bursts: number; readonly blockMs?: number }

/** Connected listeners of a server, and the work that they receive. */
class ListenerLoad {
  readonly #server: MeasuredServer
  readonly #listeners = new PinnedWorker<ListenersCommand, ListenersReply>('listeners-process.ts')
  #lastNumber = FIRST_NUMBER - 1

  constructor(measured: MeasuredServer) {
    this.#server = measured
  }

  /** Listeners that receive all updates of these types. */
  async join(kind: StreamKind, listeners: number, types = '&types=transfer'): Promise<void> {
    const { port, sendsLive } = this.#server
    const path = sendsLive ? `${kind === 'ws' ? '/v1/ws' : '/v1/stream'}?symbols=*${types}&snapshot=false` : '/'
    const { live } = await this.#listeners.command({ do: 'join', port, kind, listeners, path, sendsLive })
    if (live < listeners) throw new Error(`only ${live} of ${listeners} listeners became live`)
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
    const { received, bytes, seconds, p50Ms, p99Ms, maxMs, missing, wrong, lost, load } = await delivering
    const offeredSeconds = (bursts * everyMs) / 1_000
    return {
      'per second': received / Math.max(seconds, offeredSeconds),
      'CPU µs': ((server.cpuSeconds() - cpuBefore) * 1e6) / received,
      ...{ 'p50 ms': p50Ms, 'p99 ms': p99Ms, 'max ms': maxMs, missing, wrong, lost, bytes: bytes / received },
      writes: (server.writes() - writesBefore) / received,
      'in time %': Math.min(100, (100 * offeredSeconds) / seconds),
      'clients %': load * 100,
    }
  }

  /** Seals what has been made. Returns how many logs no seal has listed. */
  async sealAll(): Promise<number> {
    await this.#server.traffic.command({ do: 'seal' })
    return (await this.#listeners.command({ do: 'waitForSeals', to: this.#lastNumber })).unsealed
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

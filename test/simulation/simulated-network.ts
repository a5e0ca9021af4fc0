import { type CloseReason, closeCodes } from '../../src/protocol/close-codes.ts'
import { Refusal } from '../../src/protocol/refusal.ts'
import type { Outlet } from '../../src/relay/edge/transport/socket-outlet.ts'
import type { OpenConnection } from '../../src/sdk/client/connection-openers.ts'
import { ConnectionError, RelayError } from '../../src/sdk/client/errors.ts'
import { comparePositions } from '../../src/sdk/client/position-order.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { SimulatedEdge } from './simulated-edge.ts'
import type { ClientSettings } from './simulation-settings.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** How long a connection needs at most. */
const LATENCY_BOUND_MS = 200
/** How often, in %, a connection is refused, and how often it stops delivering although it stays open. */
const REFUSED_PERCENT = 10
const FROZEN_PERCENT = 10
/** How often, in %, a proxy ends a connection with the code of a relay that is full. */
const FULL_PERCENT = 20
/** How long before its end a connection may lose messages: shorter than the interval of the heartbeats. */
const BREAK_LOSS_MS = 2_000

type Options = {
  readonly clock: VirtualClock
  readonly random: SeededRandom
  readonly breakRandom: SeededRandom
  readonly settings: Pick<ClientSettings, 'cutEveryMs' | 'lossPercent' | 'breakLossPercent'>
  readonly edge: () => SimulatedEdge | null
}

/** A network between a client and the relay: it delays, refuses, cuts, freezes and, where a world says so, loses messages. */
export class SimulatedNetwork {
  readonly #options: Options
  readonly #connections = new Set<SimulatedConnection>()
  lostCount = 0
  /** How many connections a relay has accepted. */
  openedCount = 0
  /** Heartbeats and ends of replays that arrived: a relay has counted its messages up to such a position, on a connection. */
  readonly counted: { readonly position: string; readonly connection: number }[] = []
  /** The newest message of the tape that arrived. */
  newestId: string | null = null
  /** Where a connection asks to continue: a planted bug may change it. */
  resumeAt = (since: string): string => since

  constructor(options: Options) {
    this.#options = options
  }

  readonly open: OpenConnection = (query, events) => {
    const { clock, random, edge, settings } = this.#options
    const latencyMs = random.int(1, LATENCY_BOUND_MS)
    const isRefused = settings.cutEveryMs !== null && random.chance(REFUSED_PERCENT)
    const connection = new SimulatedConnection(clock, latencyMs, (text) => {
      if (this.#isLost(text, connection)) return
      if (isCount(text, connection)) this.counted.push({ position: JSON.parse(text).id, connection: connection.number })
      if (text.includes('"prev":')) this.#noteNewest(JSON.parse(text).id)
      events.onMessage(text)
    })
    const since = query.get('since')
    if (since?.includes('.')) query.set('since', this.resumeAt(since))
    const end = (code: number) => {
      if (!connection.close()) return
      this.#connections.delete(connection)
      events.onEnd(code < 4_000 ? new ConnectionError('lost', 'http://relay/', code) : new RelayError(code, {}))
    }
    connection.onEnd = end
    this.#connections.add(connection)
    connection.after(latencyMs, () => {
      const target = edge()
      if (isRefused || !target) return end(1006)
      this.openedCount += 1
      connection.number = this.openedCount
      try {
        connection.onClose = target.open(query, connection, () => end(closeCodes.going_away))
      } catch (failure) {
        if (!(failure instanceof Refusal)) throw failure
        events.onMessage(JSON.stringify({ type: 'error', ...failure.record, reason: failure.reason }))
      }
    })
    this.#breakLater(connection, end)
    return () => {
      connection.close()
      this.#connections.delete(connection)
    }
  }

  /** The relay's process ended, or its machine did. */
  cutAll(): void {
    for (const connection of this.#connections) connection.onEnd(1006)
  }

  #breakLater(connection: SimulatedConnection, end: (code: number) => void): void {
    const { clock, random, settings } = this.#options
    if (settings.cutEveryMs === null) return
    const atMs = random.int(1, 2 * settings.cutEveryMs)
    const isFrozen = random.chance(FROZEN_PERCENT)
    const code = random.chance(FULL_PERCENT) ? closeCodes.full : 1006
    connection.losesAfterMs = clock.elapsedMs + atMs - BREAK_LOSS_MS
    connection.after(atMs, () => (isFrozen ? connection.freeze() : end(code)))
  }

  /** Only messages of the tape are lost: the connection goes on, and so do its heartbeats. */
  #isLost(text: string, { losesAfterMs }: SimulatedConnection): boolean {
    const { clock, random, breakRandom, settings } = this.#options
    const { lossPercent, breakLossPercent = 0 } = settings
    if (!text.includes('"prev":')) return false
    const isLost = lossPercent > 0 && random.chance(lossPercent)
    const isLostBeforeBreak = clock.elapsedMs >= losesAfterMs && breakRandom.chance(breakLossPercent)
    if (!isLost && !isLostBeforeBreak) return false
    this.lostCount += 1
    return true
  }

  #noteNewest(id: string): void {
    if (this.newestId === null || (comparePositions(id, this.newestId) ?? 1) > 0) this.newestId = id
  }
}

/** A second `live` follows a gap in the middle of a stream, and does not count what was sent live. */
function isCount(text: string, connection: SimulatedConnection): boolean {
  const isFirstLive = text.startsWith('{"type":"live"') && !connection.isLive
  if (isFirstLive) connection.isLive = true
  return isFirstLive || text.startsWith('{"type":"heartbeat"')
}

/** One connection, as the relay's outlet. Lines arrive in order, after the latency. */
class SimulatedConnection implements Outlet {
  readonly #clock: VirtualClock
  readonly #latencyMs: number
  readonly #deliver: (text: string) => void
  readonly #cancels = new Set<() => void>()
  #isOpen = true
  #isFrozen = false
  #onDrained: () => void = () => {}
  backlog = 0
  takenBytes = 0
  /** The first one that a relay accepts is 1. */
  number = 0
  isLive = false
  losesAfterMs = Number.POSITIVE_INFINITY
  onClose: () => void = () => {}
  onEnd: (code: number) => void = () => {}

  constructor(clock: VirtualClock, latencyMs: number, deliver: (text: string) => void) {
    this.#clock = clock
    this.#latencyMs = latencyMs
    this.#deliver = deliver
  }

  write(bytes: Buffer): void {
    const text = String(bytes)
    this.backlog += bytes.length
    this.after(this.#latencyMs, () => {
      if (this.#isFrozen) return
      this.backlog -= bytes.length
      this.takenBytes += bytes.length
      this.#onDrained()
      for (const line of text.split('\n')) if (line !== '' && this.#isOpen) this.#deliver(line)
    })
  }

  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#onDrained = resolve
    })
  }

  ping(): boolean {
    return false
  }

  /** The close comes after what was written. */
  end(reason: CloseReason): void {
    this.after(this.#latencyMs, () => this.#isFrozen || this.onEnd(closeCodes[reason]))
  }

  cut(): void {
    this.after(0, () => this.onEnd(1006))
  }

  freeze(): void {
    this.#isFrozen = true
  }

  after(ms: number, callback: () => void): void {
    const cancel = this.#clock.runAfter(ms, () => {
      this.#cancels.delete(cancel)
      callback()
    })
    this.#cancels.add(cancel)
  }

  /** False if it was closed before. */
  close(): boolean {
    if (!this.#isOpen) return false
    this.#isOpen = false
    for (const cancel of this.#cancels) cancel()
    this.#cancels.clear()
    this.#onDrained()
    this.onClose()
    return true
  }
}

import type { CloseReason } from '../../../protocol/close-codes.ts'
import { type Transport, transports } from '../../../protocol/transports.ts'
import type { Outlet } from '../transport/socket-outlet.ts'

/** A client with a backlog that takes no bytes for this long counts as gone. */
const STUCK_AFTER_MS = 60_000

/** The framing of a stream or an export, or the JSON-RPC of the gateway. */
export type ConnectionTransport = Transport | 'rpc'
export const connectionTransports: readonly ConnectionTransport[] = [...transports, 'rpc']

/** Limits of unread bytes: `maxBacklogBytes` in the long run, more than that for `patienceMs`, and `atOnceBytes` at any moment. */
export type Patience = { readonly maxBacklogBytes: number; readonly patienceMs: number; readonly atOnceBytes: number }

export type ClientInit = Pick<Client, 'transport' | 'address' | 'outlet' | 'heartbeatMs'> & {
  readonly patience: Patience
  readonly uptime: number
}

/** A connection that stays open: a stream, an export, or a socket of JSON-RPC. `Clients` admits it and ends it. */
export class Client {
  readonly transport: ConnectionTransport
  /** Name under which the client is counted. It changes if a WebSocket sends its API key as the first message. */
  address: string
  readonly outlet: Outlet
  readonly openedAt: number
  heartbeatMs: number | null
  heartbeatDueAt: number
  isGone = false
  readonly #patience: Patience
  /** Bytes that the socket had taken before, for earlier answers. */
  readonly #bytesBefore: number
  #sent = 0
  /** Number of the last byte that is never overdue. */
  #excusedUpTo = 0
  /** Uptime at which the backlog exceeded its limit; null if it does not exceed it. */
  #overSince: number | null = null
  #takenBytes = 0
  #lastProgressAt: number

  constructor({ transport, address, outlet, heartbeatMs, patience, uptime }: ClientInit) {
    this.transport = transport
    this.address = address
    this.outlet = outlet
    this.openedAt = uptime
    this.heartbeatMs = heartbeatMs
    this.heartbeatDueAt = uptime + (heartbeatMs ?? 0)
    this.#patience = patience
    this.#bytesBefore = outlet.takenBytes
    this.#lastProgressAt = uptime
  }

  /** Sends a sign of life, at each interval of heartbeats. Returns why the client must be disconnected; null if it keeps up. */
  heartbeat(): CloseReason | null {
    return null
  }

  /** Sends the last message before a disconnect. Returns the position at which the client can resume; null if there is none. */
  sayGoodbye(_reason: CloseReason, _retryMs: number): string | null {
    return null
  }

  /** Called once, when the client is gone. */
  onGone(): void {}

  /** Number of updates that were sent. */
  get sent(): number {
    return this.#sent
  }

  get sentBytes(): number {
    return this.outlet.takenBytes - this.#bytesBefore
  }

  countSent(count: number): void {
    this.#sent += count
  }

  /** Number of unread bytes that count as late. */
  get overdueBytes(): number {
    const { backlog } = this.outlet
    return backlog === 0 ? 0 : Math.min(backlog, this.outlet.takenBytes + backlog - this.#excusedUpTo)
  }

  /** The bytes that are written now never count as overdue: the client may read a replay or a long answer slowly. */
  excuseBacklog(): void {
    this.#excusedUpTo = this.outlet.takenBytes + this.outlet.backlog
  }

  /** Whether the client is fast enough for another write. A burst disconnects no good reader. */
  keepsUp(uptime: () => number): boolean {
    const { maxBacklogBytes, patienceMs, atOnceBytes } = this.#patience
    const overdue = this.overdueBytes
    if (overdue <= maxBacklogBytes) {
      this.#overSince = null
      return true
    }
    const now = uptime()
    this.#overSince ??= now
    return overdue <= atOnceBytes && now - this.#overSince < patienceMs
  }

  /** Whether the client has taken no byte of its backlog for too long. Needs a call every few seconds. */
  isStuck(uptime: number): boolean {
    const { backlog, takenBytes } = this.outlet
    if (backlog === 0 || takenBytes !== this.#takenBytes) {
      this.#takenBytes = takenBytes
      this.#lastProgressAt = uptime
    }
    return uptime - this.#lastProgressAt >= STUCK_AFTER_MS
  }
}

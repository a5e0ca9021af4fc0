import { nextTurn } from '../../../lib/turns.ts'
import { type CloseReason, closeCodeOf } from '../../../protocol/close-codes.ts'
import type { Refusal } from '../../../protocol/refusal.ts'
import type { Host } from '../../host.ts'
import type { Metrics } from '../../metrics.ts'
import type { ApiKeyRing } from '../limits/api-key-ring.ts'
import { goingAway, limitRefusals } from '../limits/refusals.ts'
import { LocalCounts, type UsageCounts } from '../limits/usage-counts.ts'
import type { Client, ConnectionTransport, Patience } from './client.ts'
import { ReplaySlots } from './replay-slots.ts'

const STUCK_CHECK_MS = 5_000
const HEARTBEATS_PER_TURN = 250
/** A disconnected client reconnects after a random time in this range, so that not all reconnect at once. */
const RETRY_LEAST_MS = 500
const RETRY_SPREAD_MS = 4_500
/** Least range, and its growth with each client, if other processes serve on: they take 4,000 new listeners a second. */
const OTHERS_SPREAD_MS = 500
const OTHERS_SPREAD_MS_PER_CLIENT = 0.25

/** A backlog of more than this many times MAX_BACKLOG ends the connection at once, without BACKLOG_PATIENCE. */
const AT_ONCE_FACTOR = 16

/** Name under which all clients are counted. */
const ALL = '*'

/** Returns the name under which the clients of a transport are counted. */
export const countName = (transport: ConnectionTransport): string => `listeners ${transport}`

type Options = Pick<Host, 'uptime' | 'random' | 'log'> & {
  readonly maxClients: number
  readonly maxClientsPerAddress: number
  readonly maxBacklogBytes: number
  readonly backlogPatienceMs: number
  /** The API keys, which may have limits of their own; null if clients need none. */
  readonly keys: ApiKeyRing | null
  /** The counts of all processes that serve one port; null if there is only one. */
  readonly sharedUsage?: UsageCounts | null
  /** Number of serving processes. */
  readonly workers: number
  /** Whether other processes serve the same tape, so that a client may reconnect at once. */
  readonly isOneOfMany: boolean
  readonly metrics: Pick<Metrics, 'listeners' | 'disconnects'>
}

/** Numbers of clients that are connected, and of the updates and bytes that were sent to all. */
export type Sent = { clients: number; messages: number; bytes: number }

/** The connections that stay open. It admits and counts them, sends heartbeats, and ends those that are gone or too slow. */
export class Clients {
  readonly #options: Options
  readonly #counts: UsageCounts
  readonly #connected = new Set<Client>()
  /** Sums over clients that are gone. A client counts for itself, and is read only when it ends or is measured. */
  readonly #sentToGone = new Map<string, Sent>()
  readonly replaySlots: ReplaySlots
  /** The patience with streams and exports. */
  readonly patience: Patience
  #isSendingHeartbeats = false
  #stuckCheckedAt = 0
  isDraining = false
  /** Number of clients that the drain disconnects. */
  #drained = 0

  constructor(options: Options) {
    const { keys, workers, sharedUsage, maxBacklogBytes, backlogPatienceMs: patienceMs } = options
    this.#options = options
    this.#counts = sharedUsage ?? new LocalCounts()
    this.patience = { maxBacklogBytes, patienceMs, atOnceBytes: AT_ONCE_FACTOR * maxBacklogBytes }
    this.replaySlots = new ReplaySlots((address) => keys?.limitsOf(address)?.replays, workers)
  }

  /** Returns the refusal of another client from this address; null if there is room. */
  refusal(address: string): Refusal | null {
    if (this.isDraining) return goingAway
    const exceeded = this.#exceededLimit(address)
    return exceeded && limitRefusals[exceeded]
  }

  /** Admits a client. Returns the limit that it exceeds, which another process may have reached since the last check. */
  add(client: Client): keyof typeof limitRefusals | null {
    const exceeded = this.#counts.exclusively(() => {
      const limit = this.#exceededLimit(client.address)
      if (!limit) this.#count(client, 1)
      return limit
    })
    if (exceeded) return exceeded
    this.#connected.add(client)
    const { metrics, log } = this.#options
    const { transport } = client
    metrics.listeners.inc({ transport })
    log('client_connected', { transport })
    return null
  }

  /** Forgets a client whose connection has ended, or is about to. `client` means that the client ended it. */
  remove(client: Client, reason: CloseReason | 'client' = 'client'): void {
    if (client.isGone) return
    const { keys, metrics, log, uptime } = this.#options
    const { transport, address } = client
    client.isGone = true
    client.onGone()
    const wasAdmitted = this.#connected.delete(client)
    if (!wasAdmitted && reason === 'client') return
    metrics.disconnects.inc({ transport, reason, code: closeCodeOf(reason) })
    if (!wasAdmitted) return keys?.countRefusal(address)
    metrics.listeners.dec({ transport })
    log('client_ended', { transport, reason, alive_ms: Math.round(uptime() - client.openedAt) })
    this.#count(client, -1)
    this.replaySlots.leave(client)
    this.#addSent(this.#sentToGone, client, 0)
  }

  readonly disconnect = (client: Client, reason: CloseReason): void => {
    if (client.isGone) return
    const position = client.sayGoodbye(reason, this.#retryMs())
    this.remove(client, reason)
    client.outlet.end(reason, position)
  }

  /** Disconnects a client that does not keep up, and returns false. */
  readonly mayWrite = (client: Client): boolean => {
    if (client.isGone) return false
    if (client.keepsUp(this.#options.uptime)) return true
    this.disconnect(client, 'too_slow')
    return false
  }

  /** Disconnects the clients whose API keys were removed. */
  disconnectAll(addresses: ReadonlySet<string>): void {
    for (const client of this.#connected) if (addresses.has(client.address)) this.disconnect(client, 'forbidden')
  }

  drain(): void {
    this.isDraining = true
    this.#drained = this.#connected.size
    for (const client of this.#connected) this.disconnect(client, 'going_away')
  }

  reopen(): void {
    this.isDraining = false
    this.#drained = 0
  }

  async sendHeartbeats(): Promise<void> {
    if (this.#isSendingHeartbeats) return
    this.#isSendingHeartbeats = true
    let sent = 0
    const uptime = this.#options.uptime()
    const isStuckCheckDue = uptime - this.#stuckCheckedAt >= STUCK_CHECK_MS
    if (isStuckCheckDue) this.#stuckCheckedAt = uptime
    for (const client of this.#connected) {
      if (isStuckCheckDue && client.isStuck(uptime)) this.disconnect(client, 'too_slow')
      else if (client.heartbeatMs === null || uptime < client.heartbeatDueAt) continue
      else this.#sendHeartbeat(client, client.heartbeatMs)
      sent += 1
      if (sent % HEARTBEATS_PER_TURN === 0) await nextTurn()
    }
    this.#isSendingHeartbeats = false
  }

  get connected(): ReadonlySet<Client> {
    return this.#connected
  }

  /** Returns the number of connected clients of some transports, in all processes that serve the port. */
  count(transports: readonly ConnectionTransport[]): number {
    return transports.reduce((sum, transport) => sum + this.#counts.count(countName(transport)), 0)
  }

  /** Returns what was sent, by the names of transports and of clients with API keys. */
  measureSent(): ReadonlyMap<string, Sent> {
    const sums = new Map([...this.#sentToGone].map(([name, sent]) => [name, { ...sent }]))
    for (const client of this.#connected) this.#addSent(sums, client, 1)
    return sums
  }

  #addSent(sums: Map<string, Sent>, { transport, address, sent, sentBytes }: Client, connections: 0 | 1): void {
    for (const name of this.#options.keys?.clients.has(address) ? [transport, address] : [transport]) {
      const sum = sums.get(name) ?? { clients: 0, messages: 0, bytes: 0 }
      sums.set(name, sum)
      sum.clients += connections
      sum.messages += sent
      sum.bytes += sentBytes
    }
  }

  #exceededLimit(address: string): keyof typeof limitRefusals | null {
    const { maxClients, maxClientsPerAddress, keys } = this.#options
    const maxOfAddress = keys?.limitsOf(address)?.clients ?? maxClientsPerAddress
    if (this.#counts.count(address) >= maxOfAddress) return 'too_many_connections'
    return this.#counts.count(ALL) >= maxClients ? 'full' : null
  }

  #count({ address, transport }: Client, change: 1 | -1): void {
    for (const name of [address, ALL, countName(transport)]) this.#counts.change(name, change)
  }

  #sendHeartbeat(client: Client, intervalMs: number): void {
    client.heartbeatDueAt = this.#options.uptime() + intervalMs
    const reason = client.heartbeat()
    if (reason) this.disconnect(client, reason)
  }

  #retryMs(): number {
    const { isOneOfMany, random } = this.#options
    if (!isOneOfMany) return Math.round(RETRY_LEAST_MS + random() * RETRY_SPREAD_MS)
    const clients = Math.max(this.#drained, this.#connected.size)
    return Math.round(random() * Math.max(OTHERS_SPREAD_MS, clients * OTHERS_SPREAD_MS_PER_CLIENT))
  }
}

import { nextTurn } from '../../../lib/turns.ts'
import type { CloseReason } from '../../../protocol/close-codes.ts'
import type { Stage } from '../../../protocol/fields.ts'
import type { NoticeOf } from '../../../protocol/notices.ts'
import { anyFilter } from '../../../protocol/parameters/value-filters.ts'
import { formatPosition, type TapePosition } from '../../../protocol/position.ts'
import { Refusal } from '../../../protocol/refusal.ts'
import { type Transport, transports } from '../../../protocol/transports.ts'
import type { Entry, Tape } from '../../tape/tape.ts'
import { type ConnectionBounds, ConnectionLimits } from '../limits/connection-limits.ts'
import type { Selection } from '../select/compiled-selection.ts'
import type { CurrentState } from '../select/current-state.ts'
import { goingAway } from '../transport/shared-refusals.ts'
import type { BacklogCheck } from './audience.ts'
import { Audiences } from './audiences.ts'
import { type BacklogBounds, Backlogs } from './backlogs.ts'
import { Delivery } from './delivery.ts'
import type { Listener } from './listener.ts'

const STUCK_CHECK_MS = 5_000
const HEARTBEATS_PER_TICK = 250
/** A disconnected listener reconnects after a random time in this range, so that not all reconnect at once. */
const RETRY_LEAST_MS = 500
const RETRY_SPREAD_MS = 4_500
/** Least range, and its growth with each listener, if other processes serve on: they take 4,000 new listeners a second. */
const OTHERS_SPREAD_MS = 500
const OTHERS_SPREAD_MS_PER_LISTENER = 0.25

const limitRefusals = {
  full: new Refusal(503, 'full', 'Too many listeners are connected; retry later.'),
  too_many_connections: new Refusal(429, 'too_many_connections', 'Too many listeners are connected from your address; close some.'),
} as const

/** Returns the name under which all processes count the listeners of a transport. */
export const countName = (transport: Transport): string => `listeners ${transport}`

type Options = ConnectionBounds &
  BacklogBounds & {
    readonly maxSelections: number
    readonly isOneOfMany: boolean
    readonly tape: Tape
    readonly current: CurrentState
    readonly wallTime: () => number
    readonly random: () => number
    /** Limit of the time for which an update waits to share one write with later updates. */
    readonly batchDelayBoundMs: number
    readonly counters: {
      connected(transport: Transport): void
      /** `client` means that the client ended the connection. */
      disconnected(listener: Listener, reason: CloseReason | 'client', aliveMs: number): void
      /** A connection was ended before it became a listener. */
      refused(listener: Listener, reason: CloseReason): void
      gap(reason: NoticeOf<'gap'>['reason']): void
      delivered(entries: readonly Entry[]): void
      /** Reports the bytes of memory that backlogs hold. */
      held(bytes: number): void
    }
  }

/** Keeps the listeners, with their limits and heartbeats, and ends connections. Hands each batch of the tape to the delivery. */
export class Hub {
  readonly #options: Options
  readonly #listeners = new Set<Listener>()
  readonly #backlogs: Backlogs
  readonly #audiences: Audiences
  readonly #listenerCounts = Object.fromEntries(transports.map((name) => [name, 0])) as Record<Transport, number>
  /** The connections of the whole relay, including the gateway's sockets. */
  readonly connectionLimits: ConnectionLimits
  readonly delivery: Delivery
  readonly #unfollow: () => void
  #isSendingHeartbeats = false
  #stuckCheckedAt = 0
  isDraining = false
  /** Number of listeners that the drain disconnects. */
  #drained = 0

  constructor(options: Options) {
    this.#options = options
    this.connectionLimits = new ConnectionLimits(options)
    this.#backlogs = new Backlogs(options)
    this.#audiences = new Audiences(this.#backlogs.isHeld)
    this.delivery = new Delivery({
      tape: options.tape,
      audiences: this.#audiences,
      delayBoundMs: options.batchDelayBoundMs,
      write: (plain, sealed) => {
        this.#updateBacklogs()
        for (const listener of this.#audiences.lackingEvicted(sealed)) this.#replayAgain(listener)
        this.#audiences.deliver(plain, sealed, this.#backlogCheck)
        this.#options.counters.delivered(plain.map(({ entry }) => entry))
      },
    })
    this.#unfollow = options.tape.follow((batch, notes) => {
      options.current.apply(notes)
      this.delivery.add(batch)
    })
  }

  /** Returns the number of connected listeners of a transport, in all processes that serve the port. */
  listenerCount(transport: Transport): number {
    return this.#options.sharedUsage?.count(countName(transport)) ?? this.#listenerCounts[transport]
  }

  get clientCount(): number {
    return transports.reduce((sum, transport) => sum + this.listenerCount(transport), 0)
  }

  /** Returns the refusal of a new stream with this selection; null if there is room. */
  refusal(selection: Selection, address: string): Refusal | null {
    if (this.isDraining) return goingAway
    const exceeded = this.connectionLimits.exceededLimit(address)
    return exceeded ? limitRefusals[exceeded] : this.selectionRefusal(selection)
  }

  /** Every live listener has received, or did not match, all updates up to this sequence number. */
  get deliveredSeq(): number {
    return this.delivery.deliveredSeq
  }

  position(seq: number, n: number | null = null): string {
    return formatPosition(this.#options.tape.epoch, seq, n)
  }

  /** Returns the position from which a listener would resume. For a live listener, that is the end of the last delivery. */
  positionOf(listener: Listener): string | null {
    if (this.#audiences.has(listener)) {
      const part = isSealed(listener) ? this.delivery.part : null
      return part ? this.position(part.seq, part.n) : this.position(this.deliveredSeq)
    }
    return listener.seq === null ? null : this.position(listener.seq, listener.n)
  }

  add(listener: Listener): ReturnType<ConnectionLimits['exceededLimit']> {
    const exceeded = this.connectionLimits.add(listener)
    if (exceeded) return exceeded
    this.#listeners.add(listener)
    this.#listenerCounts[listener.transport] += 1
    this.#options.sharedUsage?.change(countName(listener.transport), 1)
    this.#options.counters.connected(listener.transport)
    return null
  }

  countGap(reason: NoticeOf<'gap'>['reason']): void {
    this.#options.counters.gap(reason)
  }

  get listeners(): Iterable<Listener> {
    return this.#listeners
  }

  measure() {
    const load = { audiences: this.#audiences.audienceCount, unsentBytes: 0, replays: 0, replayBytes: 0 }
    for (const { state, outlet } of this.#listeners) {
      load.unsentBytes += outlet.backlog
      if (state !== 'replaying') continue
      load.replays += 1
      load.replayBytes += outlet.backlog
    }
    return load
  }

  /** Returns a refusal if too many selections have value filters; otherwise null. Listeners rarely share such selections. */
  selectionRefusal(selection: Selection, listener?: Listener): Refusal | null {
    if (this.#audiences.filteredCountWith(selection, listener) <= this.#options.maxSelections) return null
    const advice = `Too many different value filters are in use now; leave out ${anyFilter}.`
    return new Refusal(429, 'too_many_selections', advice)
  }

  /** Makes a listener live: it receives every later update that its selection matches. */
  join(listener: Listener): void {
    const { state } = listener
    this.delivery.flush()
    if (isSealed(listener)) this.delivery.finishPart()
    // The delivery may have disconnected the listener, or made it replay again.
    if (listener.state !== state) return
    this.#audiences.assign(listener)
    listener.advance(this.deliveredSeq)
    listener.state = 'live'
  }

  /** Removes a listener whose connection has ended, or is about to. */
  remove(listener: Listener, reason: CloseReason | 'client' = 'client'): void {
    listener.state = 'disconnected'
    this.#backlogs.updateOf(listener)
    this.#audiences.remove(listener)
    if (!this.#listeners.delete(listener)) {
      if (reason !== 'client') this.#options.counters.refused(listener, reason)
      return
    }
    this.connectionLimits.remove(listener)
    this.#listenerCounts[listener.transport] -= 1
    this.#options.sharedUsage?.change(countName(listener.transport), -1)
    this.#options.counters.disconnected(listener, reason, this.#options.uptime() - listener.openedAt)
  }

  disconnect(listener: Listener, reason: CloseReason): void {
    if (listener.state === 'disconnected') return
    const position = this.positionOf(listener)
    listener.sendNotice({ type: 'bye', id: position, reason, retry_ms: this.#retryMs() })
    this.remove(listener, reason)
    listener.outlet.end(reason, position)
  }

  async sendHeartbeats(): Promise<void> {
    if (this.#isSendingHeartbeats) return
    this.#isSendingHeartbeats = true
    this.#updateBacklogs()
    let sent = 0
    const uptime = this.#options.uptime()
    const isStuckCheckDue = uptime - this.#stuckCheckedAt >= STUCK_CHECK_MS
    if (isStuckCheckDue) this.#stuckCheckedAt = uptime
    for (const listener of this.#listeners) {
      if (isStuckCheckDue && listener.isStuck(uptime)) this.disconnect(listener, 'too_slow')
      else if (listener.heartbeatMs === null || uptime < listener.heartbeatDueAt) continue
      else this.#sendHeartbeat(listener, listener.heartbeatMs)
      sent += 1
      if (sent % HEARTBEATS_PER_TICK === 0) await nextTurn()
    }
    this.#isSendingHeartbeats = false
  }

  /** Disconnects a listener that does not keep up, and returns false. */
  readonly mayWrite = (listener: Listener): boolean => {
    if (listener.state === 'disconnected') return false
    if (this.#backlogs.keepsUp(listener)) return true
    this.disconnect(listener, 'too_slow')
    return false
  }

  /** Whether a listener of this view may join at a position: not if live listeners are behind it, or amid the parts of a seal. */
  isJoinable(stage: Stage, { seq }: TapePosition): boolean {
    return seq <= this.deliveredSeq && (stage === 'preconfirmed' || this.delivery.part === null)
  }

  /** Disconnects the clients whose API keys were removed. */
  disconnectAll(clients: ReadonlySet<string>): void {
    for (const listener of this.#listeners) if (clients.has(listener.address)) this.disconnect(listener, 'forbidden')
  }

  drain(): void {
    this.delivery.flush()
    this.isDraining = true
    this.#drained = this.#listeners.size
    for (const listener of this.#listeners) this.disconnect(listener, 'going_away')
  }

  reopen(): void {
    this.isDraining = false
    this.#drained = 0
  }

  close(): void {
    this.#unfollow()
    this.delivery.flush()
    this.delivery.close()
  }

  #retryMs(): number {
    const { isOneOfMany, random } = this.#options
    if (!isOneOfMany) return Math.round(RETRY_LEAST_MS + random() * RETRY_SPREAD_MS)
    const listeners = Math.max(this.#drained, this.#listeners.size)
    return Math.round(random() * Math.max(OTHERS_SPREAD_MS, listeners * OTHERS_SPREAD_MS_PER_LISTENER))
  }

  /** Makes a listener replay the next updates, because eviction removed some of them and a replay reports that with a gap. */
  #replayAgain(listener: Listener): void {
    const { part, deliveredSeq } = this.delivery
    listener.leaveLive(part?.seq ?? deliveredSeq, part?.n ?? null)
    this.#audiences.remove(listener)
    listener.replayAgain?.()
  }

  #sendHeartbeat(listener: Listener, intervalMs: number): void {
    listener.heartbeatDueAt = this.#options.uptime() + intervalMs
    const { backlog } = listener.outlet
    if (listener.outlet.ping()) return this.disconnect(listener, 'no_pong')
    const position = this.positionOf(listener)
    // A listener has no position before its stream starts. While it has replay bytes to read, it needs no heartbeat.
    if (position === null || (listener.state === 'replaying' && listener.outlet.backlog > 0)) return
    if (this.mayWrite(listener)) listener.sendNotice(this.#heartbeatNotice(listener, position, backlog))
  }

  readonly #backlogCheck: BacklogCheck = {
    mayWrite: (listener) => this.mayWrite(listener),
    hold: (listener, bytes) => this.#backlogs.hold(listener, bytes),
  }

  #updateBacklogs(): void {
    this.#backlogs.update()
    this.#backlogs.enforceHeldBound((listener) => {
      this.disconnect(listener, 'too_slow')
      listener.outlet.cut()
    })
    this.#options.counters.held(this.#backlogs.heldBytes)
  }

  #heartbeatNotice(listener: Listener, id: string, backlog: number): NoticeOf<'heartbeat'> {
    const { tape, current, wallTime } = this.#options
    return {
      type: 'heartbeat',
      id,
      end: this.position(tape.end()),
      time: new Date(wallTime()).toISOString(),
      head: current.head,
      source: current.source,
      sent: listener.sent,
      backlog,
    }
  }
}

const isSealed = ({ options }: Listener): boolean => options.stage === 'sealed'

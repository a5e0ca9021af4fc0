import { performance } from 'node:perf_hooks'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { CloseReason } from '../../protocol/close-codes.ts'
import type { NoticeOf } from '../../protocol/notices.ts'
import { formatPosition } from '../../protocol/position.ts'
import { Refusal } from '../../protocol/refusal.ts'
import type { Notes } from '../../tape/notes.ts'
import type { Entry, SearchableTape } from '../../tape/tape.ts'
import { ConnectionLimits } from '../limits/connections.ts'
import type { Selection } from '../select/compiled-selection.ts'
import { Frame } from '../select/frame.ts'
import type { View } from '../select/view.ts'
import type { Transport } from '../transport/encode.ts'
import { Audiences } from './audiences.ts'
import { BatchDelay } from './batch-delay.ts'
import type { Listener } from './listener.ts'
import { RecentUpdates } from './recent.ts'

/** What waits together at most. */
const UNDELIVERED_BOUND = 2_048
/** How often it is looked who is stuck. */
const STUCK_CHECK_MS = 5_000
/** Heartbeats in one go; then whatever else is due has its turn. */
const HEARTBEATS_PER_TICK = 250
/** A listener that is sent away comes back after a time drawn from this range, so that not all come at once. */
const RETRY_LEAST_MS = 500
const RETRY_SPREAD_MS = 4_500

const limitRefusals = {
  full: new Refusal(503, 'full', 'Too many listeners are connected; come back later.'),
  too_many_connections: new Refusal(
    429,
    'too_many_connections',
    'Too many listeners come from your address; close some.',
  ),
} as const

type Options = {
  readonly tape: SearchableTape
  readonly view: View
  readonly now: () => number
  readonly uptime: () => number
  readonly random: () => number
  readonly backlogBoundBytes: number
  readonly clientsBound: number
  readonly clientsPerAddressBound: number
  readonly selectionsBound: number
  /** The longest that an update waits for others where very many listen. */
  readonly batchDelayBoundMs: number
  /** What is counted of those who come, go and are shown out. */
  readonly counters: {
    connected(carrier: Transport): void
    disconnected(carrier: Transport): void
    disconnectedAsSlow(): void
  }
}

/** Who listens. Follows the tape and gives each audience its part of every turn. */
export class Hub {
  readonly #options: Options
  readonly #listeners = new Set<Listener>()
  readonly #audiences = new Audiences()
  readonly #listenerCounts: Record<Transport, number> = { ws: 0, sse: 0, 'sse-named': 0, ndjson: 0, text: 0 }
  /** Who is there, also beside those who listen to the tape. */
  readonly connectionLimits: ConnectionLimits
  readonly #batchDelay: BatchDelay
  readonly #unfollow: () => void
  /** What is on the tape and not delivered yet. */
  #undelivered: Entry[] = []
  #flushTimer: NodeJS.Timeout | null = null
  /** What was delivered last. */
  readonly #recent: RecentUpdates
  /** The last number that every live listener was given or that was passed over. */
  #deliveredSeq: number
  #isSendingHeartbeats = false
  #stuckCheckedAt = 0
  #isDraining = false

  constructor(options: Options) {
    this.#options = options
    const { clientsBound, clientsPerAddressBound: perAddressBound, batchDelayBoundMs } = options
    this.connectionLimits = new ConnectionLimits({ clientsBound, perAddressBound })
    this.#batchDelay = new BatchDelay(batchDelayBoundMs)
    this.#deliveredSeq = options.tape.end()
    this.#recent = new RecentUpdates(this.#deliveredSeq)
    this.#unfollow = options.tape.follow((batch, notes) => this.#receive(batch, notes))
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  /** How many listen now, by carrier. */
  get listenerCounts(): Readonly<Record<Transport, number>> {
    return this.#listenerCounts
  }

  /** Why nobody else can come in from an address; null if there is room. */
  exceededLimit(address: string): ReturnType<ConnectionLimits['exceededLimit']> {
    return this.connectionLimits.exceededLimit(address)
  }

  /** Why nobody else can come in, or not with this selection; null if there is room. */
  refusal(selection: Selection, address: string): Refusal | null {
    const exceeded = this.exceededLimit(address)
    return exceeded ? limitRefusals[exceeded] : this.selectionRefusal(selection)
  }

  /** Resolves when the listener may begin to replay, or has left, with what is to be called when it is through. */
  acquireReplaySlot(listener: Listener): Promise<() => void> {
    return this.connectionLimits.acquireReplaySlot(listener)
  }

  get deliveredSeq(): number {
    return this.#deliveredSeq
  }

  /** The number after which all frames are at hand. */
  get recentSinceSeq(): number {
    return this.#recent.sinceSeq
  }

  position(seq: number, n: number | null = null): string {
    return formatPosition(this.#options.tape.epoch, seq, n)
  }

  /** Where a listener would go on from: a live one has had, or has no use for, all that was delivered. */
  positionOf(listener: Listener): string | null {
    if (this.#audiences.has(listener)) return this.position(this.#deliveredSeq)
    return listener.seq === null ? null : this.position(listener.seq, listener.n)
  }

  add(listener: Listener): void {
    this.#listeners.add(listener)
    this.connectionLimits.add(listener)
    this.#listenerCounts[listener.transport] += 1
    this.#options.counters.connected(listener.transport)
  }

  /** What stands after `seq` if all of it is at hand, else null. */
  recentAfter(seq: number): readonly Entry[] | null {
    return this.#recent.after(seq)
  }

  /** Why there is no room for a selection: those with value filters cannot be shared, so they are bounded. */
  selectionRefusal(selection: Selection, listener?: Listener): Refusal | null {
    if (this.#audiences.filteredCountWith(selection, listener) <= this.#options.selectionsBound) return null
    const advice = 'Too many different value filters are in use now; leave out min_value, min_shares and party.'
    return new Refusal(429, 'too_many_selections', advice)
  }

  /** The listener hears everything from now on, as its selection stands. */
  join(listener: Listener): void {
    this.flush()
    this.#audiences.assign(listener)
    listener.advance(this.#deliveredSeq)
    listener.state = 'live'
  }

  /** Forgets a listener whose connection is gone. */
  remove(listener: Listener): void {
    listener.state = 'parted'
    this.#audiences.remove(listener)
    if (!this.#listeners.delete(listener)) return
    this.connectionLimits.remove(listener)
    this.#listenerCounts[listener.transport] -= 1
    this.#options.counters.disconnected(listener.transport)
  }

  /** Shows a listener out: a last word with its position, then the end. */
  disconnect(listener: Listener, reason: CloseReason): void {
    if (listener.state === 'parted') return
    const position = this.positionOf(listener)
    const retry_ms = Math.round(RETRY_LEAST_MS + this.#options.random() * RETRY_SPREAD_MS)
    listener.sendNotice({ type: 'bye', id: position, reason: reason, retry_ms })
    this.remove(listener)
    listener.outlet.end(reason, position)
  }

  /** Heartbeats and pings to all whose time has come. */
  async sendHeartbeats(): Promise<void> {
    if (this.#isSendingHeartbeats) return
    this.#isSendingHeartbeats = true
    let sent = 0
    const uptime = this.#options.uptime()
    const isStuckCheckDue = uptime - this.#stuckCheckedAt >= STUCK_CHECK_MS
    if (isStuckCheckDue) this.#stuckCheckedAt = uptime
    for (const listener of this.#listeners) {
      if (isStuckCheckDue && listener.isStuck(uptime)) this.#disconnectSlow(listener)
      else if (listener.heartbeatMs === null || uptime < listener.heartbeatDueAt) continue
      else this.#sendHeartbeat(listener, listener.heartbeatMs)
      sent += 1
      if (sent % HEARTBEATS_PER_TICK === 0) await yieldToEventLoop()
    }
    this.#isSendingHeartbeats = false
  }

  /** Whether a listener keeps up; one that does not is shown out, and nobody else notices. */
  readonly mayWrite = (listener: Listener): boolean => {
    if (listener.state === 'parted') return false
    if (listener.overdueBytes() <= this.#options.backlogBoundBytes) return true
    this.#disconnectSlow(listener)
    return false
  }

  /** Delivers what is on the tape; nothing waits any longer. */
  flush(): void {
    if (this.#flushTimer) clearTimeout(this.#flushTimer)
    this.#flushTimer = null
    const endSeq = this.#undelivered.at(-1)?.seq
    if (endSeq === undefined) return
    const frames = this.#undelivered.map((entry) => new Frame(entry, this.#options.tape))
    this.#recent.add(this.#undelivered)
    this.#undelivered = []
    const from = performance.now()
    this.#audiences.deliver(frames, endSeq, this.mayWrite)
    this.#batchDelay.recordRound(from, performance.now())
    this.#deliveredSeq = endSeq
  }

  /** Sends everybody away, in order and with their positions. */
  drain(): void {
    this.flush()
    this.#isDraining = true
    for (const listener of this.#listeners) this.disconnect(listener, 'going_away')
  }

  close(): void {
    this.flush()
    this.#unfollow()
  }

  #receive(batch: readonly Entry[], notes: Notes): void {
    this.#options.view.apply(notes)
    if (batch.length === 0) return
    for (const entry of batch) this.#undelivered.push(entry)
    const delayMs = this.#batchDelay.delayMs(performance.now())
    if (delayMs === 0 || this.#undelivered.length >= UNDELIVERED_BOUND) return this.flush()
    this.#flushTimer ??= setTimeout(() => this.flush(), delayMs)
  }

  #sendHeartbeat(listener: Listener, intervalMs: number): void {
    listener.heartbeatDueAt = this.#options.uptime() + intervalMs
    const { backlog } = listener.outlet
    if (listener.outlet.ping()) return this.disconnect(listener, 'no_pong')
    const position = this.positionOf(listener)
    // Before a stream has begun there is no place in it to name.
    if (position === null || isStillReplaying(listener)) return
    if (this.mayWrite(listener)) listener.sendNotice(this.#heartbeatNotice(listener, position, backlog))
  }

  #disconnectSlow(listener: Listener): void {
    this.#options.counters.disconnectedAsSlow()
    this.disconnect(listener, 'too_slow')
  }

  #heartbeatNotice(listener: Listener, id: string, backlog: number): NoticeOf<'heartbeat'> {
    const { tape, view, now } = this.#options
    return {
      type: 'heartbeat',
      id,
      end: this.position(tape.end()),
      time: new Date(now()).toISOString(),
      head: view.head,
      source: view.source,
      sent: listener.sent,
      backlog,
    }
  }
}

/** Whoever has a replay left to read needs no sign of life, and must not be given more to read. */
const isStillReplaying = (listener: Listener): boolean => listener.state === 'replaying' && listener.outlet.backlog > 0

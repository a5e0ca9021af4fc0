import { performance } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Farewell } from '../../protocol/close-codes.ts'
import type { NoticeOf } from '../../protocol/notices.ts'
import { formatPosition } from '../../protocol/position.ts'
import { Refusal } from '../../protocol/refusal.ts'
import type { Entry, Notes, Tape } from '../../tape/tape.ts'
import { Attendance } from '../limits/connections.ts'
import type { Selection } from '../select/compiled-selection.ts'
import { Frame } from '../select/frame.ts'
import type { View } from '../select/view.ts'
import type { Carrier } from '../transport/encode.ts'
import { Audiences } from './audiences.ts'
import { Patience } from './batch-delay.ts'
import type { Listener } from './listener.ts'
import { Recent } from './recent.ts'

/** What waits together at most. */
const GATHERED_BOUND = 2_048
/** How often it is looked who is stuck. */
const STUCK_EVERY_MS = 5_000
/** Heartbeats in one go; then whatever else is due has its turn. */
const BEATS_AT_ONCE = 250
/** A listener that is sent away comes back after a time drawn from this range, so that not all come at once. */
const RETRY_LEAST_MS = 500
const RETRY_SPREAD_MS = 4_500

const refusals = {
  full: new Refusal(503, 'full', 'Too many listeners are connected; come back later.'),
  too_many_connections: new Refusal(
    429,
    'too_many_connections',
    'Too many listeners come from your address; close some.',
  ),
} as const

type Options = {
  readonly tape: Tape
  readonly view: View
  readonly now: () => number
  readonly uptime: () => number
  readonly dice: () => number
  readonly backlogBoundBytes: number
  readonly clientsBound: number
  readonly clientsPerAddressBound: number
  readonly selectionsBound: number
  /** The longest that an update waits for others where very many listen. */
  readonly patienceBoundMs: number
  /** What is counted of those who come, go and are shown out. */
  readonly count: { came(carrier: Carrier): void; went(carrier: Carrier): void; shownOut(): void }
}

/** Who listens. Follows the tape and gives each audience its part of every turn. */
export class Hub {
  readonly #options: Options
  readonly #listeners = new Set<Listener>()
  readonly #audiences = new Audiences()
  readonly #present: Record<Carrier, number> = { ws: 0, sse: 0, 'sse-named': 0, ndjson: 0, text: 0 }
  /** Who is there, also beside those who listen to the tape. */
  readonly attendance: Attendance
  readonly #patience: Patience
  readonly #leave: () => void
  /** What is on the tape and not delivered yet. */
  #gathered: Entry[] = []
  #waiting: NodeJS.Timeout | null = null
  /** What was delivered last. */
  readonly #recent: Recent
  /** The last number that every live listener was given or that was passed over. */
  #delivered: number
  #beating = false
  #lookedAt = 0
  #draining = false

  constructor(options: Options) {
    this.#options = options
    const { clientsBound, clientsPerAddressBound: perAddressBound, patienceBoundMs } = options
    this.attendance = new Attendance({ clientsBound, perAddressBound })
    this.#patience = new Patience(patienceBoundMs)
    this.#delivered = options.tape.end()
    this.#recent = new Recent(this.#delivered)
    this.#leave = options.tape.follow((turn, notes) => this.#take(turn, notes))
  }

  get draining(): boolean {
    return this.#draining
  }

  /** How many listen now, by carrier. */
  get present(): Readonly<Record<Carrier, number>> {
    return this.#present
  }

  /** Why nobody else can come in from an address; null if there is room. */
  objection(address: string): ReturnType<Attendance['objection']> {
    return this.attendance.objection(address)
  }

  /** Why nobody else can come in, or not with this selection; null if there is room. */
  refusal(selection: Selection, address: string): Refusal | null {
    const objection = this.objection(address)
    return objection ? refusals[objection] : this.crowded(selection)
  }

  /** Resolves when the listener may begin to replay, or has left, with what is to be called when it is through. */
  replayTurn(listener: Listener): Promise<() => void> {
    return this.attendance.replayTurn(listener)
  }

  get delivered(): number {
    return this.#delivered
  }

  /** The number after which all frames are at hand. */
  get recentSince(): number {
    return this.#recent.since
  }

  position(seq: number, n: number | null = null): string {
    return formatPosition(this.#options.tape.epoch, seq, n)
  }

  /** Where a listener would go on from: a live one has had, or has no use for, all that was delivered. */
  positionOf(listener: Listener): string | null {
    if (this.#audiences.has(listener)) return this.position(this.#delivered)
    return listener.seq === null ? null : this.position(listener.seq, listener.n)
  }

  enter(listener: Listener): void {
    this.#listeners.add(listener)
    this.attendance.enter(listener)
    this.#present[listener.carrier] += 1
    this.#options.count.came(listener.carrier)
  }

  /** What stands after `seq` if all of it is at hand, else null. */
  recentAfter(seq: number): readonly Entry[] | null {
    return this.#recent.after(seq)
  }

  /** Why there is no room for a selection: those with value filters cannot be shared, so they are bounded. */
  crowded(selection: Selection, listener?: Listener): Refusal | null {
    if (this.#audiences.filteredWith(selection, listener) <= this.#options.selectionsBound) return null
    const advice = 'Too many different value filters are in use now; leave out min_value, min_shares and party.'
    return new Refusal(429, 'too_many_selections', advice)
  }

  /** The listener hears everything from now on, as its selection stands. */
  join(listener: Listener): void {
    this.flush()
    this.#audiences.seat(listener)
    listener.passOver(this.#delivered)
    listener.state = 'live'
  }

  /** Forgets a listener whose connection is gone. */
  leave(listener: Listener): void {
    listener.state = 'parted'
    this.#audiences.unseat(listener)
    if (!this.#listeners.delete(listener)) return
    this.attendance.leave(listener)
    this.#present[listener.carrier] -= 1
    this.#options.count.went(listener.carrier)
  }

  /** Shows a listener out: a last word with its position, then the end. */
  part(listener: Listener, farewell: Farewell): void {
    if (listener.state === 'parted') return
    const position = this.positionOf(listener)
    const retry_ms = Math.round(RETRY_LEAST_MS + this.#options.dice() * RETRY_SPREAD_MS)
    listener.say({ type: 'bye', id: position, reason: farewell, retry_ms })
    this.leave(listener)
    listener.outlet.end(farewell, position)
  }

  /** Heartbeats and pings to all whose time has come. */
  async beat(): Promise<void> {
    if (this.#beating) return
    this.#beating = true
    let beats = 0
    const uptime = this.#options.uptime()
    const looks = uptime - this.#lookedAt >= STUCK_EVERY_MS
    if (looks) this.#lookedAt = uptime
    for (const listener of this.#listeners) {
      if (looks && listener.isStuck(uptime)) this.#showOut(listener)
      else if (listener.heartbeatMs === null || uptime < listener.beatAt) continue
      else this.#beatOf(listener, listener.heartbeatMs)
      beats += 1
      if (beats % BEATS_AT_ONCE === 0) await nextTurn()
    }
    this.#beating = false
  }

  /** Whether a listener keeps up; one that does not is shown out, and nobody else notices. */
  readonly mayWrite = (listener: Listener): boolean => {
    if (listener.state === 'parted') return false
    if (listener.overdueBytes() <= this.#options.backlogBoundBytes) return true
    this.#showOut(listener)
    return false
  }

  /** Delivers what is on the tape; nothing waits any longer. */
  flush(): void {
    if (this.#waiting) clearTimeout(this.#waiting)
    this.#waiting = null
    const end = this.#gathered.at(-1)?.seq
    if (end === undefined) return
    const frames = this.#gathered.map((entry) => new Frame(entry, this.#options.tape))
    this.#recent.add(this.#gathered)
    this.#gathered = []
    const from = performance.now()
    this.#audiences.deliver(frames, end, this.mayWrite)
    this.#patience.took(from, performance.now())
    this.#delivered = end
  }

  /** Sends everybody away, in order and with their positions. */
  drain(): void {
    this.flush()
    this.#draining = true
    for (const listener of this.#listeners) this.part(listener, 'going_away')
  }

  close(): void {
    this.flush()
    this.#leave()
  }

  #take(turn: readonly Entry[], notes: Notes): void {
    this.#options.view.take(notes)
    if (turn.length === 0) return
    for (const entry of turn) this.#gathered.push(entry)
    const ms = this.#patience.ms(performance.now())
    if (ms === 0 || this.#gathered.length >= GATHERED_BOUND) return this.flush()
    this.#waiting ??= setTimeout(() => this.flush(), ms)
  }

  #beatOf(listener: Listener, everyMs: number): void {
    listener.beatAt = this.#options.uptime() + everyMs
    const { backlog } = listener.outlet
    if (listener.outlet.ping()) return this.part(listener, 'no_pong')
    const position = this.positionOf(listener)
    // Before a stream has begun there is no place in it to name.
    if (position === null || isReadingUp(listener)) return
    if (this.mayWrite(listener)) listener.say(this.#heartbeat(listener, position, backlog))
  }

  #showOut(listener: Listener): void {
    this.#options.count.shownOut()
    this.part(listener, 'too_slow')
  }

  #heartbeat(listener: Listener, id: string, backlog: number): NoticeOf<'heartbeat'> {
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
const isReadingUp = (listener: Listener): boolean => listener.state === 'replaying' && listener.outlet.backlog > 0

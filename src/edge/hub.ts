import type { NoticeOf } from '../protocol/connection.ts'
import type { Farewell } from '../protocol/farewell.ts'
import { formatPosition } from '../protocol/position.ts'
import { Refusal } from '../protocol/refusal.ts'
import type { Entry, Notes, Tape } from '../tape/tape.ts'
import { Audience } from './audience.ts'
import type { Carrier } from './carrier.ts'
import { Frame } from './frame.ts'
import type { Listener } from './listener.ts'
import { hasValueFilter, nameOf, type Selection } from './selection.ts'
import type { View } from './view.ts'

/** Frames of the newest updates kept at hand, so that joining needs no question to the tape at its last step. */
const RECENT_BOUND = 2_048
/** A listener that is sent away comes back after a time drawn from this range, so that not all come at once. */
const RETRY_LEAST_MS = 500
const RETRY_SPREAD_MS = 4_500

type Options = {
  readonly tape: Tape
  readonly view: View
  readonly now: () => number
  readonly dice: () => number
  readonly backlogBoundBytes: number
  readonly clientsBound: number
  readonly selectionsBound: number
  /** What is counted of those who come, go and are shown out. */
  readonly count: { came(carrier: Carrier): void; went(carrier: Carrier): void; shownOut(): void }
}

/** Who listens. Follows the tape and gives each audience its part of every turn. */
export class Hub {
  readonly #options: Options
  readonly #listeners = new Set<Listener>()
  readonly #audiences = new Map<string, Audience>()
  readonly #joined = new Map<Listener, { readonly name: string; readonly audience: Audience }>()
  readonly #leave: () => void
  /** The newest frames, and the number after which they are complete. */
  #recent: Frame[] = []
  #recentSince: number
  /** The last number that every live listener was given or that was passed over. */
  #delivered: number
  #filtered = 0
  #draining = false

  constructor(options: Options) {
    this.#options = options
    this.#delivered = options.tape.end()
    this.#recentSince = this.#delivered
    this.#leave = options.tape.follow((turn, notes) => this.#deliver(turn, notes))
  }

  get draining(): boolean {
    return this.#draining
  }

  /** Whether as many listen as may. */
  get full(): boolean {
    return this.#listeners.size >= this.#options.clientsBound
  }

  /** Why nobody else can come in, or not with this selection; null if there is room. */
  refusal(selection: Selection): Refusal | null {
    if (this.full) return new Refusal(503, 'full', 'Too many listeners are connected; come back later.')
    return this.crowded(selection)
  }

  get delivered(): number {
    return this.#delivered
  }

  /** The number after which all frames are at hand. */
  get recentSince(): number {
    return this.#recentSince
  }

  position(seq: number, n: number | null = null): string {
    return formatPosition(this.#options.tape.epoch, seq, n)
  }

  /** Where a listener would go on from: a live one has had, or has no use for, all that was delivered. */
  positionOf(listener: Listener): string | null {
    if (this.#joined.has(listener)) return this.position(this.#delivered)
    return listener.seq === null ? null : this.position(listener.seq, listener.n)
  }

  enter(listener: Listener): void {
    this.#listeners.add(listener)
    this.#options.count.came(listener.carrier)
  }

  /** The frames after `seq` if they are all at hand, else null. */
  recentAfter(seq: number): readonly Frame[] | null {
    return seq < this.#recentSince ? null : this.#recent.filter((frame) => frame.seq > seq)
  }

  /** Why there is no room for a selection: those with value filters cannot be shared, so they are bounded. */
  crowded(selection: Selection, listener?: Listener): Refusal | null {
    const another = hasValueFilter(selection) && !this.#audiences.has(nameOf(selection))
    const left = listener && this.#joined.get(listener)?.audience
    const filtered = this.#filtered - (left?.filtered && left.size === 1 ? 1 : 0)
    if (!another || filtered < this.#options.selectionsBound) return null
    const advice = 'Too many different value filters are in use now; leave out min_value, min_shares and party.'
    return new Refusal(429, 'too_many_selections', advice)
  }

  /** The listener hears every turn from now on, as its selection stands. */
  join(listener: Listener): void {
    const selection: Selection = { tokens: listener.tokens, options: listener.options }
    const name = nameOf(selection)
    const before = this.#joined.get(listener)
    if (before?.name === name) return
    let audience = this.#audiences.get(name)
    if (!audience) {
      audience = new Audience(selection)
      this.#audiences.set(name, audience)
      if (audience.filtered) this.#filtered += 1
    }
    audience.add(listener)
    this.#quit(listener)
    this.#joined.set(listener, { name, audience })
    listener.passOver(this.#delivered)
    listener.state = 'live'
  }

  /** Forgets a listener whose connection is gone. */
  leave(listener: Listener): void {
    listener.state = 'parted'
    this.#quit(listener)
    if (this.#listeners.delete(listener)) this.#options.count.went(listener.carrier)
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
  beat(): void {
    const now = this.#options.now()
    for (const listener of this.#listeners) {
      if (listener.heartbeatMs === null || now < listener.beatAt) continue
      listener.beatAt = now + listener.heartbeatMs
      if (listener.outlet.ping()) this.part(listener, 'no_pong')
      const position = this.positionOf(listener)
      // Before a stream has begun there is no place in it to name.
      if (listener.state === 'parted' || position === null || isReadingUp(listener)) continue
      if (this.mayWrite(listener)) listener.say(this.#heartbeat(listener, position))
    }
  }

  /** Whether a listener keeps up; one that does not is shown out, and nobody else notices. */
  readonly mayWrite = (listener: Listener): boolean => {
    if (listener.state === 'parted') return false
    if (listener.overdueBytes() <= this.#options.backlogBoundBytes) return true
    this.#options.count.shownOut()
    this.part(listener, 'too_slow')
    return false
  }

  /** Sends everybody away, in order and with their positions. */
  drain(): void {
    this.#draining = true
    for (const listener of this.#listeners) this.part(listener, 'going_away')
  }

  close(): void {
    this.#leave()
  }

  #deliver(turn: readonly Entry[], notes: Notes): void {
    this.#options.view.take(notes)
    const end = turn.at(-1)?.seq
    if (end === undefined) return
    const frames = turn.map((entry) => new Frame(entry, this.#options.tape))
    for (const frame of frames) this.#recent.push(frame)
    if (this.#recent.length > 2 * RECENT_BOUND) {
      const forgotten = this.#recent.splice(0, this.#recent.length - RECENT_BOUND)
      this.#recentSince = forgotten.at(-1)?.seq ?? this.#recentSince
    }
    for (const audience of this.#audiences.values()) audience.deliver(frames, end, this.mayWrite)
    this.#delivered = end
  }

  #heartbeat(listener: Listener, id: string): NoticeOf<'heartbeat'> {
    const { tape, view, now } = this.#options
    return {
      type: 'heartbeat',
      id,
      end: this.position(tape.end()),
      time: new Date(now()).toISOString(),
      head: view.head,
      source: view.source,
      sent: listener.sent,
      backlog: listener.outlet.backlog,
    }
  }

  #quit(listener: Listener): void {
    const joined = this.#joined.get(listener)
    if (!joined) return
    const { name, audience } = joined
    this.#joined.delete(listener)
    audience.remove(listener)
    if (audience.size > 0) return
    this.#audiences.delete(name)
    if (audience.filtered) this.#filtered -= 1
  }
}

/** Whoever has a replay left to read needs no sign of life, and must not be given more to read. */
const isReadingUp = (listener: Listener): boolean => listener.state === 'replaying' && listener.outlet.backlog > 0

import { filterParameters, followingTypes } from '../generated/names.ts'
import type { Gap } from './options.ts'
import { isNotAfter } from './position-order.ts'

/** Pairs of address and type whose last message is known. Beyond it the proof begins anew. */
const CHAINS_BOUND = 100_000
/**
 * Ids since the last proof. Beyond it they are forgotten: the next heartbeat still reports a loss among them, but it cannot
 * be filled, and a connection that breaks before is resumed after the newest one.
 */
const SEEN_BOUND = 100_000

/** A message of the tape, as far as the proof reads it. */
export type ChainedMessage = {
  readonly id: string
  readonly type: string
  readonly prev: string | null
  readonly address?: string | null
}

/** A range that is incomplete: what to read in it, and the ids that were received, unless they were too many. */
export type Loss = {
  readonly after: string
  readonly through: string
  /** Null: the tape has lost messages that were received, so there is nothing to read. */
  readonly query: URLSearchParams | null
  readonly received: ReadonlySet<string> | null
  /** The type of the missing messages, if it is known. The query also gives how their facts end. */
  readonly type?: string
  /** How many are missing, if a heartbeat counted them. */
  readonly count?: number
  /** The ids received in it: the history still has them, or the tape has lost them. */
  readonly due?: readonly string[] | null
}

/**
 * Proves that nothing is missing in a stream: by the chain of `prev`, and by the number of messages that heartbeats
 * report. A selection with value filters and the sealed view have no chains, so there only the number counts.
 *
 * The number of a connection that breaks never comes, and a gap of the relay ends the chains. So a new connection continues
 * at the last proof. The relay sends again what followed it, or reports a gap that begins there. What was received is
 * dropped by its id: messages that were lost lie between those that were not. What the relay does not send again, the tape
 * has lost.
 */
export class LossDetector {
  readonly #selection: URLSearchParams
  readonly #hasChains: boolean
  /** `*` also for the types by default: all of them have chains. */
  readonly #types: readonly string[]
  #lastIds = new Map<string, string>()
  /** Where the unbroken stream begins. */
  #start = ''
  /** Up to here nothing is missing, or it was reported. */
  #proven = ''
  /** The ids after it; null when there were too many. */
  #seen: Set<string> | null = new Set()
  /** Those of earlier connections that this one has still to repeat. */
  #due = new Set<string>()
  /** What the connection brought, and how many of its messages are known to be missing. */
  #received = 0
  #missing = 0
  /** Whether the connection counts: a gap after that is in the middle of it. */
  #isCounting = false
  #isLive = false

  constructor(selection: URLSearchParams) {
    this.#selection = selection
    this.#types = (selection.get('types') ?? '*').split(',')
    const hasFilter = filterParameters.some(([, name]) => selection.has(name))
    this.#hasChains = !hasFilter && selection.get('stage') !== 'sealed'
  }

  /** The ids that were received since the last proof. */
  get seen(): ReadonlySet<string> {
    return this.#seen ?? new Set()
  }

  /** Whether the tape may have lost what was received: a position that a program stores now would hide it. */
  get hasDue(): boolean {
    return this.#due.size > 0
  }

  /** Where a new connection continues. `position` is the newest one received. */
  resumeFrom(position: string): string {
    return (this.#seen && this.#proven) || position
  }

  /** A connection begins after a position; null where a gap follows. */
  startConnection(position: string | null): void {
    this.#isLive = false
    this.#isCounting = position !== null
    this.#received = 0
    this.#missing = 0
    this.#proven = position ?? this.#proven
    this.#start ||= this.#proven
    this.#due = idsAfter(this.seen, this.#proven)
  }

  /**
   * A gap: the stream goes on at a position. What came before it is no proof of what follows, but may be repeated. Returns
   * what was due in the gap, or null where the position was lost or never given: what comes may have ids that came before.
   */
  restart(after: string | null, position: string): readonly string[] | null {
    const goesOn = after !== null && isNotAfter(after, position)
    this.#start = position
    // A chain that was received beyond the position goes on.
    for (const [chain, id] of this.#lastIds) if (!goesOn || isNotAfter(id, position)) this.#lastIds.delete(chain)
    const due = this.#takeDue((id) => !goesOn || (!isNotAfter(id, after) && isNotAfter(id, position)))
    // The next heartbeat still counts what came before, also if all of it was lost on the way.
    if (!this.#isCounting || after === this.#proven) {
      this.#proven = position
      this.#isCounting = true
      if (!goesOn) this.#seen = new Set()
    }
    return goesOn ? due : null
  }

  /**
   * Whether the message was received before, or its chain has shown that it was missing: each chain comes in order.
   * `position` is the newest one received.
   */
  isRepeat(message: ChainedMessage, position: string | null): boolean {
    const { id } = message
    this.#due.delete(id)
    this.#received += 1
    if (position === null || !isNotAfter(id, position)) return false
    const last = this.#lastIds.get(chainOf(message)) ?? ''
    return this.#seen === null || isNotAfter(id, this.#proven) || isNotAfter(id, last) || this.#seen.has(id)
  }

  /** Takes a new message. Returns what is missing before it. */
  receive(message: ChainedMessage): Loss | null {
    const { id, type, prev, address } = message
    if (this.#seen?.size === SEEN_BOUND) this.#seen = null
    this.#seen?.add(id)
    if (!this.#hasChain(type)) return null
    const chain = chainOf(message)
    const last = this.#lastIds.get(chain)
    if (this.#lastIds.size === CHAINS_BOUND) {
      this.#lastIds.clear()
      this.#start = id
    }
    this.#lastIds.set(chain, id)
    // A tape that lost its end, and with it what was received last, goes on before that: nothing is missing.
    if (prev === null || isNotAfter(prev, last ?? this.#start)) return null
    // What is proven was counted before.
    if (!isNotAfter(prev, this.#proven)) this.#missing += 1
    const query = new URLSearchParams({ symbols: address ?? '*', types: type })
    return { after: last ?? this.#start, through: prev, query, received: this.#seen, type }
  }

  /** The replay is over. A later one, after a gap in the middle of the stream, does not count what was sent live. */
  receiveLive(replayed: number, position: string): Loss | null {
    if (this.#isLive) return null
    this.#isLive = true
    return this.receiveCount(replayed, position)
  }

  /** The relay says how many messages this connection has sent, and up to where. Returns what is missing. */
  receiveCount(sent: number, position: string): Loss | null {
    const missing = sent - this.#received
    const count = missing - this.#missing
    const due = this.#takeDue((id) => isNotAfter(id, position))
    // A repetition that is lost on the way is one of the missing.
    const isLost = due.length > Math.max(missing, 0)
    const isNew = isLost || (count > 0 && isNotAfter(this.#proven, position))
    const query = isLost ? null : this.#selection
    const loss = { after: this.#proven, through: position, query, received: this.#seen, count, due }
    this.#missing = missing
    this.#proven = position
    // Another relay may have given more than this one has by now.
    this.#seen = idsAfter(this.seen, position)
    return isNew ? loss : null
  }

  /** Takes the ids that will not be repeated any more. */
  #takeDue(isOver: (id: string) => boolean): readonly string[] {
    const due = [...this.#due].filter(isOver)
    for (const id of due) this.#due.delete(id)
    return due
  }

  #hasChain(type: string): boolean {
    return this.#hasChains && (this.#types.includes('*') || this.#types.includes(type) || !followingTypes.includes(type))
  }
}

const idsAfter = (ids: ReadonlySet<string>, position: string) => new Set([...ids].filter((id) => !isNotAfter(id, position)))

const chainOf = ({ address, type }: ChainedMessage): string => `${address} ${type}`

/** A loss as the item that the stream yields. It goes on at `id`. */
export const gapOf = ({ after, through, query }: Loss, id: string): Gap => ({
  type: 'gap',
  id,
  reason: query ? 'missed' : 'expired',
  after,
  through,
  backfill: query && `/v1/events?${query}&after=${after}&through=${through}`,
})

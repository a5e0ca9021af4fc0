import { filterParameters, followingTypes } from '../generated/names.ts'
import { isNotAfter } from './position-order.ts'
import type { Gap } from './stream-item.ts'

/** Limit on the chains (pairs of address and type) whose last id is kept. Beyond it, the proof restarts. */
const CHAINS_BOUND = 100_000
/** Limit on the ids kept since the last proof. Beyond it, a loss cannot be filled, and a resume begins at the newest id. */
const SEEN_BOUND = 100_000

export type ChainedMessage = {
  readonly id: string
  readonly type: string
  readonly prev: string | null
  readonly address?: string | null
}

/** An incomplete range of the stream. */
export type Loss = {
  readonly after: string
  readonly through: string
  /** Selects the messages of the range; null if the tape has lost them. */
  readonly query: URLSearchParams | null
  /** Ids that were received; null if there were too many to keep. */
  readonly received: ReadonlySet<string> | null
  /** Type of the missing messages, if it is known. The query also selects how their facts end. */
  readonly type?: string
  /** Number of missing messages, if a heartbeat counted them. */
  readonly count?: number
  /** Ids in the range that an earlier connection received: if the history does not have them, the tape has lost them. */
  readonly due?: readonly string[] | null
}

/**
 * Proves that nothing is missing in a stream: by the chain of `prev`, and by the number of messages that heartbeats
 * report. A selection with value filters and the sealed view have no chains, so there only the number counts.
 *
 * If a connection breaks, its last number never arrives. So a new connection continues at the last proven position: the
 * relay repeats the messages after it, or reports a gap that begins there. Messages that were received are dropped by their
 * id; the others are new. If the relay does not repeat a message that was received, the tape has lost it.
 */
export class LossDetector {
  readonly #selection: URLSearchParams
  readonly #hasChains: boolean
  /** `*` also stands for the default types: all of them have chains. */
  readonly #types: readonly string[]
  #lastIds = new Map<string, string>()
  /** Position at which the unbroken stream begins. */
  #start = ''
  /** Up to this position nothing is missing, or the loss was reported. */
  #proven = ''
  /** Ids received after the proven position; null if there were too many to keep. */
  #seen: Set<string> | null = new Set()
  /** Ids of earlier connections that this one has yet to repeat. */
  #due = new Set<string>()
  /** Messages of this connection that were received, and that are known to be missing. */
  #received = 0
  #missing = 0
  /** Set once the start position of this connection is known. A gap after that lies amid the counted messages. */
  #isCounting = false
  #isLive = false

  constructor(selection: URLSearchParams) {
    this.#selection = selection
    this.#types = (selection.get('types') ?? '*').split(',')
    const hasFilter = filterParameters.some(([, name]) => selection.has(name))
    this.#hasChains = !hasFilter && selection.get('stage') !== 'sealed'
  }

  /** Ids received since the last proof. */
  get seen(): ReadonlySet<string> {
    return this.#seen ?? new Set()
  }

  /** Whether received messages are not repeated yet: if the tape has lost them, a position stored now would hide that. */
  get hasDue(): boolean {
    return this.#due.size > 0
  }

  /** Returns the position at which a new connection continues. `position` is the newest one received. */
  resumeFrom(position: string): string {
    return (this.#seen && this.#proven) || position
  }

  /** `position` is null if a gap follows. */
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
   * Continues after a gap, at `position`. Messages before it may be repeated, but prove nothing about those after it. Returns
   * the due ids in the gap, or null if the old position was lost or never given: new messages may then reuse known ids.
   */
  restart(after: string | null, position: string): readonly string[] | null {
    const isSameTape = after !== null && isNotAfter(after, position)
    this.#start = position
    // A chain that was received beyond the position continues.
    for (const [chain, id] of this.#lastIds) if (!isSameTape || isNotAfter(id, position)) this.#lastIds.delete(chain)
    const due = this.#takeDue((id) => !isSameTape || (!isNotAfter(id, after) && isNotAfter(id, position)))
    // Amid counted messages, the next heartbeat still counts those before the gap, even if all of them were lost on the way.
    if (!this.#isCounting || after === this.#proven) {
      this.#proven = position
      this.#isCounting = true
      if (!isSameTape) this.#seen = new Set()
    }
    return isSameTape ? due : null
  }

  /** True if the message was received, or its chain has already shown that it is missing. `position` is the newest received. */
  isRepeat(message: ChainedMessage, position: string | null): boolean {
    const { id } = message
    this.#due.delete(id)
    this.#received += 1
    if (position === null || !isNotAfter(id, position)) return false
    const last = this.#lastIds.get(chainOf(message)) ?? ''
    return this.#seen === null || isNotAfter(id, this.#proven) || isNotAfter(id, last) || this.#seen.has(id)
  }

  /** Takes a new message. Returns the loss before it, if any. */
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
    // A tape that lost its end continues before the last message that was received: nothing is missing.
    if (prev === null || isNotAfter(prev, last ?? this.#start)) return null
    // Messages up to the proven position are in the count already.
    if (!isNotAfter(prev, this.#proven)) this.#missing += 1
    const query = new URLSearchParams({ symbols: address ?? '*', types: type })
    return { after: last ?? this.#start, through: prev, query, received: this.#seen, type }
  }

  /** Counts the first replay of a connection. A later one, after a gap, does not count what was sent live before it. */
  receiveLive(replayed: number, position: string): Loss | null {
    if (this.#isLive) return null
    this.#isLive = true
    return this.receiveCount(replayed, position)
  }

  /** Takes the number of messages that the relay has sent on this connection, up to `position`. Returns the loss, if any. */
  receiveCount(sent: number, position: string): Loss | null {
    const missing = sent - this.#received
    const count = missing - this.#missing
    const due = this.#takeDue((id) => isNotAfter(id, position))
    // A repetition that was lost on the way is one of the missing messages. If more are due, the tape has lost some.
    const isLost = due.length > Math.max(missing, 0)
    const isNew = isLost || (count > 0 && isNotAfter(this.#proven, position))
    const query = isLost ? null : this.#selection
    const loss = { after: this.#proven, through: position, query, received: this.#seen, count, due }
    this.#missing = missing
    this.#proven = position
    // The relay before this one may have sent messages that this one does not have yet.
    this.#seen = idsAfter(this.seen, position)
    return isNew ? loss : null
  }

  /** Removes and returns the due ids that will not be repeated. */
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

/** Makes the item that the stream yields for a loss. The stream continues at `id`. */
export const gapOf = ({ after, through, query }: Loss, id: string): Gap => ({
  type: 'gap',
  id,
  reason: query ? 'missed' : 'expired',
  after,
  through,
  backfill: query && `/v1/events?${query}&after=${after}&through=${through}`,
})

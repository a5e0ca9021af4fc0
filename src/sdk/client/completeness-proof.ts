import { filterParameters, followingTypes } from '../generated/names.ts'
import { StocktapeError } from './errors.ts'
import { isNotAfter } from './position-order.ts'
import type { Gap } from './stream-types.ts'

/** Limit on the chains that are kept, one for each pair of address and type. At the limit all are forgotten. */
const CHAINS_BOUND = 100_000
/** Limit on the ids kept since the last proof. Above it no loss can be filled, and a resume begins at the newest id. */
const SEEN_BOUND = 100_000

export type ChainedMessage = {
  readonly id: string
  readonly type: string
  readonly prev: string | null
  readonly address?: string | null
}

/** The newest message of a chain, and the newest one that was reported as missing before it. */
type PrevChain = { readonly last: string; readonly missing: string | null }

/** A range of positions in which messages are missing. */
export type Loss = {
  readonly after: string
  readonly through: string
  /** Query that selects the messages of the range; null if the tape has lost some of them. */
  readonly query: URLSearchParams | null
  /** Ids received since the last proof; null if there were too many to keep. */
  readonly received: ReadonlySet<string> | null
  /** Type of the missing messages, if it is known. The query also returns the seals, retracts and amends of their facts. */
  readonly type?: string
  /** Number of missing messages, if a `live` or a heartbeat counted them. */
  readonly count?: number
  /** Ids of the range that an earlier connection received. An id that the history does not contain was lost by the tape. */
  readonly due?: readonly string[] | null
}

/**
 * Proves that nothing is missing in a stream: by `prev`, which names the message before on the channel, and by the number
 * of messages in each heartbeat. With value filters, and in the sealed view, `prev` proves nothing.
 *
 * A connection that breaks sends no last heartbeat. So a new connection continues at the last proven position: the relay
 * repeats the messages after it, or reports a gap that begins there. The client drops a repeated message by its id. If
 * the relay does not repeat a message that was received, the tape has lost it.
 */
export class CompletenessProof {
  /** Ids of the messages of the replay. Null if it was too long, if messages were missing, or after a gap between live messages. */
  replayed: string[] | null = null
  readonly #selection: URLSearchParams
  readonly #hasChains: boolean
  /** Selected types. `*` also stands for the default types, because each of them has a chain. */
  readonly #types: readonly string[]
  readonly #chains = new Map<string, PrevChain>()
  /** Position at which the stream began, or at which it continued after the last gap. */
  #start = ''
  /** Position up to which nothing is missing, or the loss was reported. */
  #proven = ''
  /** Ids received after the proven position; null if there were too many to keep. */
  #seen: Set<string> | null = new Set()
  /** Ids that an earlier connection received, and that the present connection has yet to repeat. */
  #due = new Set<string>()
  /** Number of messages that this connection received. */
  #received = 0
  /** Number of messages of this connection that are known to be missing. */
  #missing = 0
  /** Set once the start position of the connection is known. A later gap lies between messages that the relay counts. */
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

  /** Whether the relay has yet to repeat a received message: a position saved now would hide that the tape has lost it. */
  get hasDue(): boolean {
    return this.#due.size > 0
  }

  /** Returns the position at which a new connection continues. `position` is the newest one received. */
  resumeFrom(position: string): string {
    return (this.#seen && this.#proven) || position
  }

  /** Begins a connection at `position`, which is null if the relay reports a gap first. */
  startConnection(position: string | null): void {
    this.#isLive = false
    this.#isCounting = position !== null
    this.#received = 0
    this.#missing = 0
    this.replayed = []
    this.#proven = position ?? this.#proven
    this.#start ||= this.#proven
    this.#due = idsAfter(this.seen, this.#proven)
  }

  /**
   * Continues at `position`, after a gap. Returns the due ids in the gap. Returns null if the tape no longer has the old
   * position, or if there is none: new messages may then have ids that were used before.
   */
  restart(after: string | null, position: string): readonly string[] | null {
    const isSameTape = after !== null && isNotAfter(after, position)
    this.#start = position
    this.replayed = []
    // Forgets each chain whose last id is not after `position`.
    for (const [name, { last }] of this.#chains) if (!isSameTape || isNotAfter(last, position)) this.#chains.delete(name)
    const due = this.#takeDue((id) => !isSameTape || (!isNotAfter(id, after) && isNotAfter(id, position)))
    // If the gap lies between counted messages, the next heartbeat still counts the messages before it, so they stay unproven.
    if (!this.#isCounting || after === this.#proven) {
      this.#proven = position
      this.#isCounting = true
      if (!isSameTape) this.#seen = new Set()
    }
    return isSameTape ? due : null
  }

  /** Whether the message was received before, or was already reported as missing. `position` is the newest received one. */
  isRepeat(message: ChainedMessage, position: string | null): boolean {
    const { id } = message
    this.#due.delete(id)
    this.#received += 1
    if (!this.#isLive && this.replayed?.push(id) === SEEN_BOUND) this.replayed = null
    if (position === null || !isNotAfter(id, position)) return false
    // A tape that has lost its end may give a new message an id before those of its chain that it has lost.
    const missing = this.#chains.get(chainOf(message))?.missing ?? ''
    return this.#seen === null || isNotAfter(id, this.#proven) || isNotAfter(id, missing) || this.#seen.has(id)
  }

  /** Takes a new message. Returns the loss before it, if any. */
  receive(message: ChainedMessage): Loss | null {
    const { id, type, prev, address } = message
    if (this.#seen?.size === SEEN_BOUND) this.#seen = null
    this.#seen?.add(id)
    if (!this.#hasChain(type)) return null
    const name = chainOf(message)
    const { last = this.#start, missing = null } = this.#chains.get(name) ?? {}
    // If the tape has lost its end, `prev` is before the last received id, and nothing is missing.
    const isLoss = prev !== null && !isNotAfter(prev, last)
    if (this.#chains.size === CHAINS_BOUND) {
      this.#chains.clear()
      this.#start = id
    }
    this.#chains.set(name, { last: id, missing: isLoss ? prev : missing })
    if (!isLoss) return null
    // A missing message up to the proven position is in the count already.
    if (!isNotAfter(prev, this.#proven)) this.#missing += 1
    const query = new URLSearchParams({ symbols: address ?? '*', types: type })
    return { after: last, through: prev, query, received: this.#seen, type }
  }

  /** Takes the number of replayed messages of a new connection. A second `live`, after a gap, does not count live messages. */
  receiveLive(replayed: number, position: string): Loss | null {
    const wasLive = this.#isLive
    this.#isLive = true
    const loss = wasLive ? null : this.receiveCount(replayed, position)
    if (wasLive || this.#missing > 0) this.replayed = null
    return loss
  }

  /** Takes the number of messages that the relay has sent on this connection, up to `position`. Returns the loss, if any. */
  receiveCount(sent: number, position: string): Loss | null {
    const missing = sent - this.#received
    const count = missing - this.#missing
    const due = this.#takeDue((id) => isNotAfter(id, position))
    // A repeated message that was lost on the way is one of the missing messages. If more ids are due, the tape has lost some.
    const isLost = due.length > Math.max(missing, 0)
    const isNew = isLost || (count > 0 && isNotAfter(this.#proven, position))
    const query = isLost ? null : this.#selection
    const loss = { after: this.#proven, through: position, query, received: this.#seen, count, due }
    this.#missing = missing
    this.#proven = position
    // An earlier relay may have sent messages after `position`, which the present relay does not have yet.
    this.#seen = idsAfter(this.seen, position)
    return isNew ? loss : null
  }

  /** Removes and returns the due ids that the relay will no longer repeat. */
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

/** Messages are missing. A stream with `gaps: 'throw'` throws it. If a gap cannot be filled, `cause` says why. */
export class GapError extends StocktapeError {
  readonly gap: Gap

  constructor(gap: Gap, cause: unknown = null) {
    super('GapError', 'gap', 'gap', `messages are missing after ${gap.after} through ${gap.through}: ${gap.reason}`, cause)
    this.gap = gap
  }
}

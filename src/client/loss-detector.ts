import type { MissedGap } from './options.ts'
import { comparePositions, isNotAfter } from './position-order.ts'

/** Pairs of address and type whose last message is known. Beyond it the proof begins anew. */
const CHAINS_BOUND = 100_000
/** Ids since the last proof. Beyond it they are forgotten: a loss among them is reported, but cannot be filled. */
const SEEN_BOUND = 100_000

/** The types that come to a listener that did not name them, and then not all of them. */
const conditionalTypes = ['seal', 'retract', 'amend']

/** A message of the tape, as far as the proof reads it. */
export type ChainedMessage = {
  readonly id: string
  readonly type: string
  readonly prev: string | null
  readonly address?: string | null
}

/** A range that is incomplete: what to read in it, and the ids that were received, unless they were too many. */
export type Loss = {
  readonly from: string
  readonly to: string
  readonly query: URLSearchParams
  readonly received: ReadonlySet<string> | null
  /** The type of the missing messages, if it is known. The query also gives how their facts end. */
  readonly type?: string
}

/**
 * Proves that nothing is missing in a stream: by the chain of `prev`, and by the number of messages that heartbeats
 * report. A selection with value filters and the sealed view have no chains, so there only the number counts.
 */
export class LossDetector {
  readonly #selection: URLSearchParams
  readonly #hasChains: boolean
  /** Empty: the types by default, all of which have chains. */
  readonly #types: readonly string[]
  #lastIds = new Map<string, string>()
  /** Where the unbroken stream begins. */
  #start = ''
  /** Up to here nothing is missing, or it was reported. */
  #proven = ''
  /** The ids after it; null when there were too many. */
  #seen: Set<string> | null = new Set()
  /** What the connection brought, and how many of its messages are known to be missing. */
  #received = 0
  #missing = 0
  #isLive = false

  constructor(selection: URLSearchParams) {
    this.#selection = selection
    this.#types = selection.get('types')?.split(',') ?? []
    const hasFilter = ['min_value', 'min_shares', 'party'].some((name) => selection.has(name))
    this.#hasChains = !hasFilter && selection.get('stage') !== 'sealed'
  }

  /** Where a new connection continues: without chains, where the last heartbeat proved that everything came. */
  resumeFrom(position: string): string {
    return this.#hasChains || this.#seen === null || this.#proven === '' ? position : this.#proven
  }

  /** A connection begins after a position; null where a gap follows. */
  startConnection(position: string | null): void {
    this.#received = 0
    this.#missing = 0
    this.#isLive = false
    if (position === null) return
    // What was lost before is in no number. The chain shows it.
    this.#proven = position
    if (this.#start === '') this.restart(position, false)
  }

  /** The stream goes on at a position. What came before it is no proof of what follows, but may be repeated. */
  restart(position: string, keepsSeen: boolean): void {
    this.#start = position
    this.#lastIds.clear()
    // After a gap in the middle of a stream, the next heartbeat still counts what came before.
    if (this.#isLive) return
    this.#proven = position
    if (!keepsSeen) this.#seen = new Set()
  }

  /** Whether the message was received before. `position` is the newest one received. */
  isRepeat({ id }: ChainedMessage, position: string | null): boolean {
    this.#received += 1
    if (position === null || !isNotAfter(id, position)) return false
    return this.#hasChains || this.#seen === null || isNotAfter(id, this.#proven) || this.#seen.has(id)
  }

  /** Takes a new message. Returns what is missing before it. */
  receive({ id, type, prev, address }: ChainedMessage): Loss | null {
    if (this.#seen?.size === SEEN_BOUND) this.#seen = null
    this.#seen?.add(id)
    if (!this.#hasChain(type)) return null
    const chain = `${address} ${type}`
    const last = this.#lastIds.get(chain)
    if (this.#lastIds.size === CHAINS_BOUND) {
      this.#lastIds.clear()
      this.#start = id
    }
    this.#lastIds.set(chain, id)
    if (prev === null || prev === last || (last === undefined && isNotAfter(prev, this.#start))) return null
    // What is proven was counted before.
    if ((comparePositions(prev, this.#proven) ?? 0) > 0) this.#missing += 1
    const query = new URLSearchParams({ symbols: address ?? '*', types: type })
    return { from: last ?? this.#start, to: prev, query, received: this.#seen, type }
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
    const isNew = missing > this.#missing && isNotAfter(this.#proven, position)
    const loss = { from: this.#proven, to: position, query: this.#selection, received: this.#seen }
    this.#missing = missing
    this.#proven = position
    this.#seen = new Set()
    return isNew ? loss : null
  }

  #hasChain(type: string): boolean {
    if (!this.#hasChains) return false
    return this.#types.length === 0 || this.#types[0] === '*' || this.#types.includes(type) || !conditionalTypes.includes(type)
  }
}

/** A loss as the item that the stream yields. It goes on at `id`. */
export function gapOf({ from, to, query }: Loss, id: string): MissedGap {
  const backfill = new URLSearchParams(query)
  backfill.set('after', from)
  backfill.set('through', to)
  return { type: 'gap', id, reason: 'missed', from, to, backfill: `/v1/events?${backfill}` }
}

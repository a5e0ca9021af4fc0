import { crc32 } from 'node:zlib'
import { defaultTypes, updateTypes } from '../../src/protocol/updates.ts'

/** A position as one growing number. Positions inside a seal (the sealed view) come before the seal itself. */
export type TapeOrder = number

/** More than one seal contains. */
const SEAL_SLOTS = 1_024

const orderOf = (seq: number, n: number | null): TapeOrder => seq * SEAL_SLOTS + (n ?? SEAL_SLOTS - 1)

export function orderOfPosition(position: string): TapeOrder {
  const [, seq, n] = position.split('.')
  return orderOf(Number(seq), n === undefined ? null : Number(n))
}

export const seqOfOrder = (order: TapeOrder): number => Math.floor(order / SEAL_SLOTS)

export const formatOrder = (order: TapeOrder | undefined): string =>
  order === undefined ? 'nothing' : `${seqOfOrder(order)}, ${order % SEAL_SLOTS} of ${SEAL_SLOTS - 1}`

/** What came under one selection without a break: the order and a checksum of each message. */
export type ReceivedSegment = {
  readonly query: string
  /** The position before the first message, and the last position covered; null where only messages determine it. */
  readonly from: TapeOrder | null
  to: TapeOrder | null
  readonly orders: TapeOrder[]
  readonly checksums: number[]
}

/** The first fields of every tape message. The comparison needs no more. */
const messagePrefix =
  /^\{"type":"(\w+)","id":"(\w+\.(\d+)(?:\.(\d+))?)","prev":(?:null|"\w+\.(\d+)"),"symbol":"[^"]*","address":(null|"\w+")/
const PREFIX_BYTES = 256
/** A tape message, as far as it is kept. */
export type TapeMessage = {
  readonly type: string
  readonly position: string
  readonly order: TapeOrder
  readonly prev: number | null
  readonly chainName: string
}

/** Null for messages about the connection itself. */
export function parseTapeMessage(message: Buffer): TapeMessage | null {
  const found = messagePrefix.exec(message.toString('latin1', 0, PREFIX_BYTES))
  if (!found) return null
  const [, type = '', position = '', seq, n, prev, address = ''] = found
  const order = orderOf(Number(seq), n === undefined ? null : Number(n))
  return { type, position, order, prev: prev === undefined ? null : Number(prev), chainName: `${address} ${type}` }
}

/** Everything that one client received, over all its connections. It records faults as they occur. */
export class ReceivedHistory {
  #segments: ReceivedSegment[] = []
  readonly faults: string[] = []
  /** The last position received, where the client would resume. */
  lastPosition: string | null = null
  readonly #name: string
  readonly #heads = new Map<string, number>()
  #chainedTypes: ReadonlySet<string> = new Set()
  #segment: ReceivedSegment | null = null

  constructor(name: string) {
    this.#name = name
  }

  get query(): string | null {
    return this.#segment?.query ?? null
  }

  /** A new selection begins here. */
  beginSegment(query: string, from: TapeOrder | null): void {
    this.#segment = { query, from, to: from, orders: [], checksums: [] }
    this.#segments.push(this.#segment)
    this.#heads.clear()
    this.#chainedTypes = chainedTypes(query)
  }

  /** What was received since the last call. A segment that is not over goes on after its last position. */
  takeSegments(): readonly ReceivedSegment[] {
    const taken = this.#segments
    const current = this.#segment
    // Without a position nothing came yet.
    const { to = null } = current ?? {}
    if (current && to !== null) this.#segment = { ...current, from: to, orders: [], checksums: [] }
    this.#segments = this.#segment ? [this.#segment] : []
    return taken.filter((segment) => segment !== this.#segment)
  }

  /** The relay named a position, or the stream passed it. */
  passPosition(position: string): void {
    const order = orderOfPosition(position)
    this.lastPosition = position
    if (!this.#segment) return
    if (this.#segment.to !== null && order < this.#segment.to)
      this.addFault(`went back from ${formatOrder(this.#segment.to)} to ${position}`)
    this.#segment.to = order
  }

  receive(message: Buffer, { type, position, order, prev, chainName }: TapeMessage): void {
    const segment = this.#segment
    if (!segment) return this.addFault(`got ${position} before it selected anything`)
    const previousOrder = segment.orders.at(-1) ?? segment.from
    if (previousOrder !== null && order <= previousOrder) this.addFault(`got ${position} after ${formatOrder(previousOrder)}`)
    if (this.#chainedTypes.has(type)) {
      const head = this.#heads.get(chainName)
      if (head !== undefined && head !== prev) this.addFault(`${position} names ${prev} as prev, not ${head} (${chainName})`)
      this.#heads.set(chainName, seqOfOrder(order))
    }
    segment.orders.push(order)
    segment.checksums.push(crc32(message))
    segment.to = order
    this.lastPosition = position
  }

  addFault(description: string): void {
    this.faults.push(`${this.#name} (${this.query}): ${description}`)
  }
}

/** The types whose `prev` chains a listener can check: those it selected, without a filter or the sealed view. */
function chainedTypes(query: string): ReadonlySet<string> {
  const parameters = new URLSearchParams(query)
  if (['min_value', 'min_shares', 'account', 'stage'].some((name) => parameters.has(name))) return new Set()
  const types = parameters.get('types')
  return new Set(types === null ? defaultTypes : types === '*' ? updateTypes : types.split(','))
}

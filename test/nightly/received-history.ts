import { crc32 } from 'node:zlib'
import { defaultTypes, updateTypes } from '../../src/protocol/updates.ts'

/** A place on the tape as one number that grows with it: what the sealed view gives before a seal stands before it. */
export type TapeOrder = number

/** More than one seal stands for. */
const SEAL_SLOTS = 1_024

const orderOf = (seq: number, n: number | null): TapeOrder => seq * SEAL_SLOTS + (n ?? SEAL_SLOTS - 1)

export function orderOfPosition(position: string): TapeOrder {
  const [, seq, n] = position.split('.')
  return orderOf(Number(seq), n === undefined ? null : Number(n))
}

export const seqOfOrder = (order: TapeOrder): number => Math.floor(order / SEAL_SLOTS)

export const formatOrder = (order: TapeOrder | undefined): string =>
  order === undefined ? 'nothing' : `${seqOfOrder(order)}, ${order % SEAL_SLOTS} of ${SEAL_SLOTS - 1}`

/** What was heard under one selection, without a break: places, and a sum over the bytes of each message. */
export type ReceivedSegment = {
  readonly query: string
  /** The place after which it begins, and the last that it covers; null where only what was heard says so. */
  readonly from: TapeOrder | null
  to: TapeOrder | null
  readonly orders: TapeOrder[]
  readonly checksums: number[]
}

/** The beginning of every message of the tape, as far as a listener needs it that proves what it heard. */
const messagePrefix =
  /^\{"type":"(\w+)","id":"(\w+\.(\d+)(?:\.(\d+))?)","prev":(?:null|"\w+\.(\d+)"),"symbol":"[^"]*","address":(null|"\w+")/
const PREFIX_BYTES = 256
/** With it begins each line of text that is not of the tape. */
const COMMENT_BYTE = 0x23

export const isComment = (line: Buffer): boolean => line[0] === COMMENT_BYTE

/** A message of the tape, as far as it is kept. */
export type TapeMessage = {
  readonly type: string
  readonly position: string
  readonly order: TapeOrder
  readonly prev: number | null
  readonly chainName: string
}

/** Null for whatever a connection says of itself. */
export function parseTapeMessage(message: Buffer): TapeMessage | null {
  const found = messagePrefix.exec(message.toString('latin1', 0, PREFIX_BYTES))
  if (!found) return null
  const [, type = '', position = '', seq, n, prev, address = ''] = found
  const order = orderOf(Number(seq), n === undefined ? null : Number(n))
  return { type, position, order, prev: prev === undefined ? null : Number(prev), chainName: `${address} ${type}` }
}

/** What one of the crowd heard in all, over all its connections; what cannot be is noted as it comes. */
export class ReceivedHistory {
  readonly segments: ReceivedSegment[] = []
  readonly faults: string[] = []
  /** The last position that it was given: where it would go on. */
  lastPosition: string | null = null
  messageCount = 0
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

  /** Another selection holds from here on. */
  beginSegment(query: string, from: TapeOrder | null): void {
    this.#segment = { query, from, to: from, orders: [], checksums: [] }
    this.segments.push(this.#segment)
    this.#heads.clear()
    this.#chainedTypes = chainedTypes(query)
  }

  /** A position was given, or passed over. */
  passPosition(position: string): void {
    const order = orderOfPosition(position)
    this.lastPosition = position
    if (!this.#segment) return
    if (this.#segment.to !== null && order < this.#segment.to)
      this.addFault(`was at ${formatOrder(this.#segment.to)}, and is at ${position}`)
    this.#segment.to = order
  }

  receive(message: Buffer, { type, position, order, prev, chainName }: TapeMessage): void {
    const segment = this.#segment
    if (!segment) return this.addFault(`was told ${position} before it asked for anything`)
    this.messageCount += 1
    const previousOrder = segment.orders.at(-1) ?? segment.from
    if (previousOrder !== null && order <= previousOrder)
      this.addFault(`was told ${position} after ${formatOrder(previousOrder)}`)
    if (this.#chainedTypes.has(type)) {
      const head = this.#heads.get(chainName)
      if (head !== undefined && head !== prev)
        this.addFault(`${position} follows ${prev}, and ${head} was heard (${chainName})`)
      this.#heads.set(chainName, seqOfOrder(order))
    }
    segment.orders.push(order)
    segment.checksums.push(crc32(message))
    segment.to = order
    this.lastPosition = position
  }

  /** A line of text came: it says no position, so that each connection is a story that is told from its first line on. */
  receiveLine(line: Buffer, query: string): void {
    if (isComment(line)) {
      const [, start] = /^# stocktape\.v1 at (\w+\.\d+), /.exec(line.toString('latin1', 0, PREFIX_BYTES)) ?? []
      if (start !== undefined) this.beginSegment(`${query}&since=${start}&format=text`, 0)
      return
    }
    const segment = this.#segment
    if (!segment) return this.addFault('was told something before it was greeted')
    this.messageCount += 1
    segment.orders.push(segment.orders.length + 1)
    segment.checksums.push(crc32(line))
    segment.to = segment.orders.length
  }

  addFault(description: string): void {
    this.faults.push(`${this.#name} (${this.query}): ${description}`)
  }
}

/** The types whose chains a listener can follow: those that it named, where no value and no view stands between. */
function chainedTypes(query: string): ReadonlySet<string> {
  const parameters = new URLSearchParams(query)
  if (['min_value', 'min_shares', 'party', 'stage'].some((name) => parameters.has(name))) return new Set()
  const types = parameters.get('types')
  return new Set(types === null ? defaultTypes : types === '*' ? updateTypes : types.split(','))
}

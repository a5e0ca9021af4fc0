import { crc32 } from 'node:zlib'
import { defaultTypes, updateTypes } from '../../src/protocol/updates.ts'

/** A place on the tape as one number that grows with it: what the sealed view gives before a seal stands before it. */
export type Order = number

/** More than one seal stands for. */
const GIVEN_BOUND = 1_024

const orderOf = (seq: number, n: number | null): Order => seq * GIVEN_BOUND + (n ?? GIVEN_BOUND - 1)

export function orderOfPosition(position: string): Order {
  const [, seq, n] = position.split('.')
  return orderOf(Number(seq), n === undefined ? null : Number(n))
}

export const seqOfOrder = (order: Order): number => Math.floor(order / GIVEN_BOUND)

export const sayPlace = (order: Order | undefined): string =>
  order === undefined ? 'nothing' : `${seqOfOrder(order)}, ${order % GIVEN_BOUND} of ${GIVEN_BOUND - 1}`

/** What was heard under one selection, without a break: places, and a sum over the bytes of each message. */
export type Piece = {
  readonly query: string
  /** The place after which it begins, and the last that it covers; null where only what was heard says so. */
  readonly from: Order | null
  to: Order | null
  readonly orders: Order[]
  readonly sums: number[]
}

/** The beginning of every message of the tape, as far as a listener needs it that proves what it heard. */
const beginning =
  /^\{"type":"(\w+)","id":"(\w+\.(\d+)(?:\.(\d+))?)","prev":(?:null|"\w+\.(\d+)"),"symbol":"[^"]*","address":(null|"\w+")/
const BEGINNING_BYTES = 256
/** With it begins each line of text that is not of the tape. */
const REMARK = 0x23

export const isRemark = (line: Buffer): boolean => line[0] === REMARK

/** A message of the tape, as far as it is kept. */
export type Kept = {
  readonly type: string
  readonly position: string
  readonly order: Order
  readonly prev: number | null
  readonly chain: string
}

/** Null for whatever a connection says of itself. */
export function keptOf(message: Buffer): Kept | null {
  const found = beginning.exec(message.toString('latin1', 0, BEGINNING_BYTES))
  if (!found) return null
  const [, type = '', position = '', seq, n, prev, address = ''] = found
  const order = orderOf(Number(seq), n === undefined ? null : Number(n))
  return { type, position, order, prev: prev === undefined ? null : Number(prev), chain: `${address} ${type}` }
}

/** What one of the crowd heard in all, over all its connections; what cannot be is noted as it comes. */
export class Story {
  readonly pieces: Piece[] = []
  readonly faults: string[] = []
  /** The last position that it was given: where it would go on. */
  last: string | null = null
  heard = 0
  readonly #name: string
  readonly #heads = new Map<string, number>()
  #named: ReadonlySet<string> = new Set()
  #piece: Piece | null = null

  constructor(name: string) {
    this.#name = name
  }

  get query(): string | null {
    return this.#piece?.query ?? null
  }

  /** Another selection holds from here on. */
  begin(query: string, from: Order | null): void {
    this.#piece = { query, from, to: from, orders: [], sums: [] }
    this.pieces.push(this.#piece)
    this.#heads.clear()
    this.#named = chainedTypes(query)
  }

  /** A position was given, or passed over. */
  pass(position: string): void {
    const order = orderOfPosition(position)
    this.last = position
    if (!this.#piece) return
    if (this.#piece.to !== null && order < this.#piece.to)
      this.fault(`was at ${sayPlace(this.#piece.to)}, and is at ${position}`)
    this.#piece.to = order
  }

  hear(message: Buffer, { type, position, order, prev, chain }: Kept): void {
    const piece = this.#piece
    if (!piece) return this.fault(`was told ${position} before it asked for anything`)
    this.heard += 1
    const before = piece.orders.at(-1) ?? piece.from
    if (before !== null && order <= before) this.fault(`was told ${position} after ${sayPlace(before)}`)
    if (this.#named.has(type)) {
      const head = this.#heads.get(chain)
      if (head !== undefined && head !== prev)
        this.fault(`${position} follows ${prev}, and ${head} was heard (${chain})`)
      this.#heads.set(chain, seqOfOrder(order))
    }
    piece.orders.push(order)
    piece.sums.push(crc32(message))
    piece.to = order
    this.last = position
  }

  /** A line of text came: it says no position, so that each connection is a story that is told from its first line on. */
  read(line: Buffer, query: string): void {
    if (isRemark(line)) {
      const [, start] = /^# stocktape\.v1 at (\w+\.\d+), /.exec(line.toString('latin1', 0, BEGINNING_BYTES)) ?? []
      if (start !== undefined) this.begin(`${query}&since=${start}&format=text`, 0)
      return
    }
    const piece = this.#piece
    if (!piece) return this.fault('was told something before it was greeted')
    this.heard += 1
    piece.orders.push(piece.orders.length + 1)
    piece.sums.push(crc32(line))
    piece.to = piece.orders.length
  }

  fault(what: string): void {
    this.faults.push(`${this.#name} (${this.query}): ${what}`)
  }
}

/** The types whose chains a listener can follow: those that it named, where no value and no view stands between. */
function chainedTypes(query: string): ReadonlySet<string> {
  const parameters = new URLSearchParams(query)
  if (['min_value', 'min_shares', 'party', 'stage'].some((name) => parameters.has(name))) return new Set()
  const types = parameters.get('types')
  return new Set(types === null ? defaultTypes : types === '*' ? updateTypes : types.split(','))
}

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { CountEstimate, SeqRange } from '../tape.ts'
import { channelOf, prepareRows, type TapeRow } from '../tape-row.ts'
import { type Channels, followerTypes, NO_CHANNEL, relevance } from './channels.ts'

const SHELF_SIZE = 1_024
/** Limit of the shelves that one search reads. */
const SEARCHED_SHELVES_BOUND = 256

/** `followsFrom`: number of the first publication among the keys that the update seals, amends or retracts. */
export type IndexedUpdate = { readonly seq: number; readonly channel: number; readonly followsFrom: number }

type Shelf = {
  readonly number: number
  /** Channel of each number in the shelf. */
  readonly channels: Uint16Array
  count: number
  /** The lowest `followsFrom` of the updates in the shelf. */
  followsFrom: number
}

/** `followsFrom` if it is unknown. It is lower than every number, so a reader assumes that the publications are evicted. */
const UNKNOWN_FOLLOWS_FROM = -1

/**
 * Stores the channel of every update in two bytes, in shelves of 1,024 numbers, so that a search reads only updates that may match.
 * Each full shelf is written to the file once. A shelf that the file lacks is indexed from its updates when the tape opens: the last
 * one, and those of runs that ended before they could write it.
 */
export class ShelfIndex {
  readonly #channels: Channels
  readonly #shelves = new Map<number, Shelf>()
  #sortedShelves: Shelf[] = []
  /** Full shelves that the file lacks, and shelves whose updates are all evicted. The next `save` writes and deletes them. */
  #full: Shelf[] = []
  #empty: number[] = []
  readonly #write: Record<'shelf' | 'drop', StatementSync>
  readonly #rows: StatementSync

  constructor(database: DatabaseSync, channels: Channels, oldest: number) {
    this.#channels = channels
    this.#write = {
      shelf: database.prepare('INSERT OR REPLACE INTO shelves (shelf, channels, follows_from) VALUES (?, ?, ?)'),
      drop: database.prepare('DELETE FROM shelves WHERE shelf = ?'),
    }
    this.#rows = prepareRows(database, 'SELECT seq, text, evictable FROM tape WHERE seq >= ? AND seq < ?')
    const first = database.prepare('SELECT seq FROM tape WHERE seq >= ? ORDER BY seq LIMIT 1')
    const nextKeptSeq = (from: number) => (first.get(from)?.seq ?? null) as number | null
    const firstKept = nextKeptSeq(0) ?? Number.POSITIVE_INFINITY
    for (const row of database.prepare('SELECT shelf, channels, follows_from FROM shelves ORDER BY shelf').all()) {
      this.#loadShelf(row as unknown as ShelfRow, firstKept, oldest)
    }
    this.#indexOthers(nextKeptSeq)
  }

  add({ seq, channel, followsFrom }: IndexedUpdate): void {
    const shelf = this.#currentShelf(shelfNumberOf(seq))
    shelf.channels[seq % SHELF_SIZE] = channel
    shelf.count += 1
    shelf.followsFrom = Math.min(shelf.followsFrom, followsFrom)
  }

  remove(seqs: readonly number[]): void {
    for (const seq of seqs) {
      const shelf = this.#shelves.get(shelfNumberOf(seq))
      if (!shelf || shelf.channels[seq % SHELF_SIZE] === NO_CHANNEL) continue
      shelf.channels[seq % SHELF_SIZE] = NO_CHANNEL
      shelf.count -= 1
      if (shelf.count === 0 && shelf !== this.#sortedShelves.at(-1)) this.#removeShelf(shelf)
    }
  }

  save(): void {
    for (const { number, channels, followsFrom } of this.#full)
      this.#write.shelf.run(number, new Uint8Array(channels.buffer), followsFrom)
    for (const number of this.#empty) this.#write.drop.run(number)
  }

  onSaved(): void {
    if (this.#full.length > 0) this.#full = []
    if (this.#empty.length > 0) this.#empty = []
  }

  /** Finds relevant updates with limited work. `reached` is the last number that was searched; null after the whole range. */
  find(relevanceByChannel: Uint8Array, { after, before, order, limit }: SeqRange, oldest: number) {
    const seqs: number[] = []
    const step = order === 'asc' ? 1 : -1
    let workLeft = SEARCHED_SHELVES_BOUND
    let reached = order === 'asc' ? after : before
    for (let index = this.#firstIndex(order, after, before); ; index += step) {
      const shelf = this.#sortedShelves[index]
      const start = shelf ? shelf.number * SHELF_SIZE : 0
      if (!shelf || (order === 'asc' ? start >= before : start + SHELF_SIZE <= after + 1)) return { seqs, reached: null }
      if (workLeft <= 0) return { seqs, reached }
      workLeft -= 1
      const { channels } = shelf
      const minRelevance = minRelevanceOf(shelf, oldest)
      const [low, high] = [Math.max(0, after + 1 - start), Math.min(SHELF_SIZE, before - start) - 1]
      for (let offset = order === 'asc' ? low : high; offset >= low && offset <= high; offset += step) {
        if ((relevanceByChannel[channels[offset] ?? NO_CHANNEL] ?? relevance.followed) < minRelevance) continue
        seqs.push(start + offset)
        if (seqs.length === limit) return { seqs, reached: start + offset }
      }
      reached = start + (order === 'asc' ? Math.max(low - 1, lastKept(channels)) : Math.min(high + 1, firstKept(channels)))
    }
  }

  /** Estimates how many updates a search finds, up to `countLimit`. */
  count(relevanceByChannel: Uint8Array, after: number, countLimit: number, oldest: number): CountEstimate {
    let [least, most] = [0, 0]
    for (let index = this.#firstIndex('asc', after, Number.POSITIVE_INFINITY); least <= countLimit; index += 1) {
      const shelf = this.#sortedShelves[index]
      if (!shelf) break
      const { channels, number } = shelf
      const minRelevance = minRelevanceOf(shelf, oldest)
      for (let offset = Math.max(0, after + 1 - number * SHELF_SIZE); offset < SHELF_SIZE; offset += 1) {
        const channelRelevance = relevanceByChannel[channels[offset] ?? NO_CHANNEL] ?? relevance.none
        if (channelRelevance === relevance.typeMatches) least += 1
        if (channelRelevance >= minRelevance) most += 1
      }
    }
    return { least, most }
  }

  #firstIndex(order: SeqRange['order'], after: number, before: number): number {
    const target = shelfNumberOf(order === 'asc' ? after + 1 : before - 1)
    let [low, high] = [0, this.#sortedShelves.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#sortedShelves[middle]?.number ?? 0) < target) low = middle + 1
      else high = middle
    }
    return order === 'asc' || this.#sortedShelves[low]?.number === target ? low : low - 1
  }

  /** Returns the shelf of a new number. If that shelf is new, the one before it is full. */
  #currentShelf(number: number): Shelf {
    const last = this.#sortedShelves.at(-1)
    if (last?.number === number) return last
    if (last?.count === 0) this.#removeShelf(last)
    else if (last) this.#full.push(last)
    return this.#addShelf({ number, channels: new Uint16Array(SHELF_SIZE), count: 0, followsFrom: Number.MAX_SAFE_INTEGER })
  }

  #addShelf(shelf: Shelf): Shelf {
    this.#shelves.set(shelf.number, shelf)
    this.#sortedShelves.push(shelf)
    return shelf
  }

  #removeShelf({ number }: Shelf): void {
    this.#shelves.delete(number)
    this.#sortedShelves = this.#sortedShelves.filter((shelf) => shelf.number !== number)
    this.#empty.push(number)
  }

  #loadShelf({ shelf: number, channels: bytes, follows_from: followsFrom }: ShelfRow, firstKept: number, oldest: number): void {
    const start = number * SHELF_SIZE
    const channels = new Uint16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))
    let count = 0
    for (let offset = 0; offset < SHELF_SIZE; offset += 1) {
      const channel = channels[offset] ?? NO_CHANNEL
      const seq = start + offset
      if (seq < firstKept || (seq <= oldest && this.#channels.isEvictable(channel))) channels[offset] = NO_CHANNEL
      else if (channel !== NO_CHANNEL) count += 1
    }
    if (count === 0) this.#empty.push(number)
    else this.#addShelf({ number, channels, count, followsFrom })
  }

  /** Indexes the shelves that the file lacks from their updates. */
  #indexOthers(nextKeptSeq: (from: number) => number | null): void {
    const indexed: Shelf[] = []
    for (let seq = nextKeptSeq(0); seq !== null; ) {
      let number = shelfNumberOf(seq)
      if (!this.#shelves.has(number)) indexed.push(this.#addShelf(this.#indexedShelf(number)))
      while (this.#shelves.has(number)) number += 1
      seq = nextKeptSeq(number * SHELF_SIZE)
    }
    this.#sortedShelves.sort((one, other) => one.number - other.number)
    this.#full = indexed.filter((shelf) => shelf !== this.#sortedShelves.at(-1))
  }

  /** The types of the keys that the updates seal, amend or retract stay unknown. */
  #indexedShelf(number: number): Shelf {
    const start = number * SHELF_SIZE
    const shelf = { number, channels: new Uint16Array(SHELF_SIZE), count: 0, followsFrom: Number.MAX_SAFE_INTEGER }
    const rows = this.#rows.iterate(start, start + SHELF_SIZE) as unknown as Iterable<UnindexedRow>
    for (const [seq, text, evictable] of rows) {
      const { type, address } = channelOf(text)
      shelf.channels[seq - start] = this.#channels.numberOf({ address, type, keyTypes: 0, evictable: evictable === 1 })
      if (followerTypes.has(type)) shelf.followsFrom = UNKNOWN_FOLLOWS_FROM
      shelf.count += 1
    }
    return shelf
  }
}

type ShelfRow = { readonly shelf: number; readonly channels: Uint8Array; readonly follows_from: number }
type UnindexedRow = readonly [...TapeRow, evictable: number]

// A search reports the last kept number of a shelf as `reached`, or the first in descending order, because numbers beyond it may
// never have been given. If the shelf is empty, it reports the shelf's end.
const lastKept = (channels: Uint16Array): number => {
  const offset = channels.findLastIndex(isChannel)
  return offset === -1 ? SHELF_SIZE - 1 : offset
}
const firstKept = (channels: Uint16Array): number => Math.max(0, channels.findIndex(isChannel))
const isChannel = (channel: number): boolean => channel !== NO_CHANNEL

const minRelevanceOf = ({ followsFrom }: Shelf, oldest: number): number =>
  followsFrom <= oldest ? relevance.ifLost : relevance.followed

const shelfNumberOf = (seq: number): number => Math.floor(seq / SHELF_SIZE)

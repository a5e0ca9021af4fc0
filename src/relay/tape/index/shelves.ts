import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { CountEstimate, SeqRange } from '../tape.ts'
import { channelOf, prepareRows, type TapeRow } from '../tape-row.ts'
import { type Channels, followerTypes, NO_CHANNEL, relevance } from './channels.ts'

/** Numbers per shelf. */
const SHELF_SIZE = 1_024
/** One search reads at most this many shelves. */
const SEARCHED_SHELVES_BOUND = 256
/** Reading this many updates of a shelf that was never written takes as long as searching a written shelf. */
const UNINDEXED_PER_SHELF = SHELF_SIZE / SEARCHED_SHELVES_BOUND

/** `followsFrom` is the number of the first publication that the update follows. */
export type IndexedUpdate = { readonly seq: number; readonly channel: number; readonly followsFrom: number }

/** The numbers found, and the number on the tape up to which the search came: null at the end of the range. */
export type FoundSeqs = { readonly seqs: readonly number[]; readonly reached: number | null }

type Shelf = {
  readonly number: number
  /** The channel of each number; null until the shelf is indexed. */
  channels: Uint16Array | null
  /** How many of its updates are kept. */
  count: number
  /** The number of the first publication that any of its updates follows. */
  followsFrom: number
}

/** Lower than every number: a reader must assume that publications are evicted. */
const UNKNOWN_FOLLOWS_FROM = -1

/**
 * The channel of every number on the tape, two bytes each, in shelves. A search finds few updates among many without
 * reading the others. A full shelf is written once. The last shelf is indexed again when the tape opens; any other shelf
 * that was never written is indexed by the first search that reaches it.
 */
export class ShelfIndex {
  readonly #channels: Channels
  readonly #shelves = new Map<number, Shelf>()
  /** By number, ascending. */
  #sortedShelves: Shelf[] = []
  /** Full shelves that are not written yet, and empty shelves that are still in the file. */
  readonly #full: Shelf[] = []
  readonly #empty: number[] = []
  readonly #write: Record<'shelf' | 'drop', StatementSync>
  readonly #rows: StatementSync

  constructor(database: DatabaseSync, channels: Channels, oldest: number, end: number) {
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
    this.#findUnindexed(nextKeptSeq)
    const lastShelf = this.#shelves.get(shelfNumberOf(end))
    if (lastShelf && !lastShelf.channels) this.#indexShelf(lastShelf)
  }

  /** Indexes updates that were written. */
  add(updates: readonly IndexedUpdate[]): void {
    for (const { seq, channel, followsFrom } of updates) {
      const shelf = this.#currentShelf(shelfNumberOf(seq))
      if (shelf.channels) shelf.channels[seq % SHELF_SIZE] = channel
      shelf.count += 1
      shelf.followsFrom = Math.min(shelf.followsFrom, followsFrom)
    }
  }

  /** Removes evicted updates. */
  remove(seqs: readonly number[]): void {
    for (const seq of seqs) {
      const shelf = this.#shelves.get(shelfNumberOf(seq))
      if (!shelf?.channels || shelf.channels[seq % SHELF_SIZE] === NO_CHANNEL) continue
      shelf.channels[seq % SHELF_SIZE] = NO_CHANNEL
      shelf.count -= 1
      if (shelf.count === 0 && shelf !== this.#sortedShelves.at(-1)) this.#removeShelf(shelf)
    }
  }

  /** Writes the shelves that became full and deletes those that became empty. */
  save(): void {
    for (const shelf of this.#full.splice(0)) {
      const { number, channels, count, followsFrom } = shelf
      if (count === 0) this.#removeShelf(shelf)
      else if (channels) this.#write.shelf.run(number, new Uint8Array(channels.buffer), followsFrom)
    }
    for (const number of this.#empty.splice(0)) this.#write.drop.run(number)
  }

  /** Finds the relevant numbers of a range with bounded work. Publications up to `oldest` may be evicted. */
  find(relevanceByChannel: Uint8Array, { after, before, order, limit }: SeqRange, oldest: number): FoundSeqs {
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
      let { channels } = shelf
      if (!channels) {
        channels = this.#indexShelf(shelf)
        workLeft -= shelf.count / UNINDEXED_PER_SHELF
      }
      const minRelevance = minRelevanceOf(shelf, oldest)
      const [low, high] = [Math.max(0, after + 1 - start), Math.min(SHELF_SIZE, before - start) - 1]
      for (let offset = order === 'asc' ? low : high; offset >= low && offset <= high; offset += step) {
        // A channel that is newer than the filter's table is always read.
        if ((relevanceByChannel[channels[offset] ?? NO_CHANNEL] ?? relevance.followed) < minRelevance) continue
        seqs.push(start + offset)
        if (seqs.length === limit) return { seqs, reached: start + offset }
      }
      reached = start + (order === 'asc' ? Math.max(low - 1, lastKept(channels)) : Math.min(high + 1, firstKept(channels)))
    }
  }

  /**
   * Estimates how many numbers a search finds after a number, until it exceeds `countLimit`. It reads no updates, so a
   * shelf that was never written adds its full size to the upper bound.
   */
  estimateCount(relevanceByChannel: Uint8Array, after: number, countLimit: number, oldest: number): CountEstimate {
    let [least, most] = [0, 0]
    for (let index = this.#firstIndex('asc', after, Number.POSITIVE_INFINITY); least <= countLimit; index += 1) {
      const shelf = this.#sortedShelves[index]
      if (!shelf) break
      const { channels, number } = shelf
      if (!channels) {
        most += SHELF_SIZE
        continue
      }
      const minRelevance = minRelevanceOf(shelf, oldest)
      for (let offset = Math.max(0, after + 1 - number * SHELF_SIZE); offset < SHELF_SIZE; offset += 1) {
        const channelRelevance = relevanceByChannel[channels[offset] ?? NO_CHANNEL] ?? relevance.none
        if (channelRelevance === relevance.typeMatches) least += 1
        if (channelRelevance >= minRelevance) most += 1
      }
    }
    return { least, most }
  }

  /** The index of the first shelf that a range touches. */
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

  /** The shelf of a new number. The shelf before it is full from now on. */
  #currentShelf(number: number): Shelf {
    const last = this.#sortedShelves.at(-1)
    if (last?.number === number) return last
    if (last?.channels) this.#full.push(last)
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

  /** Indexes a shelf from the tape. The key types that its updates follow are not looked up. */
  #indexShelf(shelf: Shelf): Uint16Array {
    const start = shelf.number * SHELF_SIZE
    const channels = new Uint16Array(SHELF_SIZE)
    const rows = this.#rows.iterate(start, start + SHELF_SIZE) as unknown as Iterable<UnindexedRow>
    for (const [seq, text, evictable] of rows) {
      const { type, address } = channelOf(text)
      channels[seq - start] = this.#channels.numberOf({ address, type, keyTypes: 0, evictable: evictable === 1 })
      if (followerTypes.has(type)) shelf.followsFrom = UNKNOWN_FOLLOWS_FROM
      shelf.count += 1
    }
    shelf.channels = channels
    if (shelf !== this.#sortedShelves.at(-1)) this.#full.push(shelf)
    return channels
  }

  /** Loads a written shelf without what was evicted later. */
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

  /** Adds the shelves that hold updates and were never written. */
  #findUnindexed(nextKeptSeq: (from: number) => number | null): void {
    for (let seq = nextKeptSeq(0); seq !== null; ) {
      let number = shelfNumberOf(seq)
      if (this.#shelves.has(number)) while (this.#shelves.has(number)) number += 1
      else {
        this.#addShelf({ number, channels: null, count: 0, followsFrom: Number.MAX_SAFE_INTEGER })
        number += 1
      }
      seq = nextKeptSeq(number * SHELF_SIZE)
    }
    this.#sortedShelves.sort((one, other) => one.number - other.number)
  }
}

type ShelfRow = { readonly shelf: number; readonly channels: Uint8Array; readonly follows_from: number }
type UnindexedRow = readonly [...TapeRow, evictable: number]

/**
 * The offsets of the last and the first update that a shelf keeps. A search ends there and not at the bounds of the shelf, where a
 * number may never have been given. Where nothing is kept, the whole shelf is passed.
 */
const lastKept = (channels: Uint16Array): number => {
  const offset = channels.findLastIndex(isChannel)
  return offset === -1 ? SHELF_SIZE - 1 : offset
}
const firstKept = (channels: Uint16Array): number => Math.max(0, channels.findIndex(isChannel))
const isChannel = (channel: number): boolean => channel !== NO_CHANNEL

/** The least relevance at which a channel of a shelf is read. */
const minRelevanceOf = ({ followsFrom }: Shelf, oldest: number): number =>
  followsFrom <= oldest ? relevance.ifLost : relevance.followed

const shelfNumberOf = (seq: number): number => Math.floor(seq / SHELF_SIZE)

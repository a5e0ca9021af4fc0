import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Hex } from '../../protocol/fields.ts'
import type { UpdateType } from '../../protocol/updates.ts'
import type { CountEstimate, SeqRange } from '../tape.ts'
import { type Channels, followerTypes, NO_CHANNEL, relevance } from './channels.ts'

/** Numbers that are filed together. */
const SHELF_SIZE = 1_024
/** Shelves that are looked through at once. */
const SEARCHED_SHELVES_BOUND = 256
/** Of one that was never filed each message is read: so many of them take as long as a shelf. */
const UNFILED_PER_SHELF = SHELF_SIZE / SEARCHED_SHELVES_BOUND

/** Where a message lies: its number, its channel, and how far back the tellings stand that it follows. */
export type IndexedMessage = { readonly seq: number; readonly channel: number; readonly since: number }

/** The numbers that were found, and up to which number it was looked: null where the stretch is through. */
export type FoundSeqs = { readonly seqs: readonly number[]; readonly reached: number | null }

type Shelf = {
  readonly number: number
  /** The channel of each of its numbers; null where they were never filed. */
  channels: Uint16Array | null
  /** How many of its messages are kept. */
  count: number
  /** How far back the tellings stand that its messages follow: of what was filed late that is not known. */
  since: number
}

/** Farther back than anything: whoever reads must allow for it that tellings are gone. */
const UNKNOWN_SINCE = -1

/**
 * Where on the tape what lies: the channel of every number, shelf by shelf, two bytes for each, so that few of many are found
 * without reading the others. A shelf that is full is written once; the one that is being filled is read anew at the start,
 * and so is any other that was never written, by the first who looks there.
 */
export class ShelfIndex {
  readonly #channels: Channels
  readonly #shelves = new Map<number, Shelf>()
  /** In the order of their numbers. */
  #sortedShelves: Shelf[] = []
  /** Those that are full and not written yet, and those that are empty and written still. */
  readonly #full: Shelf[] = []
  readonly #empty: number[] = []
  readonly #write: Record<'shelf' | 'drop', StatementSync>
  readonly #rows: StatementSync

  constructor(database: DatabaseSync, channels: Channels, oldest: number, end: number) {
    this.#channels = channels
    this.#write = {
      shelf: database.prepare('INSERT OR REPLACE INTO shelves (shelf, channels, since) VALUES (?, ?, ?)'),
      drop: database.prepare('DELETE FROM shelves WHERE shelf = ?'),
    }
    this.#rows = database.prepare(
      `SELECT seq, evictable, json_extract(text, '$.type') AS type, json_extract(text, '$.address') AS address
       FROM tape WHERE seq >= ? AND seq < ?`,
    )
    const first = database.prepare('SELECT seq FROM tape WHERE seq >= ? ORDER BY seq LIMIT 1')
    const nextKeptSeq = (from: number) => (first.get(from)?.seq ?? null) as number | null
    const firstKept = nextKeptSeq(0) ?? Number.POSITIVE_INFINITY
    for (const row of database.prepare('SELECT shelf, channels, since FROM shelves ORDER BY shelf').all()) {
      this.#loadShelf(row as unknown as ShelfRow, firstKept, oldest)
    }
    this.#findUnfiled(nextKeptSeq)
    const lastShelf = this.#shelves.get(shelfNumberOf(end))
    if (lastShelf && !lastShelf.channels) this.#indexShelf(lastShelf)
  }

  /** Notes where lies what was written. */
  add(messages: readonly IndexedMessage[]): void {
    for (const { seq, channel, since } of messages) {
      const shelf = this.#currentShelf(shelfNumberOf(seq))
      if (shelf.channels) shelf.channels[seq % SHELF_SIZE] = channel
      shelf.count += 1
      shelf.since = Math.min(shelf.since, since)
    }
  }

  /** Forgets what was evicted. */
  remove(seqs: readonly number[]): void {
    for (const seq of seqs) {
      const shelf = this.#shelves.get(shelfNumberOf(seq))
      if (!shelf?.channels || shelf.channels[seq % SHELF_SIZE] === NO_CHANNEL) continue
      shelf.channels[seq % SHELF_SIZE] = NO_CHANNEL
      shelf.count -= 1
      if (shelf.count === 0 && shelf !== this.#sortedShelves.at(-1)) this.#removeShelf(shelf)
    }
  }

  /** Writes what has been filed for good since. */
  save(): void {
    for (const shelf of this.#full.splice(0)) {
      const { number, channels, count, since } = shelf
      if (count === 0) this.#removeShelf(shelf)
      else if (channels) this.#write.shelf.run(number, new Uint8Array(channels.buffer), since)
    }
    for (const number of this.#empty.splice(0)) this.#write.drop.run(number)
  }

  /** Finds the numbers of a stretch at which somebody looks; with bounded work. What was evicted up to `oldest` may be told. */
  find(relevanceByChannel: Uint8Array, { after, before, order, limit }: SeqRange, oldest: number): FoundSeqs {
    const seqs: number[] = []
    const step = order === 'asc' ? 1 : -1
    let workLeft = SEARCHED_SHELVES_BOUND
    for (let index = this.#firstIndex(order, after, before); ; index += step) {
      const shelf = this.#sortedShelves[index]
      const start = shelf ? shelf.number * SHELF_SIZE : 0
      if (!shelf || (order === 'asc' ? start >= before : start + SHELF_SIZE <= after + 1))
        return { seqs, reached: null }
      if (workLeft <= 0) return { seqs, reached: order === 'asc' ? start - 1 : start + SHELF_SIZE }
      workLeft -= 1
      let { channels } = shelf
      if (!channels) {
        channels = this.#indexShelf(shelf)
        workLeft -= shelf.count / UNFILED_PER_SHELF
      }
      const minRelevance = minRelevanceOf(shelf, oldest)
      const [low, high] = [Math.max(0, after + 1 - start), Math.min(SHELF_SIZE, before - start) - 1]
      for (let offset = order === 'asc' ? low : high; offset >= low && offset <= high; offset += step) {
        // A channel that is new since is looked at.
        if ((relevanceByChannel[channels[offset] ?? NO_CHANNEL] ?? relevance.followed) < minRelevance) continue
        seqs.push(start + offset)
        if (seqs.length === limit) return { seqs, reached: start + offset }
      }
    }
  }

  /**
   * How many numbers after one somebody would find, counted until it is enough. Nothing is read for it, so of what was
   * never filed little is known.
   */
  extent(relevanceByChannel: Uint8Array, after: number, countLimit: number, oldest: number): CountEstimate {
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

  /** Where in the order the first shelf is that a stretch has a part in. */
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

  /** The shelf that is being filled; the one before it is full for good. */
  #currentShelf(number: number): Shelf {
    const last = this.#sortedShelves.at(-1)
    if (last?.number === number) return last
    if (last?.channels) this.#full.push(last)
    return this.#addShelf({ number, channels: new Uint16Array(SHELF_SIZE), count: 0, since: Number.MAX_SAFE_INTEGER })
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

  /** Files a shelf whose messages lie there unfiled. As what the keys were told that they follow is not looked up. */
  #indexShelf(shelf: Shelf): Uint16Array {
    const start = shelf.number * SHELF_SIZE
    const channels = new Uint16Array(SHELF_SIZE)
    for (const row of this.#rows.iterate(start, start + SHELF_SIZE) as Iterable<UnfiledRow>) {
      const { seq, type, address, evictable } = row
      channels[seq - start] = this.#channels.numberOf({ address, type, keyTypes: 0, evictable: evictable === 1 })
      if (followerTypes.has(type)) shelf.since = UNKNOWN_SINCE
      shelf.count += 1
    }
    shelf.channels = channels
    if (shelf !== this.#sortedShelves.at(-1)) this.#full.push(shelf)
    return channels
  }

  /** Takes a shelf as it was written, without what was evicted since. */
  #loadShelf({ shelf: number, channels: bytes, since }: ShelfRow, firstKept: number, oldest: number): void {
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
    else this.#addShelf({ number, channels, count, since })
  }

  /** Finds the shelves that hold something and were never written. */
  #findUnfiled(nextKeptSeq: (from: number) => number | null): void {
    for (let seq = nextKeptSeq(0); seq !== null; ) {
      let number = shelfNumberOf(seq)
      if (this.#shelves.has(number)) while (this.#shelves.has(number)) number += 1
      else {
        this.#addShelf({ number, channels: null, count: 0, since: Number.MAX_SAFE_INTEGER })
        number += 1
      }
      seq = nextKeptSeq(number * SHELF_SIZE)
    }
    this.#sortedShelves.sort((one, other) => one.number - other.number)
  }
}

type ShelfRow = { readonly shelf: number; readonly channels: Uint8Array; readonly since: number }
type UnfiledRow = {
  readonly seq: number
  readonly evictable: number
  readonly type: UpdateType
  readonly address: Hex | null
}

/** For what it is looked at a shelf at least. */
const minRelevanceOf = ({ since }: Shelf, oldest: number): number =>
  since <= oldest ? relevance.ifLost : relevance.followed

const shelfNumberOf = (seq: number): number => Math.floor(seq / SHELF_SIZE)

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Hex } from '../../protocol/fields.ts'
import type { UpdateType } from '../../protocol/updates.ts'
import type { Extent, Stretch } from '../tape.ts'
import { type Channels, followers, looks, NOTHING } from './channels.ts'

/** Numbers that are filed together. */
const SHELF = 1_024
/** Shelves that are looked through at once. */
const SHELVES_BOUND = 256
/** Of one that was never filed each message is read: so many of them take as long as a shelf. */
const UNFILED_PER_SHELF = SHELF / SHELVES_BOUND

/** Where a message lies: its number, its channel, and how far back the tellings stand that it follows. */
export type Filed = { readonly seq: number; readonly channel: number; readonly since: number }

/** The numbers that were found, and up to which number it was looked: null where the stretch is through. */
export type Numbers = { readonly seqs: readonly number[]; readonly reached: number | null }

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
export class Catalogue {
  readonly #channels: Channels
  readonly #shelves = new Map<number, Shelf>()
  /** In the order of their numbers. */
  #inOrder: Shelf[] = []
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
    const kept = (from: number) => (first.get(from)?.seq ?? null) as number | null
    const begin = kept(0) ?? Number.POSITIVE_INFINITY
    for (const row of database.prepare('SELECT shelf, channels, since FROM shelves ORDER BY shelf').all()) {
      this.#load(row as unknown as Written, begin, oldest)
    }
    this.#findUnfiled(kept)
    const open = this.#shelves.get(shelfOf(end))
    if (open && !open.channels) this.#file(open)
  }

  /** Notes where lies what was written. */
  add(filed: readonly Filed[]): void {
    for (const { seq, channel, since } of filed) {
      const shelf = this.#open(shelfOf(seq))
      if (shelf.channels) shelf.channels[seq % SHELF] = channel
      shelf.count += 1
      shelf.since = Math.min(shelf.since, since)
    }
  }

  /** Forgets what was evicted. */
  remove(seqs: readonly number[]): void {
    for (const seq of seqs) {
      const shelf = this.#shelves.get(shelfOf(seq))
      if (!shelf?.channels || shelf.channels[seq % SHELF] === NOTHING) continue
      shelf.channels[seq % SHELF] = NOTHING
      shelf.count -= 1
      if (shelf.count === 0 && shelf !== this.#inOrder.at(-1)) this.#drop(shelf)
    }
  }

  /** Writes what has been filed for good since. */
  save(): void {
    for (const shelf of this.#full.splice(0)) {
      const { number, channels, count, since } = shelf
      if (count === 0) this.#drop(shelf)
      else if (channels) this.#write.shelf.run(number, new Uint8Array(channels.buffer), since)
    }
    for (const number of this.#empty.splice(0)) this.#write.drop.run(number)
  }

  /** Finds the numbers of a stretch at which somebody looks; with bounded work. What was evicted up to `oldest` may be told. */
  find(looksOf: Uint8Array, { after, before, order, limit }: Stretch, oldest: number): Numbers {
    const seqs: number[] = []
    const step = order === 'asc' ? 1 : -1
    let left = SHELVES_BOUND
    for (let at = this.#from(order, after, before); ; at += step) {
      const shelf = this.#inOrder[at]
      const start = shelf ? shelf.number * SHELF : 0
      if (!shelf || (order === 'asc' ? start >= before : start + SHELF <= after + 1)) return { seqs, reached: null }
      if (left <= 0) return { seqs, reached: order === 'asc' ? start - 1 : start + SHELF }
      left -= 1
      let { channels } = shelf
      if (!channels) {
        channels = this.#file(shelf)
        left -= shelf.count / UNFILED_PER_SHELF
      }
      const least = leastOf(shelf, oldest)
      const [low, high] = [Math.max(0, after + 1 - start), Math.min(SHELF, before - start) - 1]
      for (let place = order === 'asc' ? low : high; place >= low && place <= high; place += step) {
        // A channel that is new since is looked at.
        if ((looksOf[channels[place] ?? NOTHING] ?? looks.told) < least) continue
        seqs.push(start + place)
        if (seqs.length === limit) return { seqs, reached: start + place }
      }
    }
  }

  /**
   * How many numbers after one somebody would find, counted until it is enough. Nothing is read for it, so of what was
   * never filed little is known.
   */
  extent(looksOf: Uint8Array, after: number, enough: number, oldest: number): Extent {
    let [least, most] = [0, 0]
    for (let at = this.#from('asc', after, Number.POSITIVE_INFINITY); least <= enough; at += 1) {
      const shelf = this.#inOrder[at]
      if (!shelf) break
      const { channels, number } = shelf
      if (!channels) {
        most += SHELF
        continue
      }
      const reason = leastOf(shelf, oldest)
      for (let place = Math.max(0, after + 1 - number * SHELF); place < SHELF; place += 1) {
        const look = looksOf[channels[place] ?? NOTHING] ?? looks.never
        if (look === looks.named) least += 1
        if (look >= reason) most += 1
      }
    }
    return { least, most }
  }

  /** Where in the order the first shelf is that a stretch has a part in. */
  #from(order: Stretch['order'], after: number, before: number): number {
    const wanted = shelfOf(order === 'asc' ? after + 1 : before - 1)
    let [low, high] = [0, this.#inOrder.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#inOrder[middle]?.number ?? 0) < wanted) low = middle + 1
      else high = middle
    }
    return order === 'asc' || this.#inOrder[low]?.number === wanted ? low : low - 1
  }

  /** The shelf that is being filled; the one before it is full for good. */
  #open(number: number): Shelf {
    const last = this.#inOrder.at(-1)
    if (last?.number === number) return last
    if (last?.channels) this.#full.push(last)
    return this.#hold({ number, channels: new Uint16Array(SHELF), count: 0, since: Number.MAX_SAFE_INTEGER })
  }

  #hold(shelf: Shelf): Shelf {
    this.#shelves.set(shelf.number, shelf)
    this.#inOrder.push(shelf)
    return shelf
  }

  #drop({ number }: Shelf): void {
    this.#shelves.delete(number)
    this.#inOrder = this.#inOrder.filter((shelf) => shelf.number !== number)
    this.#empty.push(number)
  }

  /** Files a shelf whose messages lie there unfiled. As what the keys were told that they follow is not looked up. */
  #file(shelf: Shelf): Uint16Array {
    const start = shelf.number * SHELF
    const channels = new Uint16Array(SHELF)
    for (const row of this.#rows.iterate(start, start + SHELF) as Iterable<UnfiledRow>) {
      const { seq, type, address, evictable } = row
      channels[seq - start] = this.#channels.numberOf({ address, type, told: 0, evictable: evictable === 1 })
      if (followers.has(type)) shelf.since = UNKNOWN_SINCE
      shelf.count += 1
    }
    shelf.channels = channels
    if (shelf !== this.#inOrder.at(-1)) this.#full.push(shelf)
    return channels
  }

  /** Takes a shelf as it was written, without what was evicted since. */
  #load({ shelf: number, channels: bytes, since }: Written, begin: number, oldest: number): void {
    const start = number * SHELF
    const channels = new Uint16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))
    let count = 0
    for (let place = 0; place < SHELF; place += 1) {
      const channel = channels[place] ?? NOTHING
      const seq = start + place
      if (seq < begin || (seq <= oldest && this.#channels.evictable(channel))) channels[place] = NOTHING
      else if (channel !== NOTHING) count += 1
    }
    if (count === 0) this.#empty.push(number)
    else this.#hold({ number, channels, count, since })
  }

  /** Finds the shelves that hold something and were never written. */
  #findUnfiled(kept: (from: number) => number | null): void {
    for (let seq = kept(0); seq !== null; ) {
      let number = shelfOf(seq)
      if (this.#shelves.has(number)) while (this.#shelves.has(number)) number += 1
      else {
        this.#hold({ number, channels: null, count: 0, since: Number.MAX_SAFE_INTEGER })
        number += 1
      }
      seq = kept(number * SHELF)
    }
    this.#inOrder.sort((one, other) => one.number - other.number)
  }
}

type Written = { readonly shelf: number; readonly channels: Uint8Array; readonly since: number }
type UnfiledRow = {
  readonly seq: number
  readonly evictable: number
  readonly type: UpdateType
  readonly address: Hex | null
}

/** For what it is looked at a shelf at least. */
const leastOf = ({ since }: Shelf, oldest: number): number => (since <= oldest ? looks.ifLost : looks.told)

const shelfOf = (seq: number): number => Math.floor(seq / SHELF)

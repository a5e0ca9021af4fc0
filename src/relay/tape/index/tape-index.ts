import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type Update, updateRows } from '../../../protocol/updates.ts'
import type { CountEstimate, Entry, FoundEntries, HistoryFilter, SeqRange } from '../tape.ts'
import { entryOf, prepareRows, type TapeRow } from '../tape-row.ts'
import { Channels, followerTypes } from './channels.ts'
import { OpenKeyTypes } from './open-key-types.ts'
import { ShelfIndex } from './shelf-index.ts'

/** Limit of the text that is read for one page. The update that exceeds it is the last one of the page. */
const TEXT_BOUND_CHARS = 1_048_576

/** Knows of every update which filters it may match. It follows the committed batches, so a failed one leaves no trace in it. */
export class TapeIndex {
  readonly #channels: Channels
  readonly #shelves: ShelfIndex
  readonly #openKeyTypes: OpenKeyTypes
  readonly #row: StatementSync
  readonly #rows: Readonly<Record<'asc' | 'desc', StatementSync>>
  /** Relevance of the channels for each filter that is in use. */
  readonly #relevance = new WeakMap<HistoryFilter, Uint8Array>()
  #oldest: number

  constructor(database: DatabaseSync, oldest: number, readKey: (key: string) => readonly Entry[]) {
    this.#channels = new Channels(database)
    this.#shelves = new ShelfIndex(database, this.#channels, oldest)
    this.#openKeyTypes = new OpenKeyTypes(readKey)
    this.#row = prepareRows(database, 'SELECT seq, text FROM tape WHERE seq = ?')
    const between = 'SELECT seq, text FROM tape WHERE seq BETWEEN ? AND ? ORDER BY seq'
    this.#rows = { asc: prepareRows(database, between), desc: prepareRows(database, `${between} DESC`) }
    this.#oldest = oldest
  }

  /** Writes what the file lacks of the index, in the transaction of the next batch. `adopt` is called once it is committed. */
  save(): void {
    this.#channels.save()
    this.#shelves.save()
  }

  /** Indexes the updates of a committed batch, and forgets those that it evicted. */
  adopt(entries: readonly Entry[], evicted: readonly number[], oldest: number): void {
    this.#channels.onSaved()
    this.#shelves.onSaved()
    for (const entry of entries) {
      const { seq, update } = entry
      const { mask: keyTypes, followsFrom } = this.#openKeyTypes.add(entry)
      const evictable = isEvictable(update)
      const channel = this.#channels.numberOf({ address: update.address, type: update.type, keyTypes, evictable })
      this.#shelves.add({ seq, channel, followsFrom })
    }
    this.#shelves.remove(evicted)
    this.#oldest = oldest
  }

  read(filter: HistoryFilter, range: SeqRange): FoundEntries {
    const { seqs, reached } = this.#shelves.find(this.#relevanceOf(filter), range, this.#oldest)
    const entries: Entry[] = []
    let chars = 0
    for (const row of this.#rowsAt(seqs)) {
      const entry = entryOf(row)
      if (matchesFilter(filter, entry)) entries.push(entry)
      chars += entry.text.length
      if (chars > TEXT_BOUND_CHARS) return { entries, reached: entry.seq }
    }
    return { entries, reached }
  }

  count(filter: HistoryFilter, after: number, countLimit: number): CountEstimate {
    return this.#shelves.count(this.#relevanceOf(filter), after, countLimit, this.#oldest)
  }

  #relevanceOf(filter: HistoryFilter): Uint8Array {
    const known = this.#relevance.get(filter)
    if (known?.length === this.#channels.size) return known
    const relevance = this.#channels.relevanceOf(filter)
    this.#relevance.set(filter, relevance)
    return relevance
  }

  /** Reads the updates with these numbers, in this order. Consecutive numbers need only one query. */
  *#rowsAt(seqs: readonly number[]): Iterable<TapeRow> {
    const [first = 0, last = first] = [seqs[0], seqs.at(-1)]
    if (seqs.length > 1 && Math.abs(last - first) === seqs.length - 1) {
      const [from, to, query] = first < last ? [first, last, this.#rows.asc] : [last, first, this.#rows.desc]
      yield* query.iterate(from, to) as unknown as Iterable<TapeRow>
      return
    }
    for (const seq of seqs) {
      const row = this.#row.get(seq) as unknown as TapeRow | undefined
      if (row) yield row
    }
  }
}

/** Whether eviction by count may delete an update. A seal is kept if one of its facts is: it shows that the fact is sealed. */
export function isEvictable(update: Update): boolean {
  const { isEvictable: rule } = updateRows[update.type]
  if (rule !== 'byKeys') return rule
  return update.type !== 'seal' || update.types.every((type) => type === 'part' || updateRows[type].isEvictable)
}

/** Tests each update that a reader finds, because those of the overflow channel may not match. */
const matchesFilter = ({ tokens, types, followersOf }: HistoryFilter, { update: { address, type } }: Entry): boolean =>
  (types.has(type) || (followersOf !== undefined && followerTypes.has(type))) &&
  (tokens === null || address === null || tokens.has(address))

import type { DatabaseSync } from 'node:sqlite'
import type { Hex } from '../protocol/fields.ts'
import { formatPosition } from '../protocol/position.ts'
import type { Draft, Update } from '../protocol/updates.ts'
import { TapeIndex } from './index/index.ts'
import { defineNote, type Note, type NoteFamily, Notes } from './notes.ts'
import { entryOf, type TapeRow } from './row.ts'
import { openDatabase } from './schema.ts'
import {
  type CountEstimate,
  type Entry,
  type Follower,
  type HistoryFilter,
  type HistoryReader,
  type SearchableTape,
  type Tape,
  TapeError,
  type TapeHistory,
} from './tape.ts'

/** After an unclean end numbers continue this far ahead: a number whose update the disk lost must never be given again. */
const UNCLEAN_SKIP = 2 ** 20
/** One append evicts at most this many updates, so that no batch waits for a clean-up. */
const EVICTION_BOUND = 1_000
const EPOCH_CHARS = 6

type Options = {
  /** A folder, or `:memory:` for a tape that is gone when it closes. */
  readonly dir: string
  readonly retentionMs: number
  readonly bound: number
  readonly now: () => number
  readonly random: () => number
}

/** Opens the embedded tape: one SQLite file, written by one process. */
export function openSqliteTape(options: Options): SearchableTape {
  const database = openDatabase(options.dir)
  try {
    return new SqliteTape(database, options)
  } catch (failure) {
    database.close()
    if (failure instanceof TapeError) throw failure
    const message = failure instanceof Error ? failure.message : String(failure)
    throw new TapeError(`DATA_DIR ${options.dir} holds a tape that cannot be read (${message}): name another folder`)
  }
}

type EvictionResult = { readonly count: number; readonly oldest: number; readonly evicted: readonly number[] }

class SqliteTape implements Tape, TapeHistory {
  readonly epoch: string
  readonly #database: DatabaseSync
  readonly #options: Options
  readonly #followers = new Set<Follower>()
  /** The last number of each token and type. */
  readonly #lastSeqs = new Map<string, number>()
  readonly #notes = new Notes()
  readonly #statements: ReturnType<typeof prepareStatements>
  readonly #index: TapeIndex
  #end: number
  #oldest: number
  #count: number
  /** The latest time written. Later rows get at least this time, so a clock that goes back hides none from a search. */
  #time: number

  constructor(database: DatabaseSync, options: Options) {
    this.#database = database
    this.#options = options
    this.#statements = prepareStatements(database)
    const metaRows = database.prepare('SELECT name, value FROM meta').all()
    const meta = new Map(metaRows.map(({ name, value }) => [String(name), String(value)]))
    this.epoch = meta.get('epoch') ?? randomEpoch(options.random)
    // `last_seqs` holds the last number even where every update has been evicted.
    const last = database
      .prepare('SELECT count(*) AS count, max(time) AS time, (SELECT max(seq) FROM last_seqs) AS seq FROM tape')
      .get()
    const highest = Math.max(Number(last?.seq ?? 0), Number(meta.get('end') ?? 0))
    this.#end = meta.get('closed') === 'no' && highest > 0 ? highest + UNCLEAN_SKIP : highest
    this.#oldest = Number(meta.get('oldest') ?? 0)
    this.#count = Number(last?.count ?? 0)
    this.#time = Number(last?.time ?? 0)
    const readKey = (key: string) => this.readKey(key)
    this.#index = new TapeIndex(database, { oldest: this.#oldest, end: this.#end, readKey })
    for (const row of database.prepare('SELECT address, type, seq FROM last_seqs').all()) {
      this.#lastSeqs.set(`${row.address} ${row.type}`, Number(row.seq))
    }
    for (const row of database.prepare('SELECT name, value FROM notes').all()) {
      this.#notes.set(defineNote(String(row.name)), JSON.parse(String(row.value)))
    }
    this.#inTransaction(() => {
      this.#statements.writeMeta.run('epoch', this.epoch)
      this.#statements.writeMeta.run('end', String(this.#end))
      this.#statements.writeMeta.run('closed', 'no')
    })
  }

  async append(drafts: readonly Draft[], notes: Notes = new Notes()): Promise<readonly Entry[]> {
    const first = this.#end + 1
    const lastSeqs = new Map<string, number>()
    const entries = drafts.map((draft, index) => this.#numberDraft(draft, first + index, lastSeqs))
    let eviction: EvictionResult = { count: this.#count, oldest: this.#oldest, evicted: [] }
    let time = this.#time
    this.#inTransaction(() => {
      for (const entry of entries) {
        const { seq, update, text } = entry
        time = Math.max(time, Date.parse(update.time))
        this.#statements.writeUpdate.run(seq, time, this.#index.add(entry) ? 1 : 0, text, subjectOf(update))
      }
      for (const [channel, seq] of lastSeqs) {
        const [address = '', type = ''] = channel.split(' ')
        this.#statements.writeLastSeq.run(address, type, seq)
      }
      for (const [name, value] of notes) {
        if (value === null) this.#statements.deleteNote.run(name)
        else this.#statements.writeNote.run(name, JSON.stringify(value))
      }
      this.#index.save()
      // Also for a batch without updates: the head note is written all the time, so old updates go even in a quiet time.
      eviction = this.#evict(entries.length)
    })
    this.#index.onCommit(eviction.evicted, eviction.oldest)
    this.#count = eviction.count
    this.#oldest = eviction.oldest
    this.#time = time
    this.#end += entries.length
    for (const [channel, seq] of lastSeqs) this.#lastSeqs.set(channel, seq)
    this.#notes.merge(notes)
    for (const deliver of this.#followers) deliver(entries, notes)
    return entries
  }

  follow(deliver: Follower): () => void {
    this.#followers.add(deliver)
    return () => this.#followers.delete(deliver)
  }

  readAfter(seq: number, limit: number): readonly Entry[] {
    return (this.#statements.readAfter.all(seq, limit) as TapeRow[]).map(entryOf)
  }

  openReader(filter: HistoryFilter): HistoryReader {
    return this.#index.openReader(filter)
  }

  estimateCount(filter: HistoryFilter, after: number, countLimit: number): CountEstimate {
    return this.#index.estimateCount(filter, after, countLimit)
  }

  readKey(key: string): readonly Entry[] {
    return (this.#statements.readSubject.all(key) as TapeRow[]).map(entryOf)
  }

  sealsOfToken(address: Hex, block: number): readonly Entry[] {
    return this.readKey(sealSubject(address, block))
  }

  sealsOfBlock(block: number): readonly Entry[] {
    const [first, end] = [`${block}${SUBJECT_SEPARATOR}`, `${block}${SUBJECT_END}`]
    return (this.#statements.readSubjectRange.all(first, end) as TapeRow[]).map(entryOf)
  }

  seqBefore(time: number): number {
    const found = this.#statements.firstSince.get(time)
    return found ? Number(found.seq) - 1 : this.#end
  }

  note<Value>(note: Note<Value>): Value | undefined {
    return this.#notes.note(note)
  }

  notes<Value>(family: NoteFamily<Value>): ReadonlyMap<string, Value> {
    return this.#notes.notes(family)
  }

  oldest(): number {
    return this.#oldest
  }

  end(): number {
    return this.#end
  }

  async close(): Promise<void> {
    this.#followers.clear()
    this.#inTransaction(() => {
      this.#statements.writeMeta.run('end', String(this.#end))
      this.#statements.writeMeta.run('closed', 'yes')
    })
    this.#database.close()
  }

  /** Adds the position and `prev` to a draft, in the field order of the contract. */
  #numberDraft(draft: Draft, seq: number, lastSeqs: Map<string, number>): Entry {
    const channel = `${draft.address ?? '*'} ${draft.type}`
    const previousSeq = lastSeqs.get(channel) ?? this.#lastSeqs.get(channel)
    lastSeqs.set(channel, seq)
    const { type, ...rest } = draft
    const update = {
      type,
      id: formatPosition(this.epoch, seq),
      prev: previousSeq === undefined ? null : formatPosition(this.epoch, previousSeq),
      ...rest,
    } as Update
    return { seq, update, text: JSON.stringify(update) }
  }

  /** Evicts by age, then by count. Eviction by count takes only evictable updates: see `isEvictable` in the index. */
  #evict(added: number): EvictionResult {
    const tooOld = this.#statements.evictByAge.all(this.#options.now() - this.#options.retentionMs, EVICTION_BOUND)
    const count = this.#count + added - tooOld.length
    const excess = Math.min(count - this.#options.bound, EVICTION_BOUND)
    const tooMany = excess > 0 ? this.#statements.evictByCount.all(excess) : []
    const evicted = [...tooOld, ...tooMany].map((row) => Number(row.seq))
    const oldest = evicted.reduce((highest, seq) => Math.max(highest, seq), this.#oldest)
    if (oldest !== this.#oldest) this.#statements.writeMeta.run('oldest', String(oldest))
    return { count: count - tooMany.length, oldest, evicted }
  }

  #inTransaction(write: () => void): void {
    this.#database.exec('BEGIN IMMEDIATE')
    try {
      write()
      this.#database.exec('COMMIT')
    } catch (failure) {
      this.#index.onRollback()
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      throw new TapeError(`the tape cannot be written: ${failure instanceof Error ? failure.message : String(failure)}`)
    }
  }
}

const prepareStatements = (database: DatabaseSync) => ({
  writeUpdate: database.prepare('INSERT INTO tape (seq, time, evictable, text, subject) VALUES (?, ?, ?, ?, ?)'),
  writeLastSeq: database.prepare('INSERT OR REPLACE INTO last_seqs (address, type, seq) VALUES (?, ?, ?)'),
  writeNote: database.prepare('INSERT OR REPLACE INTO notes (name, value) VALUES (?, ?)'),
  deleteNote: database.prepare('DELETE FROM notes WHERE name = ?'),
  writeMeta: database.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)'),
  readAfter: database.prepare('SELECT seq, text FROM tape WHERE seq > ? ORDER BY seq LIMIT ?'),
  readSubject: database.prepare('SELECT seq, text FROM tape WHERE subject = ? ORDER BY seq'),
  readSubjectRange: database.prepare('SELECT seq, text FROM tape WHERE subject >= ? AND subject < ? ORDER BY seq'),
  firstSince: database.prepare('SELECT seq FROM tape WHERE time >= ? ORDER BY time, seq LIMIT 1'),
  evictByAge: database.prepare(
    'DELETE FROM tape WHERE seq IN (SELECT seq FROM tape WHERE time < ? ORDER BY time, seq LIMIT ?) RETURNING seq',
  ),
  evictByCount: database.prepare(
    'DELETE FROM tape WHERE seq IN (SELECT seq FROM tape WHERE evictable = 1 ORDER BY seq LIMIT ?) RETURNING seq',
  ),
})

/** The subjects of all seals of a block lie between these two characters after its number. */
const [SUBJECT_SEPARATOR, SUBJECT_END] = [' ', '!']
const sealSubject = (address: Hex, block: number): string => `${block}${SUBJECT_SEPARATOR}${address}`

/** What an update is looked up by, if by anything. */
function subjectOf(update: Update): string | null {
  if (update.type === 'seal') return sealSubject(update.address, update.block.number)
  return 'key' in update ? (update.key ?? null) : null
}

function randomEpoch(random: () => number): string {
  let epoch = ''
  while (epoch.length < EPOCH_CHARS) epoch += Math.floor(random() * 36).toString(36)
  return epoch
}

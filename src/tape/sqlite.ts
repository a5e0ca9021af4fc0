import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Hex } from '../protocol/fields.ts'
import { formatPosition } from '../protocol/position.ts'
import type { Draft, Update } from '../protocol/updates.ts'
import { TapeIndex } from './index/index.ts'
import { defineNote, type Note, type NoteFamily, Notes } from './notes.ts'
import { entryOf, type TapeRow } from './row.ts'
import { openDatabase, prepareInsert } from './schema.ts'
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

/** After an unclean end numbering goes on this far ahead: what the disk lost must never be numbered again. */
const UNCLEAN_SKIP = 2 ** 20
/** How many updates one append takes off the old end at most, so that no turn waits for a clean-up. */
const EVICTION_BOUND = 1_000
const EPOCH_CHARS = 6

/** What the tape is told about its place, its bounds, the clock and the dice. */
type Options = {
  /** A folder, or `:memory:` for a tape that keeps nothing. */
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

/** What stands before and behind the subjects of all seals of a block. */
const [SUBJECT_SEPARATOR, SUBJECT_END] = [' ', '!']
const sealSubject = (address: Hex, block: number): string => `${block}${SUBJECT_SEPARATOR}${address}`
/** The same on a tape of before. */
const legacySealSubject = (address: Hex, block: number): string => `${address} ${block}`

const sortedBySeq = (entries: readonly Entry[]): readonly Entry[] =>
  entries.toSorted((one, other) => one.seq - other.seq)

/** By what a message can be looked up, if by anything. */
function subjectOf(update: Update): string | null {
  if (update.type === 'seal') return sealSubject(update.address, update.block.number)
  return 'key' in update ? (update.key ?? null) : null
}

/** What is left after eviction, and which numbers went. */
type EvictionResult = { readonly count: number; readonly oldest: number; readonly evicted: readonly number[] }

/** A key begins with the number of its block, and so does the subject of a seal, but on a tape of before: with its token. */
const hasLegacySeals = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM tape WHERE subject >= '0x' AND subject < '0y' LIMIT 1").get() !== undefined

class SqliteTape implements Tape, TapeHistory {
  readonly epoch: string
  readonly #database: DatabaseSync
  readonly #options: Options
  readonly #followers = new Set<Follower>()
  readonly #lastSeqs = new Map<string, number>()
  readonly #notes = new Notes()
  readonly #write: Record<'update' | 'head' | 'note' | 'meta' | 'forget', StatementSync>
  readonly #read: Record<'since' | 'about' | 'between' | 'before' | 'agedOut' | 'crowdedOut', StatementSync>
  readonly #index: TapeIndex
  /** Whether seals are kept that were written when they could be looked up by their token alone. */
  readonly #hasLegacySeals: boolean
  #end: number
  #oldest: number
  #count: number
  /** The latest time written. Rows are filed under it, so that a clock that goes back hides nothing from a search by time. */
  #time: number

  constructor(database: DatabaseSync, options: Options) {
    this.#database = database
    this.#options = options
    this.#write = {
      update: prepareInsert(database),
      head: database.prepare('INSERT OR REPLACE INTO heads (address, type, seq) VALUES (?, ?, ?)'),
      note: database.prepare('INSERT OR REPLACE INTO notes (name, value) VALUES (?, ?)'),
      meta: database.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)'),
      forget: database.prepare('DELETE FROM notes WHERE name = ?'),
    }
    this.#read = {
      since: database.prepare('SELECT seq, text FROM tape WHERE seq > ? ORDER BY seq LIMIT ?'),
      about: database.prepare('SELECT seq, text FROM tape WHERE subject = ? ORDER BY seq'),
      between: database.prepare('SELECT seq, text FROM tape WHERE subject >= ? AND subject < ? ORDER BY seq'),
      before: database.prepare('SELECT seq FROM tape WHERE time >= ? ORDER BY time, seq LIMIT 1'),
      agedOut: database.prepare(
        'DELETE FROM tape WHERE seq IN (SELECT seq FROM tape WHERE time < ? ORDER BY time, seq LIMIT ?) RETURNING seq',
      ),
      crowdedOut: database.prepare(
        'DELETE FROM tape WHERE seq IN (SELECT seq FROM tape WHERE evictable = 1 ORDER BY seq LIMIT ?) RETURNING seq',
      ),
    }
    const meta = new Map(
      (database.prepare('SELECT name, value FROM meta').all() as { name: string; value: string }[]).map((row) => [
        row.name,
        row.value,
      ]),
    )
    this.epoch = meta.get('epoch') ?? randomEpoch(options.random)
    // The heads know the last number even where every update has been evicted since.
    const last = database
      .prepare('SELECT count(*) AS count, max(time) AS time, (SELECT max(seq) FROM heads) AS seq FROM tape')
      .get()
    const highest = Math.max(Number(last?.seq ?? 0), Number(meta.get('end') ?? 0))
    this.#end = meta.get('closed') === 'no' && highest > 0 ? highest + UNCLEAN_SKIP : highest
    this.#oldest = Number(meta.get('oldest') ?? 0)
    this.#count = Number(last?.count ?? 0)
    this.#time = Number(last?.time ?? 0)
    const readKey = (key: string) => this.readKey(key)
    this.#index = new TapeIndex(database, { oldest: this.#oldest, end: this.#end, readKey })
    this.#hasLegacySeals = hasLegacySeals(database)
    for (const row of database.prepare('SELECT address, type, seq FROM heads').all()) {
      this.#lastSeqs.set(`${row.address} ${row.type}`, Number(row.seq))
    }
    for (const row of database.prepare('SELECT name, value FROM notes').all()) {
      this.#notes.set(defineNote(String(row.name)), JSON.parse(String(row.value)))
    }
    this.#inTransaction(() => {
      this.#write.meta.run('epoch', this.epoch)
      this.#write.meta.run('end', String(this.#end))
      this.#write.meta.run('closed', 'no')
    })
  }

  async append(drafts: readonly Draft[], notes: Notes = new Notes()): Promise<readonly Entry[]> {
    const first = this.#end + 1
    const lastSeqs = new Map<string, number>()
    const entries = drafts.map((draft, index) => this.#numbered(draft, first + index, lastSeqs))
    let eviction: EvictionResult = { count: this.#count, oldest: this.#oldest, evicted: [] }
    let time = this.#time
    this.#inTransaction(() => {
      for (const entry of entries) {
        const { seq, update, text } = entry
        time = Math.max(time, Date.parse(update.time))
        this.#write.update.run(seq, time, this.#index.add(entry) ? 1 : 0, text, subjectOf(update))
      }
      for (const [channel, seq] of lastSeqs) {
        const [address = '', type = ''] = channel.split(' ')
        this.#write.head.run(address, type, seq)
      }
      for (const [name, value] of notes) {
        if (value === null) this.#write.forget.run(name)
        else this.#write.note.run(name, JSON.stringify(value))
      }
      this.#index.save()
      // What is too old goes also where nothing new comes: heads are noted all the time.
      eviction = this.#evict(entries.length)
    })
    this.#index.onCommit(eviction.evicted, eviction.oldest)
    this.#count = eviction.count
    this.#oldest = eviction.oldest
    this.#time = time
    this.#end += entries.length
    for (const [head, seq] of lastSeqs) this.#lastSeqs.set(head, seq)
    this.#notes.merge(notes)
    for (const deliver of this.#followers) deliver(entries, notes)
    return entries
  }

  follow(deliver: Follower): () => void {
    this.#followers.add(deliver)
    return () => this.#followers.delete(deliver)
  }

  readAfter(seq: number, limit: number): readonly Entry[] {
    return (this.#read.since.all(seq, limit) as TapeRow[]).map(entryOf)
  }

  openReader(wanted: HistoryFilter): HistoryReader {
    return this.#index.openReader(wanted)
  }

  estimateCount(wanted: HistoryFilter, after: number, enough: number): CountEstimate {
    return this.#index.estimateCount(wanted, after, enough)
  }

  readKey(key: string): readonly Entry[] {
    return (this.#read.about.all(key) as TapeRow[]).map(entryOf)
  }

  sealsOfToken(address: Hex, block: number): readonly Entry[] {
    const seals = this.readKey(sealSubject(address, block))
    return this.#hasLegacySeals ? sortedBySeq([...this.readKey(legacySealSubject(address, block)), ...seals]) : seals
  }

  sealsOfBlock(block: number): readonly Entry[] {
    const seals = (this.#read.between.all(`${block}${SUBJECT_SEPARATOR}`, `${block}${SUBJECT_END}`) as TapeRow[]).map(
      entryOf,
    )
    return this.#hasLegacySeals ? sortedBySeq([...this.#legacySealsOf(block), ...seals]) : seals
  }

  seqBefore(time: number): number {
    const found = this.#read.before.get(time)
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
      this.#write.meta.run('end', String(this.#end))
      this.#write.meta.run('closed', 'yes')
    })
    this.#database.close()
  }

  /** Gives a draft its number and its `prev`, in the order of fields that the contract names. */
  #numbered(draft: Draft, seq: number, lastSeqs: Map<string, number>): Entry {
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

  /** On a tape of before each token is asked. */
  #legacySealsOf(block: number): readonly Entry[] {
    const addresses = [...this.#lastSeqs.keys()].flatMap((channel) =>
      channel.endsWith(' seal') ? [channel.split(' ')[0]] : [],
    )
    return addresses.flatMap((address) => this.readKey(legacySealSubject(address as Hex, block)))
  }

  /** Takes off what is too old, then what is too much; the count spares all but movements and what belongs to them. */
  #evict(added: number): EvictionResult {
    const tooOld = this.#read.agedOut.all(this.#options.now() - this.#options.retentionMs, EVICTION_BOUND)
    const count = this.#count + added - tooOld.length
    const excess = Math.min(count - this.#options.bound, EVICTION_BOUND)
    const tooMany = excess > 0 ? this.#read.crowdedOut.all(excess) : []
    const evicted = [...tooOld, ...tooMany].map((row) => Number(row.seq))
    const oldest = evicted.reduce((highest, seq) => Math.max(highest, seq), this.#oldest)
    if (oldest !== this.#oldest) this.#write.meta.run('oldest', String(oldest))
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

function randomEpoch(random: () => number): string {
  let epoch = ''
  while (epoch.length < EPOCH_CHARS) epoch += Math.floor(random() * 36).toString(36)
  return epoch
}

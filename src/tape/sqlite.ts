import type { DatabaseSync } from 'node:sqlite'
import type { Hex } from '../protocol/fields.ts'
import { formatPosition } from '../protocol/position.ts'
import type { Draft, Update } from '../protocol/updates.ts'
import { Checkpoints } from './checkpoints.ts'
import { Eviction, type EvictionBounds } from './eviction.ts'
import { TapeIndex } from './index/index.ts'
import { LastSeqs } from './last-seqs.ts'
import { defineNote, type Note, type NoteFamily, Notes } from './notes.ts'
import { entryOf, prepareRows, type TapeRow } from './row.ts'
import { addClockSteps, Runs } from './runs.ts'
import { openDatabase } from './schema.ts'
import { sealSubjectsOf, subjectOf, subjectOfKey, subjectOfSeal } from './subject.ts'
import {
  type CountEstimate,
  type Entry,
  type Follower,
  type HistoryFilter,
  type HistoryReader,
  type SearchableTape,
  type StoredText,
  type Tape,
  TapeError,
  type TapeHistory,
} from './tape.ts'

const EPOCH_CHARS = 6

type Options = EvictionBounds & {
  /** A folder, or `:memory:` for a tape that is gone when it closes. */
  readonly dir: string
  readonly random: () => number
  /** What the times of updates show. Without it `now`. */
  readonly wallTime?: () => number
  readonly warn?: (kind: string, detail: unknown) => void
}

/** Opens the embedded tape: one SQLite file, written by one process. */
export function openSqliteTape(options: Options): SearchableTape {
  const database = openDatabase(options.dir, options.warn)
  try {
    return new SqliteTape(database, options)
  } catch (failure) {
    database.close()
    if (failure instanceof TapeError) throw failure
    const message = failure instanceof Error ? failure.message : String(failure)
    throw new TapeError(`DATA_DIR ${options.dir} holds a tape that cannot be read (${message}): name another folder`)
  }
}

class SqliteTape implements Tape, TapeHistory {
  readonly epoch: string
  readonly #database: DatabaseSync
  readonly #followers = new Set<Follower>()
  readonly #lastSeqs: LastSeqs
  readonly #eviction: Eviction
  readonly #notes = new Notes()
  readonly #statements: ReturnType<typeof prepareStatements>
  readonly #index: TapeIndex
  readonly #checkpoints: Checkpoints
  readonly #runs: Runs
  #end: number
  #next: number
  /** By how much the wall clock was set since the start. */
  readonly #clockStepsMs: () => number
  /** The latest time written, without the steps of the wall clock. Later rows get at least this time. */
  #time: number

  constructor(database: DatabaseSync, options: Options) {
    this.#database = database
    this.#statements = prepareStatements(database)
    addClockSteps(database)
    this.#checkpoints = new Checkpoints(database)
    const { now, wallTime = now } = options
    this.#clockStepsMs = () => wallTime() - now()
    const metaRows = database.prepare('SELECT name, value FROM meta').all()
    const meta = new Map(metaRows.map(({ name, value }) => [String(name), String(value)]))
    this.epoch = meta.get('epoch') ?? randomEpoch(options.random)
    const last = database.prepare('SELECT seq, time FROM tape ORDER BY seq DESC LIMIT 1').get()
    // The tape itself may be empty or end earlier: every update may have been evicted.
    const saved = Number(meta.get('end') ?? 0)
    this.#end = Math.max(Number(last?.seq ?? 0), saved)
    this.#time = Number(last?.time ?? 0)
    this.#eviction = new Eviction(database, options, meta)
    this.#lastSeqs = new LastSeqs(database, saved)
    const readKey = (key: string) => this.readKey(key)
    this.#index = new TapeIndex(database, { oldest: this.#eviction.oldest, end: this.#end, readKey })
    for (const row of database.prepare('SELECT name, value FROM notes').all()) {
      this.#notes.set(defineNote(String(row.name)), JSON.parse(String(row.value)))
    }
    const startedAt = wallTime()
    const epochBeganAt = Number(meta.get('epoch_began_at') ?? startedAt)
    this.#runs = this.#inTransaction(() => {
      this.#statements.writeMeta.run('epoch', this.epoch)
      this.#statements.writeMeta.run('epoch_began_at', String(epochBeganAt))
      this.#save()
      return new Runs(database, { oldest: this.oldest(), end: this.#end, sinceEpochMs: startedAt - epochBeganAt })
    })
    this.#next = this.#runs.first
    this.#lastSeqs.onCommit()
    // The epoch and the run are on the disk before anybody receives a number of theirs.
    this.#checkpoints.complete()
  }

  async append(drafts: readonly Draft[], notes: Notes = new Notes(), keepAfter = Number.POSITIVE_INFINITY) {
    const end = drafts.length === 0 ? this.#end : this.#next + drafts.length - 1
    const { entries, time, eviction } = this.#inTransaction(() => {
      const entries = drafts.map((draft, index) => this.#numberDraft(draft, this.#next + index))
      const time = this.#writeEntries(entries)
      this.#writeNotes(notes)
      this.#index.save()
      // Also for a batch without updates: the head note is written all the time, so old updates go even in a quiet time.
      const eviction = this.#eviction.run({ added: entries.length, end, keepAfter })
      const isSaveDue = this.#lastSeqs.isSaveDue(end, eviction.state.oldest)
      if (isSaveDue) this.#lastSeqs.save(end)
      if (isSaveDue || eviction.evicted.length > 0) this.#eviction.save(end, eviction.state)
      return { entries, time, eviction }
    })
    this.#index.onCommit(eviction.evicted, eviction.state.oldest)
    this.#eviction.onCommit(eviction.state)
    this.#lastSeqs.onCommit()
    this.#time = time
    this.#end = end
    this.#next += drafts.length
    this.#notes.merge(notes)
    for (const deliver of this.#followers) deliver(entries, notes)
    this.#checkpoints.onCommit(entries.reduce((chars, { text }) => chars + text.length, 0))
    return entries
  }

  follow(deliver: Follower): () => void {
    this.#followers.add(deliver)
    return () => this.#followers.delete(deliver)
  }

  readAfter(seq: number, limit: number): readonly Entry[] {
    return this.#readRowsAfter(seq, limit).map(entryOf)
  }

  readTextsAfter(seq: number, limit: number): readonly StoredText[] {
    return this.#readRowsAfter(seq, limit).map(([seq, text]) => ({ seq, text }))
  }

  openReader(filter: HistoryFilter): HistoryReader {
    return this.#index.openReader(filter)
  }

  estimateCount(filter: HistoryFilter, after: number, countLimit: number): CountEstimate {
    return this.#index.estimateCount(filter, after, countLimit)
  }

  readKey(key: string): readonly Entry[] {
    const subject = subjectOfKey(key)
    return this.#readSubjects(subject, subject).filter(({ update }) => 'key' in update && update.key === key)
  }

  sealsOfToken(address: Hex, block: number): readonly Entry[] {
    const subject = subjectOfSeal(address, block)
    return sealsOf(block, this.#readSubjects(subject, subject)).filter(({ update }) => update.address === address)
  }

  sealsOfBlock(block: number): readonly Entry[] {
    return sealsOf(block, this.#readSubjects(...sealSubjectsOf(block)))
  }

  seqBefore(time: number): number {
    let [low, high] = [0, this.#end + 1]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const row = this.#statements.firstFrom.get(middle)
      if (row && Number(row.time) < time) low = Number(row.seq) + 1
      else high = middle
    }
    const found = this.#statements.firstFrom.get(low)
    return found ? Number(found.seq) - 1 : this.#end
  }

  note<Value>(note: Note<Value>): Value | undefined {
    return this.#notes.note(note)
  }

  notes<Value>(family: NoteFamily<Value>): ReadonlyMap<string, Value> {
    return this.#notes.notes(family)
  }

  oldest(): number {
    return this.#eviction.oldest
  }

  end(): number {
    return this.#end
  }

  next(): number {
    return this.#next
  }

  lostAfter(seq: number): number | null {
    return this.#runs.lostAfter(seq)
  }

  async close(): Promise<void> {
    this.#followers.clear()
    try {
      this.#inTransaction(() => this.#save())
      this.#checkpoints.complete()
    } finally {
      this.#database.close()
    }
  }

  /** Adds the position and `prev` to a draft. */
  #numberDraft(draft: Draft, seq: number): Entry {
    const previousSeq = this.#lastSeqs.replace(draft, seq)
    const id = formatPosition(this.epoch, seq)
    const prev = previousSeq === undefined ? null : formatPosition(this.epoch, previousSeq)
    // A spread that comes first is copied much faster than one that comes later.
    return { seq, update: { ...draft, id, prev } as Update, text: textOf(draft, id, prev) }
  }

  /** Returns the latest time written. */
  #writeEntries(entries: readonly Entry[]): number {
    let time = this.#time
    const stepsMs = this.#clockStepsMs()
    for (const entry of entries) {
      const { seq, update, text } = entry
      time = Math.max(time, Date.parse(update.time) - stepsMs)
      this.#statements.writeUpdate.run(seq, time, this.#index.add(entry) ? 1 : 0, text, subjectOf(update))
    }
    return time
  }

  #writeNotes(notes: Notes): void {
    for (const [name, value] of notes) {
      if (value === null) this.#statements.deleteNote.run(name)
      else this.#statements.writeNote.run(name, JSON.stringify(value))
    }
  }

  #save(): void {
    this.#lastSeqs.save(this.#end)
    this.#eviction.save(this.#end)
  }

  #readRowsAfter(seq: number, limit: number): readonly TapeRow[] {
    return this.#statements.readAfter.all(seq, limit) as unknown as TapeRow[]
  }

  #readSubjects(first: number | null, last: number | null): readonly Entry[] {
    return (this.#statements.readSubjects.all(first, last) as unknown as TapeRow[]).map(entryOf)
  }

  #inTransaction<Result>(write: () => Result): Result {
    const { begin, commit, rollback } = this.#statements
    try {
      begin.run()
      const result = write()
      commit.run()
      return result
    } catch (failure) {
      this.#index.onRollback()
      this.#eviction.onRollback()
      this.#lastSeqs.onRollback()
      if (this.#database.isTransaction) rollback.run()
      throw new TapeError(`the tape cannot be written: ${failure instanceof Error ? failure.message : String(failure)}`)
    }
  }
}

const prepareStatements = (database: DatabaseSync) => ({
  begin: database.prepare('BEGIN IMMEDIATE'),
  commit: database.prepare('COMMIT'),
  rollback: database.prepare('ROLLBACK'),
  writeUpdate: database.prepare('INSERT INTO tape (seq, time, evictable, text, subject) VALUES (?, ?, ?, ?, ?)'),
  writeNote: database.prepare('INSERT OR REPLACE INTO notes (name, value) VALUES (?, ?)'),
  deleteNote: database.prepare('DELETE FROM notes WHERE name = ?'),
  writeMeta: database.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)'),
  readAfter: prepareRows(database, 'SELECT seq, text FROM tape WHERE seq > ? ORDER BY seq LIMIT ?'),
  readSubjects: prepareRows(database, 'SELECT seq, text FROM tape WHERE subject BETWEEN ? AND ? ORDER BY seq'),
  firstFrom: database.prepare('SELECT seq, time FROM tape WHERE seq >= ? ORDER BY seq LIMIT 1'),
})

const sealsOf = (block: number, entries: readonly Entry[]): readonly Entry[] =>
  entries.filter(({ update }) => update.type === 'seal' && update.block.number === block)

/** The update as JSON, in the field order of the contract: the position follows the type, which comes first in every draft. */
function textOf(draft: Draft, id: string, prev: string | null): string {
  const json = JSON.stringify(draft)
  const afterType = json.indexOf(',')
  return `${json.slice(0, afterType)},"id":"${id}","prev":${prev === null ? null : `"${prev}"`}${json.slice(afterType)}`
}

function randomEpoch(random: () => number): string {
  let epoch = ''
  while (epoch.length < EPOCH_CHARS) epoch += Math.floor(random() * 36).toString(36)
  return epoch
}

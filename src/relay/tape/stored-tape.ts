import type { DatabaseSync } from 'node:sqlite'
import type { Hex } from '../../lib/hex.ts'
import { clockStepsMs } from '../../lib/steady-clock.ts'
import { formatPosition } from '../../protocol/position.ts'
import type { Draft, Update } from '../../protocol/updates.ts'
import type { WriteLine } from '../log-lines.ts'
import { type DiskFailure, DiskFailureOverlay, diskFailureOf } from './disk-failure-overlay.ts'
import { Eviction, type EvictionBounds } from './eviction.ts'
import { TapeIndex } from './index/tape-index.ts'
import { type ChannelSeqs, LastSeqs } from './last-seqs.ts'
import { sealSubjectsOf, subjectOf, subjectOfKey, subjectOfSeal } from './lookup-subject.ts'
import { defineNote, type Note, type NoteFamily, Notes } from './notes.ts'
import { addClockSteps, Runs, skippedIfUnknown } from './runs.ts'
import {
  type CountEstimate,
  type Entry,
  type Follower,
  type HistoryFilter,
  type HistoryReader,
  type SearchableTape,
  type StoredText,
  TapeError,
  type TapeSize,
} from './tape.ts'
import { openTapeDatabase, tapeErrorOf } from './tape-database.ts'
import { entryOf, prepareRows, type TapeRow } from './tape-row.ts'
import { WalCheckpoints } from './wal-checkpoints.ts'

const EPOCH_CHARS = 6

/** Place at which a new file continues another tape: after the number `end` of this epoch. */
export type TapeOrigin = { readonly epoch: string; readonly epochBeganAt: number; readonly end: number }

export type StoredTapeOptions = EvictionBounds & {
  /** A folder, or `:memory:` for a tape that is gone when it closes. */
  readonly dataDir: string
  readonly random: () => number
  /** Clock of the times in updates; by default `now`. */
  readonly wallTime?: () => number
  readonly log?: WriteLine
  readonly onCommit?: (seconds: number) => void
  /** Place after which the tape in a new file begins; by default, the number 0 of a new epoch. */
  readonly origin?: TapeOrigin | null
}

export function openStoredTape<Opened>(options: StoredTapeOptions, open: (database: DatabaseSync) => Opened): Opened {
  const { dataDir: dir, log } = options
  const database = openTapeDatabase(dir, log)
  try {
    return open(database)
  } catch (failure) {
    database.close()
    const unreadable = (message: string) => `DATA_DIR ${dir} holds a tape that cannot be read (${message}): name another folder`
    throw tapeErrorOf(failure, dir, unreadable)
  }
}

/** A file that another process may copy until `release`. `source` is null if the copy was written at once. */
type HeldCopy = { readonly source: string | null; readonly release: () => boolean }

/** A tape in one SQLite file, written by one process. Its subclasses decide who appends to it, and with which numbers. */
export abstract class StoredTape implements SearchableTape {
  readonly epoch: string
  readonly epochBeganAt: number
  protected readonly sinceEpochMs: number
  protected readonly isNew: boolean
  readonly #database: DatabaseSync
  readonly #followers = new Set<Follower>()
  readonly #lastSeqs: LastSeqs
  readonly #eviction: Eviction
  readonly #notes = new Notes()
  readonly #statements: ReturnType<typeof prepareStatements>
  readonly #index: TapeIndex
  readonly #checkpoints: WalCheckpoints
  readonly #runs: Runs
  readonly #overlay: DiskFailureOverlay
  readonly #options: StoredTapeOptions
  #end: number
  #next: number
  /** Returns the sum of the wall clock's steps since the start. */
  readonly #clockStepsMs: () => number
  /** Stored time of the last update, without the steps of the wall clock. A later update gets at least this time. */
  #time: number
  /** Time of the first update after this number, which is the oldest one. */
  #oldestTime: { readonly after: number; readonly time: string } | null = null

  constructor(database: DatabaseSync, options: StoredTapeOptions) {
    this.#database = database
    this.#options = options
    this.#overlay = new DiskFailureOverlay(database, options.now)
    this.#statements = prepareStatements(database)
    this.#checkpoints = new WalCheckpoints(database)
    const { now, wallTime = now, random, origin } = options
    this.#clockStepsMs = () => clockStepsMs(wallTime, now)
    const openedAt = wallTime()
    const saved = readMeta(database)
    this.isNew = saved === null
    const meta = saved ?? metaOfNew(origin ?? { epoch: randomEpoch(random), epochBeganAt: openedAt, end: 0 })
    this.epoch = meta.get('epoch') ?? ''
    this.epochBeganAt = Number(meta.get('epoch_began_at'))
    this.sinceEpochMs = openedAt - this.epochBeganAt
    const last = database.prepare('SELECT seq, time FROM tape ORDER BY seq DESC LIMIT 1')
    // Eviction may have deleted all updates, so the saved end counts too.
    const savedEnd = Number(meta.get('end') ?? 0)
    this.#end = Math.max(Number(last.get()?.seq ?? 0), savedEnd)
    this.#next = this.#end + 1
    this.#eviction = new Eviction(database, options, meta)
    this.#lastSeqs = new LastSeqs(database, savedEnd)
    this.#runs = new Runs(database)
    const readKey = (key: string) => this.readKey(key)
    this.#index = new TapeIndex(database, { oldest: this.#eviction.oldest, end: this.#end, readKey })
    for (const row of database.prepare('SELECT name, value FROM notes').all()) {
      this.#notes.set(defineNote(String(row.name)), JSON.parse(String(row.value)))
    }
    this.#inTransaction(() => {
      if (this.isInFile) addClockSteps(database)
      for (const name of ['epoch', 'epoch_began_at']) this.#statements.writeMeta.run(name, meta.get(name) ?? '')
      // A copy that begins in the middle of a tape has evicted nothing, and lacks the updates before its beginning.
      if (this.oldest() > 0) this.#statements.writeMeta.run('oldest', String(this.oldest()))
      this.#save()
    })
    this.#time = Number(last.get()?.time ?? 0)
    this.#lastSeqs.onCommit()
    this.#flush(() => this.#checkpoints.complete())
  }

  reach?(seq: number): Promise<boolean>
  abstract append(drafts: readonly Draft[], notes?: Notes, keepAfter?: number): Promise<readonly Entry[]>

  /** Begins a run at the number `first`, or later if its start cannot be on the disk before anybody receives an update of it. */
  protected beginRun(first: number): void {
    this.#next = first
    this.#inTransaction(() => this.#runs.begin(first, this.oldest(), this.#end))
    this.#flush(() => this.#checkpoints.complete())
    const { now, wallTime = now } = this.#options
    if (!this.isInFile) this.#next += skippedIfUnknown(wallTime())
  }

  /** Gives drafts the next numbers. Unless `write` stores them, the next call gives the same numbers again. */
  protected number(drafts: readonly Draft[]): readonly Entry[] {
    const seqBefore = this.#lastSeqs.openNumbering()
    return drafts.map((draft, index) => {
      const seq = this.#next + index
      const previousSeq = seqBefore(draft, seq)
      const id = formatPosition(this.epoch, seq)
      const prev = previousSeq === undefined ? null : formatPosition(this.epoch, previousSeq)
      // V8 copies a spread at the beginning of a literal much faster than a later one.
      return { seq, update: { ...draft, id, prev } as Update, text: textOf(draft, id, prev) }
    })
  }

  /** Writes numbered updates and notes in one transaction, then delivers them to the followers. `ownNotes` are not delivered. */
  protected write(
    entries: readonly Entry[],
    notes: Notes,
    keepAfter: number,
    { ownNotes = new Notes(), lastSeqs = [] }: { readonly ownNotes?: Notes; readonly lastSeqs?: ChannelSeqs } = {},
  ): void {
    if (this.#overlay.isRetryDue) this.#returnToFile()
    if (this.#overlay.isFull) throw new TapeError(`${lossOf(this.#overlay)}, and there is no room for more in memory`)
    const end = entries.at(-1)?.seq ?? this.#end
    const startedAt = performance.now()
    const { time, eviction } = this.#inTransaction(() => {
      const first = entries[0]?.seq ?? 0
      // Numbers were skipped: another process has begun a run.
      if (first > this.#end + 1 && first !== this.#runs.first) this.#runs.begin(first, this.oldest(), this.#end)
      const time = this.#writeEntries(entries)
      this.#lastSeqs.addAll(lastSeqs)
      this.#writeNotes(notes)
      this.#writeNotes(ownNotes)
      this.#index.save()
      // A batch without updates evicts too, so old updates are deleted even if no new ones are written.
      const added = entries.length
      const eviction = this.isInFile ? this.#eviction.run({ added, end, keepAfter }) : this.#eviction.grow(added)
      const isSaveDue = lastSeqs.length > 0 || this.#lastSeqs.isSaveDue(end, eviction.state.oldest)
      if (isSaveDue) this.#lastSeqs.save(end)
      if (isSaveDue || eviction.evicted.length > 0) this.#eviction.save(end, eviction.state)
      return { time, eviction }
    })
    this.#options.onCommit?.((performance.now() - startedAt) / 1_000)
    this.#index.onCommit(eviction.evicted, eviction.state.oldest)
    this.#eviction.onCommit(eviction.state)
    this.#lastSeqs.onCommit()
    this.#time = time
    this.#end = end
    if (entries.length > 0) this.#next = end + 1
    this.#notes.merge(notes)
    this.#notes.merge(ownNotes)
    for (const deliver of this.#followers) deliver(entries, notes, keepAfter)
    const chars = entries.reduce((sum, { text }) => sum + text.length, 0)
    this.#overlay.onCommit(entries.length, chars)
    this.#flush(() => this.#checkpoints.onCommit(chars))
  }

  /** Notes and last numbers that a copy of the tape needs to be complete, besides the updates after this moment. */
  protected get checkpoint(): { readonly notes: Notes; readonly lastSeqs: ChannelSeqs } {
    return { notes: this.#notes, lastSeqs: this.#lastSeqs.all }
  }

  get isDurable(): boolean {
    return this.isInFile
  }

  /** Whether updates are written to the file. While the disk fails, they are written to memory. */
  get isInFile(): boolean {
    return this.#overlay.failure === null
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

  oldestTime(): string | null {
    const oldest = this.oldest()
    if (this.#oldestTime?.after !== oldest) {
      const [first] = this.readAfter(oldest, 1)
      this.#oldestTime = first ? { after: oldest, time: first.update.time } : null
    }
    return this.#oldestTime?.time ?? null
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

  /**
   * Leaves the file unchanged until `release` is called, so that another process can copy it. `release` returns whether it stayed
   * so. This process cannot copy the file: opening it would drop its lock. A tape in memory is written to `path` at once. With
   * `mayShare`, the copy may lack what was written since another copy began. Null if the disk fails, because the newest updates are
   * in memory only.
   */
  holdForCopy(path: string, mayShare = false): HeldCopy | null {
    const source = this.#database.location()
    if (source !== null) {
      const held: HeldCopy[] = []
      this.#flush(() => held.push({ source, release: this.#checkpoints.hold(mayShare) }))
      return held[0] ?? null
    }
    this.#database.prepare('VACUUM INTO ?').run(path)
    return { source, release: () => true }
  }

  measure(): TapeSize & { readonly oldestTime: number | null } {
    const { page_count, page_size } = this.#statements.size.get() ?? {}
    const oldest = this.#statements.firstFrom.get(0)
    return {
      rows: this.#eviction.count,
      bytes: Number(page_count) * Number(page_size),
      oldestTime: oldest ? Number(oldest.time) : null,
    }
  }

  async close(): Promise<void> {
    this.#followers.clear()
    try {
      this.#inTransaction(() => this.#save())
      if (this.#overlay.failure?.isUnflushed === false) this.#returnToFile()
      this.#flush(() => this.#checkpoints.complete())
      if (!this.isInFile) throw new TapeError(lossOf(this.#overlay))
    } finally {
      this.#database.close()
    }
  }

  #writeEntries(entries: readonly Entry[]): number {
    let time = this.#time
    const stepsMs = this.#clockStepsMs()
    for (const entry of entries) {
      const { seq, update, text } = entry
      time = Math.max(time, Date.parse(update.time) - stepsMs)
      this.#lastSeqs.add(update, seq)
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

  /** Runs `write` in a transaction. If the disk fails, runs it again with the tables in memory. */
  #inTransaction<Result>(write: () => Result): Result {
    try {
      return this.#tryTransaction(write)
    } catch (error) {
      const failure = diskFailureOf(error)
      if (!failure || !this.isInFile)
        throw tapeErrorOf(error, this.#options.dataDir, (message) => `the tape cannot be written: ${message}`)
      this.#leaveFile(failure)
      return this.#tryTransaction(write)
    }
  }

  #tryTransaction<Result>(write: () => Result): Result {
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
      this.#runs.onRollback()
      throw failure
    }
  }

  #flush(flush: () => void): void {
    if (!this.isInFile) return
    try {
      flush()
    } catch (error) {
      const failure = diskFailureOf(error)
      if (!failure) throw error
      this.#leaveFile(failure)
    }
  }

  #leaveFile(failure: DiskFailure): void {
    this.#overlay.open(failure)
    const { dataDir: dir, log } = this.#options
    log?.(failure.isUnflushed ? 'tape_unflushed' : 'tape_unwritable', { reason: failure.message, dir })
  }

  #returnToFile(): void {
    const { count } = this.#overlay
    try {
      this.#overlay.moveToFile()
    } catch (error) {
      if (!diskFailureOf(error)) throw error
      return
    }
    this.#flush(() => this.#checkpoints.complete())
    if (this.isInFile) this.#options.log?.('tape_writable', { dir: this.#options.dataDir, updates: count })
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
  size: database.prepare('SELECT page_count, page_size FROM pragma_page_count, pragma_page_size'),
  firstFrom: database.prepare('SELECT seq, time FROM tape WHERE seq >= ? ORDER BY seq LIMIT 1'),
})

/** Returns the rows of the table `meta`; null for a new file. */
function readMeta(database: DatabaseSync): ReadonlyMap<string, string> | null {
  const rows = database.prepare('SELECT name, value FROM meta').all()
  const meta = new Map(rows.map(({ name, value }) => [String(name), String(value)]))
  return meta.has('epoch') ? meta : null
}

const metaOfNew = ({ epoch, epochBeganAt, end }: TapeOrigin): ReadonlyMap<string, string> =>
  new Map(
    Object.entries({ epoch, epoch_began_at: String(epochBeganAt), end: String(end), oldest: String(end), counted: String(end) }),
  )

const sealsOf = (block: number, entries: readonly Entry[]): readonly Entry[] =>
  entries.filter(({ update }) => update.type === 'seal' && update.block.number === block)

/** Returns the update as JSON in the field order of the contract: `type`, which is first in every draft, then `id` and `prev`. */
function textOf(draft: Draft, id: string, prev: string | null): string {
  const json = JSON.stringify(draft)
  const afterType = json.indexOf(',')
  return `${json.slice(0, afterType)},"id":"${id}","prev":${prev === null ? null : `"${prev}"`}${json.slice(afterType)}`
}

const randomEpoch = (random: () => number): string =>
  Array.from({ length: EPOCH_CHARS }, () => Math.floor(random() * 36).toString(36)).join('')

const lossOf = ({ failure, count }: DiskFailureOverlay): string =>
  `the tape cannot be written to the disk (${failure?.message}): ${count} updates are in memory only`

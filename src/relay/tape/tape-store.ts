import type { DatabaseSync } from 'node:sqlite'
import type { Hex } from '../../lib/hex.ts'
import { clockStepsMs } from '../../lib/steady-clock.ts'
import { formatPosition } from '../../protocol/position.ts'
import type { Update } from '../../protocol/updates.ts'
import type { Host } from '../host.ts'
import type { BarRange, BarRow } from './bars/bar-row.ts'
import { BarTable } from './bars/bar-table.ts'
import { Eviction, type EvictionBounds, type EvictionState } from './eviction.ts'
import { TapeIndex } from './index/tape-index.ts'
import { type ChannelSeqs, LastSeqs, SeqMap } from './last-seqs.ts'
import { Notes } from './notes.ts'
import { addClockSteps, firstSeqOfRun, readRuns, skippedByTime, writeRun } from './runs.ts'
import type {
  CountEstimate,
  Entry,
  Follower,
  FoundEntries,
  HistoryFilter,
  Run,
  SeqRange,
  StoredText,
  Tape,
  TapeBatch,
  TapeSize,
  TapeSubject,
} from './tape.ts'
import { openTapeDatabase, readMeta, tapeErrorOf } from './tape-database.ts'
import { TapeFile } from './tape-file.ts'
import { parseUpdate, textOf } from './tape-row.ts'
import { TapeTables } from './tape-tables.ts'

const EPOCH_CHARS = 6

/** Place at which a new file continues another tape: after the number `end` of this epoch. */
export type TapeOrigin = { readonly epoch: string; readonly epochBeganAt: number; readonly end: number }

export type TapeStoreOptions = EvictionBounds &
  Pick<Host, 'random'> &
  Partial<Pick<Host, 'wallTime' | 'log'>> & {
    /** A folder, or `:memory:` for a tape that is gone when it closes. */
    readonly dataDir: string
    /** Without it, bars are never deleted. */
    readonly barsRetentionMs?: number
    readonly onCommit?: (seconds: number) => void
    /** Place after which the tape in a new file begins; by default, the number 0 of a new epoch. */
    readonly origin?: TapeOrigin | null
    /** Whether updates outlive the process; by default, whether the file can be written. */
    readonly isDurable?: () => boolean
  }

/** A batch whose updates have their numbers. */
export type NumberedBatch = {
  readonly entries: readonly Entry[]
  readonly notes: Notes
  readonly bars?: readonly BarRow[]
  readonly keepAfter: number
  /** Notes of this process, which are not delivered. */
  readonly ownNotes?: Notes
  /** Last numbers of a checkpoint. */
  readonly lastSeqs?: ChannelSeqs
}

/** The values that a transaction changes. A new state replaces the old one once its transaction is committed. */
type StoreState = {
  readonly end: number
  readonly next: number
  /** Stored time of the last update, without the steps of the wall clock. A later update gets at least this time. */
  readonly time: number
  readonly runs: readonly Run[]
  readonly eviction: EvictionState
}

export function openTapeStore(options: TapeStoreOptions): TapeStore {
  const { dataDir: dir, log } = options
  const database = openTapeDatabase(dir, log)
  try {
    return new TapeStore(database, options)
  } catch (failure) {
    database.close()
    const unreadable = (message: string) => `DATA_DIR ${dir} holds a tape that cannot be read (${message}): name another folder`
    throw tapeErrorOf(failure, dir, unreadable)
  }
}

/** A tape in one SQLite file. Its writer decides which batches it contains; a process without a writer applies those of another. */
export class TapeStore implements Tape {
  readonly epoch: string
  readonly epochBeganAt: number
  readonly notes: Notes
  readonly #database: DatabaseSync
  readonly #options: TapeStoreOptions
  readonly #file: TapeFile
  readonly #tables: TapeTables
  readonly #bars: BarTable
  readonly #followers = new Set<Follower>()
  readonly #lastSeqs: LastSeqs
  readonly #eviction: Eviction
  readonly #index: TapeIndex
  /** Whether this process made the file. */
  readonly #isNew: boolean
  /** Returns the sum of the wall clock's steps since the start. */
  readonly #clockStepsMs: () => number
  #state: StoreState
  #oldestTime: { readonly after: number; readonly time: string } | null = null

  constructor(database: DatabaseSync, options: TapeStoreOptions) {
    this.#database = database
    this.#options = options
    this.#file = new TapeFile(database, options)
    this.#tables = new TapeTables(database)
    this.#bars = new BarTable(database, options.barsRetentionMs ?? Number.MAX_SAFE_INTEGER)
    this.#clockStepsMs = () => clockStepsMs(this.#wallTime, options.now)
    const saved = readMeta(database)
    this.#isNew = saved === null
    const meta =
      saved ?? metaOfNew(options.origin ?? { epoch: randomEpoch(options.random), epochBeganAt: this.#wallTime(), end: 0 })
    this.epoch = meta.get('epoch') ?? ''
    this.epochBeganAt = Number(meta.get('epoch_began_at'))
    this.#eviction = new Eviction(database, options)
    const savedEnd = Number(meta.get('end') ?? 0)
    this.#lastSeqs = new LastSeqs(database, savedEnd)
    this.notes = this.#tables.readNotes()
    // Eviction may have deleted all updates, so the saved end counts too.
    const end = Math.max(this.#tables.last?.seq ?? 0, savedEnd)
    this.#state = { end, next: end + 1, time: 0, runs: readRuns(database), eviction: this.#eviction.read(meta) }
    this.#index = new TapeIndex(database, this.oldest(), (key) => this.find({ key }))
    this.#file.transaction(() => {
      if (this.isInFile) addClockSteps(database)
      for (const name of ['epoch', 'epoch_began_at']) this.#tables.writeMeta(name, meta.get(name) ?? '')
      this.#save()
    })
    this.#lastSeqs.adopt(new SeqMap(), end)
    this.#state = { ...this.#state, time: this.#tables.last?.time ?? 0 }
    this.#file.flush()
  }

  get isDurable(): boolean {
    return this.#options.isDurable?.() ?? this.isInFile
  }

  /** Whether updates are written to the file. While the disk fails, they are written to memory. */
  get isInFile(): boolean {
    return this.#file.isInFile
  }

  get runs(): readonly Run[] {
    return this.#state.runs
  }

  get next(): number {
    return this.#state.next
  }

  get oldestTime(): string | null {
    const oldest = this.oldest()
    if (this.#oldestTime?.after !== oldest) {
      const [first] = this.readTexts(oldest, 1)
      this.#oldestTime = first ? { after: oldest, time: parseUpdate(first.text).time } : null
    }
    return this.#oldestTime?.time ?? null
  }

  get size(): TapeSize {
    return { rows: this.#state.eviction.count, ...this.#tables.size }
  }

  follow(deliver: Follower): () => void {
    this.#followers.add(deliver)
    return () => this.#followers.delete(deliver)
  }

  end(): number {
    return this.#state.end
  }

  oldest(): number {
    return this.#state.eviction.oldest
  }

  read(filter: HistoryFilter, range: SeqRange): FoundEntries {
    return this.#index.read(filter, range)
  }

  readTexts(after: number, limit: number): readonly StoredText[] {
    return this.#tables.readTexts(after, limit)
  }

  readBars(address: Hex, range: BarRange): readonly BarRow[] {
    return this.#bars.read(address, range)
  }

  /** Writes minutes of another copy of the tape, if they are newer. */
  mergeBars(rows: readonly BarRow[]): void {
    if (rows.length > 0) this.#file.transaction(() => this.#bars.merge(rows))
  }

  get newestDays(): ReadonlyMap<Hex, number> {
    return this.#bars.newestDays
  }

  find(subject: TapeSubject): readonly Entry[] {
    return this.#tables.find(subject)
  }

  count(filter: HistoryFilter, after: number, countLimit: number): CountEstimate {
    return this.#index.count(filter, after, countLimit)
  }

  seqBefore(time: number): number {
    return this.#tables.seqBefore(time, this.end())
  }

  /** Begins a run at the clock's number, or later if its start cannot be on the disk before anybody receives an update of it. */
  beginRun(): void {
    const { end } = this.#state
    const wallTime = this.#wallTime()
    const first = firstSeqOfRun(end, wallTime, this.epochBeganAt, this.#isNew && end === 0)
    const runs = this.#file.transaction(() => writeRun(this.#database, first, { oldest: this.oldest(), end }))
    this.#file.flush()
    const next = this.isInFile ? first : first + skippedByTime(wallTime)
    this.#state = { ...this.#state, runs, next }
  }

  /** Returns the updates of batches that are written together. Refuses a batch that does not begin at the next number. */
  number(batches: readonly TapeBatch[]): readonly Entry[] {
    const seqBefore = this.#lastSeqs.openNumbering()
    let { next } = this.#state
    return batches.flatMap(({ first, updates }) => {
      if (updates.length > 0 && first !== next) throw new Error(`a batch begins at ${first}, and the tape continues at ${next}`)
      next += updates.length
      return updates.map((draft, index) => {
        const seq = first + index
        const previousSeq = seqBefore(draft, seq)
        const id = formatPosition(this.epoch, seq)
        const prev = previousSeq === undefined ? null : formatPosition(this.epoch, previousSeq)
        // V8 copies a spread at the beginning of a literal much faster than a later one.
        return { seq, update: { ...draft, id, prev } as Update, text: textOf(draft, id, prev) }
      })
    })
  }

  /** Writes a batch in one transaction, then delivers it to the followers. */
  write(batch: NumberedBatch): void {
    const { entries, notes, bars = [], ownNotes = new Notes(), keepAfter } = batch
    this.#file.prepare()
    const startedAt = performance.now()
    const { state, evicted, seqs, savedEnd } = this.#file.transaction(() => this.#writeTables(batch))
    this.#options.onCommit?.((performance.now() - startedAt) / 1_000)
    this.#state = state
    this.#lastSeqs.adopt(seqs, savedEnd)
    this.notes.merge(notes)
    this.notes.merge(ownNotes)
    this.#index.adopt(entries, evicted, state.eviction.oldest)
    for (const deliver of this.#followers) deliver(entries, notes, keepAfter, bars)
    this.#file.onCommit(
      entries.length,
      entries.reduce((sum, { text }) => sum + text.length, 0),
    )
  }

  /** Last numbers that a copy of the tape needs besides the notes and the updates after this moment. */
  get lastSeqs(): ChannelSeqs {
    return this.#lastSeqs.all
  }

  /** Leaves the file unchanged until `release` is called, so that another process can copy it. */
  holdForCopy(path: string, mayShare = false): ReturnType<TapeFile['hold']> {
    return this.#file.hold(path, mayShare)
  }

  close(): void {
    this.#followers.clear()
    this.#file.close(() => this.#save())
  }

  /** Writes a batch to the tables, and returns what that changes in memory. It may run twice, so it changes nothing there. */
  #writeTables({ entries, notes, bars = [], keepAfter, ownNotes, lastSeqs = [] }: NumberedBatch) {
    const before = this.#state
    const first = entries[0]?.seq ?? 0
    const end = entries.at(-1)?.seq ?? before.end
    // If numbers were skipped, another process has begun a run.
    const isNewRun = first > before.end + 1 && first !== before.runs.at(-1)?.first
    const runs = isNewRun ? writeRun(this.#database, first, { oldest: this.oldest(), end: before.end }) : before.runs
    const time = this.#tables.writeUpdates(entries, before.time, this.#clockStepsMs())
    this.#tables.writeNotes(notes)
    if (ownNotes) this.#tables.writeNotes(ownNotes)
    this.#bars.write(bars)
    this.#index.save()
    const added = entries.length
    // A batch without updates evicts too, so old updates are deleted even if no new ones are written.
    const { evicted, state: eviction } = this.isInFile
      ? this.#eviction.run(before.eviction, { added, end, keepAfter })
      : this.#eviction.grow(before.eviction, added)
    const seqs = this.#lastSeqs.changesBy(entries, lastSeqs)
    const isSaveDue = lastSeqs.length > 0 || this.#lastSeqs.isSaveDue(end, eviction.oldest)
    if (isSaveDue) this.#lastSeqs.save(seqs, end)
    if (isSaveDue || evicted.length > 0) this.#eviction.save(eviction, end)
    const state: StoreState = { end, next: added > 0 ? end + 1 : before.next, time, runs, eviction }
    return { state, evicted, seqs, savedEnd: isSaveDue ? end : null }
  }

  #save(): void {
    this.#lastSeqs.save(new SeqMap(), this.end())
    this.#eviction.save(this.#state.eviction, this.end())
  }

  /** Clock of the times in updates. */
  get #wallTime(): () => number {
    return this.#options.wallTime ?? this.#options.now
  }
}

const metaOfNew = ({ epoch, epochBeganAt, end }: TapeOrigin): ReadonlyMap<string, string> =>
  new Map(
    Object.entries({ epoch, epoch_began_at: String(epochBeganAt), end: String(end), oldest: String(end), counted: String(end) }),
  )

const randomEpoch = (random: () => number): string =>
  Array.from({ length: EPOCH_CHARS }, () => Math.floor(random() * 36).toString(36)).join('')

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Host } from '../host.ts'
import { TapeError } from './tape.ts'
import { BARS_COLUMNS, resultCodeOf, TAPE_COLUMNS, tableColumns, tapeErrorOf } from './tape-database.ts'

/** Limits of the text and number of updates in memory. Beyond them the process ends, and a restart reads the chain again. */
const [TEXT_BOUND_CHARS, COUNT_BOUND] = [33_554_432, 65_536]
const RETRY_MS = 5_000
/** Estimated size of the write-ahead log at which it is flushed, and copied into the tape's file. */
const CHECKPOINT_BYTES = 4 * 1_048_576
/** Estimated bytes in the write-ahead log for each transaction and for each character: SQLite logs whole pages. */
const [TRANSACTION_BYTES, BYTES_PER_CHAR] = [16_384, 1.25]

/** Primary result codes of SQLite for a disk that is read-only, fails, is full or cannot be opened. Any other failure is a bug. */
const diskCodes: ReadonlySet<number> = new Set([8, 10, 13, 14])
/** Extended result codes of SQLite for a failed flush of the file or of its folder. */
const flushCodes: ReadonlySet<number> = new Set([1_034, 1_290])

type DiskFailure = {
  readonly message: string
  /** Whether the disk failed to flush. Then no later success proves that earlier writes are on the disk. */
  readonly isUnflushed: boolean
}

/** A file that another process may copy until `release`. `source` is null if the copy was written at once. */
type HeldCopy = { readonly source: string | null; readonly release: () => boolean }

type Options = Pick<Host, 'now'> & Partial<Pick<Host, 'log'>> & { readonly dataDir: string }

/**
 * The transactions of the tape's file. While the disk fails, they go to tables in memory: SQLite prefers a temporary table of the
 * same name, so all statements work.
 */
export class TapeFile {
  readonly #database: DatabaseSync
  readonly #options: Options
  readonly #statements: ReturnType<typeof prepareStatements>
  #failure: DiskFailure | null = null
  #triedAt = 0
  #countInMemory = 0
  #charsInMemory = 0
  /** Estimated size of the write-ahead log. */
  #logBytes = 0
  /** Number of copies that other processes make now. Meanwhile the log only grows. */
  #copies = 0
  /** Number of times that the whole log was copied into the file, which spoils a copy that is being made. */
  #completions = 0

  constructor(database: DatabaseSync, options: Options) {
    this.#database = database
    this.#options = options
    // SQLite's automatic checkpoints hide a failure, so the log would grow unflushed.
    database.exec('PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 0')
    this.#statements = prepareStatements(database)
  }

  /** Whether updates are written to the file. While the disk fails, they are written to memory. */
  get isInFile(): boolean {
    return this.#failure === null
  }

  /** Tries to write to the file again if that is due. Throws if the disk fails and memory has no room for more. */
  prepare(): void {
    const isRetryDue = this.#failure?.isUnflushed === false && this.#options.now() - this.#triedAt >= RETRY_MS
    if (isRetryDue) this.#returnToFile()
    const isFull = this.#charsInMemory >= TEXT_BOUND_CHARS || this.#countInMemory >= COUNT_BOUND
    if (isFull) throw new TapeError(`${this.#loss}, and there is no room for more in memory`)
  }

  /**
   * Runs `write` in a transaction; if the disk fails, once more with the tables in memory. So `write` must change nothing but
   * tables: the caller changes its memory with the result, once the transaction is committed.
   */
  transaction<Result>(write: () => Result): Result {
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

  /** Counts what a committed transaction wrote, and flushes it to the disk if that is due. */
  onCommit(count: number, chars: number): void {
    if (!this.isInFile) {
      this.#countInMemory += count
      this.#charsInMemory += chars
    }
    this.#logBytes += TRANSACTION_BYTES + chars * BYTES_PER_CHAR
    const isDue = this.#logBytes >= CHECKPOINT_BYTES && this.#copies === 0
    if (isDue) this.#checkpoint(this.#statements.checkpoint)
  }

  /** Flushes every committed transaction to the disk, and copies the whole log into the file. */
  flush(): void {
    this.#completions += 1
    this.#checkpoint(this.#statements.complete)
  }

  /**
   * Leaves the file unchanged until `release` is called, so that another process can copy it. `release` returns whether it stayed
   * so. This process cannot copy the file: opening it would drop its lock. A tape in memory is written to `path` at once. With
   * `mayShare`, the copy may lack what was written since another copy began. Null if the disk fails, because the newest updates are
   * in memory only.
   */
  hold(path: string, mayShare: boolean): HeldCopy | null {
    const source = this.#database.location()
    if (source === null) {
      this.#database.prepare('VACUUM INTO ?').run(path)
      return { source, release: () => true }
    }
    // A file that is held already is not flushed again, because that would spoil the other copy.
    if (!mayShare || this.#copies === 0) this.flush()
    if (!this.isInFile) return null
    const completions = this.#completions
    this.#copies += 1
    const release = () => {
      this.#copies -= 1
      return this.#completions === completions
    }
    return { source, release }
  }

  /** Closes the file, after a last transaction. Throws if the newest updates are in memory only. */
  close(write: () => void): void {
    try {
      this.transaction(write)
      if (this.#failure?.isUnflushed === false) this.#returnToFile()
      this.flush()
      if (!this.isInFile) throw new TapeError(this.#loss)
    } finally {
      this.#database.close()
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
      if (this.#database.isTransaction) rollback.run()
      throw failure
    }
  }

  #checkpoint(statement: StatementSync): void {
    if (!this.isInFile) return
    try {
      statement.get()
      this.#logBytes = 0
    } catch (error) {
      const failure = diskFailureOf(error)
      if (!failure) throw error
      this.#leaveFile(failure)
    }
  }

  #leaveFile(failure: DiskFailure): void {
    this.#failure = failure
    this.#triedAt = this.#options.now()
    this.#database.exec(openSql)
    const { dataDir: dir, log } = this.#options
    log?.(failure.isUnflushed ? 'tape_unflushed' : 'tape_unwritable', { reason: failure.message, dir })
  }

  /** Writes the tables in memory to the file. If the disk still fails, they stay in memory. */
  #returnToFile(): void {
    this.#triedAt = this.#options.now()
    try {
      this.#database.exec(moveSql)
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      if (!diskFailureOf(error)) throw error
      return
    }
    this.#database.exec(closeSql)
    const updates = this.#countInMemory
    this.#failure = null
    this.#countInMemory = 0
    this.#charsInMemory = 0
    this.flush()
    if (this.isInFile) this.#options.log?.('tape_writable', { dir: this.#options.dataDir, updates })
  }

  get #loss(): string {
    return `the tape cannot be written to the disk (${this.#failure?.message}): ${this.#countInMemory} updates are in memory only`
  }
}

function diskFailureOf(error: unknown): DiskFailure | null {
  const code = resultCodeOf(error)
  if (!(error instanceof Error) || !diskCodes.has(code & 0xff)) return null
  return { message: error.message, isUnflushed: flushCodes.has(code) }
}

const prepareStatements = (database: DatabaseSync) => ({
  begin: database.prepare('BEGIN IMMEDIATE'),
  commit: database.prepare('COMMIT'),
  rollback: database.prepare('ROLLBACK'),
  checkpoint: database.prepare('PRAGMA wal_checkpoint(PASSIVE)'),
  complete: database.prepare('PRAGMA wal_checkpoint(TRUNCATE)'),
})

const smallTables = Object.keys(tableColumns)

const openSql = `
  BEGIN;
  CREATE TEMP TABLE new_updates ${TAPE_COLUMNS};
  CREATE INDEX temp.new_subject ON new_updates (subject) WHERE subject IS NOT NULL;
  CREATE TEMP VIEW tape AS SELECT * FROM main.tape UNION ALL SELECT * FROM new_updates;
  CREATE TEMP TRIGGER add_update INSTEAD OF INSERT ON temp.tape BEGIN
    INSERT INTO new_updates VALUES (NEW.seq, NEW.time, NEW.evictable, NEW.text, NEW.subject);
  END;
  CREATE TEMP TABLE new_bars ${BARS_COLUMNS};
  CREATE TEMP VIEW bars AS
    SELECT * FROM main.bars AS stored
    WHERE NOT EXISTS (
      SELECT 1 FROM new_bars WHERE seconds = stored.seconds AND address = stored.address AND start = stored.start
    )
    UNION ALL SELECT * FROM new_bars;
  CREATE TEMP TRIGGER add_bar INSTEAD OF INSERT ON temp.bars BEGIN
    INSERT OR REPLACE INTO new_bars VALUES (NEW.seconds, NEW.address, NEW.start, NEW.text);
  END;
  -- The file cannot be written: old minutes stay until it can.
  CREATE TEMP TRIGGER keep_bar INSTEAD OF DELETE ON temp.bars BEGIN SELECT 1; END;
  ${smallTables.map((name) => `CREATE TEMP TABLE ${name} ${tableColumns[name]}; INSERT INTO temp.${name} SELECT * FROM main.${name};`).join('\n  ')}
  COMMIT;
`

const moveSql = `
  BEGIN IMMEDIATE;
  INSERT INTO main.tape SELECT * FROM new_updates;
  INSERT OR REPLACE INTO main.bars SELECT * FROM new_bars;
  ${smallTables.map((name) => `DELETE FROM main.${name}; INSERT INTO main.${name} SELECT * FROM temp.${name};`).join('\n  ')}
  COMMIT;
`

const closeSql = `
  BEGIN;
  DROP VIEW temp.tape;
  DROP TABLE temp.new_updates;
  DROP VIEW temp.bars;
  DROP TABLE temp.new_bars;
  ${smallTables.map((name) => `DROP TABLE temp.${name};`).join('\n  ')}
  COMMIT;
`

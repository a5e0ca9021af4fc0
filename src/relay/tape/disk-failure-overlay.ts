import type { DatabaseSync } from 'node:sqlite'
import { resultCodeOf, TAPE_COLUMNS, tableColumns } from './tape-database.ts'

/** Limits of the text and number of updates in memory. Beyond them the process ends, and a restart reads the chain again. */
const [TEXT_BOUND_CHARS, COUNT_BOUND] = [33_554_432, 65_536]
const RETRY_MS = 5_000

/** Primary result codes of SQLite for a disk that is read-only, fails, is full or cannot be opened. Any other failure is a bug. */
const diskCodes: ReadonlySet<number> = new Set([8, 10, 13, 14])
/** Extended result codes of SQLite for a failed flush of the file or of its folder. */
const flushCodes: ReadonlySet<number> = new Set([1_034, 1_290])

export type DiskFailure = {
  readonly message: string
  /** Whether the disk failed to flush. Then no later success proves that earlier writes are on the disk. */
  readonly isUnflushed: boolean
}

export function diskFailureOf(error: unknown): DiskFailure | null {
  const code = resultCodeOf(error)
  if (!(error instanceof Error) || !diskCodes.has(code & 0xff)) return null
  return { message: error.message, isUnflushed: flushCodes.has(code) }
}

/** Tables in memory for writes while the disk fails. SQLite prefers a temporary table of the same name, so all statements work. */
export class DiskFailureOverlay {
  readonly #database: DatabaseSync
  readonly #now: () => number
  #failure: DiskFailure | null = null
  #triedAt = 0
  #count = 0
  #chars = 0

  constructor(database: DatabaseSync, now: () => number) {
    this.#database = database
    this.#now = now
    database.exec('PRAGMA temp_store = MEMORY')
  }

  /** The failure because of which the tape is written to memory; null while it is written to the file. */
  get failure(): DiskFailure | null {
    return this.#failure
  }

  get count(): number {
    return this.#count
  }

  get isFull(): boolean {
    return this.#chars >= TEXT_BOUND_CHARS || this.#count >= COUNT_BOUND
  }

  onCommit(count: number, chars: number): void {
    if (!this.#failure) return
    this.#count += count
    this.#chars += chars
  }

  get isRetryDue(): boolean {
    return this.#failure !== null && !this.#failure.isUnflushed && this.#now() - this.#triedAt >= RETRY_MS
  }

  open(failure: DiskFailure): void {
    this.#failure = failure
    this.#triedAt = this.#now()
    this.#database.exec(openSql)
  }

  /** Writes the tables in memory to the file. If the disk still fails, it throws, and the tables stay in memory. */
  moveToFile(): void {
    this.#triedAt = this.#now()
    try {
      this.#database.exec(moveSql)
    } catch (failure) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      throw failure
    }
    this.#database.exec(closeSql)
    this.#failure = null
    this.#count = 0
    this.#chars = 0
  }
}

const smallTables = Object.keys(tableColumns)

const openSql = `
  BEGIN;
  CREATE TEMP TABLE new_updates ${TAPE_COLUMNS};
  CREATE INDEX temp.new_subject ON new_updates (subject) WHERE subject IS NOT NULL;
  CREATE TEMP VIEW tape AS SELECT * FROM main.tape UNION ALL SELECT * FROM new_updates;
  CREATE TEMP TRIGGER add_update INSTEAD OF INSERT ON temp.tape BEGIN
    INSERT INTO new_updates VALUES (NEW.seq, NEW.time, NEW.evictable, NEW.text, NEW.subject);
  END;
  ${smallTables.map((name) => `CREATE TEMP TABLE ${name} ${tableColumns[name]}; INSERT INTO temp.${name} SELECT * FROM main.${name};`).join('\n  ')}
  COMMIT;
`

const moveSql = `
  BEGIN IMMEDIATE;
  INSERT INTO main.tape SELECT * FROM new_updates;
  ${smallTables.map((name) => `DELETE FROM main.${name}; INSERT INTO main.${name} SELECT * FROM temp.${name};`).join('\n  ')}
  COMMIT;
`

const closeSql = `
  BEGIN;
  DROP VIEW temp.tape;
  DROP TABLE temp.new_updates;
  ${smallTables.map((name) => `DROP TABLE temp.${name};`).join('\n  ')}
  COMMIT;
`

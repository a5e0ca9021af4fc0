import type { DatabaseSync } from 'node:sqlite'
import { TAPE_COLUMNS, tableColumns } from './tape-schema.ts'

/** How much memory may keep. Then the process ends: a restart reads the rest again from the chain. */
const [TEXT_BOUND_CHARS, COUNT_BOUND] = [33_554_432, 65_536]
/** How often the file is tried again. */
const RETRY_MS = 5_000

/** The primary result codes of SQLite that mean the disk. Another failure is a bug. */
const diskCodes: ReadonlySet<number> = new Set([8, 10, 13, 14])
/** A failed flush: of the file, of its folder. */
const flushCodes: ReadonlySet<number> = new Set([1_034, 1_290])

/** Why SQLite failed, where the disk is the reason. */
export type DiskFailure = {
  readonly message: string
  /** Whether the disk did not flush: then no later success proves that what was written is there. */
  readonly isUnflushed: boolean
}

/** The failure of the disk behind an error; null for every other error. */
export function diskFailureOf(error: unknown): DiskFailure | null {
  if (!(error instanceof Error && 'errcode' in error)) return null
  const code = Number(error.errcode)
  return diskCodes.has(code & 0xff) ? { message: error.message, isUnflushed: flushCodes.has(code) } : null
}

/**
 * What is written while the disk fails, in memory and over the tables of the file: SQLite finds a temporary table before the one of
 * the same name in the file, so every statement reads and writes on as before. Of the updates only the new ones are in memory.
 */
export class MemoryOverlay {
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

  /** Why the tape is written to memory; null while it is written to the file. */
  get failure(): DiskFailure | null {
    return this.#failure
  }

  /** How many updates are in memory alone. */
  get count(): number {
    return this.#count
  }

  get isFull(): boolean {
    return this.#chars >= TEXT_BOUND_CHARS || this.#count >= COUNT_BOUND
  }

  /** Updates with this much text were written. */
  onCommit(count: number, chars: number): void {
    if (!this.#failure) return
    this.#count += count
    this.#chars += chars
  }

  /** Whether the file should be tried again. */
  get isRetryDue(): boolean {
    return this.#failure !== null && !this.#failure.isUnflushed && this.#now() - this.#triedAt >= RETRY_MS
  }

  open(failure: DiskFailure): void {
    this.#failure = failure
    this.#triedAt = this.#now()
    this.#database.exec(openSql)
  }

  /** Writes all of it to the file. Throws where the disk still fails, and then it stays in memory. */
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

import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { messageOf } from '../../lib/http-fetch.ts'
import type { WriteLine } from '../log-lines.ts'
import { TapeError } from './tape.ts'

/** Version of the tables and of the JSON in notes. Raise it with every change of them: an older tape is refused, not migrated. */
export const SCHEMA_VERSION = 8

export const TAPE_FILE_NAME = 'tape.sqlite'

const settingsSql = `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
`

/** Times never decrease with growing numbers. See `tape-tables.ts` for subjects. */
export const TAPE_COLUMNS =
  '(seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, evictable INTEGER NOT NULL, text TEXT NOT NULL, subject INTEGER) STRICT'

/** The minutes of each token, and sums of them. See `bars/bar-row.ts` for the text. */
export const BARS_COLUMNS =
  '(seconds INTEGER NOT NULL, address TEXT NOT NULL, start INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (seconds, address, start)) STRICT, WITHOUT ROWID'

export const tableColumns: Readonly<Record<string, string>> = {
  last_seqs: '(address TEXT NOT NULL, type TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (address, type)) STRICT, WITHOUT ROWID',
  channels:
    '(number INTEGER PRIMARY KEY, address TEXT, type TEXT NOT NULL, key_types TEXT NOT NULL, evictable INTEGER NOT NULL) STRICT',
  shelves: '(shelf INTEGER PRIMARY KEY, channels BLOB NOT NULL, follows_from INTEGER NOT NULL) STRICT',
  runs: '(first INTEGER PRIMARY KEY, previous_end INTEGER NOT NULL) STRICT',
  notes: '(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID',
  meta: '(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID',
}

const createSql = `
  BEGIN IMMEDIATE;
  CREATE TABLE tape ${TAPE_COLUMNS};
  CREATE INDEX tape_subject ON tape (subject) WHERE subject IS NOT NULL;
  CREATE TABLE bars ${BARS_COLUMNS};
  ${Object.entries(tableColumns)
    .map(([name, columns]) => `CREATE TABLE ${name} ${columns};`)
    .join('\n  ')}
  PRAGMA user_version = ${SCHEMA_VERSION};
  COMMIT;
`

/** Opens and locks the file of the embedded tape. A failure names the remedy. */
export function openTapeDatabase(dir: string, log: WriteLine = () => {}): DatabaseSync {
  let database: DatabaseSync | null = null
  try {
    const file = dir === ':memory:' ? dir : join(dir, TAPE_FILE_NAME)
    if (dir !== ':memory:') makeFolder(resolve(dir))
    // SQLite accepts an empty file as a new database, so nothing else would report that the tape is lost.
    if (statSync(file, { throwIfNoEntry: false })?.size === 0) log('tape_empty', { file })
    database = new DatabaseSync(file)
    database.exec(settingsSql)
    prepareSchema(database, dir)
    // A write takes the lock now, so that a second process on this folder fails at its start.
    database.exec('BEGIN IMMEDIATE; COMMIT')
    return database
  } catch (failure) {
    database?.close()
    throw tapeErrorOf(failure, dir, (message) =>
      message.includes('locked')
        ? `DATA_DIR ${dir} is in use by another stocktape: stop that one or name another folder`
        : `DATA_DIR ${dir} cannot hold the tape (${message}): name a folder that this user may write to`,
    )
  }
}

/** Returns the rows of the table `meta`; null for a new file. */
export function readMeta(database: DatabaseSync): ReadonlyMap<string, string> | null {
  const rows = database.prepare('SELECT name, value FROM meta').all()
  const meta = new Map(rows.map(({ name, value }) => [String(name), String(value)]))
  return meta.has('epoch') ? meta : null
}

/** Primary result codes of SQLite for a file that is damaged, or that is no database. */
const damageCodes: ReadonlySet<number> = new Set([11, 26])

/** Returns the extended result code of SQLite; 0 for any other error. */
export const resultCodeOf = (failure: unknown): number =>
  failure instanceof Error && 'errcode' in failure ? Number(failure.errcode) : 0

/** Returns an error that names the remedy for a failure. `explain` makes its text, unless the file is damaged. */
export function tapeErrorOf(failure: unknown, dir: string, explain: (message: string) => string): TapeError {
  if (failure instanceof TapeError) return failure
  const message = messageOf(failure)
  if (!damageCodes.has(resultCodeOf(failure) & 0xff)) return new TapeError(explain(message))
  const remedy = 'put a backup in its place, or move it away; without it clients get a gap'
  return new TapeError(`the tape in DATA_DIR ${dir} is damaged (${message}): ${remedy}`)
}

function prepareSchema(database: DatabaseSync, dir: string): void {
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version)
  const isTape = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").get() !== undefined
  if (!isTape) database.exec(createSql)
  else if (version !== SCHEMA_VERSION) {
    throw new TapeError(
      `DATA_DIR ${dir} holds a tape of schema ${version}, this stocktape reads schema ${SCHEMA_VERSION}: name another DATA_DIR or delete the folder`,
    )
  }
}

/** Creates a folder and its parents one by one: on some file systems, `mkdir` with `recursive` never returns. */
function makeFolder(dir: string): void {
  if (existsSync(dir)) return
  makeFolder(dirname(dir))
  mkdirSync(dir)
}

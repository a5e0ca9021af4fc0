import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { TapeError } from './tape.ts'

const schema = `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS tape (
    seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, evictable INTEGER NOT NULL, text TEXT NOT NULL, subject TEXT
  ) STRICT;
  CREATE INDEX IF NOT EXISTS tape_time ON tape (time, seq);
  CREATE INDEX IF NOT EXISTS tape_evictable ON tape (seq) WHERE evictable = 1;
  CREATE TABLE IF NOT EXISTS heads (
    address TEXT NOT NULL, type TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (address, type)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS channels (
    number INTEGER PRIMARY KEY, address TEXT, type TEXT NOT NULL, told TEXT NOT NULL, evictable INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS shelves (
    shelf INTEGER PRIMARY KEY, channels BLOB NOT NULL, since INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
`

/** By what a message is looked up: an on-chain key, or the token's block that a seal is of. */
const subjectIndexSql = 'CREATE INDEX IF NOT EXISTS tape_subject ON tape (subject) WHERE subject IS NOT NULL'
const hasColumnSql = "SELECT 1 FROM pragma_table_info('tape') WHERE name = ?"
/** Messages of a tape of before that which can be looked up from then on; what is older ended long ago. */
const SUBJECTS_BOUND = 100_000
/** Such a tape holds no seals, so all that can be looked up bears a key. */
const addSubjectsSql = `
  BEGIN IMMEDIATE;
  ALTER TABLE tape ADD COLUMN subject TEXT;
  UPDATE tape SET subject = json_extract(text, '$.key')
    WHERE seq IN (SELECT seq FROM tape ORDER BY seq DESC LIMIT ${SUBJECTS_BOUND});
  COMMIT;
`

/**
 * A tape of before was filed message by message, in a column that an index was made of. The column has to be filled still,
 * since taking it away would write the whole tape anew.
 */
const dropChannelIndexSql = 'DROP INDEX IF EXISTS tape_channel'
const LEGACY_COLUMN = 'channel'

/** How a message is written: its number, time, whether the count may take it, text and subject. */
export const prepareInsert = (database: DatabaseSync): StatementSync =>
  database.prepare(
    database.prepare(hasColumnSql).get(LEGACY_COLUMN)
      ? `INSERT INTO tape (seq, time, evictable, text, subject, ${LEGACY_COLUMN}) VALUES (?, ?, ?, ?, ?, 0)`
      : 'INSERT INTO tape (seq, time, evictable, text, subject) VALUES (?, ?, ?, ?, ?)',
  )

/** Opens the file that the embedded tape lives in, and locks it; says what to do where that cannot be. */
export function openDatabase(dir: string): DatabaseSync {
  try {
    if (dir !== ':memory:') makeFolder(resolve(dir))
    const database = new DatabaseSync(dir === ':memory:' ? dir : join(dir, 'tape.sqlite'))
    try {
      database.exec(schema)
      if (!database.prepare(hasColumnSql).get('subject')) database.exec(addSubjectsSql)
      database.exec(subjectIndexSql)
      database.exec(dropChannelIndexSql)
      // Takes the lock now, so that a second process on the same folder is told at its start.
      database.exec('BEGIN IMMEDIATE; COMMIT')
    } catch (failure) {
      database.close()
      throw failure
    }
    return database
  } catch (failure) {
    const message = failure instanceof Error ? failure.message : String(failure)
    throw new TapeError(
      message.includes('locked')
        ? `DATA_DIR ${dir} is in use by another stocktape: stop that one or name another folder`
        : `DATA_DIR ${dir} cannot hold the tape (${message}): name a folder that this user may write to`,
    )
  }
}

/** One level at a time: under some file systems the recursive form never returns. */
function makeFolder(dir: string): void {
  if (existsSync(dir)) return
  makeFolder(dirname(dir))
  mkdirSync(dir)
}

import { open } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { messageOf } from '../../lib/http-fetch.ts'
import { oneLine } from '../../lib/text.ts'
import { formatPosition } from '../../protocol/position.ts'
import { SCHEMA_VERSION } from '../../relay/tape/tape-database.ts'

/** The command cannot do what it should. The message names the remedy. */
export class BackupError extends Error {}

/**
 * Checks a copy of the tape, and returns what it has. Afterwards it needs no file beside it. `name` is the file that an error
 * names. Other programs must not use the copy.
 */
export function checkTapeFile(path: string, name: string): string {
  const database = new DatabaseSync(path)
  try {
    const read = (sql: string) => Object.values(database.prepare(sql).get() ?? {})[0] ?? null
    const version = read('PRAGMA user_version')
    if (read("SELECT 1 FROM sqlite_schema WHERE name = 'meta'") === null) throw new BackupError(`${name} is no tape`)
    if (version !== SCHEMA_VERSION)
      throw new BackupError(`${name} holds a tape of schema ${version}, and this stocktape reads schema ${SCHEMA_VERSION}`)
    const finding = read('PRAGMA integrity_check(1)')
    if (finding !== 'ok') throw new BackupError(`${name} is damaged (${oneLine(String(finding)).trim()})`)
    const epoch = read("SELECT value FROM meta WHERE name = 'epoch'")
    if (epoch === null) throw new BackupError(`${name} is a tape without an epoch`)
    database.exec('PRAGMA journal_mode = DELETE')
    const saved = Number(read("SELECT value FROM meta WHERE name = 'end'") ?? 0)
    const end = Math.max(saved, Number(read('SELECT max(seq) FROM tape') ?? 0))
    return `${read('SELECT count(*) FROM tape')} messages up to ${formatPosition(String(epoch), end)}`
  } catch (failure) {
    if (failure instanceof BackupError) throw failure
    throw new BackupError(`${name} cannot be read as a tape (${messageOf(failure)})`)
  } finally {
    database.close()
  }
}

/** Waits until a file is on the disk. */
export const sync = (path: string): Promise<void> => flush(path, 'r+')

/** Waits until the names of the files in a folder are on the disk. */
export const syncFolder = (dir: string): Promise<void> => flush(dir, 'r')

async function flush(path: string, flags: string): Promise<void> {
  const file = await open(path, flags)
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

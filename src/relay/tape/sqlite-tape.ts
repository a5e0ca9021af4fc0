import type { DatabaseSync } from 'node:sqlite'
import type { Draft } from '../../protocol/updates.ts'
import { Notes } from './notes.ts'
import { firstSeqOfRun } from './runs.ts'
import { openTapeFile, TapeFile, type TapeFileOptions } from './tape-file.ts'

/** Opens the embedded tape, which one process both writes and serves. */
export const openSqliteTape = (options: TapeFileOptions): TapeFile =>
  openTapeFile(options, (database) => new SqliteTape(database, options))

export class SqliteTape extends TapeFile {
  constructor(database: DatabaseSync, options: TapeFileOptions) {
    super(database, options)
    this.beginRun(firstSeqOfRun(this.end(), this.sinceEpochMs, this.isNew))
  }

  async append(drafts: readonly Draft[], notes = new Notes(), keepAfter = Number.POSITIVE_INFINITY) {
    const entries = this.number(drafts)
    this.write(entries, notes, keepAfter)
    return entries
  }
}

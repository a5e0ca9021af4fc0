import type { DatabaseSync } from 'node:sqlite'
import type { Draft } from '../../protocol/updates.ts'
import { Notes } from './notes.ts'
import { firstSeqOfRun } from './runs.ts'
import { openStoredTape, StoredTape, type StoredTapeOptions } from './stored-tape.ts'

/** Opens the embedded tape, which one process both writes and serves. */
export const openEmbeddedTape = (options: StoredTapeOptions): StoredTape =>
  openStoredTape(options, (database) => new EmbeddedTape(database, options))

export class EmbeddedTape extends StoredTape {
  constructor(database: DatabaseSync, options: StoredTapeOptions) {
    super(database, options)
    this.beginRun(firstSeqOfRun(this.end(), this.sinceEpochMs, this.isNew))
  }

  async append(drafts: readonly Draft[], notes = new Notes(), keepAfter = Number.POSITIVE_INFINITY) {
    const entries = this.number(drafts)
    this.write(entries, notes, keepAfter)
    return entries
  }
}

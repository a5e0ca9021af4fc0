import { decodeBatch } from '../tape/batch-message.ts'
import { Notes } from '../tape/notes.ts'
import { type Entry, NotLeadingError } from '../tape/tape.ts'
import { openTapeFile, TapeFile, type TapeFileOptions } from '../tape/tape-file.ts'
import { entryOf } from '../tape/tape-row.ts'

/** Opens a copy of the tape that another process of this machine writes. */
export const openWorkerTape = (options: TapeFileOptions): WorkerTape =>
  openTapeFile(options, (database) => new WorkerTape(database, options))

/** A copy of the tape, kept up to date by the batches that the writing process sends. */
export class WorkerTape extends TapeFile {
  override async append(): Promise<readonly Entry[]> {
    throw new NotLeadingError('another process writes the tape')
  }

  /** Takes over a batch. The copy may contain some of the first ones. */
  receive(bytes: Uint8Array): void {
    const batch = decodeBatch(bytes)
    if (!batch) throw new Error('a batch from the writing process cannot be read')
    const { first, texts, notes, keepAfter } = batch
    const entries = texts.map((text, index) => entryOf([first + index, text])).filter(({ seq }) => seq > this.end())
    this.write(entries, new Notes(notes), keepAfter ?? Number.POSITIVE_INFINITY)
  }
}

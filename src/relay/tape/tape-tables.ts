import type { DatabaseSync } from 'node:sqlite'
import { isEvictable } from './index/tape-index.ts'
import { lookupOf, subjectOf } from './lookup-subject.ts'
import { Notes } from './notes.ts'
import type { Entry, StoredText, TapeSize, TapeSubject } from './tape.ts'
import { entryOf, prepareRows, type TapeRow } from './tape-row.ts'

type TimedRow = { readonly seq: number; readonly time: number }

/** The rows of updates and notes in the file of the tape. */
export class TapeTables {
  readonly #statements: ReturnType<typeof prepareStatements>

  constructor(database: DatabaseSync) {
    this.#statements = prepareStatements(database)
  }

  get size(): Omit<TapeSize, 'rows'> {
    const { page_count, page_size } = this.#statements.size.get() ?? {}
    return { bytes: Number(page_count) * Number(page_size), oldestTimeMs: this.#firstFrom(0)?.time ?? null }
  }

  get last(): TimedRow | undefined {
    return this.#statements.last.get() as TimedRow | undefined
  }

  readTexts(after: number, limit: number): readonly StoredText[] {
    return (this.#statements.readAfter.all(after, limit) as unknown as TapeRow[]).map(([seq, text]) => ({ seq, text }))
  }

  find(subject: TapeSubject): readonly Entry[] {
    const { range, matches } = lookupOf(subject)
    const rows = this.#statements.readSubjects.all(...range) as unknown as TapeRow[]
    return rows.map(entryOf).filter(({ update }) => matches(update))
  }

  /** Returns the number after which every update was written at `time` or later; `end` if none was. */
  seqBefore(time: number, end: number): number {
    let [low, high] = [0, end + 1]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const row = this.#firstFrom(middle)
      if (row && row.time < time) low = row.seq + 1
      else high = middle
    }
    const found = this.#firstFrom(low)
    return found ? found.seq - 1 : end
  }

  readNotes(): Notes {
    const rows = this.#statements.readNotes.all().map(({ name, value }) => [String(name), JSON.parse(String(value))])
    return new Notes(Object.fromEntries(rows))
  }

  writeMeta(name: string, value: string): void {
    this.#statements.writeMeta.run(name, value)
  }

  /** Writes updates after one with the stored time `time`, and returns the stored time of the last one. Times never decrease. */
  writeUpdates(entries: readonly Entry[], time: number, clockStepsMs: number): number {
    let last = time
    for (const { seq, update, text } of entries) {
      last = Math.max(last, Date.parse(update.time) - clockStepsMs)
      this.#statements.writeUpdate.run(seq, last, isEvictable(update) ? 1 : 0, text, subjectOf(update))
    }
    return last
  }

  writeNotes(notes: Notes): void {
    for (const [name, value] of notes) {
      if (value === null) this.#statements.deleteNote.run(name)
      else this.#statements.writeNote.run(name, JSON.stringify(value))
    }
  }

  #firstFrom(seq: number): TimedRow | undefined {
    return this.#statements.firstFrom.get(seq) as TimedRow | undefined
  }
}

const prepareStatements = (database: DatabaseSync) => ({
  writeUpdate: database.prepare('INSERT INTO tape (seq, time, evictable, text, subject) VALUES (?, ?, ?, ?, ?)'),
  readNotes: database.prepare('SELECT name, value FROM notes'),
  writeNote: database.prepare('INSERT OR REPLACE INTO notes (name, value) VALUES (?, ?)'),
  deleteNote: database.prepare('DELETE FROM notes WHERE name = ?'),
  writeMeta: database.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)'),
  readAfter: prepareRows(database, 'SELECT seq, text FROM tape WHERE seq > ? ORDER BY seq LIMIT ?'),
  readSubjects: prepareRows(database, 'SELECT seq, text FROM tape WHERE subject BETWEEN ? AND ? ORDER BY seq'),
  size: database.prepare('SELECT page_count, page_size FROM pragma_page_count, pragma_page_size'),
  last: database.prepare('SELECT seq, time FROM tape ORDER BY seq DESC LIMIT 1'),
  firstFrom: database.prepare('SELECT seq, time FROM tape WHERE seq >= ? ORDER BY seq LIMIT 1'),
})

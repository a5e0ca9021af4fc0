import type { DatabaseSync } from 'node:sqlite'
import type { Hex } from '../../lib/hex.ts'
import { blockOf } from '../../protocol/fields.ts'
import type { Update } from '../../protocol/updates.ts'
import { isEvictable } from './index/tape-index.ts'
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

// The tape finds an update by its subject: one integer that is made from its key, or from block and token of a seal. An index of
// whole keys would cost more than writing the update. Several keys may share a subject, so a reader also compares the keys.

/** Number of subjects for each block. The first half is for keys, by log index; the second half is for seals, by address. */
const SUBJECTS_PER_BLOCK = 2 ** 21
const HALF = SUBJECTS_PER_BLOCK / 2
/** Block numbers are taken modulo this limit, so that a double holds every subject exactly. */
const BLOCKS_BOUND = 2 ** 32
/** Number of hex digits of the token's address in the subject of a seal. They have 16 ** 5 values, which is `HALF`. */
const ADDRESS_DIGITS = 5

const firstSubjectOf = (block: number): number => (block % BLOCKS_BOUND) * SUBJECTS_PER_BLOCK

/** Returns null for a text that is no key. */
function subjectOfKey(key: string): number | null {
  const subject = firstSubjectOf(blockOf(key)) + (Number(key.slice(key.lastIndexOf('-') + 1)) % HALF)
  return Number.isSafeInteger(subject) ? subject : null
}

const subjectOfSeal = (address: Hex, block: number): number =>
  firstSubjectOf(block) + HALF + Number.parseInt(address.slice(-ADDRESS_DIGITS), 16)

function subjectOf(update: Update): number | null {
  if (update.type === 'seal') return subjectOfSeal(update.address, update.block.number)
  return 'key' in update && update.key ? subjectOfKey(update.key) : null
}

type Lookup = {
  /** First and last subject to read. */
  readonly range: readonly [number | null, number | null]
  /** Whether an update with such a subject is one that was looked for. */
  readonly matches: (update: Update) => boolean
}

function lookupOf(wanted: TapeSubject): Lookup {
  if ('key' in wanted) {
    const subject = subjectOfKey(wanted.key)
    return { range: [subject, subject], matches: (update) => 'key' in update && update.key === wanted.key }
  }
  const { sealsOf: block, address } = wanted
  const isOfBlock = (update: Update) => update.type === 'seal' && update.block.number === block
  const first = address ? subjectOfSeal(address, block) : firstSubjectOf(block) + HALF
  const range = [first, address ? first : first + HALF - 1] as const
  return { range, matches: (update) => isOfBlock(update) && (!address || update.address === address) }
}

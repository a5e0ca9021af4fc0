import type { DatabaseSync } from 'node:sqlite'
import type { Hex } from '../../../lib/hex.ts'
import { prepareRows } from '../tape-row.ts'
import { type BarRange, type BarRow, editionOf } from './bar-row.ts'

/** The minutes of all tokens in the file of the tape. They are kept longer than the messages. */
export class BarTable {
  readonly #statements: ReturnType<typeof prepareStatements>
  readonly #retentionS: number

  constructor(database: DatabaseSync, retentionMs: number) {
    this.#statements = prepareStatements(database)
    this.#retentionS = Math.ceil(retentionMs / 1_000)
  }

  /** Writes minutes, and deletes those of the same tokens that are too old. */
  write(rows: readonly BarRow[]): void {
    const newest = new Map<Hex, number>()
    for (const [address, start, text] of rows) {
      this.#statements.write.run(address, start, text)
      newest.set(address, Math.max(start, newest.get(address) ?? 0))
    }
    for (const [address, start] of newest) this.#statements.deleteBefore.run(address, start - this.#retentionS)
  }

  /** Writes the rows of another copy that are newer than those of this one. */
  merge(rows: readonly BarRow[]): void {
    this.write(
      rows.filter((row) => {
        const own = this.#statements.readOne.get(row[0], row[1]) as { readonly text: string } | undefined
        return own === undefined || editionOf(row[2]) > editionOf(own.text)
      }),
    )
  }

  /** Returns the newest minute of each token. */
  get newest(): ReadonlyMap<Hex, number> {
    return new Map(this.#statements.readNewest.all().map(({ address, start }) => [address as Hex, Number(start)]))
  }

  read(address: Hex, { since, until, order = 'asc', limit = until - since }: BarRange): readonly BarRow[] {
    const statement = order === 'asc' ? this.#statements.readAscending : this.#statements.readDescending
    return statement.all(address, since, until, limit) as unknown as BarRow[]
  }
}

const selectSql = 'SELECT address, start, text FROM bars WHERE address = ? AND start >= ? AND start < ?'

const prepareStatements = (database: DatabaseSync) => ({
  write: database.prepare('INSERT OR REPLACE INTO bars (address, start, text) VALUES (?, ?, ?)'),
  deleteBefore: database.prepare('DELETE FROM bars WHERE address = ? AND start < ?'),
  readOne: database.prepare('SELECT text FROM bars WHERE address = ? AND start = ?'),
  readNewest: database.prepare('SELECT address, max(start) AS start FROM bars GROUP BY address'),
  readAscending: prepareRows(database, `${selectSql} ORDER BY start LIMIT ?`),
  readDescending: prepareRows(database, `${selectSql} ORDER BY start DESC LIMIT ?`),
})

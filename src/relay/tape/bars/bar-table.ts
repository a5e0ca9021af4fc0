import type { DatabaseSync } from 'node:sqlite'
import { getOrAdd } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import { prepareRows } from '../tape-row.ts'
import { type BarRange, type BarRow, barRowOf, editionOf, type MinuteBar, minuteBarOf } from './bar-row.ts'
import { DAY_S, joined, MINUTE_S, sums } from './bar-sums.ts'

/** The minutes of all tokens in the file of the tape, and their sums. They are kept longer than the messages. */
export class BarTable {
  readonly #statements: ReturnType<typeof prepareStatements>
  readonly #retentionS: number

  constructor(database: DatabaseSync, retentionMs: number) {
    this.#statements = prepareStatements(database)
    this.#retentionS = Math.ceil(retentionMs / 1_000)
  }

  /** Writes minutes and their sums, and deletes those of the same tokens that are too old. */
  write(rows: readonly BarRow[]): void {
    const newest = new Map<Hex, number>()
    const added: GrownSums = new Map()
    const changed: BarRow[] = []
    for (const row of rows) {
      const [address, start] = row
      const last = getOrAdd(newest, address, () => this.#newestMinute(address))
      this.#write(MINUTE_S, row)
      newest.set(address, Math.max(start, last))
      if (start > last) this.#addToSums(minuteBarOf(row), added)
      else changed.push(row)
    }
    for (const { seconds, sum } of added.values()) this.#write(seconds, barRowOf(sum))
    this.#makeSumsAgain(changed)
    for (const [address, start] of newest) this.#deleteBefore(address, start - this.#retentionS)
  }

  /** Writes the rows of another copy that are newer than those of this one. */
  merge(rows: readonly BarRow[]): void {
    this.write(
      rows.filter(([address, start, text]) => {
        const own = this.#readOne(MINUTE_S, address, start)
        return own === null || editionOf(text) > editionOf(own)
      }),
    )
  }

  /** Returns the start of the newest day with minutes of each token. */
  get newestDays(): ReadonlyMap<Hex, number> {
    return new Map(this.#statements.readNewestDays.all(DAY_S).map(({ address, start }) => [address as Hex, Number(start)]))
  }

  read(address: Hex, { since, until, order = 'asc', limit = until - since, seconds = MINUTE_S }: BarRange): readonly BarRow[] {
    const statement = order === 'asc' ? this.#statements.readAscending : this.#statements.readDescending
    return statement.all(seconds, address, since, until, limit) as unknown as BarRow[]
  }

  /** Adds a minute after all others, which needs no other minute. */
  #addToSums(minute: MinuteBar, added: GrownSums): void {
    const { address } = minute
    for (const { seconds } of sums) {
      const start = startOf(minute.start, seconds)
      const name = `${address}/${seconds}/${start}`
      const before = added.get(name)?.sum ?? this.#readSum(seconds, address, start)
      const part = { ...minute, start }
      added.set(name, { seconds, sum: before ? joined(before, part) : part })
    }
  }

  #readSum(seconds: number, address: Hex, start: number): MinuteBar | null {
    const text = this.#readOne(seconds, address, start)
    return text === null ? null : minuteBarOf([address, start, text])
  }

  #makeSumsAgain(changed: readonly BarRow[]): void {
    for (const { seconds, partSeconds } of sums) {
      const stretches = new Map(changed.map(([address, minute]) => [`${address}${startOf(minute, seconds)}`, { address, minute }]))
      for (const { address, minute } of stretches.values()) {
        const start = startOf(minute, seconds)
        const parts = this.read(address, { since: start, until: start + seconds, seconds: partSeconds })
        this.#write(seconds, barRowOf({ ...parts.map(minuteBarOf).reduce(joined), start }))
      }
    }
  }

  #write(seconds: number, [address, start, text]: BarRow): void {
    this.#statements.write.run(seconds, address, start, text)
  }

  #readOne(seconds: number, address: Hex, start: number): string | null {
    const row = this.#statements.readOne.get(seconds, address, start) as { readonly text: string } | undefined
    return row?.text ?? null
  }

  /** Reads it as a page, which is quick in memory too, while the disk fails: there `max` would read all minutes. */
  #newestMinute(address: Hex): number {
    const [newest] = this.read(address, { since: 0, until: Number.MAX_SAFE_INTEGER, order: 'desc', limit: 1 })
    return newest?.[1] ?? Number.NEGATIVE_INFINITY
  }

  /** A sum is kept until the last of its minutes is too old. */
  #deleteBefore(address: Hex, time: number): void {
    for (const seconds of [MINUTE_S, ...sums.map((sum) => sum.seconds)])
      this.#statements.deleteBefore.run(seconds, address, time + MINUTE_S - seconds)
  }
}

/** Hours and days with new minutes, until they are written. */
type GrownSums = Map<string, { readonly seconds: number; readonly sum: MinuteBar }>

const startOf = (minute: number, seconds: number): number => minute - (minute % seconds)

const selectSql = 'SELECT address, start, text FROM bars WHERE seconds = ? AND address = ? AND start >= ? AND start < ?'

const prepareStatements = (database: DatabaseSync) => ({
  write: database.prepare('INSERT OR REPLACE INTO bars (seconds, address, start, text) VALUES (?, ?, ?, ?)'),
  deleteBefore: database.prepare('DELETE FROM bars WHERE seconds = ? AND address = ? AND start < ?'),
  readOne: database.prepare('SELECT text FROM bars WHERE seconds = ? AND address = ? AND start = ?'),
  readNewestDays: database.prepare('SELECT address, max(start) AS start FROM bars WHERE seconds = ? GROUP BY address'),
  readAscending: prepareRows(database, `${selectSql} ORDER BY start LIMIT ?`),
  readDescending: prepareRows(database, `${selectSql} ORDER BY start DESC LIMIT ?`),
})

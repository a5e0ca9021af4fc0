import type { DatabaseSync } from 'node:sqlite'
import type { Host } from '../host.ts'
import { prepareRows } from './tape-row.ts'

export type EvictionBounds = Pick<Host, 'now'> & {
  readonly tapeRetentionMs: number
  readonly tapeMaxMessages: number
  /** Number of updates above `tapeMaxMessages` that the tape may keep because of open keys. */
  readonly openGrowth?: number
}

/** Each pass of eviction deletes at most this many updates more than the append adds, so that no batch waits long. */
const EVICTION_BOUND = 1_000
/** Eviction by count begins above an excess of `STEP` updates, or of `STEP_PART` of the limit if that is less. */
const [STEP, STEP_PART] = [256, 0.01]
/** Default of `openGrowth`. It equals the limit of keys in the ledger. */
const OPEN_GROWTH = 262_144

/** The counts by which eviction decides. A pass returns new ones, and the store keeps them once the transaction is committed. */
export type EvictionState = {
  readonly count: number
  /** Number after which nothing has been evicted. */
  readonly oldest: number
  /** Number up to which the tape has no update left that eviction by count may delete. */
  readonly clearedUpTo: number
  /** Time before which the tape has no update; null if unknown. */
  readonly oldestTime: number | null
}

/** A batch that adds updates up to `end`. */
type AddedUpdates = { readonly added: number; readonly end: number; readonly keepAfter: number }

export class Eviction {
  readonly #bounds: EvictionBounds
  readonly #statements: ReturnType<typeof prepareStatements>

  constructor(database: DatabaseSync, bounds: EvictionBounds) {
    this.#bounds = bounds
    this.#statements = prepareStatements(database)
  }

  /** Reads what the last save and the updates after it show. */
  read(meta: ReadonlyMap<string, string>): EvictionState {
    const oldest = Number(meta.get('oldest') ?? 0)
    // Every eviction saves the count, so each row above `counted` is one update more.
    const later = Number(this.#statements.countAfter.get(Number(meta.get('counted') ?? 0))?.count ?? 0)
    return { count: Number(meta.get('count') ?? 0) + later, oldest, clearedUpTo: oldest, oldestTime: null }
  }

  /** Evicts in the transaction that adds the updates: first by age, then, among evictable updates, by count. */
  run(before: EvictionState, { added, end, keepAfter }: AddedUpdates) {
    const { tapeMaxMessages, openGrowth = OPEN_GROWTH } = this.#bounds
    const step = Math.min(STEP, tapeMaxMessages * STEP_PART)
    const countBounds = [
      { last: Math.min(keepAfter, end), countBound: tapeMaxMessages },
      { last: end, countBound: tapeMaxMessages + openGrowth },
    ]
    const limit = EVICTION_BOUND + added
    let { oldest, clearedUpTo } = before
    const count = before.count + added
    const { evicted, oldestTime } = this.#evictByAge(before.oldestTime, keepAfter, limit)
    for (const { last, countBound } of countBounds) {
      const excess = count - evicted.length - countBound
      if (excess <= step || last <= clearedUpTo) continue
      const wanted = Math.min(excess, limit)
      const seqs = this.#evictByCount(clearedUpTo, last, wanted)
      clearedUpTo = seqs.length < wanted ? last : (seqs.at(-1) ?? last)
      // A single `push` with all these numbers as arguments could overflow the stack.
      for (const seq of seqs) evicted.push(seq)
    }
    for (const seq of evicted) oldest = Math.max(oldest, seq)
    const state = { count: count - evicted.length, oldest, clearedUpTo: Math.max(clearedUpTo, oldest), oldestTime }
    return { evicted, state }
  }

  /** Counts updates that are added while the disk fails. Nothing is evicted, because nothing can be deleted from the file. */
  grow(before: EvictionState, added: number): { readonly evicted: readonly number[]; readonly state: EvictionState } {
    return { evicted: [], state: { ...before, count: before.count + added } }
  }

  save({ count, oldest }: EvictionState, end: number): void {
    // Without this row nothing has been evicted.
    if (oldest > 0) this.#statements.writeMeta.run('oldest', String(oldest))
    this.#statements.writeMeta.run('count', String(count))
    this.#statements.writeMeta.run('counted', String(end))
  }

  #evictByAge(oldestTime: number | null, keepAfter: number, limit: number): { evicted: number[]; oldestTime: number | null } {
    const before = this.#bounds.now() - this.#bounds.tapeRetentionMs
    const evicted: number[] = []
    if (oldestTime !== null && oldestTime >= before) return { evicted, oldestTime }
    let keptTime: number | null = null
    const rows = this.#statements.oldest.iterate() as unknown as Iterable<readonly [seq: number, time: number]>
    for (const [seq, time] of rows) {
      if (time >= before || seq > keepAfter || evicted.length === limit) {
        keptTime = time
        break
      }
      evicted.push(seq)
    }
    const last = evicted.at(-1)
    if (last !== undefined) this.#statements.evictUpTo.run(last)
    return { evicted, oldestTime: keptTime }
  }

  #evictByCount(after: number, last: number, limit: number): readonly number[] {
    const rows = this.#statements.evictable.all(after, last, limit) as unknown as readonly (readonly [seq: number])[]
    const seqs = rows.map(([seq]) => seq)
    if (seqs.length > 0) this.#statements.evictEvictable.run(after, seqs.at(-1) ?? after)
    return seqs
  }
}

const prepareStatements = (database: DatabaseSync) => ({
  countAfter: database.prepare('SELECT count(*) AS count FROM tape WHERE seq > ?'),
  oldest: prepareRows(database, 'SELECT seq, time FROM tape ORDER BY seq'),
  evictUpTo: database.prepare('DELETE FROM tape WHERE seq <= ?'),
  evictable: prepareRows(database, 'SELECT seq FROM tape WHERE seq > ? AND seq <= ? AND evictable = 1 ORDER BY seq LIMIT ?'),
  evictEvictable: database.prepare('DELETE FROM tape WHERE seq > ? AND seq <= ? AND evictable = 1'),
  writeMeta: database.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)'),
})

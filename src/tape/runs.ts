import type { DatabaseSync } from 'node:sqlite'

/** A clock beyond this is wrong: numbers stay below 2^53. */
const CLOCK_SEQ_BOUND = 2 ** 52

/** A run of the relay: its first number, and the last number of the runs before it that the store knows. */
type Run = { readonly first: number; readonly previous_end: number }

/**
 * The runs that wrote the tape. Each goes on at the microseconds since the epoch began, so that no number is given twice:
 * neither after a power loss that took the end of the tape, nor after the restore of a backup.
 */
export class Runs {
  readonly #runs: readonly Run[]

  /** Begins a run, inside a transaction. `end` is the last number on the tape, `sinceEpochMs` the age of the epoch. */
  constructor(database: DatabaseSync, { oldest, end, sinceEpochMs }: { oldest: number; end: number; sinceEpochMs: number }) {
    const microseconds = Math.floor(sinceEpochMs * 1_000)
    const first = microseconds <= CLOCK_SEQ_BOUND ? Math.max(end + 1, microseconds) : end + 1
    // A run that wrote nothing, or whose numbers are evicted, is not needed.
    database.prepare('DELETE FROM runs WHERE first > ? OR first <= ?').run(end, oldest)
    database.prepare('INSERT INTO runs (first, previous_end) VALUES (?, ?)').run(first, end)
    this.#runs = database.prepare('SELECT first, previous_end FROM runs ORDER BY first').all() as Run[]
  }

  /** The first number of this run. */
  get first(): number {
    return this.#runs.at(-1)?.first ?? 1
  }

  /** The end of the run after which this number was lost, or was never given; null for any other number. */
  lostAfter(seq: number): number | null {
    const next = this.#runs.find(({ first }) => first > seq)
    return next && seq > next.previous_end ? next.previous_end : null
  }
}

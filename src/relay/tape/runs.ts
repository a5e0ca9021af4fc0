import type { DatabaseSync } from 'node:sqlite'
import type { Run } from './tape.ts'
import { parseUpdate } from './tape-row.ts'

/** Limit of a number that is derived from the clock: a clock that gives more is wrong, and numbers must stay below 2^53. */
const CLOCK_SEQ_BOUND = 2 ** 52
/** Limit of the numbers that another process may give: beyond it, too few numbers are left below 2^53. */
export const SEQ_BOUND = 2 ** 53 - 2 ** 50
/** Limit of the numbers that a crash can lose: those in memory while the disk fails, and those in an unflushed log. */
export const LOST_BOUND = 131_072
/** Limit of the numbers that a run skips if other runs do not know its start: those of about two hours. */
const SKIPPED_BOUND = 2 ** 33
/** Least difference between the stored time and the wall time of an update that counts as a step of the clock. */
const STEP_MS = 1_000

export const readRuns = (database: DatabaseSync): readonly Run[] =>
  database.prepare('SELECT first, previous_end FROM runs ORDER BY first').all() as Run[]

/** Writes the start of a run inside a transaction, and returns all runs. `end` is the last number on the tape. */
export function writeRun(database: DatabaseSync, first: number, { oldest, end }: { oldest: number; end: number }): readonly Run[] {
  // Forgets each run that wrote nothing or began before an evicted update, because it explains no lost number.
  database.prepare('DELETE FROM runs WHERE first > ? OR first <= ?').run(end, oldest)
  database.prepare('INSERT INTO runs (first, previous_end) VALUES (?, ?)').run(first, end)
  return readRuns(database)
}

/** Returns the last number before the run that skipped `seq`, if `seq` was lost or never given; otherwise null. */
export function lostAfter(runs: readonly Run[], seq: number): number | null {
  const next = runs.find(({ first }) => first > seq)
  return next && seq > next.previous_end ? next.previous_end : null
}

/**
 * Returns the first number of a run that begins now: the clock's or, if that may be given already, one beyond all lost numbers. A
 * restored backup does not know the runs after it. If the clock is behind the tape, the run must not begin where one of them did.
 */
export function firstSeqOfRun(end: number, wallTimeMs: number, epochBeganAt: number, isFirst: boolean): number {
  const microseconds = Math.floor((wallTimeMs - epochBeganAt) * 1_000)
  const least = end + 1 + (isFirst ? 0 : LOST_BOUND)
  if (microseconds >= least && microseconds <= CLOCK_SEQ_BOUND) return microseconds
  // The run before began a moment ago. Hours ahead of the clock, lost numbers would also be ahead of a restored backup.
  if (microseconds > end && microseconds < least) return microseconds + LOST_BOUND
  return isFirst ? least : least + skippedByTime(wallTimeMs)
}

/** Returns how many numbers a run skips that other runs do not know. Time passes between two runs, so they skip to other numbers. */
export const skippedByTime = (wallTimeMs: number): number => Math.floor(wallTimeMs * 1_000) % SKIPPED_BOUND

/**
 * Stored times omit the steps of the wall clock during a run. After a step forward they are too old for the next run, which would
 * evict their updates too early, so this function adds the step that the last update shows. After a step back it adds nothing.
 */
export function addClockSteps(database: DatabaseSync): void {
  const last = database.prepare('SELECT time, text FROM tape ORDER BY seq DESC LIMIT 1').get()
  if (!last) return
  const stepsMs = Date.parse(parseUpdate(String(last.text)).time) - Number(last.time)
  if (stepsMs < STEP_MS) return
  database.prepare('UPDATE tape SET time = time + ? WHERE seq >= (SELECT max(first) FROM runs)').run(stepsMs)
}

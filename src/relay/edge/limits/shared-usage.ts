import { DatabaseSync } from 'node:sqlite'
import type { UsageCounts } from './usage-counts.ts'

/** Limit of the wait for the lock of another process, which holds it for microseconds. */
const BUSY_TIMEOUT_MS = 1_000
/** After RATE_KEPT_MS an idle address has its full rates again. A sweep, every RATES_SWEPT_EVERY requests, removes it. */
const [RATE_KEPT_MS, RATES_SWEPT_EVERY] = [600_000, 1_000]
/** Limit of the addresses whose rates a sweep keeps. It removes those that have been idle for the longest time. */
const ADDRESSES_BOUND = 50_000

/** Numbers of requests that an address may still send at a time: `all` of any method, and `logs` of eth_getLogs. */
export type SharedRate = { readonly all: number; readonly logs: number; readonly at: number }

/** Counts of several processes in one small file, so that a limit applies to them together. A restart clears the counts. */
export class SharedUsage implements UsageCounts {
  readonly #worker: number
  #database: DatabaseSync
  #statements: ReturnType<typeof prepare>
  #rateRequests = 0

  constructor(file: string, worker: number) {
    this.#worker = worker
    this.#database = open(file)
    this.#statements = prepare(this.#database)
  }

  /** Continues in another file, which another process has opened. Copies the counts of this process, but no rates. */
  moveTo(file: string): void {
    this.#database.prepare('ATTACH ? AS next').run(file)
    this.#database.prepare('INSERT INTO next.counts SELECT * FROM main.counts WHERE worker = ?').run(this.#worker)
    this.#database.close()
    this.#database = open(file)
    this.#statements = prepare(this.#database)
  }

  count(name: string): number {
    return Number(this.#statements.count.get(name)?.count ?? 0)
  }

  change(name: string, delta: number): void {
    this.#statements.change.run(name, this.#worker, delta)
    if (delta < 0) this.#statements.drop.run(this.#worker, name)
  }

  forget(worker: number): void {
    this.#statements.forget.run(worker)
  }

  /** Calls `take` with the machine's time, equal in all processes, and the rest of the rates. `take` returns null to refuse. */
  takeRate(address: string, take: (now: number, left: SharedRate | undefined) => SharedRate | null): boolean {
    return this.exclusively(() => {
      const now = Number(process.hrtime.bigint()) / 1e6
      const left = take(now, this.#statements.rate.get(address) as SharedRate | undefined)
      if (left) this.#statements.setRate.run(address, left.all, left.logs, left.at)
      this.#rateRequests += 1
      if (this.#rateRequests % RATES_SWEPT_EVERY === 0) this.#statements.sweep.run(now - RATE_KEPT_MS, ADDRESSES_BOUND)
      return left !== null
    })
  }

  exclusively<Result>(run: () => Result): Result {
    this.#database.exec('BEGIN IMMEDIATE')
    try {
      return run()
    } finally {
      this.#database.exec('COMMIT')
    }
  }

  close(): void {
    this.#database.close()
  }
}

function open(file: string): DatabaseSync {
  const database = new DatabaseSync(file)
  database.exec(`
    PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS};
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = OFF;
    CREATE TABLE IF NOT EXISTS counts (
      name TEXT NOT NULL, worker INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (name, worker)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS rates (
      address TEXT PRIMARY KEY, all_left REAL NOT NULL, logs_left REAL NOT NULL, at REAL NOT NULL
    ) STRICT, WITHOUT ROWID;
  `)
  return database
}

const prepare = (database: DatabaseSync) => ({
  count: database.prepare('SELECT sum(count) AS count FROM counts WHERE name = ?'),
  change: database.prepare(
    'INSERT INTO counts (name, worker, count) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count',
  ),
  drop: database.prepare('DELETE FROM counts WHERE worker = ? AND name = ? AND count = 0'),
  forget: database.prepare('DELETE FROM counts WHERE worker = ?'),
  rate: database.prepare('SELECT all_left AS "all", logs_left AS logs, at FROM rates WHERE address = ?'),
  sweep: database.prepare('DELETE FROM rates WHERE at < ? OR at < (SELECT at FROM rates ORDER BY at DESC LIMIT 1 OFFSET ?)'),
  setRate: database.prepare('INSERT OR REPLACE INTO rates (address, all_left, logs_left, at) VALUES (?, ?, ?, ?)'),
})

import { ignoreElements, interval, merge, type Observable, type SchedulerLike, tap } from 'rxjs'
import { observe, WakeUp, wait } from '../../async-loop.ts'
import type { RequestBatchFn } from '../rpc/client.ts'
import type { Pool } from './pool.ts'
import type { PoolReading } from './pool-queries.ts'
import { PoolReader, type PoolReadings, type ReadingBlock } from './pool-reader.ts'

/** What one batch read. */
export type PoolsRead = { readonly type: 'pools' } & PoolReadings

/** Between the beginnings of two batches. What is asked for meanwhile is one read after it. */
const READ_INTERVAL_MS = 50

type Options = {
  readonly requestBatch: RequestBatchFn
  /** How often every pool is read. */
  readonly intervalMs: number
  /** Where to read now. */
  readonly tag: () => 'pending' | 'latest'
  readonly clock: SchedulerLike
  readonly warn: (kind: string, detail: unknown) => void
}

/** Reads the pools that are due, one batch at a time. Nothing waits for it. */
export class PoolPoller {
  readonly #options: Options
  readonly #reader: PoolReader
  readonly #due = new Set<Pool>()
  /** The block of the last reading of each pool. */
  readonly #readAt = new Map<Pool, number>()
  readonly #unreadable = new Set<Pool>()
  readonly #wakeUp = new WakeUp()
  #pools: readonly Pool[] = []

  constructor(options: Options) {
    this.#options = options
    this.#reader = new PoolReader(options)
  }

  /** The pools to read from now on; new ones are due. */
  setPools(pools: readonly Pool[]): void {
    const added = pools.filter((pool) => !this.#pools.includes(pool))
    this.#pools = pools
    for (const known of [this.#due, this.#readAt, this.#unreadable])
      for (const pool of known.keys()) if (!pools.includes(pool)) known.delete(pool)
    this.read(added)
  }

  read(pools: Iterable<Pool>): void {
    for (const pool of pools) this.#due.add(pool)
    if (this.#due.size > 0) this.#wakeUp.notify()
  }

  /** These blocks were replaced: what was read there does not hold. */
  readAgainFrom(block: number): void {
    this.read([...this.#readAt].flatMap(([pool, readAt]) => (readAt >= block ? [pool] : [])))
  }

  answers(): Observable<PoolsRead> {
    const { intervalMs, clock } = this.#options
    return merge(
      interval(intervalMs, clock).pipe(
        tap(() => this.read(this.#pools)),
        ignoreElements(),
      ),
      observe<PoolsRead>((emit, signal) => this.#run(emit, signal)),
    )
  }

  async #run(emit: (answer: PoolsRead) => void, signal: AbortSignal): Promise<never> {
    for (;;) {
      if (this.#due.size === 0) await this.#wakeUp.wait(signal)
      const due = this.#pools.filter((pool) => this.#due.has(pool))
      this.#due.clear()
      if (due.length === 0) continue
      await Promise.all([this.#readDue(due, signal).then(emit), wait(READ_INTERVAL_MS, this.#options.clock, signal)])
    }
  }

  async #readDue(due: readonly Pool[], signal: AbortSignal): Promise<PoolsRead> {
    const { block, pools } = await this.#reader.read(due, this.#options.tag(), signal)
    for (const [pool, reading] of pools) this.#record(pool, reading, block)
    return { type: 'pools', block, pools }
  }

  /** A pool that cannot be read is logged once. */
  #record(pool: Pool, reading: PoolReading, block: ReadingBlock | null): void {
    if (block) this.#readAt.set(pool, block.number)
    if (reading.kind === 'read') {
      this.#unreadable.delete(pool)
      return
    }
    if (!this.#unreadable.has(pool)) this.#options.warn('pool unreadable', { pool: pool.id, reason: reading.reason })
    this.#unreadable.add(pool)
  }
}

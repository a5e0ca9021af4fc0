import { ignoreElements, interval, merge, type Observable, Subject, tap } from 'rxjs'
import { observe, repeatStep, WakeUp } from '../../../lib/async-loop.ts'
import { getOrAdd } from '../../../lib/bounded-map.ts'
import { chunk } from '../../../lib/turns.ts'
import type { Host } from '../../host.ts'
import type { RequestBatchFn } from '../rpc/endpoint-pool.ts'
import type { Pool } from './pool.ts'
import { PoolReader, type PoolReadings, unreadable } from './pool-reader.ts'

export type PoolsRead = { readonly type: 'pools' } & PoolReadings

/** Limit of the pools in one batch. With five requests for each pool, a batch stays below the 100 that many nodes accept. */
const POOLS_PER_BATCH_BOUND = 16
/** Least interval between the starts of two batches. Pools that become due within it are read in the next ones. */
const READ_INTERVAL_MS = 50
/** Least interval between the starts of two batches if the first one read no pool. */
const FAILED_INTERVAL_MS = 1_000
/** Limit of the blocks by which an answer may be behind the known head. A node that is further behind lags. */
const BEHIND_BLOCKS = 2
const LOGGED_POOLS_BOUND = 10

type Options = Pick<Host, 'clock' | 'log'> & {
  readonly requestBatch: RequestBatchFn
  readonly stocksRefreshMs: number
  readonly tag: () => 'pending' | 'latest'
  readonly sealedHead: () => number | null
}

/** `readAt` is the block in which the pool was last read; -1 before. */
type PolledPool = { readAt: number; isUnreadable: boolean }

/** Reads the pools that are due, one batch at a time. No movement waits for these reads. */
export class PoolPoller {
  readonly #options: Options
  readonly #reader: PoolReader
  readonly #wakeUp = new WakeUp()
  readonly #first = new Subject<PoolsRead>()
  #pools: ReadonlyMap<Pool, PolledPool> = new Map()
  /** The pools to read, the one that waits for the longest time first. */
  readonly #due = new Set<Pool>()
  /** The lowest block that a reorg replaced since the current batch was sent; infinite if there is none. */
  #replacedFrom = Number.POSITIVE_INFINITY

  constructor(options: Options) {
    this.#options = options
    this.#reader = new PoolReader(options)
  }

  /** Sets the pools to read. New ones are due at once. */
  setPools(pools: readonly Pool[]): void {
    const added = pools.filter((pool) => !this.#pools.has(pool))
    this.#pools = new Map(pools.map((pool) => [pool, this.#pools.get(pool) ?? { readAt: -1, isUnreadable: false }]))
    this.read(added)
  }

  read(pools: Iterable<Pool>): void {
    for (const pool of pools) if (this.#pools.has(pool)) this.#due.add(pool)
    this.#wakeUp.notify()
  }

  /** Called after a reorg from this block on. Pools that were read in replaced blocks are due again. */
  readAgainFrom(block: number): void {
    this.#replacedFrom = Math.min(this.#replacedFrom, block)
    this.read([...this.#pools].flatMap(([pool, { readAt }]) => (readAt >= block ? [pool] : [])))
  }

  answers(): Observable<PoolsRead> {
    const { stocksRefreshMs, clock } = this.#options
    return merge(
      this.#first,
      interval(stocksRefreshMs, clock).pipe(
        tap(() => this.read(this.#pools.keys())),
        ignoreElements(),
      ),
      observe<PoolsRead>((emit, signal) => repeatStep(() => this.#step(emit, signal), { clock, signal, wakeUp: this.#wakeUp })),
    )
  }

  /** Reads pools before their tokens are listed, to know which of them to follow. */
  async readFirst(pools: readonly Pool[], signal: AbortSignal): Promise<void> {
    for (const part of chunk(pools, POOLS_PER_BATCH_BOUND))
      this.#first.next({ type: 'pools', ...(await this.#reader.read(part, 'latest', signal)) })
  }

  async #step(emit: (answer: PoolsRead) => void, signal: AbortSignal): Promise<number | null> {
    const { clock } = this.#options
    const due: Pool[] = []
    for (const pool of this.#due) {
      this.#due.delete(pool)
      if (this.#pools.has(pool)) due.push(pool)
      if (due.length === POOLS_PER_BATCH_BOUND) break
    }
    if (due.length === 0) return null
    const startedAt = clock.now()
    const answer = await this.#readDue(due, signal)
    if (answer) emit(answer)
    const interval = answer?.block === null ? FAILED_INTERVAL_MS : READ_INTERVAL_MS
    return Math.max(0, startedAt + interval - clock.now())
  }

  /** Returns null, and makes the pools due again, if a reorg replaced the block during the read. */
  async #readDue(due: readonly Pool[], signal: AbortSignal): Promise<PoolsRead | null> {
    const { tag, sealedHead } = this.#options
    const head = sealedHead() ?? 0
    this.#replacedFrom = Number.POSITIVE_INFINITY
    const { block, pools } = await this.#reader.read(due, tag(), signal)
    if (block && block.number >= this.#replacedFrom) {
      this.read(due)
      return null
    }
    const isBehind = block !== null && block.number < head - BEHIND_BLOCKS
    const readings: PoolReadings = isBehind
      ? unreadable(due, `the node answers for block ${block.number}, and ${head} is known`)
      : { block, pools }
    this.#record(readings)
    return { type: 'pools', ...readings }
  }

  /** Remembers which pools are unreadable, and logs a pool only when it becomes unreadable. */
  #record({ block, pools }: PoolReadings): void {
    const failures = new Map<string, string[]>()
    for (const [pool, reading] of pools) {
      const polled = this.#pools.get(pool)
      if (!polled) continue
      if (block) polled.readAt = block.number
      if (reading.kind !== 'read' && !polled.isUnreadable) getOrAdd(failures, reading.reason, () => []).push(pool.id)
      polled.isUnreadable = reading.kind !== 'read'
    }
    for (const [reason, ids] of failures)
      this.#options.log('pools_unreadable', { pools: ids.slice(0, LOGGED_POOLS_BOUND), count: ids.length, reason })
  }
}

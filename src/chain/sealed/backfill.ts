import {
  catchError,
  concat,
  concatMap,
  defer,
  delay,
  EMPTY,
  exhaustMap,
  from,
  map,
  mergeMap,
  type Observable,
  of,
  repeat,
  retry,
  type SchedulerLike,
  Subject,
  tap,
  throwError,
  toArray,
} from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import { isSealed, type Log, type Logs } from '../logs/log-schema.ts'
import type { BlockReader } from '../rpc/block-reader.ts'
import { UpstreamError } from '../rpc/error.ts'
import { LOGS_RANGE_BOUND } from '../rpc/method-params.ts'
import {
  addressesToQuery,
  type OpenKeys,
  RetryCounter,
  readBlockLogs,
  type SealedBlock,
  type SettlementEvent,
} from './block-logs.ts'
import { binarySearch } from './block-search.ts'
import type { Cursor } from './recent-blocks.ts'

/** Blocks to read; with a reason they are only reported as missing. */
type BackfillRange = { readonly from: number; readonly to: number; readonly missingReason: string | null }

/** Waiting ranges; beyond it the last one grows, also over blocks that are settled already. */
const RANGES_BOUND = 64
/** Successful pages before a larger one is tried. */
const GROW_AFTER_PAGES = 8
/** How often a page may go unanswered before a smaller one is tried. */
const UNREACHABLE_RETRIES_BOUND = 3
/** Logs per event, so that no event-loop turn takes long. A block is never split. */
const BATCH_BOUND_LOGS = 500
/** Blocks of one page that are read at the same time. */
const PARALLEL_BLOCKS = 4

type Options = {
  readonly node: BlockReader
  readonly openKeys: OpenKeys
  readonly addresses: () => readonly Hex[]
  readonly clock: SchedulerLike
  readonly warn: (kind: string, detail: unknown) => void
}

/** Reads ranges of old blocks in pages that the node accepts, while the newest blocks are settled beside it. */
export class Backfill {
  readonly #options: Options
  readonly #retries = new RetryCounter()
  readonly #wakeUps = new Subject<void>()
  #ranges: BackfillRange[] = []
  #pageSize = LOGS_RANGE_BOUND
  #successfulPages = 0

  constructor(options: Options) {
    this.#options = options
  }

  /** Up to this block all is settled or reported missing. `newest` is the newest settled block. */
  cursor(newest: Cursor): Cursor {
    // After a reorganisation a later range may start below an earlier one, and `newest` may be below them all.
    const number = Math.min(newest.number, ...this.#ranges.map(({ from }) => from - 1))
    return number === newest.number ? newest : { number, hash: null }
  }

  add(range: BackfillRange): void {
    const last = this.#ranges.at(-1)
    const isAdjacent = last?.missingReason === range.missingReason && last.to + 1 === range.from
    if (last && isAdjacent) this.#ranges.splice(-1, 1, { ...last, to: range.to })
    else if (last && this.#ranges.length >= RANGES_BOUND) this.#ranges.splice(-1, 1, { ...last, to: range.to, missingReason: null })
    else this.#ranges.push(range)
    this.#wakeUps.next()
  }

  /** Reads all ranges that are added. `newest` returns the newest settled block. */
  run(newest: () => Cursor): Observable<SettlementEvent> {
    return this.#wakeUps.pipe(
      exhaustMap(() =>
        defer(() => this.#readNext(newest)).pipe(
          tap({ complete: () => this.#retries.succeeded() }),
          retry({ delay: (failure: unknown) => this.#retryAfter(failure) }),
          repeat({ delay: () => (this.#ranges.length === 0 ? EMPTY : of(null)) }),
        ),
      ),
    )
  }

  #retryAfter(failure: unknown): Observable<unknown> {
    if (this.#retries.totalFailures > 0) this.#options.warn('backfill waits', { reason: String(failure) })
    return this.#retries.waitToRetry(failure, this.#options.clock)
  }

  #readNext(newest: () => Cursor): Observable<SettlementEvent> {
    const [range] = this.#ranges
    if (!range) return EMPTY
    return range.missingReason === null ? this.#readPage(range, newest) : this.#reportMissing(range, range.missingReason, newest)
  }

  /** Reports the missing blocks. Those with published keys are still read, each by itself, if the node has them. */
  #reportMissing({ from: first, to }: BackfillRange, reason: string, newest: () => Cursor): Observable<SettlementEvent> {
    return from(this.#options.openKeys.publishedBlocksBetween(first, to)).pipe(
      concatMap((number) =>
        this.#readBlock(number).pipe(
          catchError((failure: unknown) => (this.#retries.isPruned(failure) ? EMPTY : throwError(() => failure))),
        ),
      ),
      toArray(),
      mergeMap((blocks) => {
        this.#advance(to)
        const cursor = this.cursor(newest())
        const missingRanges = rangesAround(
          blocks.map(({ number }) => number),
          { from: first, to },
        )
        // The holes first: what changed in them is unknown to the facts of the blocks between.
        return from<SettlementEvent[]>([
          ...missingRanges.map((missing): SettlementEvent => ({ type: 'hole', blocks: missing, reason, cursor })),
          { type: 'sealed', blocks, newest: newest().number, cursor },
        ])
      }),
    )
  }

  #readPage({ from: first, to: end }: BackfillRange, newest: () => Cursor): Observable<SettlementEvent> {
    const { node, openKeys, addresses } = this.#options
    const to = Math.min(first + this.#pageSize - 1, end)
    const publishedBlocks = openKeys.publishedBlocksBetween(first, to)
    const queried = addressesToQuery(
      addresses(),
      publishedBlocks.flatMap((number) => openKeys.at(number)),
    )
    return node.logsInRange(first, to, queried).pipe(
      // A lagging node returns no logs. It lacks the last block too.
      mergeMap((answer) =>
        node.header(to).pipe(
          mergeMap((header) =>
            isSealed(header)
              ? this.#groupByBlock(answer, publishedBlocks, queried)
              : throwError(() => new UpstreamError('behind', `no block ${to} yet`)),
          ),
          mergeMap((blocks) =>
            concat(
              answer.unreadable > 0 ? of<SettlementEvent>({ type: 'unreadable', count: answer.unreadable }) : EMPTY,
              this.#emitBatches(blocks, to, newest),
            ),
          ),
        ),
      ),
      catchError((failure: unknown) => this.#handlePageFailure(failure, { from: first, to }, newest)),
    )
  }

  /** The logs of a page by block. Blocks with published keys are read by themselves, since that is reliable. */
  #groupByBlock({ logs }: Logs, publishedBlocks: readonly number[], addresses: readonly Hex[]): Observable<readonly SealedBlock[]> {
    const byBlock = Map.groupBy(logs, (log) => log.blockNumber)
    const numbers = [...new Set([...byBlock.keys(), ...publishedBlocks])].sort((a, b) => a - b)
    return from(numbers).pipe(
      mergeMap((number) => {
        const block = publishedBlocks.includes(number) ? null : blockFromLogs(byBlock.get(number) ?? [], addresses)
        return block ? of(block) : this.#readBlock(number)
      }, PARALLEL_BLOCKS),
      toArray(),
      map((blocks) => blocks.sort((a, b) => a.number - b.number)),
    )
  }

  #readBlock(number: number): Observable<SealedBlock> {
    const { node, openKeys, addresses } = this.#options
    return node.header(number).pipe(
      mergeMap((header) => {
        if (!isSealed(header)) return throwError(() => new UpstreamError('behind', `no block ${number} yet`))
        const openKeysInBlock = openKeys.at(number)
        const queried = addressesToQuery(addresses(), openKeysInBlock)
        return readBlockLogs(node, {
          header,
          openKeys: openKeysInBlock,
          addresses: queried,
          acceptsMissing: this.#retries.acceptsMissing(number),
        }).pipe(
          map(({ logs }): SealedBlock => {
            const { hash, timestamp } = header
            return { number, hash, timestamp, logs, addresses: queried, via: 'backfill' }
          }),
        )
      }),
    )
  }

  #emitBatches(blocks: readonly SealedBlock[], to: number, newest: () => Cursor): Observable<SettlementEvent> {
    return from(splitIntoBatches(blocks)).pipe(
      concatMap((batch, index) => (index === 0 ? of(batch) : of(batch).pipe(delay(0, this.#options.clock)))),
      map((batch): SettlementEvent => {
        this.#advance(batch.lastBlock ?? to)
        return { type: 'sealed', blocks: batch.blocks, newest: newest().number, cursor: this.cursor(newest()) }
      }),
      tap({ complete: () => this.#growPage() }),
    )
  }

  #advance(number: number): void {
    const [range, ...others] = this.#ranges
    if (range) this.#ranges = number >= range.to ? others : [{ ...range, from: number + 1 }, ...others]
  }

  #growPage(): void {
    this.#successfulPages += 1
    if (this.#successfulPages < GROW_AFTER_PAGES) return
    this.#successfulPages = 0
    this.#pageSize = Math.min(LOGS_RANGE_BOUND, this.#pageSize * 2)
  }

  /** Retries a refused page in smaller ones, and finally reports it as missing. */
  #handlePageFailure(
    failure: unknown,
    page: { readonly from: number; readonly to: number },
    newest: () => Cursor,
  ): Observable<SettlementEvent> {
    if (this.#retries.isExhausted(failure)) return this.#markMissing(page.to, failure.kind)
    if (!(failure instanceof UpstreamError)) return throwError(() => failure)
    const size = page.to - page.from + 1
    // A node may time out on a range that is too large instead of refusing it.
    if (failure.kind === 'unreachable' && this.#retries.failuresOf('unreachable') >= UNREACHABLE_RETRIES_BOUND)
      this.#shrinkPage(size, size)
    if (failure.kind === 'gone') return this.#findFirstAvailable(page.from, failure)
    if (failure.kind !== 'too_large') return throwError(() => failure)
    // A single block that is too large is read contract by contract.
    if (size === 1) return this.#readBlock(page.from).pipe(mergeMap((block) => this.#emitBatches([block], page.to, newest)))
    this.#shrinkPage(size, suggestedSize(failure.message, page.from) ?? size)
    return EMPTY
  }

  #shrinkPage(size: number, suggested: number): void {
    this.#successfulPages = 0
    this.#pageSize = Math.max(1, Math.min(suggested, Math.floor(size / 2)))
  }

  /** The node pruned the oldest blocks: finds the first one that it still has. */
  #findFirstAvailable(first: number, failure: UpstreamError): Observable<SettlementEvent> {
    const { node, addresses } = this.#options
    const [range] = this.#ranges
    if (!range) return EMPTY
    const isReadable = (number: number) =>
      node.logsInRange(number, number, addresses()).pipe(
        map(() => true),
        catchError((error: unknown) =>
          error instanceof UpstreamError && error.kind === 'gone' ? of(false) : throwError(() => error),
        ),
      )
    return binarySearch(first, range.to + 1, isReadable).pipe(
      mergeMap((available) =>
        // One URL may stand for several nodes. If another one still has the first block, there is no hole: retry.
        available > first ? this.#markMissing(available - 1, 'pruned') : throwError(() => failure),
      ),
    )
  }

  /** The first range is missing up to this block. */
  #markMissing(to: number, reason: string): Observable<never> {
    const [range, ...others] = this.#ranges
    if (!range || to < range.from) return EMPTY
    const rest = to < range.to ? [{ ...range, from: to + 1 }] : []
    this.#ranges = [{ from: range.from, to, missingReason: reason }, ...rest, ...others]
    return EMPTY
  }
}

type BlockRange = { readonly from: number; readonly to: number }

/** The parts of a range between the given blocks, which are in order. */
function rangesAround(blocks: readonly number[], { from: first, to }: BlockRange): readonly BlockRange[] {
  const ends = [...blocks, to + 1]
  return ends.flatMap((end, index) => {
    const start = index === 0 ? first : (ends[index - 1] ?? first) + 1
    return start < end ? [{ from: start, to: end - 1 }] : []
  })
}

/** Builds a block from its logs alone; null if they lack its hash or time, or disagree. */
function blockFromLogs(logs: readonly Log[], addresses: readonly Hex[]): SealedBlock | null {
  const [first] = logs
  if (!first?.blockHash || first.blockTimestamp === null) return null
  const { blockNumber: number, blockHash: hash, blockTimestamp: timestamp } = first
  const isSameBlock = logs.every((log) => log.blockHash === hash)
  return isSameBlock ? { number, hash, timestamp, logs, addresses, via: 'backfill' } : null
}

type BlockBatch = { readonly blocks: readonly SealedBlock[]; readonly lastBlock: number | null }

/** Splits a page into batches. The last one extends to the end of the page. */
function splitIntoBatches(blocks: readonly SealedBlock[]): readonly BlockBatch[] {
  const batches: BlockBatch[] = []
  let batch: SealedBlock[] = []
  let size = 0
  for (const block of blocks) {
    const lastBlock = batch.at(-1)
    if (lastBlock && size + block.logs.length > BATCH_BOUND_LOGS) {
      batches.push({ blocks: batch, lastBlock: lastBlock.number })
      batch = []
      size = 0
    }
    batch.push(block)
    size += block.logs.length
  }
  return [...batches, { blocks: batch, lastBlock: null }]
}

/** Some nodes suggest a range: `retry with the range 16-31`, in decimal or hex. */
function suggestedSize(message: string, first: number): number | null {
  const [, low, high] = /range\D{0,3}(0x[0-9a-f]+|\d+)\s*[-–,]\s*(0x[0-9a-f]+|\d+)/i.exec(message) ?? []
  return Number(low) === first && Number(high) >= first ? Number(high) - first + 1 : null
}

import { wait } from '../../../lib/async-loop.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { Log } from '../logs/log-parser.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import { type BlockRange, blockFromLogs, PageSize, rangesAround, splitIntoBatches } from './backfill-pages.ts'
import { binarySearch } from './binary-search.ts'
import { addressesToQuery, readBlock, readHeader, readLogs, reportPartial, settleableLogs } from './block-logs.ts'
import type { RecentBlocks } from './recent-blocks.ts'
import { RetryPolicy } from './retry-policy.ts'
import type { SealedBlock, SettlementContext } from './settlement-types.ts'
import type { BackfillRange, UnreadRanges } from './unread-ranges.ts'

/** Number of retries of an unanswered page before a smaller one is tried. */
const UNREACHABLE_RETRIES_BOUND = 3
const PARALLEL_BLOCKS = 4
/** The end of a page with at least this many logs is checked. No node cuts an answer to fewer logs. */
const CHECKED_PAGE_LOGS = 10
/** Nodes cut answers at multiples of this number of logs, so an answer with a multiple of it is not believed. */
const ROUND_COUNT = 1_000

type Options = SettlementContext & { readonly ranges: UnreadRanges; readonly recentBlocks: RecentBlocks }

/** Reads ranges of old blocks, in pages that the node accepts. Settling reads the newest blocks in parallel. */
export class Backfill {
  readonly #options: Options
  readonly #retries = new RetryPolicy()
  readonly #pageSize = new PageSize()

  constructor(options: Options) {
    this.#options = options
  }

  async run(): Promise<never> {
    const { ranges, clock, warn, signal } = this.#options
    for (;;) {
      if (!ranges.first) await ranges.added.wait(signal)
      try {
        if (ranges.first) await this.#readNext(ranges.first)
        this.#retries.succeeded()
      } catch (failure) {
        signal.throwIfAborted()
        if (this.#retries.totalFailures > 0) warn('backfill_delayed', { reason: String(failure) })
        await this.#retries.waitToRetry(failure, clock, signal)
      }
    }
  }

  async #readNext({ from, to, missingReason }: BackfillRange): Promise<void> {
    if (missingReason !== null) return this.#reportMissing({ from, to }, missingReason)
    const page = { from, to: Math.min(from + this.#pageSize.blocks - 1, to) }
    try {
      await this.#emitBatches(await this.#readPage(page), page.to)
    } catch (failure) {
      this.#options.signal.throwIfAborted()
      await this.#handlePageFailure(failure, page, to)
    }
  }

  async #readPage({ from, to }: BlockRange): Promise<readonly SealedBlock[]> {
    const { node, openKeys, addresses, signal } = this.#options
    const publishedBlocks = new Set(openKeys.publishedBlocksBetween(from, to))
    const openKeysInPage = [...publishedBlocks].flatMap((number) => openKeys.at(number))
    const queried = addressesToQuery(addresses(), openKeysInPage)
    const answer = await node.logsInRange(from, to, queried, signal)
    // `too_large` makes the next pages smaller, until the block with the unreadable logs is read alone.
    if (answer.unreadable > 0) throw new UpstreamError('too_large', 'the page has logs that cannot be read')
    // A lagging node may return no logs for blocks that it lacks, so the node must have the last block of the page.
    await Promise.all([readHeader(node, to, signal), checkPageEnd(this.#options, { from, to }, answer.logs, queried)])
    return this.#groupByBlock(answer.logs, publishedBlocks, queried)
  }

  /** Groups the logs of a page by block. Each block with published keys is read alone, to find out which logs are gone. */
  async #groupByBlock(logs: readonly Log[], publishedBlocks: ReadonlySet<number>, queried: readonly Hex[]) {
    const byBlock = Map.groupBy(logs, (log) => log.blockNumber)
    const blocks: SealedBlock[] = []
    const unclear = new Set(publishedBlocks)
    for (const [number, blockLogs] of byBlock) {
      const block = publishedBlocks.has(number) ? null : blockFromLogs(blockLogs, queried)
      if (block) blocks.push(block)
      else unclear.add(number)
    }
    const numbers = [...unclear].sort((a, b) => a - b)
    for (let first = 0; first < numbers.length; first += PARALLEL_BLOCKS) {
      const next = numbers.slice(first, first + PARALLEL_BLOCKS)
      blocks.push(...(await Promise.all(next.map((number) => this.#readBlock(number)))))
    }
    return blocks.sort((a, b) => a.number - b.number)
  }

  async #readBlock(number: number): Promise<SealedBlock> {
    const { node, emit, signal } = this.#options
    const header = await readHeader(node, number, signal)
    const reading = await readBlock(this.#options, header, this.#retries.acceptsMissing(number))
    if (reading.unreadable > 0) emit({ type: 'unreadable', count: reading.unreadable })
    const { hash, timestamp } = header
    return { number, hash, timestamp, ...settleableLogs(reading), addresses: reading.queried, via: 'backfill' }
  }

  async #emitBatches(blocks: readonly SealedBlock[], to: number): Promise<void> {
    const { ranges, recentBlocks, clock, emit, signal } = this.#options
    for (const [index, batch] of splitIntoBatches(blocks, to).entries()) {
      if (index > 0) await wait(0, clock, signal)
      reportPartial(batch.blocks, ranges, emit)
      ranges.advance(batch.to)
      emit({ type: 'sealed', blocks: batch.blocks, newest: recentBlocks.newest?.number ?? batch.to, ...ranges.cursors() })
    }
    this.#pageSize.grow()
  }

  /** Reports blocks as missing. Those with published keys are still read, if the node has them. */
  async #reportMissing(range: BlockRange, reason: string): Promise<void> {
    const { openKeys, ranges, recentBlocks, emit, signal } = this.#options
    const blocks: SealedBlock[] = []
    const pruned: number[] = []
    for (const number of openKeys.publishedBlocksBetween(range.from, range.to)) {
      try {
        blocks.push(await this.#readBlock(number))
      } catch (failure) {
        signal.throwIfAborted()
        if (!this.#retries.isPruned(failure)) throw failure
        pruned.push(number)
      }
    }
    const numbers = blocks.map(({ number }) => number)
    // After a reorg, the relay can roll back a block that was read inside of the range only if it knows the hash.
    for (const block of blocks) recentBlocks.addUnread(block)
    // Holes are reported before the blocks between them, whose logs do not show changes inside of the holes.
    for (const missing of rangesAround(numbers, range)) {
      for (const hole of splitAtPruned(missing, pruned, reason)) emit({ type: 'hole', ...hole, ...ranges.cursors() })
    }
    reportPartial(blocks, ranges, emit)
    ranges.advance(range.to)
    emit({ type: 'sealed', blocks, newest: recentBlocks.newest?.number ?? range.to, ...ranges.cursors() })
  }

  /** Retries a refused page in smaller pages, and finally reports it as missing. */
  async #handlePageFailure(failure: unknown, page: BlockRange, rangeEnd: number): Promise<void> {
    if (!(failure instanceof UpstreamError)) throw failure
    const { kind, message } = failure
    if (this.#retries.isExhausted(failure)) return this.#options.ranges.markMissing(page.to, kind)
    if (kind === 'gone') return this.#findFirstAvailable(page.from, rangeEnd, failure)
    if (kind === 'too_large') {
      if (page.to > page.from) return this.#pageSize.shrink(page, message)
      // A single block that is too large is read for parts of the list of addresses.
      return this.#emitBatches([await this.#readBlock(page.from)], page.to)
    }
    // A node may time out on a range that is too large instead of refusing it.
    if (kind === 'unreachable' && this.#retries.failuresOf(kind) >= UNREACHABLE_RETRIES_BOUND) this.#pageSize.shrink(page)
    throw failure
  }

  /** Finds the first block that a node has not pruned, and marks those below it as missing. */
  async #findFirstAvailable(first: number, rangeEnd: number, failure: UpstreamError): Promise<void> {
    const { node, addresses, ranges, signal } = this.#options
    const isReadable = async (number: number): Promise<boolean> => {
      try {
        await node.logsInRange(number, number, addresses(), signal)
        return true
      } catch (error) {
        if (error instanceof UpstreamError && error.kind === 'gone') return false
        throw error
      }
    }
    const available = await binarySearch(first, rangeEnd + 1, isReadable)
    // Another node behind the load balancer has the first block, so the page is retried and there is no hole.
    if (available <= first) throw failure
    ranges.markMissing(available - 1, 'pruned')
  }
}

const cutOff = (detail: string): UpstreamError => new UpstreamError('too_large', `the answer may be cut: ${detail}`)

/** Some nodes cut a long answer without an error. So the block of the last log, and all later ones, are requested again. */
async function checkPageEnd(
  { node, signal }: Options,
  { from, to }: BlockRange,
  logs: readonly Log[],
  addresses: readonly Hex[],
): Promise<void> {
  const last = logs.at(-1)
  if (!last || logs.length < CHECKED_PAGE_LOGS) return
  if (logs.length % ROUND_COUNT === 0 && from < to) throw cutOff(`exactly ${logs.length} logs`)
  const number = last.blockNumber
  const block = readHeader(node, number, signal).then((header) => readLogs(node, header, addresses, signal))
  const answers = await Promise.all([block, node.logsInRange(number, to, addresses, signal)])
  const count = logs.filter(({ blockNumber }) => blockNumber === number).length
  const isWhole = answers.every((answer) => answer.logs.length === count && answer.logs.at(-1)?.key === last.key)
  if (!isWhole) throw cutOff(`other answers differ from block ${number} on`)
}

/** Splits a hole at the highest block that the node pruned: the reason of all blocks up to that one is `pruned`. */
function splitAtPruned({ from, to }: BlockRange, pruned: readonly number[], reason: string) {
  const last = pruned.findLast((number) => number <= to) ?? -1
  if (last < from || reason === 'pruned') return [{ blocks: { from, to }, reason }]
  const rest = last < to ? [{ blocks: { from: last + 1, to }, reason }] : []
  return [{ blocks: { from, to: last }, reason: 'pruned' }, ...rest]
}

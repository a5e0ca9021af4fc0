import type { SchedulerLike } from 'rxjs'
import { WakeUp } from '../../../lib/async-loop.ts'
import type { Hex } from '../../../lib/hex.ts'
import { chunk } from '../../../lib/turns.ts'
import { addressSetOf } from '../logs/memoized-address-set.ts'
import type { ChainReader } from '../rpc/chain-reader.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import type { RecentBlocks } from './recent-blocks.ts'

/** A recheck reads recent blocks again after this many new blocks. */
const EVERY_BLOCKS = 2
/** Least interval between the starts of two rechecks. */
const INTERVAL_MS = 1_000
/** Limit of the time in which a node indexes the logs of a block. A recheck of the block after this time is its last one. */
const INDEXING_DELAY_MS = 3_000
/** Limit of the lag between nodes behind a load balancer. A lagging node returns no logs for blocks that it lacks. */
const MACHINE_LAG_MS = 5_000
/** Number of newest blocks that each recheck reads, even those that have had their last recheck. */
const MIN_BLOCKS = 4
/** Limit of the blocks that one request of a recheck reads. */
const RANGE_BOUND_BLOCKS = 128

type Options = {
  readonly node: ChainReader
  readonly recentBlocks: RecentBlocks
  readonly addresses: () => readonly Hex[]
  readonly clock: SchedulerLike
}

/** Finds settled blocks that have more logs now. Fewer logs prove nothing: the node may lag, or have cut its answer. */
export class Recheck {
  /** Settled blocks that have more logs now, so they have to be settled again. */
  readonly incompleteBlocks = new Set<number>()
  readonly #options: Options
  readonly #due = new WakeUp()
  #dueAtBlock = 0
  #scheduledAt = Number.NEGATIVE_INFINITY

  constructor(options: Options) {
    this.#options = options
  }

  /** Called for each settled block. Starts a recheck of the blocks below it, unless the last one began too recently. */
  blockSettled(number: number): void {
    const now = this.#options.clock.now()
    if (number % EVERY_BLOCKS !== 0 || now - this.#scheduledAt < INTERVAL_MS) return
    this.#scheduledAt = now
    this.#dueAtBlock = number
    this.#due.notify()
  }

  rolledBackTo(number: number): void {
    for (const block of this.incompleteBlocks) if (block > number) this.incompleteBlocks.delete(block)
  }

  async run(onIncomplete: () => void, signal: AbortSignal): Promise<never> {
    for (;;) {
      await this.#due.wait(signal)
      try {
        await this.#readBelow(this.#dueAtBlock, signal)
      } catch (failure) {
        signal.throwIfAborted()
        // A recheck is optional, and the next one includes these blocks.
        if (!(failure instanceof UpstreamError)) throw failure
      }
      if (this.incompleteBlocks.size > 0) onIncomplete()
    }
  }

  async #readBelow(number: number, signal: AbortSignal): Promise<void> {
    const { node, recentBlocks, addresses, clock } = this.#options
    const [now, listed] = [clock.now(), addresses()]
    const isSettledFor = (ms: number, block: number) => now - (recentBlocks.get(block)?.settledAt ?? now) >= ms
    const isDue = (block: number) => isSettledFor(INDEXING_DELAY_MS, block)
    const queue = [candidatesBelow(number, recentBlocks), leftBehind(number, recentBlocks)]
    for (let blocks = queue.shift(); blocks; blocks = queue.shift()) {
      let found: Comparison
      try {
        found = await compareCounts(node, recentBlocks, blocks, listed, signal)
      } catch (failure) {
        if (!(failure instanceof UpstreamError && (failure.kind === 'too_large' || failure.kind === 'gone'))) throw failure
        if (failure.kind === 'gone') {
          // The node pruned the oldest of these blocks. It may still have the newer half of them.
          const half = Math.ceil(blocks.length / 2)
          if (blocks.length > 1) queue.unshift(blocks.slice(half))
          for (const block of blocks.slice(0, half)) if (isLeftBehind(block, number)) recentBlocks.markRechecked(block)
          continue
        }
        if (blocks.length > 1) {
          queue.unshift(...split(blocks, isDue))
          continue
        }
        // A block that is too large for one answer has logs. If it was settled without any, it is settled again.
        found = { incomplete: blocks.filter((block) => recentBlocks.get(block)?.logCount === 0), readTo: blocks[0] ?? 0 }
      }
      for (const block of found.incomplete) this.incompleteBlocks.add(block)
      const { readTo } = found
      const isRead = (block: number) =>
        readTo === null ? isSettledFor(INDEXING_DELAY_MS + MACHINE_LAG_MS, block) : isDue(block) && block <= readTo
      // An incomplete block is settled again, and rechecked after that.
      for (const block of blocks) if (isRead(block) && !this.incompleteBlocks.has(block)) recentBlocks.markRechecked(block)
    }
  }
}

const candidatesBelow = (number: number, recentBlocks: RecentBlocks): readonly number[] =>
  Array.from({ length: RANGE_BOUND_BLOCKS }, (_, back) => number - 1 - back)
    .filter((block, back) => recentBlocks.isUnchecked(block) || (back < MIN_BLOCKS && recentBlocks.get(block)?.logCount != null))
    .reverse()

const isLeftBehind = (block: number, number: number): boolean => block < number - RANGE_BOUND_BLOCKS

/** Returns the first blocks below the recent ones that wait for their last recheck, such as after an outage. */
function leftBehind(number: number, recentBlocks: RecentBlocks): readonly number[] {
  const first = recentBlocks.firstUnchecked(number)
  if (first === undefined) return []
  const blocks = Array.from({ length: RANGE_BOUND_BLOCKS }, (_, ahead) => first + ahead)
  return blocks.filter((block) => isLeftBehind(block, number) && recentBlocks.isUnchecked(block))
}

/** Splits a range for a node that serves few blocks at once. Omits newer blocks that are not due for their last recheck. */
function split(blocks: readonly number[], isDue: (block: number) => boolean): readonly (readonly number[])[] {
  if (blocks.length <= MIN_BLOCKS) return chunk(blocks, Math.ceil(blocks.length / 2))
  return chunk(blocks.slice(0, Math.max(MIN_BLOCKS, blocks.filter(isDue).length)), MIN_BLOCKS)
}

type Comparison = {
  /** Blocks that have more logs now than when they were settled. */
  readonly incomplete: readonly number[]
  /** Block up to which the answer counts as complete. A node that lags or cuts omits later ones. Null without logs. */
  readonly readTo: number | null
}

async function compareCounts(
  node: ChainReader,
  recentBlocks: RecentBlocks,
  blocks: readonly number[],
  addresses: readonly Hex[],
  signal: AbortSignal,
): Promise<Comparison> {
  if (blocks.length === 0) return { incomplete: [], readTo: null }
  const counts = new Map(blocks.flatMap((block) => countOf(recentBlocks, block)))
  const answer = await node.logsIfCountsDiffer(counts, Math.min(...blocks), Math.max(...blocks), addresses, signal)
  if (!answer) return { incomplete: [], readTo: blocks.findLast((block) => recentBlocks.get(block)?.logCount) ?? null }
  const byBlock = Map.groupBy(answer.logs, ({ blockNumber }) => blockNumber)
  const differences = blocks.map((block) => {
    const recent = recentBlocks.get(block)
    if (recent?.logCount == null) return 0
    const blockLogs = (byBlock.get(block) ?? []).filter(({ blockHash }) => blockHash === recent.hash)
    if (recent.addresses === addresses || blockLogs.length <= recent.logCount) return blockLogs.length - recent.logCount
    // Logs of tokens that were listed after the settling do not count.
    const comparable = addressSetOf(recent.addresses)
    return Math.max(0, blockLogs.filter(({ address }) => comparable.has(address)).length - recent.logCount)
  })
  // After a change of the token list, the answer may have fewer logs only because a token was delisted.
  const isShort = blocks.some((block, index) => (differences[index] ?? 0) < 0 && recentBlocks.get(block)?.addresses === addresses)
  const last = answer.logs.findLast((log) => recentBlocks.get(log.blockNumber)?.hash === log.blockHash)?.blockNumber ?? 0
  return {
    incomplete: blocks.filter((_, index) => (differences[index] ?? 0) > 0),
    // A cut answer may lack logs of its last block. The first block always counts as read, so that later ones get their turn.
    readTo: isShort ? Math.max(last - 1, Math.min(last, blocks[0] ?? 0)) : last || null,
  }
}

function countOf(recentBlocks: RecentBlocks, block: number): readonly (readonly [Hex, number])[] {
  const { hash = null, logCount = null } = recentBlocks.get(block) ?? {}
  return hash === null || logCount === null ? [] : [[hash, logCount]]
}

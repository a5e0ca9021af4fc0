import { chunk } from '../../../lib/turns.ts'
import { MACHINE_LAG_MS } from '../blocks/block-bounds.ts'
import type { BlockReadContext } from '../blocks/block-logs.ts'
import { compareCounts } from '../blocks/compare-counts.ts'
import type { Log } from '../logs/log-parser.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import { findBlock, firstUnchecked, isUnchecked, type SettledBlock, type SettledBlocks } from './settled-blocks.ts'
import type { Found, ReadOf } from './settlement-types.ts'

/** Limit of the time in which a node indexes the logs of a block. A recheck of the block after this time is its last one. */
const INDEXING_DELAY_MS = 3_000
/** Number of newest blocks that each recheck reads, even those that have had their last recheck. */
const MIN_BLOCKS = 4
/** Limit of the blocks that one request of a recheck reads. */
const RANGE_BOUND_BLOCKS = 128

/** Finds settled blocks that have more logs now. Fewer logs prove nothing: the node may lag, or have cut its answer. */
export async function readRecent(context: BlockReadContext, settled: SettledBlocks, { below }: ReadOf<'recent'>): Promise<Found> {
  const { filters, clock, signal } = context
  const [now, listed] = [clock.now(), filters()]
  const isSettledFor = (ms: number, { settledAt }: SettledBlock) => now - settledAt >= ms
  const isDue = (block: SettledBlock) => isSettledFor(INDEXING_DELAY_MS, block)
  const isOurs = (log: Log) => findBlock(settled, log.blockNumber)?.hash === log.blockHash
  const incomplete: number[] = []
  const complete: SettledBlock[] = []
  const queue = [recentBelow(settled, below), leftBehind(settled, below)]
  for (let blocks = queue.shift(); blocks; blocks = queue.shift()) {
    try {
      const found = await compareCounts(context, blocks, listed, isOurs)
      const isRead = (block: SettledBlock) =>
        found.readTo === null
          ? isSettledFor(INDEXING_DELAY_MS + MACHINE_LAG_MS, block)
          : isDue(block) && block.number <= found.readTo
      incomplete.push(...found.incomplete)
      complete.push(...blocks.filter(isRead))
    } catch (failure) {
      signal.throwIfAborted()
      if (!(failure instanceof UpstreamError)) throw failure
      const half = Math.ceil(blocks.length / 2)
      if (failure.kind === 'gone') {
        // The node pruned the oldest of these blocks. It may still have the newer half of them.
        if (blocks.length > 1) queue.unshift(blocks.slice(half))
        complete.push(...blocks.slice(0, half).filter(({ number }) => isLeftBehind(number, below)))
      } else if (failure.kind !== 'too_large') break
      else if (blocks.length > 1) queue.unshift(...split(blocks, isDue))
      else {
        // A block that is too large for one answer has logs. If it was settled without any, it is settled again.
        incomplete.push(...blocks.flatMap(({ number, logCount }) => (logCount === 0 ? [number] : [])))
        complete.push(...blocks.filter(isDue))
      }
    }
  }
  return { type: 'rechecked', incomplete, complete }
}

const recentBelow = (settled: SettledBlocks, below: number): readonly SettledBlock[] =>
  blocksFrom(settled, below - RANGE_BOUND_BLOCKS).filter(
    (block) => block.number < below && (isUnchecked(block) || (block.number >= below - MIN_BLOCKS && block.logCount !== null)),
  )

const isLeftBehind = (block: number, below: number): boolean => block < below - RANGE_BOUND_BLOCKS

/** Returns the first blocks below the recent ones that wait for their last recheck, such as after an outage. */
function leftBehind(settled: SettledBlocks, below: number): readonly SettledBlock[] {
  const first = firstUnchecked(settled, below)
  if (first === undefined) return []
  return blocksFrom(settled, first).filter((block) => isLeftBehind(block.number, below) && isUnchecked(block))
}

const blocksFrom = (settled: SettledBlocks, from: number): readonly SettledBlock[] =>
  Array.from({ length: RANGE_BOUND_BLOCKS }, (_, ahead) => findBlock(settled, from + ahead)).filter((block) => block !== undefined)

/** Splits a range for a node that serves few blocks at once. Omits newer blocks that are not due for their last recheck. */
function split(blocks: readonly SettledBlock[], isDue: (block: SettledBlock) => boolean): readonly (readonly SettledBlock[])[] {
  if (blocks.length <= MIN_BLOCKS) return chunk(blocks, Math.ceil(blocks.length / 2))
  return chunk(blocks.slice(0, Math.max(MIN_BLOCKS, blocks.filter(isDue).length)), MIN_BLOCKS)
}

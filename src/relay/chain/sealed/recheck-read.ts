import { chunk } from '../../../lib/turns.ts'
import { MACHINE_LAG_MS } from '../blocks/block-bounds.ts'
import type { BlockReadContext } from '../blocks/block-logs.ts'
import { rangesOf } from '../blocks/block-ranges.ts'
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
  const old = leftBehind(settled, below)
  let prunedTo = -1
  const queue = [recentBelow(settled, below), old]
  for (let part = queue.shift(); part; part = queue.shift()) {
    const blocks = part.filter(({ number }) => number > prunedTo)
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
      if (failure.kind === 'gone') {
        // The node pruned the oldest of these blocks. The newer half is read first: it may show that all older ones are pruned.
        prunedTo = blocks[0]?.number ?? prunedTo
        queue.unshift(...chunk(blocks, Math.ceil(blocks.length / 2)).toReversed())
      } else if (failure.kind !== 'too_large') break
      else if (blocks.length > 1) queue.unshift(...split(blocks, isDue))
      else {
        // A block that is too large for one answer has logs. If it was settled without any, it is settled again.
        incomplete.push(...blocks.flatMap(({ number, logCount }) => (logCount === 0 ? [number] : [])))
        complete.push(...blocks.filter(isDue))
      }
    }
  }
  const lost = old.filter(({ number }) => number <= prunedTo)
  complete.push(...lost)
  // Nothing shows any more whether the node had indexed those that were settled without logs.
  const holes = rangesOf(lost.flatMap(({ number, logCount }) => (logCount === 0 ? [number] : [])))
  return { type: 'rechecked', incomplete, complete, holes: holes.map((blocks) => ({ blocks, reason: 'pruned' })) }
}

const recentBelow = (settled: SettledBlocks, below: number): readonly SettledBlock[] =>
  blocksFrom(settled, below - RANGE_BOUND_BLOCKS).filter(
    (block) => block.number < below && (isUnchecked(block) || (block.number >= below - MIN_BLOCKS && block.logCount !== null)),
  )

/** Returns the first blocks below the recent ones that wait for their last recheck, such as after an outage. */
function leftBehind(settled: SettledBlocks, below: number): readonly SettledBlock[] {
  const first = firstUnchecked(settled, below)
  if (first === undefined) return []
  return blocksFrom(settled, first).filter((block) => block.number < below - RANGE_BOUND_BLOCKS && isUnchecked(block))
}

const blocksFrom = (settled: SettledBlocks, from: number): readonly SettledBlock[] =>
  Array.from({ length: RANGE_BOUND_BLOCKS }, (_, ahead) => findBlock(settled, from + ahead)).filter((block) => block !== undefined)

/** Splits a range for a node that serves few blocks at once. Omits newer blocks that are not due for their last recheck. */
function split(blocks: readonly SettledBlock[], isDue: (block: SettledBlock) => boolean): readonly (readonly SettledBlock[])[] {
  if (blocks.length <= MIN_BLOCKS) return chunk(blocks, Math.ceil(blocks.length / 2))
  return chunk(blocks.slice(0, Math.max(MIN_BLOCKS, blocks.filter(isDue).length)), MIN_BLOCKS)
}

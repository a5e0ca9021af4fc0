import { DEPTH_BOUND_BLOCKS } from '../blocks/block-bounds.ts'
import { binarySearch, firstAvailable } from '../blocks/block-search.ts'
import type { BlockRange, Cursor } from '../blocks/sealed-block.ts'
import { isSealed } from '../rpc/block-header.ts'
import type { ChainReader } from '../rpc/chain-reader.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import { findBlock, nearestRecent, oldestRecent, type SettledBlocks } from './settled-blocks.ts'

/** Least depth of a rollback if no recent block is canonical, and the node's `safe` block is unknown. */
const DEEP_ROLLBACK_BLOCKS = 64

/** `to` is the block to roll back to. Blocks in `lost`, which end with it, may be replaced too, but cannot be rolled back. */
type RollbackTarget = { readonly to: Cursor; readonly lost: BlockRange | null }

/** Finds the block to roll back to after a reorg replaced the settled block `number`. */
export async function findRollbackTarget(
  node: ChainReader,
  blocks: SettledBlocks,
  { number, safe }: { readonly number: number; readonly safe: number },
  signal: AbortSignal,
): Promise<RollbackTarget> {
  const forkPoint = await findForkPoint(node, blocks, number, signal)
  if (forkPoint) return { to: forkPoint, lost: null }
  // No recent block is canonical, so the target is the `safe` block or, if that is unknown, the start of settling.
  const { began, first, newest } = blocks
  const below = Math.min(number, oldestRecent(blocks)) - 1
  const deep = Math.min(below, safe > 0 ? safe : Math.min(number - DEEP_ROLLBACK_BLOCKS, began))
  // Below `DEPTH_BOUND_BLOCKS` the ledger has forgotten the published keys, so a deeper rollback would retract nothing.
  const from = Math.max(0, deep, (newest?.number ?? number) - DEPTH_BOUND_BLOCKS)
  const to = await firstAvailable(node, from, number - 1, signal)
  // If the `safe` block is above a replaced block, the reorg replaced the `safe` block too, so it proves nothing.
  const deepest = safe > 0 && safe <= below ? safe : first
  const hashed = blocks.all.filter(({ hash }) => hash !== null)
  const highestKept = Math.max(deepest, await findHighestCanonical(node, hashed, to, signal))
  // With the hash of the node, a reorg below this block is noticed also if it happens before the next block is settled.
  const header = await node.header(to, signal)
  const target = { number: to, hash: isSealed(header) ? header.hash : null }
  return { to: target, lost: highestKept < to ? { from: highestKept + 1, to } : null }
}

/** The highest canonical block of known hash; 0 if none is canonical. Searches first the blocks that the node surely has. */
async function findHighestCanonical(node: ChainReader, blocks: readonly Cursor[], from: number, signal: AbortSignal) {
  const first = blocks.findIndex(({ number }) => number >= from)
  const [below, above] = first < 0 ? [blocks, []] : [blocks.slice(0, first), blocks.slice(first)]
  return (await highestCanonical(node, above, signal)) || highestCanonical(node, below, signal)
}

/** The highest of these blocks, in ascending order, that is still canonical; 0 if none is. */
async function highestCanonical(node: ChainReader, blocks: readonly Cursor[], signal: AbortSignal): Promise<number> {
  const isReplaced = async (index: number) => {
    const block = blocks[index]
    return block !== undefined && (await node.header(block.number, signal))?.hash !== block.hash
  }
  return blocks[(await binarySearch(0, blocks.length, isReplaced)) - 1]?.number ?? 0
}

/** Finds a canonical block below `number`, or null. It may be below the fork: to settle a block again publishes nothing. */
export async function findForkPoint(
  node: ChainReader,
  blocks: SettledBlocks,
  number: number,
  signal: AbortSignal,
): Promise<Cursor | null> {
  let candidate = number
  // A block of unknown hash counts as canonical if the nearest block of known hash below it is, or if there is none.
  let unknown: Cursor | null = null
  for (let stride = 1; ; stride = unknown ? 1 : stride * 2) {
    const below = nearestRecent(blocks, candidate - stride)
    const recent = findBlock(blocks, below)
    if (below >= candidate || !recent) return unknown
    const header = await node.header(below, signal)
    if (!isSealed(header)) throw new UpstreamError('behind', `block ${below} is gone`)
    if (recent.hash === header.hash) return unknown ?? { number: below, hash: header.hash }
    if (recent.hash !== null) unknown = null
    else unknown ??= { number: below, hash: header.hash }
    candidate = below
  }
}

import type { BlockReader } from '../rpc/block-reader.ts'
import { isSealed, type SealedHeader } from '../rpc/header.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import { type Cursor, DEPTH_BOUND_BLOCKS, type RecentBlocks } from './recent-blocks.ts'

/** How far a rollback goes back at least when no recent block is canonical and no safe block is known. */
const DEEP_ROLLBACK_BLOCKS = 64

/** The lowest number of a range where a monotonic predicate holds; it is assumed to hold for `high`. */
export async function binarySearch(low: number, high: number, holds: (number: number) => Promise<boolean>): Promise<number> {
  let [first, last] = [low, high]
  while (first < last) {
    const middle = Math.floor((first + last) / 2)
    if (await holds(middle)) last = middle
    else first = middle + 1
  }
  return last
}

/** The block to roll back to, and the blocks up to it that may be replaced too and that nothing can roll back. */
type RollbackTarget = { readonly to: Cursor; readonly lost: { readonly from: number; readonly to: number } | null }

/** The block to roll back to when our block `number` is no longer canonical. */
export async function findRollbackTarget(
  node: BlockReader,
  recentBlocks: RecentBlocks,
  { number, safe }: { readonly number: number; readonly safe: number },
  signal: AbortSignal,
): Promise<RollbackTarget> {
  const forkPoint = await findForkPoint(node, recentBlocks, number, signal)
  if (forkPoint) return { to: forkPoint, lost: null }
  // No recent block is canonical: goes back to the safe block, or to where settling began, as far as the node has blocks.
  const { began, first, newest } = recentBlocks
  const below = Math.min(number, recentBlocks.oldest) - 1
  const deep = Math.min(below, safe > 0 ? safe : Math.min(number - DEEP_ROLLBACK_BLOCKS, began))
  // Below the bound the ledger has forgotten what was published.
  const from = Math.max(0, deep, (newest?.number ?? number) - DEPTH_BOUND_BLOCKS)
  const to = await firstAvailable(node, from, number - 1, signal)
  // A safe block that is not below the replaced ones was replaced with them.
  const deepest = safe > 0 && safe <= below ? safe : first
  const highestKept = Math.max(deepest, await findHighestCanonical(node, recentBlocks.hashes, to, signal))
  return { to: { number: to, hash: null }, lost: highestKept < to ? { from: highestKept + 1, to } : null }
}

/** The highest canonical block of known hash. First those that the node surely has are searched; 0 if none is canonical. */
async function findHighestCanonical(node: BlockReader, blocks: readonly Cursor[], from: number, signal: AbortSignal) {
  const above = await highestCanonical(
    node,
    blocks.filter(({ number }) => number >= from),
    signal,
  )
  if (above > 0) return above
  return highestCanonical(
    node,
    blocks.filter(({ number }) => number < from),
    signal,
  )
}

/** The highest of these blocks, in ascending order, that is still canonical; 0 if none is. */
async function highestCanonical(node: BlockReader, blocks: readonly Cursor[], signal: AbortSignal): Promise<number> {
  const isReplaced = async (index: number) => {
    const block = blocks[index]
    return block !== undefined && (await node.header(block.number, signal))?.hash !== block.hash
  }
  return blocks[(await binarySearch(0, blocks.length, isReplaced)) - 1]?.number ?? 0
}

/**
 * A block below `number` that is still canonical; null if no recent block is. It may lie below the fork point: unchanged
 * blocks that are settled again publish nothing. A block of an unknown hash is taken if the nearest known one below it is
 * canonical, or if there is none.
 */
export async function findForkPoint(
  node: BlockReader,
  recentBlocks: RecentBlocks,
  number: number,
  signal: AbortSignal,
): Promise<Cursor | null> {
  let candidate = number
  let unknown: Cursor | null = null
  for (let stride = 1; ; stride = unknown ? 1 : stride * 2) {
    const below = recentBlocks.nearest(candidate - stride)
    const recent = recentBlocks.get(below)
    if (below >= candidate || !recent) return unknown
    const header = await node.header(below, signal)
    if (!isSealed(header)) throw new UpstreamError('behind', `block ${below} is gone`)
    if (recent.hash === header.hash) return unknown ?? { number: below, hash: header.hash }
    if (recent.hash !== null) unknown = null
    else unknown ??= { number: below, hash: header.hash }
    candidate = below
  }
}

/** The first block of a range that the node has, or else the last. */
async function firstAvailable(node: BlockReader, from: number, to: number, signal: AbortSignal): Promise<number> {
  const isAvailable = async (number: number) => (await node.header(number, signal)) !== null
  return (await isAvailable(from)) ? from : binarySearch(from, to, isAvailable)
}

/** The first block from `from` on that is no older than the bound, in chain time before `head`. */
export async function firstWithinAge(
  node: BlockReader,
  from: number,
  head: SealedHeader,
  boundMs: number,
  signal: AbortSignal,
): Promise<number> {
  if (head.timestamp === null) return from
  const since = head.timestamp - Math.floor(boundMs / 1_000)
  const isWithin = async (number: number, ifUnknown: boolean) => {
    const timestamp = (await node.header(number, signal))?.timestamp ?? null
    return timestamp === null ? ifUnknown : timestamp >= since
  }
  // Without the first block the node is pruned or lags behind. Reading that block will show which.
  if (await isWithin(from, true)) return from
  return binarySearch(from, head.number, (number) => isWithin(number, false))
}

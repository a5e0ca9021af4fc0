import { catchError, concat, map, type Observable, of, tap, throwError } from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import type { BlockReader } from '../rpc/block-reader.ts'
import { UpstreamError } from '../rpc/error.ts'
import type { RecentBlocks } from './recent-blocks.ts'

/** Recent blocks are read again after this many new ones, but no more often than the interval. */
export const RECHECK_EVERY_BLOCKS = 2
export const RECHECK_INTERVAL_MS = 1_000
/** A node may index a block this long after it serves the header. A later recheck is the last one. */
const INDEXING_DELAY_MS = 3_000
/** The newest blocks that are always read again, and the furthest that a recheck reaches back. */
const MIN_BLOCKS = 4
export const RECHECKED_BLOCKS_BOUND = 128

type RecheckRequest = { readonly number: number; readonly now: number; readonly addresses: readonly Hex[] }

/**
 * Reads the blocks below `number` again and finds those with more logs than when they were settled. Fewer logs prove
 * nothing: a lagging node returns fewer too.
 */
export function recheckBlocks(
  node: BlockReader,
  recentBlocks: RecentBlocks,
  { number, now, addresses }: RecheckRequest,
): Observable<readonly number[]> {
  const below = Array.from({ length: RECHECKED_BLOCKS_BOUND }, (_, back) => number - 1 - back)
  const candidates = below
    .filter((block, back) => {
      const recent = recentBlocks.get(block)
      return recent?.logCount != null && (back < MIN_BLOCKS || !recent.isRechecked)
    })
    .reverse()
  const isDue = (block: number) => now - (recentBlocks.get(block)?.settledAt ?? now) >= INDEXING_DELAY_MS
  const markRechecked = (blocks: readonly number[]) => {
    for (const block of blocks) if (isDue(block)) recentBlocks.markRechecked(block)
  }
  const recheck = (blocks: readonly number[]): Observable<readonly number[]> =>
    findIncomplete(node, recentBlocks, blocks, addresses).pipe(
      tap(() => markRechecked(blocks)),
      catchError((failure: unknown) => {
        const isTooLarge = failure instanceof UpstreamError && failure.kind === 'too_large'
        if (!isTooLarge) return throwError(() => failure)
        if (blocks.length > 1) return concat(...split(blocks).map(recheck))
        // A block too large for one answer has logs. If it was settled with none, it is settled again.
        markRechecked(blocks)
        return of(blocks.filter((block) => recentBlocks.get(block)?.logCount === 0))
      }),
    )
  /** For a node that serves few blocks at a time: the oldest ones, and all that are due for their last recheck. */
  const split = (blocks: readonly number[]): readonly (readonly number[])[] => {
    if (blocks.length <= MIN_BLOCKS) return chunk(blocks, Math.ceil(blocks.length / 2))
    return chunk(blocks.slice(0, Math.max(MIN_BLOCKS, blocks.filter(isDue).length)), MIN_BLOCKS)
  }
  return recheck(candidates)
}

const chunk = (all: readonly number[], size: number): readonly (readonly number[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size))

function findIncomplete(
  node: BlockReader,
  recentBlocks: RecentBlocks,
  blocks: readonly number[],
  addresses: readonly Hex[],
): Observable<readonly number[]> {
  if (blocks.length === 0) return of([])
  return node.logsInRange(Math.min(...blocks), Math.max(...blocks), addresses).pipe(
    map(({ logs }) =>
      blocks.filter((block) => {
        const recent = recentBlocks.get(block)
        if (recent?.logCount == null) return false
        const blockLogs = logs.filter((log) => log.blockNumber === block && log.blockHash === recent.hash)
        // Logs of tokens that were listed later do not count.
        const comparable =
          recent.addresses === addresses ? blockLogs : blockLogs.filter(({ address }) => recent.addresses.includes(address))
        return comparable.length > recent.logCount
      }),
    ),
  )
}

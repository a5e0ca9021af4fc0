import { map, mergeMap, type Observable, of, throwError } from 'rxjs'
import { isSealed, type SealedHeader } from '../logs/log-schema.ts'
import type { BlockReader } from '../rpc/block-reader.ts'
import { UpstreamError } from '../rpc/error.ts'
import { read } from '../rpc/read.ts'
import type { Cursor, RecentBlocks } from './recent-blocks.ts'

/** The lowest number of a range where a monotonic predicate holds; it is assumed to hold for `high`. */
export function binarySearch(low: number, high: number, holds: (number: number) => Observable<boolean>): Observable<number> {
  if (low >= high) return of(high)
  const middle = Math.floor((low + high) / 2)
  return holds(middle).pipe(
    mergeMap((isTrue) => (isTrue ? binarySearch(low, middle, holds) : binarySearch(middle + 1, high, holds))),
  )
}

/**
 * A block below `number` that is still canonical; null if no recent block is. It may lie below the fork point:
 * unchanged blocks that are settled again publish nothing.
 */
export function findForkPoint(
  node: BlockReader,
  recentBlocks: RecentBlocks,
  number: number,
  stride = 1,
): Observable<Cursor | null> {
  const below = recentBlocks.nearest(number - stride)
  const recent = recentBlocks.get(below)
  if (below >= number || !recent) return of(null)
  return read((signal) => node.header(below, signal)).pipe(
    mergeMap((header) => {
      if (!isSealed(header)) return throwError(() => new UpstreamError('behind', `block ${below} is gone`))
      if (recent.hash === null || recent.hash === header.hash) return of({ number: below, hash: header.hash })
      return findForkPoint(node, recentBlocks, below, stride * 2)
    }),
  )
}

/** The first block of a range that the node has, or else the last. */
export const firstAvailable = (node: BlockReader, from: number, to: number): Observable<number> =>
  read((signal) => node.header(from, signal)).pipe(
    mergeMap((header) =>
      header
        ? of(from)
        : binarySearch(from, to, (number) =>
            read((signal) => node.header(number, signal)).pipe(map((candidate) => candidate !== null)),
          ),
    ),
  )

/** The first block from `from` on that is no older than the bound, in chain time before `head`. */
export function firstWithinAge(node: BlockReader, from: number, head: SealedHeader, boundMs: number): Observable<number> {
  if (head.timestamp === null) return of(from)
  const since = head.timestamp - Math.floor(boundMs / 1_000)
  const isWithin = (number: number, ifUnknown: boolean) =>
    read((signal) => node.header(number, signal)).pipe(
      map((header) => (header?.timestamp == null ? ifUnknown : header.timestamp >= since)),
    )
  // Without the first block the node is pruned or lags behind. Reading that block will show which.
  return isWithin(from, true).pipe(
    mergeMap((isFirstWithin) => (isFirstWithin ? of(from) : binarySearch(from, head.number, (number) => isWithin(number, false)))),
  )
}

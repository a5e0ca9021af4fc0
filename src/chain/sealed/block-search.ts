import { map, mergeMap, type Observable, of, throwError } from 'rxjs'
import { isSealed, type SealedHeader } from '../logs/log-schema.ts'
import type { Reader } from '../rpc/block-reader.ts'
import { UpstreamError } from '../rpc/error.ts'
import type { Cursor, Lately } from './recent-blocks.ts'

/** The lowest number of a range for which something holds that holds for all above it, and for `high` in any case. */
export function lowest(low: number, high: number, holds: (number: number) => Observable<boolean>): Observable<number> {
  if (low >= high) return of(high)
  const middle = Math.floor((low + high) / 2)
  return holds(middle).pipe(mergeMap((yes) => (yes ? lowest(low, middle, holds) : lowest(middle + 1, high, holds))))
}

/**
 * A block below `number` that still stands, at least as far back as needed: further does no harm, since what is settled
 * again as it was is not told again. Null where nothing that is remembered stands.
 */
export function standingBelow(node: Reader, lately: Lately, number: number, stride = 1): Observable<Cursor | null> {
  const below = lately.nearest(number - stride)
  const seen = lately.at(below)
  if (below >= number || !seen) return of(null)
  return node.header(below).pipe(
    mergeMap((header) => {
      if (!isSealed(header)) return throwError(() => new UpstreamError('behind', `no block ${below} any more`))
      if (seen.hash === null || seen.hash === header.hash) return of({ number: below, hash: header.hash })
      return standingBelow(node, lately, below, stride * 2)
    }),
  )
}

/** The first block of a range that the node has; the last where it has none of those before. */
export const firstKnown = (node: Reader, from: number, to: number): Observable<number> =>
  node
    .header(from)
    .pipe(
      mergeMap((header) =>
        header ? of(from) : lowest(from, to, (number) => node.header(number).pipe(map((one) => one !== null))),
      ),
    )

/** The first block from `from` on that is no further back from `head` than the bound, in chain time. */
export function firstWithin(node: Reader, from: number, head: SealedHeader, boundMs: number): Observable<number> {
  if (head.timestamp === null) return of(from)
  const since = head.timestamp - Math.floor(boundMs / 1_000)
  const isWithin = (number: number, unknown: boolean) =>
    node.header(number).pipe(map((header) => (header?.timestamp == null ? unknown : header.timestamp >= since)))
  // A node that does not tell of the first block has forgotten it, or is behind: that is found out when it is read.
  return isWithin(from, true).pipe(
    mergeMap((yes) => (yes ? of(from) : lowest(from, head.number, (number) => isWithin(number, false)))),
  )
}

import { catchError, concat, map, type Observable, of, tap, throwError } from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import type { Reader } from '../rpc/block-reader.ts'
import { UpstreamError } from '../rpc/error.ts'
import type { Lately } from './recent-blocks.ts'

/** Every so many blocks, but no more often than this, the last few are asked for once more. */
export const AUDIT_EVERY_BLOCKS = 2
export const AUDIT_EVERY_MS = 1_000
/** A node may index a block so long after it shows it; whatever was asked for again after that is done with. */
const INDEXED_WITHIN_MS = 3_000
/** So many blocks are asked for at least, and so far back at most. */
const LEAST_BLOCKS = 4
const MOST_BLOCKS = 128

type Settled = { readonly number: number; readonly now: number; readonly wanted: readonly Hex[] }

/**
 * Asks for the blocks below `number` once more, and finds, part by part, those that hold more than was answered when they
 * were settled. What is missing now proves nothing: a node that is behind says so too.
 */
export function audit(node: Reader, lately: Lately, { number, now, wanted }: Settled): Observable<readonly number[]> {
  const below = Array.from({ length: MOST_BLOCKS }, (_, back) => number - 1 - back)
  const open = below
    .filter((block, back) => {
      const seen = lately.at(block)
      return seen?.logs != null && (back < LEAST_BLOCKS || !seen.audited)
    })
    .reverse()
  const isDue = (block: number) => now - (lately.at(block)?.at ?? now) >= INDEXED_WITHIN_MS
  const done = (audited: readonly number[]) => {
    for (const block of audited) if (isDue(block)) lately.done(block)
  }
  const look = (audited: readonly number[]): Observable<readonly number[]> =>
    ask(node, lately, audited, wanted).pipe(
      tap(() => done(audited)),
      catchError((failure: unknown) => {
        const isTooLarge = failure instanceof UpstreamError && failure.kind === 'too_large'
        if (!isTooLarge) return throwError(() => failure)
        if (audited.length > 1) return concat(...parts(audited).map(look))
        // One that holds too much for one answer holds more than nothing, and is settled contract by contract.
        done(audited)
        return of(audited.filter((block) => lately.at(block)?.logs === 0))
      }),
    )
  /** Some nodes give no more than a few blocks at a time: then the oldest, and all that are looked at for the last time. */
  const parts = (audited: readonly number[]): readonly (readonly number[])[] => {
    if (audited.length <= LEAST_BLOCKS) return partsOf(audited, Math.ceil(audited.length / 2))
    return partsOf(audited.slice(0, Math.max(LEAST_BLOCKS, audited.filter(isDue).length)), LEAST_BLOCKS)
  }
  return look(open)
}

const partsOf = (all: readonly number[], size: number): readonly (readonly number[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, nth) => all.slice(nth * size, (nth + 1) * size))

function ask(
  node: Reader,
  lately: Lately,
  audited: readonly number[],
  wanted: readonly Hex[],
): Observable<readonly number[]> {
  if (audited.length === 0) return of([])
  return node.logsBetween(Math.min(...audited), Math.max(...audited), wanted).pipe(
    map(({ logs }) =>
      audited.filter((block) => {
        const seen = lately.at(block)
        if (seen?.logs == null) return false
        const its = logs.filter((log) => log.blockNumber === block && log.blockHash === seen.hash)
        // Whoever was listed since is not missing.
        const asked = seen.asked === wanted ? its : its.filter(({ address }) => seen.asked.includes(address))
        return asked.length > seen.logs
      }),
    ),
  )
}

import { catchError, map, type Observable, of, throwError } from 'rxjs'
import type { Hex } from '../protocol/parts.ts'
import type { Lately } from './lately.ts'
import type { Reader } from './reader.ts'
import { UpstreamError } from './upstream-error.ts'

/** Every so many blocks, but no more often than this, the last few are asked for once more. */
export const AUDIT_EVERY_BLOCKS = 2
export const AUDIT_EVERY_MS = 1_000
/** A node may index a block so long after it shows it; as far back an audit reaches, within these numbers of blocks. */
const INDEXED_WITHIN_MS = 3_000
const LEAST_BLOCKS = 4
const MOST_BLOCKS = 32

type Settled = { readonly number: number; readonly now: number; readonly wanted: readonly Hex[] }

/**
 * Asks for the blocks below `number` once more, and finds those that hold more than was answered when they were settled.
 * What is missing now proves nothing: a node that is behind says so too.
 */
export function audit(node: Reader, lately: Lately, { number, now, wanted }: Settled): Observable<readonly number[]> {
  const below = Array.from({ length: MOST_BLOCKS }, (_, back) => number - 1 - back)
  const recent = below.filter(
    (block, back) => back < LEAST_BLOCKS || now - (lately.at(block)?.at ?? 0) < INDEXED_WITHIN_MS,
  )
  const audited = recent.filter((block) => lately.at(block)?.asked === wanted)
  return ask(node, lately, audited, wanted).pipe(
    catchError((failure: unknown) =>
      // Some nodes give no more than a few blocks at a time.
      failure instanceof UpstreamError && failure.kind === 'too_large' && audited.length > LEAST_BLOCKS
        ? ask(node, lately, audited.slice(0, LEAST_BLOCKS), wanted)
        : throwError(() => failure),
    ),
  )
}

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
        const now = logs.filter((log) => log.blockNumber === block && log.blockHash === seen?.hash)
        return seen?.logs != null && now.length > seen.logs
      }),
    ),
  )
}

import { backoffMs } from '../../../lib/backoff.ts'
import type { Hex } from '../../../lib/hex.ts'
import { UpstreamError, type UpstreamErrorKind } from '../rpc/upstream-error.ts'
import { MissingLogsError } from './block-logs.ts'
import { largestPage } from './page-size.ts'

/** Limits of the delay after a failed read. Only one relay retries, so it needs no jitter. */
const BACKOFF = { minMs: 50, maxMs: 2_000 }
/** Limits of the delay after a read of a block that may lack logs. */
const MISSING_LOGS_BACKOFF = { minMs: 500, maxMs: 2_000 }
/** Delay after the refusal of a filter, which is soon left out: the other logs of the block wait for it. */
const FILTER_REFUSED_DELAY_MS = 500
/** Number of retries of a read that may lack logs, before the missing logs count as gone. */
const MISSING_LOGS_RETRIES_BOUND = 2
/** Limit of the counts, beyond which the oldest is forgotten. Each block of the largest page may have one. */
export const COUNTS_BOUND = 2 * largestPage.blocks
/** Number of retries of a refused request before its blocks are reported as a hole. */
const REFUSED_RETRIES_BOUND = 5

export type ReadFailure = UpstreamError | MissingLogsError

/** Any other error is a bug of the relay. */
export const isReadFailure = (failure: unknown): failure is ReadFailure =>
  failure instanceof UpstreamError || failure instanceof MissingLogsError

/** The failed reads since the last success, by kind, and by the hash of the block if logs were missing. */
export type Failures = {
  readonly counts: ReadonlyMap<UpstreamErrorKind | Hex, number>
  readonly retryAt: number
  readonly last: ReadFailure | null
}

export const noFailures: Failures = { counts: new Map(), retryAt: Number.NEGATIVE_INFINITY, last: null }

export function afterFailure({ counts }: Failures, failure: ReadFailure, at: number): Failures {
  const kinds = failure instanceof MissingLogsError ? failure.hashes : [failure.kind]
  const all = new Map(counts)
  for (const kind of kinds) all.set(kind, (counts.get(kind) ?? 0) + 1)
  for (const kind of all.keys()) if (all.size > COUNTS_BOUND) all.delete(kind)
  const ofKind = Math.max(...kinds.map((kind) => all.get(kind) ?? 1))
  return { counts: all, retryAt: at + delayAfter(failure, ofKind, sum(all)), last: failure }
}

function delayAfter(failure: ReadFailure, ofKind: number, ofAll: number): number {
  if (failure instanceof MissingLogsError) return backoffMs(MISSING_LOGS_BACKOFF, ofKind)
  return failure.kind === 'filter_refused' ? FILTER_REFUSED_DELAY_MS : backoffMs(BACKOFF, ofAll)
}

export const countOf = ({ counts }: Failures, kind: UpstreamErrorKind | Hex): number => counts.get(kind) ?? 0

export const isRepeated = ({ counts }: Failures): boolean => sum(counts) > 1

/** Whether logs that the block lacks count as gone, because several reads of it lacked logs. Reads of a block with another hash do not count. */
export const acceptsMissing = (failures: Failures, hash: Hex): boolean => countOf(failures, hash) >= MISSING_LOGS_RETRIES_BOUND

/** Whether the relay gives up, because the node refused several requests in this way. Failed connections do not count. */
export const isExhausted = (failures: Failures, failure: unknown): failure is UpstreamError =>
  failure instanceof UpstreamError && !failure.isRetryable && countOf(failures, failure.kind) >= REFUSED_RETRIES_BOUND

/** Whether an old block that fails several times like this counts as pruned. `behind` is included: no node lags that far. */
export const mayBePruned = (failure: unknown): failure is UpstreamError => failure instanceof UpstreamError && failure.isAnswered

/** Whether an old block counts as pruned, because it has failed often enough. */
export const isPruned = (failures: Failures, failure: unknown): boolean =>
  mayBePruned(failure) && countOf(failures, failure.kind) >= REFUSED_RETRIES_BOUND

const sum = (counts: Failures['counts']): number => [...counts.values()].reduce((total, times) => total + times, 0)

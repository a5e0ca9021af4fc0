import type { SchedulerLike } from 'rxjs'
import { wait } from '../../../lib/async-loop.ts'
import { backoffMs } from '../../../lib/backoff.ts'
import { UpstreamError, type UpstreamErrorKind } from '../rpc/upstream-error.ts'
import { MissingLogsError } from './block-logs.ts'

/** Delays of a step that failed. One relay retries on one node, so no jitter is needed. */
const STEP_BACKOFF = { minMs: 50, maxMs: 2_000 }
/** Delays of a read that lacks logs which its block may hold, and how often it is repeated. */
const MISSING_LOGS_BACKOFF = { minMs: 500, maxMs: 2_000 }
const MISSING_LOGS_RETRIES_BOUND = 2
/** How often a refused block is tried before it is reported as a hole. */
const UNREADABLE_RETRIES_BOUND = 5

/**
 * Counts the failures of one step by error kind, and missing logs by block. The counts decide how long to wait and when to give up.
 */
export class RetryCounter {
  readonly #failures = new Map<UpstreamErrorKind | number, number>()

  succeeded(): void {
    this.#failures.clear()
  }

  /** Failures of this kind, or missing logs of this block, since the last success. */
  failuresOf(kind: UpstreamErrorKind | number): number {
    return this.#failures.get(kind) ?? 0
  }

  get totalFailures(): number {
    return [...this.#failures.values()].reduce((sum, times) => sum + times, 0)
  }

  /** Waits before the next try. Any error but the upstream's is our bug and is thrown again. */
  async waitToRetry(failure: unknown, clock: SchedulerLike, signal: AbortSignal): Promise<void> {
    if (!(failure instanceof MissingLogsError || failure instanceof UpstreamError)) throw failure
    const isMissingLogs = failure instanceof MissingLogsError
    const kind = isMissingLogs ? failure.block : failure.kind
    const failures = this.failuresOf(kind) + 1
    this.#failures.set(kind, failures)
    await wait(
      isMissingLogs ? backoffMs(MISSING_LOGS_BACKOFF, failures) : backoffMs(STEP_BACKOFF, this.totalFailures),
      clock,
      signal,
    )
  }

  /** Whether the block was read often enough to believe that the logs are gone, and not that the node lags behind. */
  acceptsMissing(block: number): boolean {
    return this.failuresOf(block) >= MISSING_LOGS_RETRIES_BOUND
  }

  /** Whether the node refused this often enough to give up. Failed connections do not count. */
  isExhausted(failure: unknown): failure is UpstreamError {
    return failure instanceof UpstreamError && !failure.isRetryable && this.failuresOf(failure.kind) >= UNREADABLE_RETRIES_BOUND
  }

  /** Whether an old block counts as pruned. Unlike `isExhausted` this includes `behind`: no node lags that far. */
  isPruned(failure: unknown): boolean {
    return failure instanceof UpstreamError && failure.isAnswered && this.failuresOf(failure.kind) >= UNREADABLE_RETRIES_BOUND
  }
}

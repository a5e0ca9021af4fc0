import type { SchedulerLike } from 'rxjs'
import { wait } from '../../../lib/async-loop.ts'
import { backoffMs } from '../../../lib/backoff.ts'
import { UpstreamError, type UpstreamErrorKind } from '../rpc/upstream-error.ts'
import { MissingLogsError } from './block-logs.ts'

/** Limits of the delay after a failed step of settling or backfill. Only one relay retries, so it needs no jitter. */
const STEP_BACKOFF = { minMs: 50, maxMs: 2_000 }
/** Limits of the delay after a read of a block that may lack logs. */
const MISSING_LOGS_BACKOFF = { minMs: 500, maxMs: 2_000 }
/** Number of retries of a read that may lack logs, before the missing logs count as gone. */
const MISSING_LOGS_RETRIES_BOUND = 2
/** Number of retries of a refused request before its blocks are reported as a hole. */
const UNREADABLE_RETRIES_BOUND = 5

/** Counts failures by kind, and missing logs by block. The counts decide how long to wait, and when to give up. */
export class RetryPolicy {
  readonly #failures = new Map<UpstreamErrorKind | number, number>()

  succeeded(): void {
    this.#failures.clear()
  }

  /** Returns the number of failures of this kind, or of reads of this block that lacked logs, since the last success. */
  failuresOf(kind: UpstreamErrorKind | number): number {
    return this.#failures.get(kind) ?? 0
  }

  get totalFailures(): number {
    return [...this.#failures.values()].reduce((sum, times) => sum + times, 0)
  }

  /** Waits before the next try. An error that is not the upstream's is a bug of the relay, and is thrown again. */
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

  /** Whether logs that the block lacks count as gone, because several reads of it lacked logs. */
  acceptsMissing(block: number): boolean {
    return this.failuresOf(block) >= MISSING_LOGS_RETRIES_BOUND
  }

  /** Whether the relay gives up, because the node refused several requests in this way. Failed connections do not count. */
  isExhausted(failure: unknown): failure is UpstreamError {
    return failure instanceof UpstreamError && !failure.isRetryable && this.failuresOf(failure.kind) >= UNREADABLE_RETRIES_BOUND
  }

  /** Whether an old block counts as pruned after several failures. `behind` is one of them: no node lags that far. */
  isPruned(failure: unknown): boolean {
    return failure instanceof UpstreamError && failure.isAnswered && this.failuresOf(failure.kind) >= UNREADABLE_RETRIES_BOUND
  }
}

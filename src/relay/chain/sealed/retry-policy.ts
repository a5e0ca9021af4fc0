import type { SchedulerLike } from 'rxjs'
import { wait } from '../../../lib/async-loop.ts'
import { backoffMs } from '../../../lib/backoff.ts'
import { UpstreamError, type UpstreamErrorKind } from '../rpc/upstream-error.ts'
import { MissingLogsError } from './block-logs.ts'

/** Delays after a failed step. One relay retries on one node, so no jitter is needed. */
const STEP_BACKOFF = { minMs: 50, maxMs: 2_000 }
/** Delays after a read that may lack logs, and the number of retries before missing logs count as gone. */
const MISSING_LOGS_BACKOFF = { minMs: 500, maxMs: 2_000 }
const MISSING_LOGS_RETRIES_BOUND = 2
/** Number of retries of a refused block before it is reported as a hole. */
const UNREADABLE_RETRIES_BOUND = 5

/** Counts failures by kind, and missing logs by block. The counts decide how long to wait, and when to give up. */
export class RetryPolicy {
  readonly #failures = new Map<UpstreamErrorKind | number, number>()

  succeeded(): void {
    this.#failures.clear()
  }

  /** Number of failures of this kind, or of reads of this block with missing logs, since the last success. */
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

  /** Whether the block was read so many times that the logs count as gone, and not the node as lagging. */
  acceptsMissing(block: number): boolean {
    return this.failuresOf(block) >= MISSING_LOGS_RETRIES_BOUND
  }

  /** Whether the node refused the request so many times that the relay gives up. Failed connections do not count. */
  isExhausted(failure: unknown): failure is UpstreamError {
    return failure instanceof UpstreamError && !failure.isRetryable && this.failuresOf(failure.kind) >= UNREADABLE_RETRIES_BOUND
  }

  /** Whether an old block counts as pruned. This includes `behind`, unlike `isExhausted`: no node lags so far. */
  isPruned(failure: unknown): boolean {
    return failure instanceof UpstreamError && failure.isAnswered && this.failuresOf(failure.kind) >= UNREADABLE_RETRIES_BOUND
  }
}

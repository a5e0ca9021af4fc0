import { catchError, map, mergeMap, type Observable, of, type SchedulerLike, throwError, timer } from 'rxjs'
import { backoffMs } from '../../backoff.ts'
import type { Hex } from '../../protocol/fields.ts'
import type { Log, Logs, SealedHeader } from '../logs/log-schema.ts'
import type { BlockReader } from '../rpc/block-reader.ts'
import { UpstreamError, type UpstreamErrorKind } from '../rpc/error.ts'
import type { Cursor } from './recent-blocks.ts'

/** A published pre-confirmed log. The settling of its block confirms or retracts it. */
export type OpenKey = { readonly key: string; readonly address: Hex; readonly tx: Hex }

/** The ledger's open keys, as settling reads them. */
export interface OpenKeys {
  /** The open keys of a block, and those of sealed ones that the ledger still has. */
  at(block: number): readonly OpenKey[]
  /** The blocks of a range with published keys: open ones, or sealed ones that a reorganisation may have removed. */
  publishedBlocksBetween(from: number, to: number): readonly number[]
  /** The blocks with keys that the previous run sealed, in order. */
  readonly sealedInPreviousRun: readonly Cursor[]
}

/** One sealed block with all logs of the given addresses. */
export type SealedBlock = {
  readonly number: number
  readonly hash: Hex
  /** In seconds. */
  readonly timestamp: number | null
  readonly logs: readonly Log[]
  /** The logs of other addresses are unknown. */
  readonly addresses: readonly Hex[]
  /** `backfill` for a block that was sealed during an outage. */
  readonly via: 'sealed' | 'backfill'
}

/** The events of settling, in the order of the chain except for backfill. */
export type SettlementEvent =
  | {
      readonly type: 'sealed'
      readonly blocks: readonly SealedBlock[]
      /** Up to this block nothing can be pre-confirmed any more. */
      readonly newest: number
      /** Up to this block everything is settled. */
      readonly cursor: Cursor
      /** Where a restart goes on reading. */
      readonly restartCursor?: Cursor
    }
  | {
      readonly type: 'hole'
      readonly blocks: { readonly from: number; readonly to: number }
      readonly reason: string
      readonly cursor: Cursor
      readonly restartCursor?: Cursor
    }
  /** A reorganisation may have removed this block and all above it. */
  | { readonly type: 'reorg'; readonly from: number }
  | { readonly type: 'unreadable'; readonly count: number }

/** The answer lacks logs of a transaction that the block may contain. */
export class MissingLogsError extends Error {
  readonly block: number

  constructor(block: number) {
    super(`block ${block} lacks logs of transactions that it may contain`)
    this.block = block
  }
}

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
  waitToRetry(failure: unknown, clock: SchedulerLike): Observable<unknown> {
    if (!(failure instanceof MissingLogsError || failure instanceof UpstreamError)) return throwError(() => failure)
    const isMissingLogs = failure instanceof MissingLogsError
    const kind = isMissingLogs ? failure.block : failure.kind
    const failures = this.failuresOf(kind) + 1
    this.#failures.set(kind, failures)
    const delayMs = isMissingLogs ? backoffMs(MISSING_LOGS_BACKOFF, failures) : backoffMs(STEP_BACKOFF, this.totalFailures)
    return timer(delayMs, clock)
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

/** The listed tokens, and unlisted ones with open keys. */
export const addressesToQuery = (listed: readonly Hex[], openKeys: readonly OpenKey[]): readonly Hex[] => {
  const others = new Set(openKeys.map(({ address }) => address).filter((address) => !listed.includes(address)))
  return others.size === 0 ? listed : [...listed, ...others]
}

type BlockLogsQuery = {
  readonly header: SealedHeader
  readonly openKeys: readonly OpenKey[]
  readonly addresses: readonly Hex[]
  /** Whether missing logs are believed to be gone. */
  readonly acceptsMissing: boolean
}

/**
 * The logs that settle a block. If an open key's transaction has none, the block's transactions decide. A transaction
 * that the block lacks is gone. One that it contains causes a `MissingLogsError`, since a lagging node returns no logs
 * either. So does a block that lists no transactions but used gas.
 */
export function readBlockLogs(
  node: BlockReader,
  { header, openKeys, addresses, acceptsMissing }: BlockLogsQuery,
): Observable<Logs> {
  const { number, hash } = header
  return node.logsByHash(hash, addresses).pipe(
    // Some nodes do not support logs by block hash.
    catchError((failure: unknown) =>
      failure instanceof UpstreamError && failure.kind === 'invalid'
        ? readLogsByNumber(node, header, addresses)
        : throwError(() => failure),
    ),
    mergeMap((answer) => {
      const returned = new Set(answer.logs.map((log) => log.transactionHash))
      const missing = openKeys.filter(({ tx }) => !returned.has(tx))
      if (missing.length === 0 || acceptsMissing) return of(answer)
      return node.header(number).pipe(
        map((reread) => {
          if (reread?.hash !== hash) throw new UpstreamError('behind', `block ${number} is not ${hash}`)
          const included = new Set(reread.transactions)
          const areGone = (included.size > 0 || reread.gasUsed === 0) && missing.every(({ tx }) => !included.has(tx))
          if (!areGone) throw new MissingLogsError(number)
          return answer
        }),
      )
    }),
  )
}

/** A lagging node returns no logs for a number it lacks, so it must also return the header with our hash. */
function readLogsByNumber(node: BlockReader, { number, hash }: SealedHeader, addresses: readonly Hex[]): Observable<Logs> {
  return node.logsInRange(number, number, addresses).pipe(
    catchError((failure: unknown) => {
      // A range of one block is only invalid above the head of a lagging node.
      const isInvalid = failure instanceof UpstreamError && failure.kind === 'invalid'
      return throwError(() => (isInvalid ? new UpstreamError('behind', failure.message) : failure))
    }),
    mergeMap((answer) =>
      node.header(number).pipe(
        map((reread) => {
          if (reread?.hash !== hash || answer.logs.some((log) => log.blockHash !== hash))
            throw new UpstreamError('behind', `block ${number} is not ${hash}`)
          return answer
        }),
      ),
    ),
  )
}

import { catchError, map, mergeMap, type Observable, of, type SchedulerLike, throwError, timer } from 'rxjs'
import { backoffMs } from '../../backoff.ts'
import type { Hex } from '../../protocol/fields.ts'
import type { Log, Logs, SealedHeader } from '../logs/log-schema.ts'
import type { BlockReader } from '../rpc/block-reader.ts'
import { UpstreamError, type UpstreamErrorKind } from '../rpc/error.ts'
import type { Cursor } from './recent-blocks.ts'

/** A log that was told: its block will say whether it was so. */
export type OpenKey = { readonly key: string; readonly address: Hex; readonly tx: Hex }

/** What has been told and waits for its block. The ledger knows; the chain only asks. */
export interface OpenKeys {
  /** What was told of a block, as far as it is still remembered. */
  at(block: number): readonly OpenKey[]
  /** The blocks of a range of which something was told: open, or sealed by a chain that may be no more. */
  publishedBlocksBetween(from: number, to: number): readonly number[]
  /** The blocks that a former life sealed something of, in order. */
  readonly sealedInPreviousRun: readonly Cursor[]
}

/** One sealed block, and every log in it that was asked for. */
export type SealedBlock = {
  readonly number: number
  readonly hash: Hex
  /** In seconds. */
  readonly timestamp: number | null
  readonly logs: readonly Log[]
  /** Whose logs these are: of nobody else is anything known. */
  readonly addresses: readonly Hex[]
  /** Whether it was sealed while nobody looked. */
  readonly via: 'sealed' | 'backfill'
}

/** What settling brings, in the order of the chain but for what is caught up beside it. */
export type SettlementEvent =
  | {
      readonly type: 'sealed'
      readonly blocks: readonly SealedBlock[]
      /** Up to here nothing can be pre-confirmed any more. */
      readonly newest: number
      /** Up to here everything is settled: a restart goes on from it. */
      readonly cursor: Cursor
    }
  | {
      readonly type: 'hole'
      readonly blocks: { readonly from: number; readonly to: number }
      readonly reason: string
      readonly cursor: Cursor
    }
  /** What was sealed from this block on may be no more. */
  | { readonly type: 'doubted'; readonly from: number }
  | { readonly type: 'unreadable'; readonly count: number }

/** The answer lacks what the block itself says it holds. */
export class MissingLogsError extends Error {
  readonly block: number

  constructor(block: number) {
    super(`block ${block} has no logs of what it may hold`)
    this.block = block
  }
}

/** Delays of a step that failed. One relay retries on one node, so no jitter is needed. */
const STEP_BACKOFF = { minMs: 50, maxMs: 2_000 }
/** Delays of a read that lacks logs which its block may hold, and how often it is repeated. */
const MISSING_LOGS_BACKOFF = { minMs: 500, maxMs: 2_000 }
const MISSING_LOGS_RETRIES_BOUND = 2
/** How often a block is tried that the node says it cannot give, before it is left out. */
const UNREADABLE_RETRIES_BOUND = 5

/**
 * Counts the failures of one step, each kind by itself, and doubts by their block: how long to wait for the next try, and
 * when to stop trying.
 */
export class RetryCounter {
  readonly #failures = new Map<UpstreamErrorKind | number, number>()

  succeeded(): void {
    this.#failures.clear()
  }

  /** How often it failed like this, or for doubt about this block, since it last went well. */
  failuresOf(kind: UpstreamErrorKind | number): number {
    return this.#failures.get(kind) ?? 0
  }

  get totalFailures(): number {
    return [...this.#failures.values()].reduce((sum, times) => sum + times, 0)
  }

  /** Waits for the next try. What is no failure of the upstream is a bug of ours, and passed on. */
  waitToRetry(failure: unknown, clock: SchedulerLike): Observable<unknown> {
    if (!(failure instanceof MissingLogsError || failure instanceof UpstreamError)) return throwError(() => failure)
    const isMissingLogs = failure instanceof MissingLogsError
    const kind = isMissingLogs ? failure.block : failure.kind
    const failures = this.failuresOf(kind) + 1
    this.#failures.set(kind, failures)
    const delayMs = isMissingLogs
      ? backoffMs(MISSING_LOGS_BACKOFF, failures)
      : backoffMs(STEP_BACKOFF, this.totalFailures)
    return timer(delayMs, clock)
  }

  /** Whether a block was asked for often enough: then it is the chain that changed its mind, not a node that is behind. */
  acceptsMissing(block: number): boolean {
    return this.failuresOf(block) >= MISSING_LOGS_RETRIES_BOUND
  }

  /** Whether the node will not give this, however often it is asked. That it could not be asked before is no proof. */
  isExhausted(failure: unknown): failure is UpstreamError {
    return (
      failure instanceof UpstreamError &&
      !failure.isRetryable &&
      this.failuresOf(failure.kind) >= UNREADABLE_RETRIES_BOUND
    )
  }

  /** Whether the node seems not to have this any more: for what is old, that it may be behind is no excuse. */
  isPruned(failure: unknown): boolean {
    return (
      failure instanceof UpstreamError &&
      failure.isAnswered &&
      this.failuresOf(failure.kind) >= UNREADABLE_RETRIES_BOUND
    )
  }
}

/** Whose logs are asked for: those of the listed tokens, and of whatever else was told. */
export const addressesToQuery = (listed: readonly Hex[], openKeys: readonly OpenKey[]): readonly Hex[] => {
  const others = new Set(openKeys.map(({ address }) => address).filter((address) => !listed.includes(address)))
  return others.size === 0 ? listed : [...listed, ...others]
}

type BlockLogsQuery = {
  readonly header: SealedHeader
  readonly openKeys: readonly OpenKey[]
  readonly addresses: readonly Hex[]
  /** Whether what is missing is believed to be gone. */
  readonly acceptsMissing: boolean
}

/**
 * The logs that settle a block. Where they lack something that was told, the block is asked for its transactions: one
 * that it does not hold is gone for certain; one that it holds and that is said to have no logs at all throws a doubt,
 * for a node that is behind says the same. So does a block that shows no transactions though
 * it used gas.
 */
export function readBlockLogs(
  node: BlockReader,
  { header, openKeys, addresses, acceptsMissing }: BlockLogsQuery,
): Observable<Logs> {
  const { number, hash } = header
  return node.logsByHash(hash, addresses).pipe(
    // A node that does not know the question by hash is asked by number.
    catchError((failure: unknown) =>
      failure instanceof UpstreamError && failure.kind === 'invalid'
        ? readLogsByNumber(node, header, addresses)
        : throwError(() => failure),
    ),
    mergeMap((found) => {
      const returned = new Set(found.logs.map((log) => log.transactionHash))
      const missing = openKeys.filter(({ tx }) => !returned.has(tx))
      if (missing.length === 0 || acceptsMissing) return of(found)
      return node.header(number).pipe(
        map((reread) => {
          if (reread?.hash !== hash) throw new UpstreamError('behind', `block ${number} is not ${hash}`)
          const included = new Set(reread.transactions)
          const areGone = (included.size > 0 || reread.gasUsed === 0) && missing.every(({ tx }) => !included.has(tx))
          if (!areGone) throw new MissingLogsError(number)
          return found
        }),
      )
    }),
  )
}

/** A node that is behind answers a number with nothing: it has to know the block as ours, too. */
function readLogsByNumber(
  node: BlockReader,
  { number, hash }: SealedHeader,
  addresses: readonly Hex[],
): Observable<Logs> {
  return node.logsInRange(number, number, addresses).pipe(
    catchError((failure: unknown) => {
      // Of one block the range cannot be invalid, but above the head of a node that is behind.
      const isInvalid = failure instanceof UpstreamError && failure.kind === 'invalid'
      return throwError(() => (isInvalid ? new UpstreamError('behind', failure.message) : failure))
    }),
    mergeMap((found) =>
      node.header(number).pipe(
        map((known) => {
          if (known?.hash !== hash || found.logs.some((log) => log.blockHash !== hash))
            throw new UpstreamError('behind', `block ${number} is not ${hash}`)
          return found
        }),
      ),
    ),
  )
}

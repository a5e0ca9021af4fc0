import { catchError, map, mergeMap, type Observable, of, type SchedulerLike, throwError, timer } from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import type { Log, Logs, SealedHeader } from '../logs/log-schema.ts'
import type { Reader } from '../rpc/block-reader.ts'
import { type Trouble, UpstreamError } from '../rpc/error.ts'
import type { Cursor } from './recent-blocks.ts'

/** A log that was told: its block will say whether it was so. */
export type Owing = { readonly key: string; readonly address: Hex; readonly tx: Hex }

/** What has been told and waits for its block. The ledger knows; the chain only asks. */
export interface Owed {
  /** What was told of a block, as far as it is still remembered. */
  at(block: number): readonly Owing[]
  /** The blocks of a range of which something was told: open, or sealed by a chain that may be no more. */
  toldBetween(from: number, to: number): readonly number[]
  /** The blocks that a former life sealed something of, in order. */
  readonly sealedBefore: readonly Cursor[]
}

/** One sealed block, and every log in it that was asked for. */
export type SealedBlock = {
  readonly number: number
  readonly hash: Hex
  /** In seconds. */
  readonly timestamp: number | null
  readonly logs: readonly Log[]
  /** Whose logs these are: of nobody else is anything known. */
  readonly asked: readonly Hex[]
  /** Whether it was sealed while nobody looked. */
  readonly via: 'sealed' | 'backfill'
}

/** What settling brings, in the order of the chain but for what is caught up beside it. */
export type Settled =
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
export class Doubt extends Error {
  readonly block: number

  constructor(block: number) {
    super(`block ${block} has no logs of what it may hold`)
    this.block = block
  }
}

/** A step that failed is taken again after this, doubled each time. */
const WAIT_LEAST_MS = 50
const WAIT_MOST_MS = 2_000
/** How often, and after how long, an answer is asked for again that lacks what its block may hold. */
const DOUBT_WAITS_MS = [500, 1_000]
/** How often a block is tried that the node says it cannot give, before it is left out. */
const UNREADABLE_TRIES = 5

/**
 * Counts the failures of one step, each kind by itself, and doubts by their block: how long to wait for the next try, and
 * when to stop trying.
 */
export class Patience {
  readonly #times = new Map<Trouble | number, number>()

  succeeded(): void {
    this.#times.clear()
  }

  /** How often it failed like this, or for doubt about this block, since it last went well. */
  times(kind: Trouble | number): number {
    return this.#times.get(kind) ?? 0
  }

  get failures(): number {
    return [...this.#times.values()].reduce((sum, times) => sum + times, 0)
  }

  /** Waits for the next try. What is no failure of the upstream is a bug of ours, and passed on. */
  wait(failure: unknown, clock: SchedulerLike): Observable<unknown> {
    if (!(failure instanceof Doubt || failure instanceof UpstreamError)) return throwError(() => failure)
    const kind = failure instanceof Doubt ? failure.block : failure.kind
    const times = this.times(kind)
    const wait = Math.min(WAIT_MOST_MS, WAIT_LEAST_MS * 2 ** Math.min(this.failures, 16))
    this.#times.set(kind, times + 1)
    return timer(failure instanceof Doubt ? (DOUBT_WAITS_MS[times] ?? WAIT_MOST_MS) : wait, clock)
  }

  /** Whether a block was asked for often enough: then it is the chain that changed its mind, not a node that is behind. */
  believes(block: number): boolean {
    return this.times(block) >= DOUBT_WAITS_MS.length
  }

  /** Whether the node will not give this, however often it is asked. That it could not be asked before is no proof. */
  gaveUp(failure: unknown): failure is UpstreamError {
    return failure instanceof UpstreamError && !failure.passing && this.times(failure.kind) >= UNREADABLE_TRIES
  }

  /** Whether the node seems not to have this any more: for what is old, that it may be behind is no excuse. */
  forgot(failure: unknown): boolean {
    return failure instanceof UpstreamError && failure.answered && this.times(failure.kind) >= UNREADABLE_TRIES
  }
}

/** Whose logs are asked for: those of the listed tokens, and of whatever else was told. */
export const askedFor = (wanted: readonly Hex[], owing: readonly Owing[]): readonly Hex[] => {
  const others = new Set(owing.map(({ address }) => address).filter((address) => !wanted.includes(address)))
  return others.size === 0 ? wanted : [...wanted, ...others]
}

type Question = {
  readonly header: SealedHeader
  readonly owing: readonly Owing[]
  readonly asked: readonly Hex[]
  /** Whether what is missing is believed to be gone. */
  readonly believing: boolean
}

/**
 * The logs that settle a block. Where they lack something that was told, the block is asked for its transactions: one
 * that it does not hold is gone for certain; one that it holds and that is said to have no logs at all throws a doubt,
 * for a node that is behind says the same. So does a block that shows no transactions though
 * it used gas.
 */
export function settlingLogs(node: Reader, { header, owing, asked, believing }: Question): Observable<Logs> {
  const { number, hash } = header
  return node.logsOf(hash, asked).pipe(
    // A node that does not know the question by hash is asked by number.
    catchError((failure: unknown) =>
      failure instanceof UpstreamError && failure.kind === 'invalid'
        ? logsByNumber(node, header, asked)
        : throwError(() => failure),
    ),
    mergeMap((found) => {
      const said = new Set(found.logs.map((log) => log.transactionHash))
      const silent = owing.filter(({ tx }) => !said.has(tx))
      if (silent.length === 0 || believing) return of(found)
      return node.header(number).pipe(
        map((again) => {
          if (again?.hash !== hash) throw new UpstreamError('behind', `block ${number} is not ${hash}`)
          const held = new Set(again.transactions)
          const gone = (held.size > 0 || again.gasUsed === 0) && silent.every(({ tx }) => !held.has(tx))
          if (!gone) throw new Doubt(number)
          return found
        }),
      )
    }),
  )
}

/** A node that is behind answers a number with nothing: it has to know the block as ours, too. */
function logsByNumber(node: Reader, { number, hash }: SealedHeader, asked: readonly Hex[]): Observable<Logs> {
  return node.logsBetween(number, number, asked).pipe(
    catchError((failure: unknown) => {
      // Of one block the range cannot be invalid, but above the head of a node that is behind.
      const invalid = failure instanceof UpstreamError && failure.kind === 'invalid'
      return throwError(() => (invalid ? new UpstreamError('behind', failure.message) : failure))
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

import {
  catchError,
  concat,
  defer,
  EMPTY,
  map,
  mergeMap,
  type Observable,
  of,
  type SchedulerLike,
  throwError,
} from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import { type Header, isSealed, type Logs, type SealedHeader } from '../logs/log-schema.ts'
import type { BlockReader } from '../rpc/block-reader.ts'
import { UpstreamError } from '../rpc/error.ts'
import type { PendingStatus, SourceState } from './state.ts'

/** The block being built: its number, and its time in seconds; null where nobody says. */
type PendingBlock = { readonly pending: number | null; readonly timestamp: number | null }

/** What asking brings: the newest sealed head, what the pending state shows, and what is pre-confirmed in it. */
export type PollResult =
  | { readonly type: 'latest'; readonly header: SealedHeader }
  | { readonly type: 'look'; readonly status: PendingStatus; readonly block: PendingBlock }
  | { readonly type: 'logs'; readonly found: Logs }
  /** Whatever was wanted was asked for. */
  | { readonly type: 'asked'; readonly addresses: readonly Hex[] }

/** How often the pending state is looked at while nothing has shown yet that what is pushed lives. */
export const UNPROVEN_POLL_MS = 500
/** How often it is looked at where nothing is pre-confirmed and the heads are pushed. */
export const PROBE_INTERVAL_MS = 60_000
/** What stands so far below the head is behind it. */
export const BEHIND_BLOCKS = 2
/** So often the newest head may be ahead of what is pushed before pushes are no longer waited for. */
const LAG_BOUND = 2

type Options = {
  readonly node: BlockReader
  readonly state: SourceState
  readonly addresses: () => readonly Hex[]
  readonly silenceMs: number
  readonly clock: SchedulerLike
}

/** Asks for whatever nobody pushes, as often as the standing of the source asks for it. */
export class ChainPoller {
  readonly #options: Options
  /** What the pending state looked like when it was read, so that logs are asked for only when it moved. */
  #lastFingerprint = ''
  /** What was shown last as being built, and whether the node is one that shows sealed blocks there. */
  #lastPending: Header | null = null
  #repeatsSealed = false
  #lastStatus: PendingStatus = 'null'
  #polledAddresses: readonly Hex[] | null = null
  #pendingPolledAt = Number.NEGATIVE_INFINITY
  #headPolledAt = Number.NEGATIVE_INFINITY
  /** The newest head that was pushed, and how often in a row a newer one was found by asking. */
  #pushedHead: number | null = null
  /** The newest head that was heard of, however. */
  #knownHead = 0
  #headsBehind = 0

  constructor(options: Options) {
    this.#options = options
  }

  /** A head was pushed: while they come, none is asked for. */
  recordPushedHead(head: number): void {
    this.#pushedHead = head
    this.#knownHead = Math.max(this.#knownHead, head)
    this.#headsBehind = 0
  }

  /** Nothing is pushed any more. */
  forgetPushedHead(): void {
    this.#pushedHead = null
  }

  /** There is a newer head than any that was told. */
  pollHeadSoon(): void {
    this.#headPolledAt = Number.NEGATIVE_INFINITY
  }

  /** Asks for what is due now. */
  pollDue(): Observable<PollResult> {
    const { clock, silenceMs, state } = this.#options
    const now = clock.now()
    const pendingIntervalMs = this.#pendingIntervalMs()
    if (now - this.#pendingPolledAt >= pendingIntervalMs) return this.#pollPendingBlock(!state.isPushing)
    return now - this.#headPolledAt >= (this.#areHeadsPushed ? silenceMs : 0) ? this.#pollHead() : EMPTY
  }

  /** Looks at what is pre-confirmed now, whatever it looked like before. */
  pollPending(): Observable<PollResult> {
    return defer(() => {
      this.#lastFingerprint = ''
      return this.#pollPendingBlock(true)
    })
  }

  get #areHeadsPushed(): boolean {
    return this.#pushedHead !== null && this.#headsBehind < LAG_BOUND
  }

  #pendingIntervalMs(): number {
    const { state } = this.#options
    if (state.isPushing) return state.isProven ? Number.POSITIVE_INFINITY : UNPROVEN_POLL_MS
    return state.isSealedOnly && this.#areHeadsPushed ? PROBE_INTERVAL_MS : 0
  }

  #pollHead(): Observable<PollResult> {
    this.#headPolledAt = this.#options.clock.now()
    const addresses = this.#options.addresses()
    return this.#readLatest().pipe(
      mergeMap((header) => of<PollResult[]>({ type: 'latest', header }, { type: 'asked', addresses })),
    )
  }

  #readLatest(): Observable<SealedHeader> {
    return this.#options.node.header('latest').pipe(
      map((latest) => {
        if (!isSealed(latest)) throw new UpstreamError('unreadable', 'no latest block')
        this.#knownHead = Math.max(this.#knownHead, latest.number)
        if (this.#pushedHead !== null) this.#headsBehind = latest.number > this.#pushedHead ? this.#headsBehind + 1 : 0
        return latest
      }),
    )
  }

  /** Looks at the pending state, and where it moved, at the head; `reads`: what is pre-confirmed as well. */
  #pollPendingBlock(withLogs: boolean): Observable<PollResult> {
    const { node, clock, silenceMs, state } = this.#options
    this.#pendingPolledAt = clock.now()
    const knownHead = this.#knownHead
    return node.header('pending').pipe(
      // A node that does not know the tag has nothing to show under it.
      catchError((failure: unknown) =>
        failure instanceof UpstreamError && failure.isAnswered ? of('refused' as const) : throwError(() => failure),
      ),
      mergeMap((answer) => {
        const pending = answer === 'refused' ? null : answer
        const addresses = this.#options.addresses()
        const fingerprint = `${pending?.number} ${pending?.hash} ${pending?.transactions?.length} ${pending?.gasUsed}`
        const isUnchanged =
          withLogs && pending !== null && fingerprint === this.#lastFingerprint && this.#polledAddresses === addresses
        const isQuiet = isUnchanged && !state.isSealedOnly && clock.now() - this.#headPolledAt < silenceMs
        if (isQuiet) return of<PollResult>({ type: 'look', status: this.#lastStatus, block: pendingBlockOf(pending) })
        this.#headPolledAt = clock.now()
        return this.#readLatest().pipe(
          mergeMap((header) => {
            const status = answer === 'refused' ? 'latest' : this.#statusOf(answer, header, knownHead)
            const block = pendingBlockOf(status === 'preconfirmed' ? pending : null)
            return concat(
              of<PollResult[]>({ type: 'latest', header }, { type: 'look', status, block }),
              withLogs && !isUnchanged && status === 'preconfirmed' ? this.#readPendingLogs(header, addresses) : EMPTY,
              defer(() => {
                this.#lastFingerprint = withLogs ? fingerprint : ''
                this.#lastStatus = status
                this.#polledAddresses = addresses
                return of<PollResult>({ type: 'asked', addresses })
              }),
            )
          }),
        )
      }),
    )
  }

  /** What is pre-confirmed now. Asked from the newest sealed block on, since nodes want a range that exists. */
  #readPendingLogs({ number }: SealedHeader, addresses: readonly Hex[]): Observable<PollResult> {
    return this.#options.node.logsInRange(number, 'pending', addresses).pipe(
      map(({ logs, unreadable }): PollResult => {
        const pendingLogs = logs.filter((log) => log.blockNumber > number)
        return { type: 'logs', found: { logs: pendingLogs, unreadable } }
      }),
    )
  }

  /** What a pending block shows; its own hash proves nothing, unless it is the latest one's. */
  #statusOf(pending: Header | null, latest: SealedHeader, knownHead: number): PendingStatus {
    if (!pending) return 'null'
    const { number, hash, parentHash } = pending
    const previous = this.#lastPending
    this.#lastPending = pending
    if (hash === latest.hash) {
      this.#repeatsSealed = true
      return 'latest'
    }
    // What has no hash yet, or another one than before, is being built; else it may be sealed, by a node that is ahead.
    if (!hash || !/[^0x]/.test(hash) || (previous?.number === number && previous.hash !== hash))
      this.#repeatsSealed = false
    // A block that was sealed between the two questions was being built when it was asked for.
    if (number === null)
      return parentHash === latest.hash || parentHash === latest.parentHash ? 'preconfirmed' : 'latest'
    if (number >= latest.number) return this.#repeatsSealed ? 'latest' : 'preconfirmed'
    // Held against what was known when it was asked for: the latest may have gone on while the node thought.
    return number < (knownHead || latest.number) - BEHIND_BLOCKS ? 'behind' : 'latest'
  }
}

const pendingBlockOf = (pending: Header | null): PendingBlock => ({
  pending: pending?.number ?? null,
  timestamp: pending?.timestamp ?? null,
})

import { catchError, concat, defer, EMPTY, map, mergeMap, type Observable, of, type SchedulerLike, throwError } from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import { type Header, isSealed, type Logs, type SealedHeader } from '../logs/log-schema.ts'
import type { BlockReader } from '../rpc/block-reader.ts'
import { UpstreamError } from '../rpc/error.ts'
import { read } from '../rpc/read.ts'
import type { PendingStatus, SourceState } from './state.ts'

/** The block being built, with its Unix time; null where unknown. */
type PendingBlock = { readonly pending: number | null; readonly timestamp: number | null }

/** The results of one poll, in this order. */
export type PollResult =
  | { readonly type: 'latest'; readonly header: SealedHeader }
  | { readonly type: 'pending'; readonly status: PendingStatus; readonly block: PendingBlock }
  | { readonly type: 'logs'; readonly logs: Logs }
  /** The poll is complete for these addresses. */
  | { readonly type: 'complete'; readonly addresses: readonly Hex[] }

/** How often the pending block is polled until the pushed logs are proven. */
export const UNPROVEN_POLL_MS = 500
/** How often it is polled if nothing is pre-confirmed and heads are pushed. */
export const PROBE_INTERVAL_MS = 60_000
/** The distance from the head at which a block counts as behind. */
export const BEHIND_BLOCKS = 2
/** How often in a row a polled head may be newer than the pushed one before heads are polled. */
const LAG_BOUND = 2

type Options = {
  readonly node: BlockReader
  readonly state: SourceState
  readonly addresses: () => readonly Hex[]
  readonly silenceMs: number
  readonly clock: SchedulerLike
}

/** Polls everything that is not pushed, as often as the state of the source requires. */
export class ChainPoller {
  readonly #options: Options
  /** Identifies the last pending block, so that logs are read only after it changed. */
  #lastFingerprint = ''
  /** The last pending block, and whether the node returns sealed blocks as pending. */
  #lastPending: Header | null = null
  #repeatsSealed = false
  #lastStatus: PendingStatus = 'null'
  #polledAddresses: readonly Hex[] | null = null
  #pendingPolledAt = Number.NEGATIVE_INFINITY
  #headPolledAt = Number.NEGATIVE_INFINITY
  /** The newest pushed head, and how often in a row a newer one was polled. */
  #pushedHead: number | null = null
  /** The newest head, pushed or polled. */
  #knownHead = 0
  #headsBehind = 0

  constructor(options: Options) {
    this.#options = options
  }

  /** While heads are pushed, they are not polled. */
  recordPushedHead(head: number): void {
    this.#pushedHead = head
    this.#knownHead = Math.max(this.#knownHead, head)
    this.#headsBehind = 0
  }

  forgetPushedHead(): void {
    this.#pushedHead = null
  }

  /** Polls the head at once: there is a newer one than any received. */
  pollHeadSoon(): void {
    this.#headPolledAt = Number.NEGATIVE_INFINITY
  }

  pollDue(): Observable<PollResult> {
    const { clock, silenceMs, state } = this.#options
    const now = clock.now()
    const pendingIntervalMs = this.#pendingIntervalMs()
    if (now - this.#pendingPolledAt >= pendingIntervalMs) return this.#pollPendingBlock(!state.isPushing)
    return now - this.#headPolledAt >= (this.#areHeadsPushed ? silenceMs : 0) ? this.#pollHead() : EMPTY
  }

  /** Polls the pending block and its logs, even if it did not change. */
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
      mergeMap((header) => of<PollResult[]>({ type: 'latest', header }, { type: 'complete', addresses })),
    )
  }

  #readLatest(): Observable<SealedHeader> {
    return read((signal) => this.#options.node.header('latest', signal)).pipe(
      map((latest) => {
        if (!isSealed(latest)) throw new UpstreamError('unreadable', 'no latest block')
        this.#knownHead = Math.max(this.#knownHead, latest.number)
        if (this.#pushedHead !== null) this.#headsBehind = latest.number > this.#pushedHead ? this.#headsBehind + 1 : 0
        return latest
      }),
    )
  }

  /** Reads the pending block and, if it changed, the head; with `withLogs` also the pre-confirmed logs. */
  #pollPendingBlock(withLogs: boolean): Observable<PollResult> {
    const { node, clock, silenceMs, state } = this.#options
    this.#pendingPolledAt = clock.now()
    const knownHead = this.#knownHead
    return read((signal) => node.header('pending', signal)).pipe(
      // A node that does not support the tag has no pending block.
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
        if (isQuiet) return of<PollResult>({ type: 'pending', status: this.#lastStatus, block: pendingBlockOf(pending) })
        this.#headPolledAt = clock.now()
        return this.#readLatest().pipe(
          mergeMap((header) => {
            const status = answer === 'refused' ? 'latest' : this.#statusOf(answer, header, knownHead)
            const block = pendingBlockOf(status === 'preconfirmed' ? pending : null)
            return concat(
              of<PollResult[]>({ type: 'latest', header }, { type: 'pending', status, block }),
              withLogs && !isUnchanged && status === 'preconfirmed' ? this.#readPendingLogs(header, addresses) : EMPTY,
              defer(() => {
                this.#lastFingerprint = withLogs ? fingerprint : ''
                this.#lastStatus = status
                this.#polledAddresses = addresses
                return of<PollResult>({ type: 'complete', addresses })
              }),
            )
          }),
        )
      }),
    )
  }

  /** Reads the pre-confirmed logs, from the newest sealed block on, since nodes require a range that exists. */
  #readPendingLogs({ number }: SealedHeader, addresses: readonly Hex[]): Observable<PollResult> {
    return read((signal) => this.#options.node.logsInRange(number, 'pending', addresses, signal)).pipe(
      map(({ logs, unreadable }): PollResult => {
        const pendingLogs = logs.filter((log) => log.blockNumber > number)
        return { type: 'logs', logs: { logs: pendingLogs, unreadable } }
      }),
    )
  }

  /** A pending block's own hash proves nothing, unless it is the latest one's. */
  #statusOf(pending: Header | null, latest: SealedHeader, knownHead: number): PendingStatus {
    if (!pending) return 'null'
    const { number, hash, parentHash } = pending
    const previous = this.#lastPending
    this.#lastPending = pending
    if (hash === latest.hash) {
      this.#repeatsSealed = true
      return 'latest'
    }
    // A block without a hash, or with a changing one, is being built. Any other may be sealed on a node that is ahead.
    if (!hash || !/[^0x]/.test(hash) || (previous?.number === number && previous.hash !== hash)) this.#repeatsSealed = false
    // A block that was sealed between the two reads was being built at the first one.
    if (number === null) return parentHash === latest.hash || parentHash === latest.parentHash ? 'preconfirmed' : 'latest'
    if (number >= latest.number) return this.#repeatsSealed ? 'latest' : 'preconfirmed'
    // Compared with the head at the time of the request: the chain may have moved on before the answer.
    return number < (knownHead || latest.number) - BEHIND_BLOCKS ? 'behind' : 'latest'
  }
}

const pendingBlockOf = (pending: Header | null): PendingBlock => ({
  pending: pending?.number ?? null,
  timestamp: pending?.timestamp ?? null,
})

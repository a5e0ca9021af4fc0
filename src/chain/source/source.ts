import {
  catchError,
  concat,
  concatMap,
  connect,
  defer,
  EMPTY,
  exhaustMap,
  filter,
  from,
  ignoreElements,
  interval,
  merge,
  mergeMap,
  type Observable,
  of,
  ReplaySubject,
  retry,
  type SchedulerLike,
  Subject,
  switchMap,
  tap,
  throwError,
  timer,
} from 'rxjs'
import type { Head, Hex, Ingest, SourceName, SourceReason } from '../../protocol/fields.ts'
import type { LinkSignal } from '../link/subscription-socket.ts'
import { Header, isSealed, type Log, type Logs, readLogs, type SealedHeader } from '../logs/log-schema.ts'
import { BlockReader } from '../rpc/block-reader.ts'
import type { RequestFn } from '../rpc/client.ts'
import { UpstreamError } from '../rpc/error.ts'
import type { OpenKeys, SettlementEvent } from '../sealed/block-logs.ts'
import { type FinalityEvent, FinalityGate, pollFinality } from '../sealed/finality.ts'
import type { Cursor } from '../sealed/recent-blocks.ts'
import { SealedBlocks } from '../sealed/sealed-blocks.ts'
import { MissedLogCounter } from './missed-logs.ts'
import { BEHIND_BLOCKS, ChainPoller, type PollResult, PROBE_INTERVAL_MS, UNPROVEN_POLL_MS } from './poller.ts'
import { SourceState } from './state.ts'

/** Everything that the chain brings, pushed or polled. */
export type ChainEvent =
  /** Pre-confirmed logs of one message or answer; only the settling of their block makes them sealed. */
  | { readonly type: 'logs'; readonly logs: readonly Log[]; readonly via: Ingest['source']; readonly receivedAt: number }
  | SettlementEvent
  | FinalityEvent
  /** The head of the chain, with its Unix time. */
  | {
      readonly type: 'head'
      readonly sealed: number | null
      readonly pending: number | null
      readonly timestamp: number | null
      /** The hashes of the sealed block and of its parent. */
      readonly hash?: Hex
      readonly parentHash?: Hex | null
    }
  /** The start: blocks after this one are settled. */
  | { readonly type: 'cursor'; readonly cursor: Cursor }
  /** Logs of these addresses are received from now on. */
  | { readonly type: 'subscribed'; readonly addresses: readonly Hex[] }
  | { readonly type: 'status'; readonly source: SourceName; readonly reason: SourceReason }

const SILENCE_CHECK_MS = 250
/** Logs that wait for the first head. Further ones are published when their block is settled. */
const EARLY_LOGS_BOUND = 2_000
/** A pushed log of a block further below the first head does not move the start. */
const EARLY_LOGS_MAX_DEPTH_BLOCKS = 64
/** The addresses to subscribe to, and when to retry a subscription. */
export type LinkInputs = { readonly addresses: Observable<readonly Hex[]>; readonly probes: Observable<unknown> }

export type SourceOptions = {
  readonly request: RequestFn
  /** Opens the upstream socket; null without one: then everything is polled. */
  readonly link: ((inputs: LinkInputs) => Observable<LinkSignal>) | null
  readonly addresses: Observable<readonly Hex[]>
  readonly openKeys: OpenKeys
  readonly cursor: Cursor | null
  /** The head of the previous run. */
  readonly head: Head
  readonly pendingPollMs: number
  readonly silenceMs: number
  readonly finalityPollMs: number
  readonly backfillBoundMs: number
  readonly clock: SchedulerLike
  readonly warn: (kind: string, detail: unknown) => void
}

/** The events of the chain, pre-confirmed and sealed: pushed while the link is trusted, polled otherwise. */
export const source = (options: SourceOptions): Observable<ChainEvent> =>
  defer(() => {
    const chainSource = new ChainSource(options)
    const { addresses, link } = options
    return addresses.pipe(
      connect(
        (shared) =>
          merge(
            chainSource.sealedEvents(),
            shared.pipe(
              tap((list) => chainSource.setAddresses(list)),
              ignoreElements(),
            ),
            link
              ? link({ addresses: shared, probes: chainSource.probes }).pipe(connect((signals) => chainSource.linkEvents(signals)))
              : EMPTY,
            chainSource.polledEvents(),
          ),
        // A link that reconnects needs the last addresses again.
        { connector: () => new ReplaySubject(1) },
      ),
    )
  })

/** Combines pushed, polled and sealed events into one stream. */
class ChainSource {
  readonly probes = new Subject<void>()
  readonly #options: SourceOptions
  readonly #node: BlockReader
  readonly #sealed: SealedBlocks
  readonly #state: SourceState
  readonly #missedLogs = new MissedLogCounter()
  readonly #poller: ChainPoller
  readonly #finalityGate = new FinalityGate()
  /** Logs that were pushed before the first head. */
  #earlyLogs: Extract<ChainEvent, { type: 'logs' }>[] = []
  #addresses: readonly Hex[] = []
  #addressSet: ReadonlySet<Hex> = new Set()
  /** The addresses whose pre-confirmed logs the link pushes. */
  #subscribedAddresses: readonly Hex[] = []
  #pushedAddresses: ReadonlySet<Hex> = new Set()
  /** The last emitted addresses; initially the empty list, which is not worth an event. */
  #reportedAddresses: readonly Hex[] = this.#addresses
  #probedAt = Number.NEGATIVE_INFINITY

  constructor(options: SourceOptions) {
    this.#options = options
    const { request, clock, silenceMs } = options
    this.#state = new SourceState({ hasLink: options.link !== null, silenceMs, now: () => clock.now() })
    this.#node = new BlockReader(this.#trackAnswers(request))
    this.#poller = new ChainPoller({ node: this.#node, state: this.#state, addresses: () => this.#addresses, silenceMs, clock })
    this.#sealed = new SealedBlocks({ ...options, node: this.#node, safe: options.head.safe, addresses: () => this.#addresses })
  }

  setAddresses(addresses: readonly Hex[]): void {
    this.#addresses = addresses
    this.#addressSet = new Set(addresses)
  }

  /** Settled blocks and their finality. */
  sealedEvents(): Observable<ChainEvent> {
    const { clock, finalityPollMs, head, warn } = this.#options
    return merge(
      this.#sealed.follow().pipe(
        concatMap((event) => {
          if (event.type === 'unreadable' || event.type === 'reorg') return of(event)
          if (event.type === 'sealed') {
            for (const block of event.blocks) {
              // The link cannot miss logs that it was not subscribed to.
              const logs = block.logs.filter(({ address }) => this.#pushedAddresses.has(address))
              this.#missedLogs.blockSealed({ ...block, logs }, clock.now())
            }
            this.#checkMissedLogs()
          }
          return concat(of(event), this.#releaseFinality(event.cursor.number))
        }),
      ),
      pollFinality({ node: this.#node, pollIntervalMs: finalityPollMs, published: head, clock, warn }).pipe(
        concatMap((event) => {
          this.#finalityGate.add(event)
          this.#sealed.markSafe(event.block)
          return this.#releaseFinality(this.#sealed.cursor?.number ?? -1)
        }),
      ),
    )
  }

  #releaseFinality(settled: number): Observable<ChainEvent> {
    return from(this.#finalityGate.release(settled, (block) => this.#sealed.isOurs(block)))
  }

  /** The link's events. After each subscription one poll closes the gap before it. */
  linkEvents(signals: Observable<LinkSignal>): Observable<ChainEvent> {
    return merge(
      signals.pipe(mergeMap((signal) => this.#handleSignal(signal))),
      signals.pipe(
        filter((signal) => signal.type === 'down' || (signal.type === 'live' && signal.subscription === 'pendingLogs')),
        switchMap((signal) => (signal.type === 'live' ? this.#closePendingGap() : EMPTY)),
      ),
    )
  }

  /** Polls everything that is not pushed. */
  polledEvents(): Observable<ChainEvent> {
    const { clock, pendingPollMs } = this.#options
    return merge(
      timer(0, pendingPollMs, clock).pipe(exhaustMap(() => this.#warnOnFailure(this.#pollDue()))),
      interval(SILENCE_CHECK_MS, clock).pipe(
        mergeMap(() => {
          this.#checkMissedLogs()
          // A distrusted stream may have proven itself meanwhile.
          return concat(this.#reportPushing(), this.#status())
        }),
      ),
    )
  }

  #trackAnswers(request: RequestFn): RequestFn {
    return (method, params) =>
      defer(() => {
        this.#state.requestSent()
        return request(method, params)
      }).pipe(
        tap({
          next: () => this.#state.responseReceived(),
          error: (failure: unknown) => {
            if (failure instanceof UpstreamError && failure.isAnswered) this.#state.responseReceived()
          },
        }),
      )
  }

  #warnOnFailure<T>(polled: Observable<T>): Observable<T> {
    return polled.pipe(
      catchError((failure: unknown) => {
        if (!(failure instanceof UpstreamError)) throw failure
        this.#options.warn('polling failed', { reason: failure.message })
        return EMPTY
      }),
    )
  }

  #checkMissedLogs(): void {
    const health = this.#missedLogs.health(this.#options.clock.now())
    if (health !== 'ok') this.#state.markDoubted(health)
  }

  #handleSignal(signal: LinkSignal): Observable<ChainEvent> {
    switch (signal.type) {
      case 'down':
        // `down` first: the state ignores `refused` while the link pushes.
        this.#state.setLink('down')
        if (signal.isRefused) this.#state.setLink('refused')
        this.#missedLogs.stop()
        this.#poller.forgetPushedHead()
        return EMPTY
      case 'live':
        this.#state.setLink(signal.subscription === 'pendingLogs' ? 'pushing' : 'refused')
        if (signal.subscription === 'pendingLogs') {
          this.#missedLogs.start()
          this.#subscribedAddresses = signal.addresses
          this.#pushedAddresses = new Set(signal.addresses)
        }
        return concat(this.#reportPushing(), this.#status())
      case 'head':
        return this.#handlePushedHead(Header.safeParse(signal.header).data ?? null)
      case 'log':
        return signal.subscription === 'logs'
          ? this.#handleSealedLogs(readLogs(signal.log))
          : this.#handleLogs(readLogs(signal.log), 'pendingLogs', signal.receivedAt)
      case 'unreadable':
        return of({ type: 'unreadable', count: 1 })
    }
  }

  #handleLogs({ logs, unreadable }: Logs, via: 'pendingLogs' | 'poll', receivedAt: number): Observable<ChainEvent> {
    const events: ChainEvent[] = unreadable > 0 ? [{ type: 'unreadable', count: unreadable }] : []
    const preconfirmed = logs.filter((log) => this.#isPreconfirmed(log, via))
    if (preconfirmed.length === 0) return from(events)
    const event = { type: 'logs', logs: preconfirmed, via, receivedAt } as const
    if (this.#sealed.settled) return from([event, ...events])
    const early = this.#earlyLogs.reduce((sum, { logs }) => sum + logs.length, 0)
    if (early < EARLY_LOGS_BOUND) this.#earlyLogs.push({ ...event, logs: preconfirmed.slice(0, EARLY_LOGS_BOUND - early) })
    return from(events)
  }

  /** Counts a log as evidence about the stream. Returns whether it is pre-confirmed. */
  #isPreconfirmed(log: Log, via: 'pendingLogs' | 'poll'): boolean {
    const head = this.#sealed.head
    if (log.removed) return false
    // Some nodes push sealed logs as pending ones. Settling publishes those.
    if (head && log.blockHash === head.hash) return false
    // A log of an address without a subscription proves nothing.
    const isListed = this.#addressSet.has(log.address)
    if (via === 'poll') this.#missedLogs.excuse(log)
    else if (head && isListed) {
      if (log.blockNumber > head.number) {
        this.#missedLogs.logPushed(log)
        this.#state.markDelivered()
      } else if (log.blockNumber <= head.number - BEHIND_BLOCKS) this.#missedLogs.lateLogPushed()
    }
    return true
  }

  /** Settling publishes sealed logs. Here they only reveal new or withdrawn blocks. */
  #handleSealedLogs({ logs, unreadable }: Logs): Observable<ChainEvent> {
    for (const log of logs) {
      if (log.removed) this.#sealed.retract(log.blockNumber, log.blockHash)
      else if (log.blockNumber > (this.#sealed.head?.number ?? 0)) this.#poller.pollHeadSoon()
    }
    return concat(this.#reportDisputed(), unreadable > 0 ? of<ChainEvent>({ type: 'unreadable', count: unreadable }) : EMPTY)
  }

  /** A settled block is disputed: reported at once, since finding out who is right takes a request. */
  #reportDisputed(): Observable<ChainEvent> {
    const { disputed } = this.#sealed
    return disputed === null ? EMPTY : of({ type: 'reorg', from: disputed })
  }

  #handlePushedHead(header: Header | null): Observable<ChainEvent> {
    if (!isSealed(header)) return of({ type: 'unreadable', count: 1 })
    this.#poller.recordPushedHead(header.number)
    return this.#handleHead(header)
  }

  #handleHead(header: SealedHeader): Observable<ChainEvent> {
    return defer(() => {
      const previousHead = this.#sealed.head?.number ?? -1
      const started = this.#start(header)
      if (!this.#sealed.receiveHead(header)) return of<ChainEvent>({ type: 'unreadable', count: 1 })
      this.#missedLogs.headReceived(Math.max(previousHead, header.number))
      if (header.number <= previousHead) return this.#reportDisputed()
      const { number: sealed, hash, parentHash, timestamp } = header
      this.#state.headReceived()
      return concat(of<ChainEvent>({ type: 'head', sealed, pending: null, timestamp, hash, parentHash }), started, this.#status())
    })
  }

  /** The first head sets the start of settling, lowered to include the logs that were pushed before it. */
  #start({ number, hash }: SealedHeader): Observable<ChainEvent> {
    const earlyLogs = this.#earlyLogs.splice(0)
    const blocks = earlyLogs
      .flatMap(({ logs }) => logs.map((log) => log.blockNumber))
      .filter((block) => number - block < EARLY_LOGS_MAX_DEPTH_BLOCKS)
    const startBlock = Math.max(0, Math.min(number, ...blocks.map((block) => block - 1)))
    const cursor: Cursor = { number: startBlock, hash: startBlock === number ? hash : null }
    if (!this.#sealed.begin(cursor)) return EMPTY
    return concat(of<ChainEvent>({ type: 'cursor', cursor }), this.#reportPushing(), from(earlyLogs))
  }

  /** Reported only after the first head, which sets the start. */
  #reportPushing(): Observable<ChainEvent> {
    if (!this.#sealed.settled || !this.#state.isPushing) return EMPTY
    return concat(this.#reportAddresses(this.#subscribedAddresses), this.#status())
  }

  /** Polls until the node answers: logs from before the subscription may be missing until then. */
  #closePendingGap(): Observable<ChainEvent> {
    return this.#poller.pollPending().pipe(
      retry({
        delay: (failure: unknown) =>
          failure instanceof UpstreamError ? timer(UNPROVEN_POLL_MS, this.#options.clock) : throwError(() => failure),
      }),
      tap((result) => {
        // Only logs excuse earlier ones: a node without a pending block proves nothing about what it pushed before.
        if (result.type === 'logs') this.#missedLogs.pendingPolled()
      }),
      mergeMap((result) => this.#handlePollResult(result)),
    )
  }

  #pollDue(): Observable<ChainEvent> {
    const now = this.#options.clock.now()
    if (this.#state.shouldProbe && now - this.#probedAt >= PROBE_INTERVAL_MS) {
      this.#probedAt = now
      this.probes.next()
    }
    return this.#poller.pollDue().pipe(mergeMap((result) => this.#handlePollResult(result)))
  }

  #handlePollResult(result: PollResult): Observable<ChainEvent> {
    switch (result.type) {
      case 'latest':
        return this.#handleHead(result.header)
      case 'pending':
        this.#state.pendingPolled(result.status)
        return concat(of<ChainEvent>({ ...result.block, type: 'head', sealed: null }), this.#status())
      case 'logs':
        return this.#handleLogs(result.logs, 'poll', this.#options.clock.now())
      case 'complete':
        // Without pushes, tokens are covered once the node answers, since each block is read for their logs.
        return this.#state.isPushing || !this.#sealed.settled ? EMPTY : this.#reportAddresses(result.addresses)
    }
  }

  #reportAddresses(addresses: readonly Hex[]): Observable<ChainEvent> {
    if (addresses === this.#reportedAddresses) return EMPTY
    this.#reportedAddresses = addresses
    return of({ type: 'subscribed', addresses })
  }

  #status(): Observable<ChainEvent> {
    const status = this.#state.takeStatusChange(this.#sealed.settled !== null)
    if (status?.source === 'down') this.#sealed.beginOutage()
    return status ? of({ type: 'status', ...status }) : EMPTY
  }
}

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
import type { LinkSignal } from '../link/socket.ts'
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

/** What comes down the river from the chain, whichever way it was heard. */
export type ChainEvent =
  /** Pre-confirmed, as far as anybody knows; only the settling of its block makes a log sealed. */
  | { readonly type: 'log'; readonly log: Log; readonly via: Ingest['source']; readonly receivedAt: number }
  | SettlementEvent
  | FinalityEvent
  /** How far the chain is, and the time of that block in seconds. */
  | {
      readonly type: 'head'
      readonly sealed: number | null
      readonly pending: number | null
      readonly timestamp: number | null
      /** Of the sealed one, and of the one that it stands on. */
      readonly hash?: Hex
      readonly parentHash?: Hex | null
    }
  /** Where all begins: what is sealed after this block is told. */
  | { readonly type: 'cursor'; readonly cursor: Cursor }
  /** Logs of these addresses are heard from now on. */
  | { readonly type: 'hearing'; readonly addresses: readonly Hex[] }
  | { readonly type: 'status'; readonly source: SourceName; readonly reason: SourceReason }

/** How often it is weighed whether the upstream has been silent for too long. */
const SILENCE_CHECK_MS = 250
/** Logs that wait for the first head at most; what comes beyond it is told when its block is settled. */
const EARLY_LOGS_BOUND = 2_000
/** What was pushed of a block so far below the first head begins nothing. */
const EARLY_LOGS_MAX_DEPTH_BLOCKS = 64
/** What the link is told: whom to listen to, and when to try a subscription again. */
export type LinkInputs = { readonly addresses: Observable<readonly Hex[]>; readonly probes: Observable<unknown> }

export type SourceOptions = {
  readonly request: RequestFn
  /** Opens the upstream socket; null where there is none, so all is polled. */
  readonly link: ((inputs: LinkInputs) => Observable<LinkSignal>) | null
  readonly addresses: Observable<readonly Hex[]>
  readonly openKeys: OpenKeys
  readonly cursor: Cursor | null
  /** The head as a former life knew it. */
  readonly head: Head
  readonly pendingPollMs: number
  readonly silenceMs: number
  readonly finalityPollMs: number
  readonly backfillBoundMs: number
  readonly clock: SchedulerLike
  readonly warn: (kind: string, detail: unknown) => void
}

/** What happens on the chain, sealed and before: pushed while the link is to be trusted, polled while it is not. */
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
              ? link({ addresses: shared, probes: chainSource.probes }).pipe(
                  connect((signals) => chainSource.linkEvents(signals)),
                )
              : EMPTY,
            chainSource.polledEvents(),
          ),
        // A link that comes back has to be told again what to listen to.
        { connector: () => new ReplaySubject(1) },
      ),
    )
  })

/** One source at work: which way it listens now, and what speaks for it. */
class ChainSource {
  readonly probes = new Subject<void>()
  readonly #options: SourceOptions
  readonly #node: BlockReader
  readonly #sealed: SealedBlocks
  readonly #state: SourceState
  readonly #missedLogs = new MissedLogCounter()
  readonly #poller: ChainPoller
  readonly #finalityGate = new FinalityGate()
  /** What was told before any head was known: it waits for the first. */
  #earlyLogs: Extract<ChainEvent, { type: 'log' }>[] = []
  #addresses: readonly Hex[] = []
  #addressSet: ReadonlySet<Hex> = new Set()
  /** Whose pre-confirmed logs the link pushes. */
  #subscribedAddresses: readonly Hex[] = []
  #pushedAddresses: ReadonlySet<Hex> = new Set()
  /** Whose logs were said to be heard; nobody's is not worth saying. */
  #reportedAddresses: readonly Hex[] = this.#addresses
  #probedAt = Number.NEGATIVE_INFINITY

  constructor(options: SourceOptions) {
    this.#options = options
    const { request, clock, silenceMs } = options
    this.#state = new SourceState({ hasLink: options.link !== null, silenceMs, now: () => clock.now() })
    this.#node = new BlockReader(this.#trackAnswers(request))
    this.#poller = new ChainPoller({
      node: this.#node,
      state: this.#state,
      addresses: () => this.#addresses,
      silenceMs,
      clock,
    })
    this.#sealed = new SealedBlocks({
      ...options,
      node: this.#node,
      safe: options.head.safe,
      addresses: () => this.#addresses,
    })
  }

  setAddresses(addresses: readonly Hex[]): void {
    this.#addresses = addresses
    this.#addressSet = new Set(addresses)
  }

  /** Every sealed block, and what the chain says of how final they are. */
  sealedEvents(): Observable<ChainEvent> {
    const { clock, finalityPollMs, head, warn } = this.#options
    return merge(
      this.#sealed.follow().pipe(
        concatMap((event) => {
          if (event.type === 'unreadable' || event.type === 'doubted') return of(event)
          if (event.type === 'sealed') {
            for (const block of event.blocks) {
              // Whom it was not asked to push, the link cannot have missed.
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

  /** What a link pushes; after each subscription a look closes the hole between what was heard before and what is now. */
  linkEvents(signals: Observable<LinkSignal>): Observable<ChainEvent> {
    return merge(
      signals.pipe(mergeMap((signal) => this.#handleSignal(signal))),
      signals.pipe(
        filter((signal) => signal.type === 'down' || (signal.type === 'live' && signal.subscription === 'pendingLogs')),
        switchMap((signal) => (signal.type === 'live' ? this.#closePendingGap() : EMPTY)),
      ),
    )
  }

  /** Asks, again and again, for whatever nobody pushes. */
  polledEvents(): Observable<ChainEvent> {
    const { clock, pendingPollMs } = this.#options
    return merge(
      timer(0, pendingPollMs, clock).pipe(exhaustMap(() => this.#warnOnFailure(this.#pollDue()))),
      interval(SILENCE_CHECK_MS, clock).pipe(
        mergeMap(() => {
          this.#checkMissedLogs()
          // A stream that had been doubted may have shown meanwhile that it lives.
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
        // Lost first: a link that pushes is not refused for the sake of what was asked beside it.
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
    const events = from(logs).pipe(mergeMap((log) => this.#handleLog(log, via, receivedAt)))
    return unreadable > 0 ? concat(events, of<ChainEvent>({ type: 'unreadable', count: unreadable })) : events
  }

  /** Passes a pre-confirmed log on, and weighs what it says of whoever told it. */
  #handleLog(log: Log, via: 'pendingLogs' | 'poll', receivedAt: number): Observable<ChainEvent> {
    const head = this.#sealed.head
    if (log.removed) return EMPTY
    // Some nodes stream what is sealed under this name: its settling tells it.
    if (head && log.blockHash === head.hash) return EMPTY
    // What nobody asked for proves nothing.
    const isListed = this.#addressSet.has(log.address)
    if (via === 'poll') this.#missedLogs.excuse(log)
    else if (head && isListed) {
      if (log.blockNumber > head.number) {
        this.#missedLogs.logPushed(log)
        this.#state.markDelivered()
      } else if (log.blockNumber <= head.number - BEHIND_BLOCKS) this.#missedLogs.lateLogPushed()
    }
    if (this.#sealed.settled) return of({ type: 'log', log, via, receivedAt })
    if (this.#earlyLogs.length < EARLY_LOGS_BOUND) this.#earlyLogs.push({ type: 'log', log, via, receivedAt })
    return EMPTY
  }

  /** Sealed logs are told by the settling of their block; here they only say that there is news. */
  #handleSealedLogs({ logs, unreadable }: Logs): Observable<ChainEvent> {
    for (const log of logs) {
      if (log.removed) this.#sealed.retract(log.blockNumber, log.blockHash)
      else if (log.blockNumber > (this.#sealed.head?.number ?? 0)) this.#poller.pollHeadSoon()
    }
    return concat(
      this.#reportDisputed(),
      unreadable > 0 ? of<ChainEvent>({ type: 'unreadable', count: unreadable }) : EMPTY,
    )
  }

  /** What was sealed is disputed: said at once, since it takes a question to find out who is right. */
  #reportDisputed(): Observable<ChainEvent> {
    const { disputed } = this.#sealed
    return disputed === null ? EMPTY : of({ type: 'doubted', from: disputed })
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
      return concat(
        of<ChainEvent>({ type: 'head', sealed, pending: null, timestamp, hash, parentHash }),
        started,
        this.#status(),
      )
    })
  }

  /** The first head says from where on everything is told; what was pushed before it counts in. */
  #start({ number, hash }: SealedHeader): Observable<ChainEvent> {
    const earlyLogs = this.#earlyLogs.splice(0)
    const blocks = earlyLogs
      .map(({ log }) => log.blockNumber)
      .filter((block) => number - block < EARLY_LOGS_MAX_DEPTH_BLOCKS)
    const startBlock = Math.max(0, Math.min(number, ...blocks.map((block) => block - 1)))
    const cursor: Cursor = { number: startBlock, hash: startBlock === number ? hash : null }
    if (!this.#sealed.begin(cursor)) return EMPTY
    return concat(of<ChainEvent>({ type: 'cursor', cursor }), this.#reportPushing(), from(earlyLogs))
  }

  /** Logs are pushed: said once it is also known from where on nothing may be missing. */
  #reportPushing(): Observable<ChainEvent> {
    if (!this.#sealed.settled || !this.#state.isPushing) return EMPTY
    return concat(this.#reportAddresses(this.#subscribedAddresses), this.#status())
  }

  /** Asked until it is answered: before that something may be missing that was told while nobody listened. */
  #closePendingGap(): Observable<ChainEvent> {
    return this.#poller.pollPending().pipe(
      retry({
        delay: (failure: unknown) =>
          failure instanceof UpstreamError ? timer(UNPROVEN_POLL_MS, this.#options.clock) : throwError(() => failure),
      }),
      tap((result) => {
        // A node that shows nothing pending says nothing of what it may have pushed before.
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
      case 'look':
        this.#state.pendingPolled(result.status)
        return concat(of<ChainEvent>({ ...result.block, type: 'head', sealed: null }), this.#status())
      case 'logs':
        return this.#handleLogs(result.found, 'poll', this.#options.clock.now())
      case 'asked':
        // Where nothing is pushed, tokens are heard as soon as the node answers: each block is asked for their logs.
        return this.#state.isPushing || !this.#sealed.settled ? EMPTY : this.#reportAddresses(result.addresses)
    }
  }

  #reportAddresses(addresses: readonly Hex[]): Observable<ChainEvent> {
    if (addresses === this.#reportedAddresses) return EMPTY
    this.#reportedAddresses = addresses
    return of({ type: 'hearing', addresses })
  }

  #status(): Observable<ChainEvent> {
    const status = this.#state.takeStatusChange(this.#sealed.settled !== null)
    if (status?.source === 'down') this.#sealed.beginOutage()
    return status ? of({ type: 'status', ...status }) : EMPTY
  }
}

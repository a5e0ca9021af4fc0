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
import type { Signal } from '../link/socket.ts'
import { Header, isSealed, type Log, type Logs, readLogs, type SealedHeader } from '../logs/log-schema.ts'
import { Reader } from '../rpc/block-reader.ts'
import type { Ask } from '../rpc/client.ts'
import { UpstreamError } from '../rpc/error.ts'
import type { Owed, Settled } from '../sealed/block-logs.ts'
import { finality, Tide, type Watermark } from '../sealed/finality.ts'
import type { Cursor } from '../sealed/recent-blocks.ts'
import { Sealed } from '../sealed/sealed-blocks.ts'
import { Witness } from './missed-logs.ts'
import { BEHIND_BLOCKS, Looks, PROBE_EVERY_MS, PROVE_EVERY_MS, type Seen } from './poller.ts'
import { Verdict } from './state.ts'

/** What comes down the river from the chain, whichever way it was heard. */
export type Heard =
  /** Pre-confirmed, as far as anybody knows; only the settling of its block makes a log sealed. */
  | { readonly type: 'log'; readonly log: Log; readonly via: Ingest['source']; readonly receivedAt: number }
  | Settled
  | Watermark
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
const WEIGH_EVERY_MS = 250
/** Logs that wait for the first head at most; what comes beyond it is told when its block is settled. */
const EARLY_BOUND = 2_000
/** What was pushed of a block so far below the first head begins nothing. */
const BEGINNING_BLOCKS = 64
/** What the link is told: whom to listen to, and when to try a subscription again. */
export type LinkAsked = { readonly addresses: Observable<readonly Hex[]>; readonly probes: Observable<unknown> }

export type SourceOptions = {
  readonly ask: Ask
  /** Opens the upstream socket; null where there is none, so all is polled. */
  readonly link: ((asked: LinkAsked) => Observable<Signal>) | null
  readonly addresses: Observable<readonly Hex[]>
  readonly owed: Owed
  readonly cursor: Cursor | null
  /** The head as a former life knew it. */
  readonly head: Head
  readonly pendingPollMs: number
  readonly silenceMs: number
  readonly finalityPollMs: number
  readonly backfillBoundMs: number
  readonly clock: SchedulerLike
  readonly say: (kind: string, detail: unknown) => void
}

/** What happens on the chain, sealed and before: pushed while the link is to be trusted, polled while it is not. */
export const source = (options: SourceOptions): Observable<Heard> =>
  defer(() => {
    const feed = new Feed(options)
    const { addresses, link } = options
    return addresses.pipe(
      connect(
        (shared) =>
          merge(
            feed.settled(),
            shared.pipe(
              tap((list) => feed.wants(list)),
              ignoreElements(),
            ),
            link
              ? link({ addresses: shared, probes: feed.probes }).pipe(connect((signals) => feed.linked(signals)))
              : EMPTY,
            feed.polled(),
          ),
        // A link that comes back has to be told again what to listen to.
        { connector: () => new ReplaySubject(1) },
      ),
    )
  })

/** One source at work: which way it listens now, and what speaks for it. */
class Feed {
  readonly probes = new Subject<void>()
  readonly #options: SourceOptions
  readonly #node: Reader
  readonly #sealed: Sealed
  readonly #verdict: Verdict
  readonly #witness = new Witness()
  readonly #looks: Looks
  readonly #tide = new Tide()
  /** What was told before any head was known: it waits for the first. */
  #early: Extract<Heard, { type: 'log' }>[] = []
  #wanted: readonly Hex[] = []
  #ours: ReadonlySet<Hex> = new Set()
  /** Whose pre-confirmed logs the link pushes. */
  #subscribed: readonly Hex[] = []
  #pushes: ReadonlySet<Hex> = new Set()
  /** Whose logs were said to be heard; nobody's is not worth saying. */
  #heard: readonly Hex[] = this.#wanted
  #probedAt = Number.NEGATIVE_INFINITY

  constructor(options: SourceOptions) {
    this.#options = options
    const { ask, clock, silenceMs } = options
    this.#verdict = new Verdict({ hasLink: options.link !== null, silenceMs, now: () => clock.now() })
    this.#node = new Reader(this.#watched(ask))
    this.#looks = new Looks({ node: this.#node, verdict: this.#verdict, wanted: () => this.#wanted, silenceMs, clock })
    this.#sealed = new Sealed({ ...options, node: this.#node, safe: options.head.safe, addresses: () => this.#wanted })
  }

  wants(addresses: readonly Hex[]): void {
    this.#wanted = addresses
    this.#ours = new Set(addresses)
  }

  /** Every sealed block, and what the chain says of how final they are. */
  settled(): Observable<Heard> {
    const { clock, finalityPollMs, head, say } = this.#options
    return merge(
      this.#sealed.follow().pipe(
        concatMap((settled) => {
          if (settled.type === 'unreadable' || settled.type === 'doubted') return of(settled)
          if (settled.type === 'sealed') {
            for (const block of settled.blocks) {
              // Whom it was not asked to push, the link cannot have missed.
              const logs = block.logs.filter(({ address }) => this.#pushes.has(address))
              this.#witness.sealed({ ...block, logs }, clock.now())
            }
            this.#weigh()
          }
          return concat(of(settled), this.#reached(settled.cursor.number))
        }),
      ),
      finality({ node: this.#node, everyMs: finalityPollMs, known: head, clock, say }).pipe(
        concatMap((mark) => {
          this.#tide.rose(mark)
          this.#sealed.safe(mark.block)
          return this.#reached(this.#sealed.cursor?.number ?? -1)
        }),
      ),
    )
  }

  #reached(settled: number): Observable<Heard> {
    return from(this.#tide.reached(settled, (block) => this.#sealed.agrees(block)))
  }

  /** What a link pushes; after each subscription a look closes the hole between what was heard before and what is now. */
  linked(signals: Observable<Signal>): Observable<Heard> {
    return merge(
      signals.pipe(mergeMap((signal) => this.#pushed(signal))),
      signals.pipe(
        filter((signal) => signal.type === 'down' || (signal.type === 'live' && signal.of === 'pendingLogs')),
        switchMap((signal) => (signal.type === 'live' ? this.#close() : EMPTY)),
      ),
    )
  }

  /** Asks, again and again, for whatever nobody pushes. */
  polled(): Observable<Heard> {
    const { clock, pendingPollMs } = this.#options
    return merge(
      timer(0, pendingPollMs, clock).pipe(exhaustMap(() => this.#patiently(this.#due()))),
      interval(WEIGH_EVERY_MS, clock).pipe(
        mergeMap(() => {
          this.#weigh()
          // A stream that had been doubted may have shown meanwhile that it lives.
          return concat(this.#listens(), this.#status())
        }),
      ),
    )
  }

  #watched(ask: Ask): Ask {
    return (method, params) =>
      defer(() => {
        this.#verdict.asked()
        return ask(method, params)
      }).pipe(
        tap({
          next: () => this.#verdict.answered(),
          error: (failure: unknown) => {
            if (failure instanceof UpstreamError && failure.answered) this.#verdict.answered()
          },
        }),
      )
  }

  #patiently<T>(asked: Observable<T>): Observable<T> {
    return asked.pipe(
      catchError((failure: unknown) => {
        if (!(failure instanceof UpstreamError)) throw failure
        this.#options.say('polling failed', { reason: failure.message })
        return EMPTY
      }),
    )
  }

  #weigh(): void {
    const evidence = this.#witness.says(this.#options.clock.now())
    if (evidence !== 'ok') this.#verdict.doubted(evidence)
  }

  #pushed(signal: Signal): Observable<Heard> {
    switch (signal.type) {
      case 'down':
        // Lost first: a link that pushes is not refused for the sake of what was asked beside it.
        this.#verdict.linked('down')
        if (signal.refused) this.#verdict.linked('refused')
        this.#witness.ends()
        this.#looks.alone()
        return EMPTY
      case 'live':
        this.#verdict.linked(signal.of === 'pendingLogs' ? 'pushing' : 'refused')
        if (signal.of === 'pendingLogs') {
          this.#witness.begins()
          this.#subscribed = signal.addresses
          this.#pushes = new Set(signal.addresses)
        }
        return concat(this.#listens(), this.#status())
      case 'head':
        return this.#headed(Header.safeParse(signal.header).data ?? null)
      case 'log':
        return signal.of === 'logs'
          ? this.#sealedLogs(readLogs(signal.log))
          : this.#tellAll(readLogs(signal.log), 'pendingLogs', signal.receivedAt)
      case 'unreadable':
        return of({ type: 'unreadable', count: 1 })
    }
  }

  #tellAll({ logs, unreadable }: Logs, via: 'pendingLogs' | 'poll', receivedAt: number): Observable<Heard> {
    const told = from(logs).pipe(mergeMap((log) => this.#tell(log, via, receivedAt)))
    return unreadable > 0 ? concat(told, of<Heard>({ type: 'unreadable', count: unreadable })) : told
  }

  /** Passes a pre-confirmed log on, and weighs what it says of whoever told it. */
  #tell(log: Log, via: 'pendingLogs' | 'poll', receivedAt: number): Observable<Heard> {
    const head = this.#sealed.head
    if (log.removed) return EMPTY
    // Some nodes stream what is sealed under this name: its settling tells it.
    if (head && log.blockHash === head.hash) return EMPTY
    // What nobody asked for proves nothing.
    const ours = this.#ours.has(log.address)
    if (via === 'poll') this.#witness.excuse(log)
    else if (head && ours) {
      if (log.blockNumber > head.number) {
        this.#witness.announced(log)
        this.#verdict.delivered()
      } else if (log.blockNumber <= head.number - BEHIND_BLOCKS) this.#witness.tooLate()
    }
    if (this.#sealed.settled) return of({ type: 'log', log, via, receivedAt })
    if (this.#early.length < EARLY_BOUND) this.#early.push({ type: 'log', log, via, receivedAt })
    return EMPTY
  }

  /** Sealed logs are told by the settling of their block; here they only say that there is news. */
  #sealedLogs({ logs, unreadable }: Logs): Observable<Heard> {
    for (const log of logs) {
      if (log.removed) this.#sealed.takenBack(log.blockNumber, log.blockHash)
      else if (log.blockNumber > (this.#sealed.head?.number ?? 0)) this.#looks.hurry()
    }
    return concat(this.#doubts(), unreadable > 0 ? of<Heard>({ type: 'unreadable', count: unreadable }) : EMPTY)
  }

  /** What was sealed is disputed: said at once, since it takes a question to find out who is right. */
  #doubts(): Observable<Heard> {
    const { disputed } = this.#sealed
    return disputed === null ? EMPTY : of({ type: 'doubted', from: disputed })
  }

  #headed(header: Header | null): Observable<Heard> {
    if (!isSealed(header)) return of({ type: 'unreadable', count: 1 })
    this.#looks.pushed(header.number)
    return this.#raise(header)
  }

  #raise(header: SealedHeader): Observable<Heard> {
    return defer(() => {
      const before = this.#sealed.head?.number ?? -1
      const begun = this.#begin(header)
      if (!this.#sealed.raise(header)) return of<Heard>({ type: 'unreadable', count: 1 })
      this.#witness.headed(Math.max(before, header.number))
      if (header.number <= before) return this.#doubts()
      const { number: sealed, hash, parentHash, timestamp } = header
      this.#verdict.headed()
      return concat(
        of<Heard>({ type: 'head', sealed, pending: null, timestamp, hash, parentHash }),
        begun,
        this.#status(),
      )
    })
  }

  /** The first head says from where on everything is told; what was pushed before it counts in. */
  #begin({ number, hash }: SealedHeader): Observable<Heard> {
    const early = this.#early.splice(0)
    const blocks = early.map(({ log }) => log.blockNumber).filter((block) => number - block < BEGINNING_BLOCKS)
    const before = Math.max(0, Math.min(number, ...blocks.map((block) => block - 1)))
    const cursor: Cursor = { number: before, hash: before === number ? hash : null }
    if (!this.#sealed.begin(cursor)) return EMPTY
    return concat(of<Heard>({ type: 'cursor', cursor }), this.#listens(), from(early))
  }

  /** Logs are pushed: said once it is also known from where on nothing may be missing. */
  #listens(): Observable<Heard> {
    if (!this.#sealed.settled || !this.#verdict.pushing) return EMPTY
    return concat(this.#hearing(this.#subscribed), this.#status())
  }

  /** Asked until it is answered: before that something may be missing that was told while nobody listened. */
  #close(): Observable<Heard> {
    return this.#looks.closely().pipe(
      retry({
        delay: (failure: unknown) =>
          failure instanceof UpstreamError ? timer(PROVE_EVERY_MS, this.#options.clock) : throwError(() => failure),
      }),
      tap((seen) => {
        // A node that shows nothing pending says nothing of what it may have pushed before.
        if (seen.type === 'logs') this.#witness.looked()
      }),
      mergeMap((seen) => this.#seen(seen)),
    )
  }

  #due(): Observable<Heard> {
    const now = this.#options.clock.now()
    if (this.#verdict.wantsProbe && now - this.#probedAt >= PROBE_EVERY_MS) {
      this.#probedAt = now
      this.probes.next()
    }
    return this.#looks.due().pipe(mergeMap((seen) => this.#seen(seen)))
  }

  #seen(seen: Seen): Observable<Heard> {
    switch (seen.type) {
      case 'latest':
        return this.#raise(seen.header)
      case 'look':
        this.#verdict.looked(seen.look)
        return concat(of<Heard>({ ...seen.building, type: 'head', sealed: null }), this.#status())
      case 'logs':
        return this.#tellAll(seen.found, 'poll', this.#options.clock.now())
      case 'asked':
        // Where nothing is pushed, tokens are heard as soon as the node answers: each block is asked for their logs.
        return this.#verdict.pushing || !this.#sealed.settled ? EMPTY : this.#hearing(seen.addresses)
    }
  }

  #hearing(addresses: readonly Hex[]): Observable<Heard> {
    if (addresses === this.#heard) return EMPTY
    this.#heard = addresses
    return of({ type: 'hearing', addresses })
  }

  #status(): Observable<Heard> {
    const standing = this.#verdict.news(this.#sealed.settled !== null)
    if (standing?.source === 'down') this.#sealed.wasAway()
    return standing ? of({ type: 'status', ...standing }) : EMPTY
  }
}

import {
  catchError,
  concat,
  connect,
  defer,
  distinctUntilChanged,
  EMPTY,
  exhaustMap,
  filter,
  from,
  ignoreElements,
  interval,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  ReplaySubject,
  retry,
  type SchedulerLike,
  startWith,
  switchMap,
  tap,
  timer,
} from 'rxjs'
import type { Hex, Ingest, SourceName, SourceReason } from '../protocol/parts.ts'
import type { Signal } from './link-socket.ts'
import { Header, type Log, readLogs } from './log.ts'
import { type Found, Reader } from './reader.ts'
import type { Ask } from './rpc.ts'
import { Verdict } from './verdict.ts'

/** What comes down the river from the chain, whichever way it was heard. */
export type Heard =
  | {
      readonly type: 'log'
      readonly log: Log
      readonly via: Ingest['source']
      readonly sealed: boolean
      readonly receivedAt: number
    }
  | { readonly type: 'hole'; readonly blocks: { readonly from: number; readonly to: number }; readonly reason: string }
  | { readonly type: 'head'; readonly sealed: number | null; readonly pending: number | null }
  | { readonly type: 'unreadable'; readonly count: number }
  /** Everything up to this sealed block has been heard; a restart goes on from here. */
  | { readonly type: 'cursor'; readonly sealed: number }
  /** Logs of these addresses are heard from now on. */
  | { readonly type: 'hearing'; readonly addresses: readonly Hex[] }
  | { readonly type: 'status'; readonly source: SourceName; readonly reason: SourceReason }

/** How often a closing question that failed is asked again. */
const CLOSE_RETRY_MS = 1_000
/** How often it is looked whether the upstream has been silent for too long. */
const HEALTH_EVERY_MS = 250

/** A pushed head further than this from the newest that was asked for is not believed. */
const HEAD_JUMP_BOUND_BLOCKS = 1_000_000

type Options = {
  readonly ask: Ask
  /** Opens the upstream socket; null where there is none, so all is polled. */
  readonly link: ((addresses: Observable<readonly Hex[]>) => Observable<Signal>) | null
  readonly addresses: Observable<readonly Hex[]>
  readonly cursor: number | null
  readonly pendingPollMs: number
  readonly silenceMs: number
  readonly backfillBoundMs: number
  readonly clock: SchedulerLike
  readonly say: (kind: string, detail: unknown) => void
}

/** Where pre-confirmations come from: pushed while the link lives, polled while it does not, one stream of both. */
export const source = (options: Options): Observable<Heard> =>
  defer(() => {
    const feed = new Feed(options)
    const { addresses, link } = options
    return addresses.pipe(
      connect(
        (shared) =>
          merge(
            shared.pipe(
              tap((list) => feed.wants(list)),
              ignoreElements(),
            ),
            link ? link(shared).pipe(connect((signals) => feed.linked(signals))) : feed.polled(),
          ),
        // A link that comes back has to be told again what to listen to.
        { connector: () => new ReplaySubject(1) },
      ),
    )
  })

/** One source at work: which way it listens now, and what speaks for it. */
class Feed {
  readonly #options: Options
  readonly #reader: Reader
  readonly #verdict: Verdict
  #wanted: readonly Hex[] = []
  #heard: readonly Hex[] = []
  /** Whose logs the link pushes. */
  #subscribed: readonly Hex[] = []
  /** Whether everything up to the newest head has been heard, so that heads may move the cursor. */
  #closed = false
  #moved = ''

  constructor(options: Options) {
    this.#options = options
    this.#reader = new Reader(options)
    const { clock, silenceMs } = options
    this.#verdict = new Verdict({ hasLink: options.link !== null, silenceMs, now: () => clock.now() })
  }

  wants(addresses: readonly Hex[]): void {
    this.#wanted = addresses
  }

  /** Listens to a link: what it pushes, what it says of the chain, and which of the two ways is open now. */
  linked(signals: Observable<Signal>): Observable<Heard> {
    return merge(
      signals.pipe(mergeMap((signal) => this.#pushed(signal))),
      signals.pipe(
        filter((signal) => signal.type === 'live' || signal.type === 'down'),
        map((signal) => signal.type === 'live' && signal.of === 'pendingLogs'),
        startWith(false),
        // A link that fails again and again must not interrupt the polling that stands in for it.
        distinctUntilChanged((before, now) => !before && !now),
        switchMap((pushing) => (pushing ? this.#close() : this.polled())),
      ),
    )
  }

  /** Asks again and again whether the pending state moved, and what happened since if it did. */
  polled(): Observable<Heard> {
    const { clock, pendingPollMs, say } = this.#options
    return defer(() => {
      this.#moved = ''
      this.#verdict.looked(null)
      return merge(
        timer(0, pendingPollMs, clock).pipe(
          exhaustMap(() =>
            this.#look().pipe(
              catchError((failure: unknown) => {
                say('polling failed', { reason: failure instanceof Error ? failure.message : String(failure) })
                return EMPTY
              }),
            ),
          ),
        ),
        interval(HEALTH_EVERY_MS, clock).pipe(mergeMap(() => this.#status())),
      )
    })
  }

  #pushed(signal: Signal): Observable<Heard> {
    switch (signal.type) {
      case 'down':
        this.#verdict.linked('down')
        return EMPTY
      case 'live':
        this.#verdict.linked(signal.of === 'pendingLogs' ? 'pushing' : 'refused')
        this.#subscribed = signal.addresses
        return this.#listens()
      case 'head':
        return this.#headed(Header.safeParse(signal.header).data ?? null)
      case 'log':
        return this.#told(signal)
      case 'unreadable':
        return of({ type: 'unreadable', count: 1 })
    }
  }

  #told({ of: kind, log, receivedAt }: Extract<Signal, { type: 'log' }>): Observable<Heard> {
    const { logs, unreadable } = readLogs(log)
    const via = kind === 'pendingLogs' ? 'pendingLogs' : 'sealed'
    const [first] = logs
    const begun = first ? this.#beginBefore(first.blockNumber) : EMPTY
    const heard = logs.map((one): Heard => ({ type: 'log', log: one, via, sealed: via === 'sealed', receivedAt }))
    return concat(begun, from(heard), unreadable > 0 ? of<Heard>({ type: 'unreadable', count: unreadable }) : EMPTY)
  }

  #headed(header: Header | null): Observable<Heard> {
    if (header?.number == null || this.#isAbsurd(header.number)) return of({ type: 'unreadable', count: 1 })
    const head: Heard = { type: 'head', sealed: header.number, pending: null }
    if (!this.#closed || !this.#verdict.pushing) return concat(this.#beginBefore(header.number), of(head))
    this.#reader.advance(header.number)
    return of<Heard[]>(head, { type: 'cursor', sealed: header.number })
  }

  /** No chain runs ahead of itself: what would settle blocks that are nowhere near is garbage. */
  #isAbsurd(number: number): boolean {
    const latest = this.#reader.latest?.number
    return latest != null && number > latest + HEAD_JUMP_BOUND_BLOCKS
  }

  /** The first thing that is known of the chain says from where on everything is told. */
  #beginBefore(block: number): Observable<Heard> {
    // Before the first block there is none.
    const sealed = Math.max(0, block - 1)
    if (!this.#reader.begin(sealed)) return EMPTY
    return concat(of<Heard>({ type: 'cursor', sealed }), this.#listens())
  }

  /** Logs are pushed: said once it is also known from where on nothing may be missing. */
  #listens(): Observable<Heard> {
    return this.#reader.begun ? concat(this.#hearing(this.#subscribed), this.#status()) : EMPTY
  }

  /** After each subscription: one question closes the hole between what was heard before and what is pushed now. */
  #close(): Observable<Heard> {
    const { clock } = this.#options
    return defer(() => {
      this.#closed = false
      return this.#read()
    }).pipe(
      retry({ delay: () => timer(CLOSE_RETRY_MS, clock) }),
      tap({
        complete: () => {
          this.#closed = true
        },
      }),
    )
  }

  #look(): Observable<Heard> {
    return this.#reader.header('pending').pipe(
      mergeMap((pending) => (pending ? of(pending) : this.#reader.header('latest'))),
      mergeMap((block) => {
        const moved = `${block?.number}:${block?.hash}:${block?.transactions?.length}:${block?.gasUsed}:${this.#wanted.length}`
        const same = moved === this.#moved && this.#heard === this.#wanted
        const news = same || this.#wanted.length === 0 ? EMPTY : this.#read()
        return concat(
          news,
          defer(() => {
            this.#moved = moved
            const preconfirmed = this.#reader.latest ? this.#isPreconfirmed(block) : null
            const pending = preconfirmed ? (block?.number ?? null) : null
            this.#verdict.answered()
            this.#verdict.looked(preconfirmed)
            return concat(of<Heard>({ type: 'head', sealed: null, pending }), this.#status())
          }),
        )
      }),
    )
  }

  #read(): Observable<Heard> {
    return this.#reader.read(this.#wanted).pipe(
      tap(() => this.#verdict.answered()),
      mergeMap((found) => this.#found(found)),
    )
  }

  #found(found: Found): Observable<Heard> {
    switch (found.type) {
      case 'log':
        return of({ ...found, receivedAt: this.#options.clock.now() })
      case 'head':
        return of({ ...found, pending: null })
      case 'hearing':
        return this.#hearing(found.addresses)
      case 'cursor':
        return this.#verdict.pushing ? concat(of(found), this.#listens()) : of(found)
      default:
        return of(found)
    }
  }

  #hearing(addresses: readonly Hex[]): Observable<Heard> {
    if (addresses === this.#heard) return EMPTY
    this.#heard = addresses
    return of({ type: 'hearing', addresses })
  }

  /** Whether a block shows that something is pre-confirmed now; its own hash proves nothing. */
  #isPreconfirmed(block: Header | null): boolean {
    const latest = this.#reader.latest
    if (!block || latest?.number == null) return false
    // A block that was sealed between the two questions was being built when it was asked for.
    if (block.number === null) return block.parentHash === latest.hash || block.parentHash === latest.parentHash
    return block.number > latest.number || (block.number === latest.number && block.hash !== latest.hash)
  }

  #status(): Observable<Heard> {
    const standing = this.#verdict.news(this.#reader.begun)
    return standing ? of({ type: 'status', ...standing }) : EMPTY
  }
}

import {
  catchError,
  concat,
  defer,
  EMPTY,
  exhaustMap,
  forkJoin,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  repeat,
  retry,
  type SchedulerLike,
  Subject,
  tap,
  throwError,
} from 'rxjs'
import type { Hex } from '../../protocol/fields.ts'
import { isSealed, type SealedHeader } from '../logs/log-schema.ts'
import type { Reader } from '../rpc/block-reader.ts'
import { type Trouble, UpstreamError } from '../rpc/error.ts'
import { Backfill } from './backfill.ts'
import { askedFor, type Owed, Patience, type SealedBlock, type Settled, settlingLogs } from './block-logs.ts'
import { firstKnown, firstWithin, standingBelow } from './block-search.ts'
import { Heads } from './heads.ts'
import { Absence } from './outage.ts'
import { type Cursor, DEPTH_BOUND_BLOCKS, Lately } from './recent-blocks.ts'
import { AUDIT_EVERY_BLOCKS, AUDIT_EVERY_MS, audit } from './recheck.ts'

/** So many of the newest blocks are settled one by one, by their hash; what lies deeper is read in ranges beside it. */
const NEWEST_BLOCKS = 64
/** So far behind, it is worth it: a leap takes its time, in which the chain goes on. */
const LEAP_BLOCKS = 96
/** Blocks that are read at the same time, so that a node that answers slower than it seals is kept up with. */
const AT_ONCE_BLOCKS = 8
/** How often a head is asked for that the node does not know, before what was told of it is doubted. */
const DISPUTE_TRIES = 5

/** A node that fails like this may have been away. */
const absences: ReadonlySet<Trouble> = new Set(['unreachable', 'busy', 'unknown'])

type Options = {
  readonly node: Reader
  readonly owed: Owed
  readonly addresses: () => readonly Hex[]
  /** The block up to which a former life had settled; null begins with what is sealed from now on. */
  readonly cursor: Cursor | null
  /** The newest block that a former life knew to be safe. */
  readonly safe: number | null
  /** How far back to catch up, in chain time. */
  readonly backfillBoundMs: number
  /** A step that fails for this long was an absence. */
  readonly silenceMs: number
  readonly clock: SchedulerLike
  readonly say: (kind: string, detail: unknown) => void
}

/** A block that was read, and what settles it: told with the cursor as it is by then. */
type Reading = {
  readonly header: SealedHeader
  readonly wanted: readonly Hex[]
  readonly settle: () => Observable<Settled>
}

/** Every sealed block in order, without holes, each with its logs; goes back where the chain does. */
export class Sealed {
  readonly #options: Options
  readonly #lately = new Lately()
  readonly #heads = new Heads(this.#lately)
  readonly #backfill: Backfill
  readonly #patience = new Patience()
  /** Blocks that turned out to hold more than their first answer said. */
  readonly #again = new Set<number>()
  readonly #wakes = new Subject<void>()
  readonly #audits = new Subject<number>()
  #auditedAt = Number.NEGATIVE_INFINITY
  #settled: Cursor | null
  #safe: number
  readonly #absence: Absence

  constructor(options: Options) {
    const { cursor, safe } = options
    this.#options = options
    this.#settled = cursor
    this.#safe = safe ?? 0
    this.#absence = new Absence(cursor !== null, options.silenceMs)
    // A reorganisation may have gone behind the cursor while nobody looked.
    for (const sealed of options.owed.sealedBefore) if (cursor && sealed.number < cursor.number) this.#remember(sealed)
    if (cursor) this.#remember(cursor)
    this.#backfill = new Backfill(options)
  }

  /** The newest settled block; null until it is known where to begin. */
  get settled(): Cursor | null {
    return this.#settled
  }

  /** Up to where everything is settled: what is caught up beside the newest blocks counts. */
  get cursor(): Cursor | null {
    return this.#settled && this.#backfill.cursor(this.#settled)
  }

  /** The newest head that is known. */
  get head(): SealedHeader | null {
    return this.#heads.target
  }

  /** Where somebody names another block than was settled there; null where nobody does. */
  get disputed(): number | null {
    return this.#heads.disputed
  }

  /** Says where to begin, if that is not known yet: what is sealed after this block is told. True if it was not. */
  begin(cursor: Cursor): boolean {
    if (this.#settled !== null) return false
    this.#settled = cursor
    this.#remember(cursor)
    return true
  }

  /** Nothing was heard for a while: what was sealed meanwhile is caught up. */
  wasAway(): void {
    this.#absence.begins()
  }

  /** A block that can be gone back to when nothing that is remembered stands; not ours, it shows a reorganisation. */
  safe(header: SealedHeader): void {
    // One of another chain says nothing of what stands of ours.
    if (this.#lately.at(header.number)?.hash === header.hash) this.#safe = Math.max(this.#safe, header.number)
    this.#heads.hold(header.number, header.hash)
    this.#wakes.next()
  }

  /** Whether what was settled there is this block, as far as it is remembered; after an absence that has to be seen. */
  agrees({ number, hash }: SealedHeader): boolean {
    const ours = this.#lately.at(number)?.hash ?? hash
    return ours === hash && !this.#absence.open
  }

  /** A node takes back what it said of a block. */
  takenBack(number: number, hash: Hex | null): void {
    this.#heads.takenBack(number, hash)
    this.#wakes.next()
  }

  /** A head that was pushed or polled. False where it cannot be one. */
  raise(header: SealedHeader): boolean {
    if (!this.#heads.raise(header)) return false
    this.#absence.ends(header.number)
    this.#wakes.next()
    return true
  }

  /** Settles, for ever, whatever heads are raised. */
  follow(): Observable<Settled> {
    return merge(
      this.#backfill.run(() => this.#settled ?? { number: 0, hash: null }),
      this.#audits.pipe(exhaustMap((number) => this.#audit(number))),
      this.#wakes.pipe(exhaustMap(() => this.#walk())),
    )
  }

  #remember({ number, hash }: Cursor): void {
    this.#lately.add(number, { hash, logs: null, asked: [], at: this.#options.clock.now() })
  }

  #walk(): Observable<Settled> {
    return defer(() => this.#step()).pipe(
      tap({ complete: () => this.#succeeded() }),
      retry({ delay: (failure: unknown) => this.#failed(failure) }),
      repeat({ delay: () => (this.#arrived() ? EMPTY : of(null)) }),
    )
  }

  #arrived(): boolean {
    const { disputed, target } = this.#heads
    if (disputed !== null || this.#again.size > 0) return false
    return !this.#settled || !target || this.#settled.number >= target.number
  }

  #step(): Observable<Settled> {
    const { disputed, target } = this.#heads
    const [again] = this.#again
    const settled = this.#settled
    if (disputed !== null) return this.#check(disputed)
    if (again !== undefined) return this.#settleAgain(again)
    if (!settled || !target || target.number <= settled.number) return EMPTY
    if (this.#absence.unbounded) return this.#bound(settled, target)
    if (target.number - settled.number > LEAP_BLOCKS) return this.#leap(settled, target)
    return this.#onward(settled.number + 1, Math.min(target.number - settled.number, AT_ONCE_BLOCKS))
  }

  /** Reads the next blocks side by side, for the node may be far away, and settles them in order. */
  #onward(first: number, count: number): Observable<Settled> {
    const numbers = Array.from({ length: count }, (_, at) => first + at)
    const readings = numbers.map((number) =>
      this.#headerAt(number).pipe(
        // The failures that were counted are those of the first: of the others nothing is believed or given up for them.
        mergeMap((header) => this.#read(header, number === first ? this.#patience : new Patience())),
        catchError((failure: unknown) => of({ failure })),
      ),
    )
    return forkJoin(readings).pipe(mergeMap((done) => this.#settle(done)))
  }

  /** Settles what was read, up to the first block that could not be or that does not stand on the one before. */
  #settle(readings: readonly (Reading | { readonly failure: unknown })[]): Observable<Settled> {
    const told: Observable<Settled>[] = []
    for (const reading of readings) {
      const before = this.#settled
      if ('failure' in reading)
        return concat(
          ...told,
          throwError(() => reading.failure),
        )
      const { number, hash, parentHash } = reading.header
      // Whoever was listed meanwhile may have been heard of in this block: then it was asked for too little.
      if (reading.wanted !== this.#options.addresses())
        return concat(
          ...told,
          throwError(() => new UpstreamError('behind', 'the list changed meanwhile')),
        )
      if (before?.hash && parentHash && parentHash !== before.hash) return concat(...told, this.#mismatch(before))
      this.#heads.forget(number)
      this.#settled = { number, hash }
      this.#patience.succeeded()
      this.#auditAt(number)
      told.push(reading.settle())
    }
    return concat(...told)
  }

  #succeeded(): void {
    this.#absence.succeeded(this.#options.clock.now(), this.#heads.target?.number ?? 0)
    this.#patience.succeeded()
  }

  #failed(failure: unknown): Observable<unknown> {
    const { clock, say } = this.#options
    const absent = failure instanceof UpstreamError && absences.has(failure.kind)
    if (absent) this.#absence.failed(clock.now())
    // What was pushed may never have become part of the chain: from now on the node is asked.
    if (this.#settled) this.#heads.forget(this.#settled.number + 1)
    if (this.#patience.times('behind') >= DISPUTE_TRIES) this.#heads.lower()
    if (this.#patience.failures > 0) say('settling waits', { reason: String(failure) })
    return this.#patience.wait(failure, clock)
  }

  #headerAt(number: number): Observable<SealedHeader> {
    const announced = this.#heads.announced(number)
    if (announced) return of(announced)
    return this.#options.node.header(number).pipe(
      map((header) => {
        if (!isSealed(header) || header.number !== number) throw new UpstreamError('behind', `no block ${number} yet`)
        return header
      }),
    )
  }

  /** Reads a block; it is settled when all before it are. */
  #read(header: SealedHeader, patience: Patience): Observable<Reading> {
    const { node, owed, addresses, clock } = this.#options
    const { number, hash, timestamp } = header
    const owing = owed.at(number)
    const wanted = addresses()
    const asked = askedFor(wanted, owing)
    return settlingLogs(node, { header, owing, asked, believing: patience.believes(number) }).pipe(
      map(({ logs, unreadable }) => (): Observable<Settled> => {
        // An audit asks for the wanted ones alone.
        const ours = asked === wanted ? logs : logs.filter(({ address }) => wanted.includes(address))
        this.#lately.add(number, { hash, logs: ours.length, asked: wanted, at: clock.now() })
        const via = this.#absence.covers(number) ? ('backfill' as const) : ('sealed' as const)
        const block: SealedBlock = { number, hash, timestamp, logs, asked, via }
        return concat(
          unreadable > 0 ? of<Settled>({ type: 'unreadable', count: unreadable }) : EMPTY,
          this.#told((cursor, newest) => ({ type: 'sealed', blocks: [block], newest, cursor })),
        )
      }),
      catchError((failure: unknown) => {
        if (!patience.gaveUp(failure)) return throwError(() => failure)
        return of(() => {
          this.#remember({ number, hash })
          const blocks = { from: number, to: number }
          return this.#told((cursor) => ({ type: 'hole', blocks, reason: failure.kind, cursor }))
        })
      }),
      map((settle) => ({ header, wanted, settle })),
    )
  }

  /** What is caught up beside the newest blocks is where a restart would go on. */
  #told(settled: (cursor: Cursor, newest: number) => Settled): Observable<Settled> {
    const newest = this.#settled
    return newest ? of(settled(this.#backfill.cursor(newest), newest.number)) : EMPTY
  }

  #settleAgain(number: number): Observable<Settled> {
    return this.#headerAt(number).pipe(
      mergeMap((header) => {
        const ours = this.#lately.at(number)?.hash === header.hash
        if (!ours) this.#heads.hold(number, header.hash)
        const read = ours ? this.#read(header, this.#patience).pipe(mergeMap(({ settle }) => settle())) : EMPTY
        return read.pipe(tap({ complete: () => this.#again.delete(number) }))
      }),
    )
  }

  /** The next block does not stand on the newest settled one: one of the two is of another chain. */
  #mismatch({ number, hash }: Cursor): Observable<Settled> {
    this.#heads.forget(number + 1)
    return this.#options.node
      .header(number)
      .pipe(
        mergeMap((header) =>
          isSealed(header) && header.hash !== hash
            ? this.#goBack(number)
            : throwError(() => new UpstreamError('behind', `what stands on block ${number} is not ours`)),
        ),
      )
  }

  /** Somebody names another block where we settled one: the node is asked which is right. */
  #check(number: number): Observable<Settled> {
    return this.#options.node.header(number).pipe(
      mergeMap((header) => {
        if (!isSealed(header) && this.#patience.times('behind') < DISPUTE_TRIES)
          return throwError(() => new UpstreamError('behind', `no block ${number} any more, or not yet`))
        const ours = this.#lately.at(number)?.hash
        if (isSealed(header) && ours && ours !== header.hash) return this.#goBack(number)
        this.#heads.disputed = null
        // What was announced in its place never became part of the chain.
        this.#heads.forget(number)
        return EMPTY
      }),
    )
  }

  #goBack(number: number): Observable<Settled> {
    const { node, say } = this.#options
    return standingBelow(node, this.#lately, number).pipe(
      mergeMap((standing) => (standing ? of(standing) : this.#deepBelow(number))),
      mergeMap((to) => {
        say('the chain was reorganised', { from: to.number + 1 })
        this.#lately.cut(to.number)
        this.#remember(to)
        this.#heads.wentBack()
        this.#again.clear()
        this.#settled = to
        return of<Settled>({ type: 'doubted', from: to.number + 1 })
      }),
    )
  }

  /** Nothing that is remembered stands: what is safe does, or what lies deep enough, as far as the node still has it. */
  #deepBelow(number: number): Observable<Cursor> {
    const below = Math.min(number, this.#lately.oldest) - 1
    const deep = Math.min(below, this.#safe > 0 ? this.#safe : number - NEWEST_BLOCKS)
    const from = Math.max(0, deep, number - DEPTH_BOUND_BLOCKS)
    return firstKnown(this.#options.node, from, number - 1).pipe(map((known) => ({ number: known, hash: null })))
  }

  /** Goes on from a settled block if it still stands. */
  #standing(settled: Cursor, onward: () => Observable<Settled>): Observable<Settled> {
    return (settled.hash ? this.#options.node.header(settled.number) : of(null)).pipe(
      mergeMap((now) => (isSealed(now) && now.hash !== settled.hash ? this.#goBack(settled.number) : onward())),
    )
  }

  /** After an absence: what lies too far back is left out, and said. */
  #bound(settled: Cursor, target: SealedHeader): Observable<Settled> {
    const { node, backfillBoundMs } = this.#options
    return this.#standing(settled, () =>
      firstWithin(node, settled.number + 1, target, backfillBoundMs).pipe(
        mergeMap((first) => {
          this.#absence.unbounded = false
          if (first > settled.number + 1) {
            this.#settled = { number: first - 1, hash: null }
            this.#remember(this.#settled)
            this.#backfill.add({ from: settled.number + 1, to: first - 1, hole: 'backfill_bound' })
          }
          return EMPTY
        }),
      ),
    )
  }

  /** Far behind: the newest blocks are settled first, and what lies between is read in ranges beside them. */
  #leap(settled: Cursor, target: SealedHeader): Observable<Settled> {
    const to = target.number - NEWEST_BLOCKS
    return this.#options.node.header(to).pipe(
      mergeMap((header) => {
        if (!isSealed(header)) return throwError(() => new UpstreamError('behind', `no block ${to} yet`))
        // Asked last: a view of the chain only goes forward, so if ours stands still, what was asked before stands on it.
        return this.#standing(settled, () => {
          this.#absence.extend(target.number)
          this.#settled = { number: to, hash: header.hash }
          this.#remember(this.#settled)
          this.#backfill.add({ from: settled.number + 1, to, hole: null })
          return EMPTY
        })
      }),
    )
  }

  #auditAt(number: number): void {
    const now = this.#options.clock.now()
    if (number % AUDIT_EVERY_BLOCKS !== 0 || now - this.#auditedAt < AUDIT_EVERY_MS) return
    this.#auditedAt = now
    this.#audits.next(number)
  }

  #audit(number: number): Observable<never> {
    const { node, addresses, clock } = this.#options
    return audit(node, this.#lately, { number, now: clock.now(), wanted: addresses() }).pipe(
      tap((blocks) => {
        for (const block of blocks) this.#again.add(block)
        if (blocks.length > 0) this.#wakes.next()
      }),
      // Asked for beside all else: the next audit reaches as far back.
      catchError(() => EMPTY),
      ignoreElements(),
    )
  }
}

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
import type { BlockReader } from '../rpc/block-reader.ts'
import { UpstreamError, type UpstreamErrorKind } from '../rpc/error.ts'
import { Backfill } from './backfill.ts'
import {
  addressesToQuery,
  type OpenKeys,
  RetryCounter,
  readBlockLogs,
  type SealedBlock,
  type SettlementEvent,
} from './block-logs.ts'
import { findForkPoint, firstAvailable, firstWithinAge } from './block-search.ts'
import { HeadTracker } from './heads.ts'
import { Outage } from './outage.ts'
import { type Cursor, DEPTH_BOUND_BLOCKS, RecentBlocks } from './recent-blocks.ts'
import { RECHECK_EVERY_BLOCKS, RECHECK_INTERVAL_MS, recheckBlocks } from './recheck.ts'

/** So many of the newest blocks are settled one by one, by their hash; what lies deeper is read in ranges beside it. */
const NEWEST_BLOCKS = 64
/** So far behind, it is worth it: a leap takes its time, in which the chain goes on. */
const BACKFILL_THRESHOLD_BLOCKS = 96
/** Blocks that are read at the same time, so that a node that answers slower than it seals is kept up with. */
const PARALLEL_BLOCKS = 8
/** How often a head is asked for that the node does not know, before what was told of it is doubted. */
const DISPUTE_TRIES = 5

/** A node that fails like this may have been away. */
const outageKinds: ReadonlySet<UpstreamErrorKind> = new Set(['unreachable', 'busy', 'unknown'])

type Options = {
  readonly node: BlockReader
  readonly openKeys: OpenKeys
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
  readonly warn: (kind: string, detail: unknown) => void
}

/** A block that was read, and what settles it: told with the cursor as it is by then. */
type BlockReading = {
  readonly header: SealedHeader
  readonly wanted: readonly Hex[]
  readonly settle: () => Observable<SettlementEvent>
}

/** Every sealed block in order, without holes, each with its logs; goes back where the chain does. */
export class SealedBlocks {
  readonly #options: Options
  readonly #recentBlocks = new RecentBlocks()
  readonly #heads = new HeadTracker(this.#recentBlocks)
  readonly #backfill: Backfill
  readonly #retries = new RetryCounter()
  /** Blocks that turned out to hold more than their first answer said. */
  readonly #blocksToResettle = new Set<number>()
  readonly #wakeUps = new Subject<void>()
  readonly #rechecks = new Subject<number>()
  #recheckedAt = Number.NEGATIVE_INFINITY
  #settled: Cursor | null
  #safe: number
  readonly #outage: Outage

  constructor(options: Options) {
    const { cursor, safe } = options
    this.#options = options
    this.#settled = cursor
    this.#safe = safe ?? 0
    this.#outage = new Outage(cursor !== null, options.silenceMs)
    // A reorganisation may have gone behind the cursor while nobody looked.
    for (const sealed of options.openKeys.sealedInPreviousRun)
      if (cursor && sealed.number < cursor.number) this.#remember(sealed)
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
  beginOutage(): void {
    this.#outage.begin()
  }

  /** A block that can be gone back to when nothing that is remembered stands; not ours, it shows a reorganisation. */
  markSafe(header: SealedHeader): void {
    // One of another chain says nothing of what stands of ours.
    if (this.#recentBlocks.get(header.number)?.hash === header.hash) this.#safe = Math.max(this.#safe, header.number)
    this.#heads.compare(header.number, header.hash)
    this.#wakeUps.next()
  }

  /** Whether what was settled there is this block, as far as it is remembered; after an absence that has to be seen. */
  isOurs({ number, hash }: SealedHeader): boolean {
    const ourHash = this.#recentBlocks.get(number)?.hash ?? hash
    return ourHash === hash && !this.#outage.isOpen
  }

  /** A node takes back what it said of a block. */
  retract(number: number, hash: Hex | null): void {
    this.#heads.retract(number, hash)
    this.#wakeUps.next()
  }

  /** A head that was pushed or polled. False where it cannot be one. */
  receiveHead(header: SealedHeader): boolean {
    if (!this.#heads.receiveHead(header)) return false
    this.#outage.end(header.number)
    this.#wakeUps.next()
    return true
  }

  /** Settles, for ever, whatever heads are raised. */
  follow(): Observable<SettlementEvent> {
    return merge(
      this.#backfill.run(() => this.#settled ?? { number: 0, hash: null }),
      this.#rechecks.pipe(exhaustMap((number) => this.#recheck(number))),
      this.#wakeUps.pipe(exhaustMap(() => this.#settleToTarget())),
    )
  }

  #remember({ number, hash }: Cursor): void {
    this.#recentBlocks.add(number, { hash, logCount: null, addresses: [], settledAt: this.#options.clock.now() })
  }

  #settleToTarget(): Observable<SettlementEvent> {
    return defer(() => this.#step()).pipe(
      tap({ complete: () => this.#handleSuccess() }),
      retry({ delay: (failure: unknown) => this.#retryAfter(failure) }),
      repeat({ delay: () => (this.#isCaughtUp() ? EMPTY : of(null)) }),
    )
  }

  #isCaughtUp(): boolean {
    const { disputed, target } = this.#heads
    if (disputed !== null || this.#blocksToResettle.size > 0) return false
    return !this.#settled || !target || this.#settled.number >= target.number
  }

  #step(): Observable<SettlementEvent> {
    const { disputed, target } = this.#heads
    const [numberToResettle] = this.#blocksToResettle
    const settled = this.#settled
    if (disputed !== null) return this.#resolveDispute(disputed)
    if (numberToResettle !== undefined) return this.#resettle(numberToResettle)
    if (!settled || !target || target.number <= settled.number) return EMPTY
    if (this.#outage.isUnbounded) return this.#limitCatchUp(settled, target)
    if (target.number - settled.number > BACKFILL_THRESHOLD_BLOCKS) return this.#skipToNewest(settled, target)
    return this.#settleNext(settled.number + 1, Math.min(target.number - settled.number, PARALLEL_BLOCKS))
  }

  /** Reads the next blocks side by side, for the node may be far away, and settles them in order. */
  #settleNext(first: number, count: number): Observable<SettlementEvent> {
    const numbers = Array.from({ length: count }, (_, index) => first + index)
    const readings = numbers.map((number) =>
      this.#headerAt(number).pipe(
        // The failures that were counted are those of the first: of the others nothing is believed or given up for them.
        mergeMap((header) => this.#readBlock(header, number === first ? this.#retries : new RetryCounter())),
        catchError((failure: unknown) => of({ failure })),
      ),
    )
    return forkJoin(readings).pipe(mergeMap((done) => this.#settle(done)))
  }

  /** Settles what was read, up to the first block that could not be or that does not stand on the one before. */
  #settle(readings: readonly (BlockReading | { readonly failure: unknown })[]): Observable<SettlementEvent> {
    const settlements: Observable<SettlementEvent>[] = []
    for (const reading of readings) {
      const previous = this.#settled
      if ('failure' in reading)
        return concat(
          ...settlements,
          throwError(() => reading.failure),
        )
      const { number, hash, parentHash } = reading.header
      // Whoever was listed meanwhile may have been heard of in this block: then it was asked for too little.
      if (reading.wanted !== this.#options.addresses())
        return concat(
          ...settlements,
          throwError(() => new UpstreamError('behind', 'the list changed meanwhile')),
        )
      if (previous?.hash && parentHash && parentHash !== previous.hash)
        return concat(...settlements, this.#resolveMismatch(previous))
      this.#heads.forget(number)
      this.#settled = { number, hash }
      this.#retries.succeeded()
      this.#scheduleRecheck(number)
      settlements.push(reading.settle())
    }
    return concat(...settlements)
  }

  #handleSuccess(): void {
    this.#outage.requestSucceeded(this.#options.clock.now(), this.#heads.target?.number ?? 0)
    this.#retries.succeeded()
  }

  #retryAfter(failure: unknown): Observable<unknown> {
    const { clock, warn } = this.#options
    const isOutage = failure instanceof UpstreamError && outageKinds.has(failure.kind)
    if (isOutage) this.#outage.requestFailed(clock.now())
    // What was pushed may never have become part of the chain: from now on the node is asked.
    if (this.#settled) this.#heads.forget(this.#settled.number + 1)
    if (this.#retries.failuresOf('behind') >= DISPUTE_TRIES) this.#heads.resetTarget()
    if (this.#retries.totalFailures > 0) warn('settling waits', { reason: String(failure) })
    return this.#retries.waitToRetry(failure, clock)
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
  #readBlock(header: SealedHeader, retries: RetryCounter): Observable<BlockReading> {
    const { node, openKeys, addresses, clock } = this.#options
    const { number, hash, timestamp } = header
    const openKeysInBlock = openKeys.at(number)
    const wanted = addresses()
    const queried = addressesToQuery(wanted, openKeysInBlock)
    return readBlockLogs(node, {
      header,
      openKeys: openKeysInBlock,
      addresses: queried,
      acceptsMissing: retries.acceptsMissing(number),
    }).pipe(
      map(({ logs, unreadable }) => (): Observable<SettlementEvent> => {
        // An audit asks for the wanted ones alone.
        const listedLogs = queried === wanted ? logs : logs.filter(({ address }) => wanted.includes(address))
        this.#recentBlocks.add(number, { hash, logCount: listedLogs.length, addresses: wanted, settledAt: clock.now() })
        const via = this.#outage.covers(number) ? ('backfill' as const) : ('sealed' as const)
        const block: SealedBlock = { number, hash, timestamp, logs, addresses: queried, via }
        return concat(
          unreadable > 0 ? of<SettlementEvent>({ type: 'unreadable', count: unreadable }) : EMPTY,
          this.#withCursor((cursor, newest) => ({ type: 'sealed', blocks: [block], newest, cursor })),
        )
      }),
      catchError((failure: unknown) => {
        if (!retries.isExhausted(failure)) return throwError(() => failure)
        return of(() => {
          this.#remember({ number, hash })
          const blocks = { from: number, to: number }
          return this.#withCursor((cursor) => ({ type: 'hole', blocks, reason: failure.kind, cursor }))
        })
      }),
      map((settle) => ({ header, wanted, settle })),
    )
  }

  /** What is caught up beside the newest blocks is where a restart would go on. */
  #withCursor(build: (cursor: Cursor, newest: number) => SettlementEvent): Observable<SettlementEvent> {
    const newest = this.#settled
    return newest ? of(build(this.#backfill.cursor(newest), newest.number)) : EMPTY
  }

  #resettle(number: number): Observable<SettlementEvent> {
    return this.#headerAt(number).pipe(
      mergeMap((header) => {
        const isUnchanged = this.#recentBlocks.get(number)?.hash === header.hash
        if (!isUnchanged) this.#heads.compare(number, header.hash)
        const resettled = isUnchanged
          ? this.#readBlock(header, this.#retries).pipe(mergeMap(({ settle }) => settle()))
          : EMPTY
        return resettled.pipe(tap({ complete: () => this.#blocksToResettle.delete(number) }))
      }),
    )
  }

  /** The next block does not stand on the newest settled one: one of the two is of another chain. */
  #resolveMismatch({ number, hash }: Cursor): Observable<SettlementEvent> {
    this.#heads.forget(number + 1)
    return this.#options.node
      .header(number)
      .pipe(
        mergeMap((header) =>
          isSealed(header) && header.hash !== hash
            ? this.#rollBack(number)
            : throwError(() => new UpstreamError('behind', `what stands on block ${number} is not ours`)),
        ),
      )
  }

  /** Somebody names another block where we settled one: the node is asked which is right. */
  #resolveDispute(number: number): Observable<SettlementEvent> {
    return this.#options.node.header(number).pipe(
      mergeMap((header) => {
        if (!isSealed(header) && this.#retries.failuresOf('behind') < DISPUTE_TRIES)
          return throwError(() => new UpstreamError('behind', `no block ${number} any more, or not yet`))
        const ourHash = this.#recentBlocks.get(number)?.hash
        if (isSealed(header) && ourHash && ourHash !== header.hash) return this.#rollBack(number)
        this.#heads.disputed = null
        // What was announced in its place never became part of the chain.
        this.#heads.forget(number)
        return EMPTY
      }),
    )
  }

  #rollBack(number: number): Observable<SettlementEvent> {
    const { node, warn } = this.#options
    return findForkPoint(node, this.#recentBlocks, number).pipe(
      mergeMap((forkPoint) => (forkPoint ? of(forkPoint) : this.#deepForkPoint(number))),
      mergeMap((to) => {
        warn('the chain was reorganised', { from: to.number + 1 })
        this.#recentBlocks.removeAfter(to.number)
        this.#remember(to)
        this.#heads.resetAfterReorg()
        this.#blocksToResettle.clear()
        this.#settled = to
        return of<SettlementEvent>({ type: 'doubted', from: to.number + 1 })
      }),
    )
  }

  /** Nothing that is remembered stands: what is safe does, or what lies deep enough, as far as the node still has it. */
  #deepForkPoint(number: number): Observable<Cursor> {
    const below = Math.min(number, this.#recentBlocks.oldest) - 1
    const deep = Math.min(below, this.#safe > 0 ? this.#safe : number - NEWEST_BLOCKS)
    const from = Math.max(0, deep, number - DEPTH_BOUND_BLOCKS)
    return firstAvailable(this.#options.node, from, number - 1).pipe(map((known) => ({ number: known, hash: null })))
  }

  /** Goes on from a settled block if it still stands. */
  #ifStillCanonical(settled: Cursor, next: () => Observable<SettlementEvent>): Observable<SettlementEvent> {
    return (settled.hash ? this.#options.node.header(settled.number) : of(null)).pipe(
      mergeMap((now) => (isSealed(now) && now.hash !== settled.hash ? this.#rollBack(settled.number) : next())),
    )
  }

  /** After an absence: what lies too far back is left out, and said. */
  #limitCatchUp(settled: Cursor, target: SealedHeader): Observable<SettlementEvent> {
    const { node, backfillBoundMs } = this.#options
    return this.#ifStillCanonical(settled, () =>
      firstWithinAge(node, settled.number + 1, target, backfillBoundMs).pipe(
        mergeMap((first) => {
          this.#outage.isUnbounded = false
          if (first > settled.number + 1) {
            this.#settled = { number: first - 1, hash: null }
            this.#remember(this.#settled)
            this.#backfill.add({ from: settled.number + 1, to: first - 1, missingReason: 'backfill_bound' })
          }
          return EMPTY
        }),
      ),
    )
  }

  /** Far behind: the newest blocks are settled first, and what lies between is read in ranges beside them. */
  #skipToNewest(settled: Cursor, target: SealedHeader): Observable<SettlementEvent> {
    const to = target.number - NEWEST_BLOCKS
    return this.#options.node.header(to).pipe(
      mergeMap((header) => {
        if (!isSealed(header)) return throwError(() => new UpstreamError('behind', `no block ${to} yet`))
        // Asked last: a view of the chain only goes forward, so if ours stands still, what was asked before stands on it.
        return this.#ifStillCanonical(settled, () => {
          this.#outage.extend(target.number)
          this.#settled = { number: to, hash: header.hash }
          this.#remember(this.#settled)
          this.#backfill.add({ from: settled.number + 1, to, missingReason: null })
          return EMPTY
        })
      }),
    )
  }

  #scheduleRecheck(number: number): void {
    const now = this.#options.clock.now()
    if (number % RECHECK_EVERY_BLOCKS !== 0 || now - this.#recheckedAt < RECHECK_INTERVAL_MS) return
    this.#recheckedAt = now
    this.#rechecks.next(number)
  }

  #recheck(number: number): Observable<never> {
    const { node, addresses, clock } = this.#options
    return recheckBlocks(node, this.#recentBlocks, { number, now: clock.now(), addresses: addresses() }).pipe(
      tap((blocks) => {
        for (const block of blocks) this.#blocksToResettle.add(block)
        if (blocks.length > 0) this.#wakeUps.next()
      }),
      // Asked for beside all else: the next audit reaches as far back.
      catchError(() => EMPTY),
      ignoreElements(),
    )
  }
}

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
import { RECHECK_EVERY_BLOCKS, RECHECK_INTERVAL_MS, RECHECKED_BLOCKS_BOUND, recheckBlocks } from './recheck.ts'

/** The newest blocks are settled one by one, by hash. Older ones are read in ranges beside them. */
const NEWEST_BLOCKS = 64
/** The distance from which skipping to the newest blocks pays off: the skip takes time, and the chain goes on. */
const BACKFILL_THRESHOLD_BLOCKS = 96
/** Blocks read at the same time, to keep up with a node that answers more slowly than it seals. */
const PARALLEL_BLOCKS = 8
/** How often the node may lack an announced head before the relay stops believing in it. */
const DISPUTE_TRIES = 5

/** After errors of these kinds the node may have been disconnected. */
const outageKinds: ReadonlySet<UpstreamErrorKind> = new Set(['unreachable', 'busy', 'unknown'])

type Options = {
  readonly node: BlockReader
  readonly openKeys: OpenKeys
  readonly addresses: () => readonly Hex[]
  /** The last block that the previous run settled; null starts from the first head. */
  readonly cursor: Cursor | null
  /** The newest safe block of the previous run. */
  readonly safe: number | null
  /** How far back to catch up, in chain time. */
  readonly backfillBoundMs: number
  /** A step that fails for this long counts as an outage. */
  readonly silenceMs: number
  readonly clock: SchedulerLike
  readonly warn: (kind: string, detail: unknown) => void
}

/** A block that was read. `settle` builds its events with the cursor of that moment. */
type BlockReading = {
  readonly header: SealedHeader
  readonly listed: readonly Hex[]
  readonly settle: () => Observable<SettlementEvent>
}

/** Settles every sealed block in order, without gaps, and rolls back when the chain does. */
export class SealedBlocks {
  readonly #options: Options
  readonly #recentBlocks = new RecentBlocks()
  readonly #heads = new HeadTracker(this.#recentBlocks)
  readonly #backfill: Backfill
  readonly #retries = new RetryCounter()
  /** Blocks with more logs than their first answer had. */
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
    // A reorganisation may have replaced blocks below the cursor during the outage.
    for (const sealed of options.openKeys.sealedInPreviousRun) if (cursor && sealed.number < cursor.number) this.#remember(sealed)
    if (cursor) this.#remember(cursor)
    this.#backfill = new Backfill(options)
  }

  /** The newest settled block; null before the first head. */
  get settled(): Cursor | null {
    return this.#settled
  }

  /** Up to this block everything is settled, backfill included. */
  get cursor(): Cursor | null {
    return this.#settled && this.#backfill.cursor(this.#settled)
  }

  get head(): SealedHeader | null {
    return this.#heads.target
  }

  /** The lowest block where a node disagrees with the settled one; null if none does. */
  get disputed(): number | null {
    return this.#heads.disputed
  }

  /** Settles from the next block on. False if a start was known already. */
  begin(cursor: Cursor): boolean {
    if (this.#settled !== null) return false
    this.#settled = cursor
    this.#remember(cursor)
    return true
  }

  beginOutage(): void {
    this.#outage.begin()
  }

  /** Takes a safe block: the target of a deep rollback, or evidence of a reorganisation if it is not ours. */
  markSafe(header: SealedHeader): void {
    // A safe block of another branch does not make ours safe.
    if (this.#recentBlocks.get(header.number)?.hash === header.hash) this.#safe = Math.max(this.#safe, header.number)
    this.#heads.compare(header.number, header.hash)
    this.#wakeUps.next()
  }

  /** Whether the block matches the settled one, if that is kept. False until the chain is compared after an outage. */
  isOurs({ number, hash }: SealedHeader): boolean {
    const ourHash = this.#recentBlocks.get(number)?.hash ?? hash
    return ourHash === hash && !this.#outage.isOpen
  }

  /** The node withdrew a block. */
  retract(number: number, hash: Hex | null): void {
    this.#heads.retract(number, hash)
    this.#wakeUps.next()
  }

  /** Takes a pushed or polled head. False if it is garbage. */
  receiveHead(header: SealedHeader): boolean {
    if (!this.#heads.receiveHead(header)) return false
    this.#outage.end(header.number)
    this.#wakeUps.next()
    return true
  }

  /** Settles up to each new head. */
  follow(): Observable<SettlementEvent> {
    return merge(
      this.#backfill.run(() => this.#settled ?? { number: 0, hash: null }),
      this.#rechecks.pipe(exhaustMap((number) => this.#recheck(number))),
      this.#wakeUps.pipe(exhaustMap(() => this.#settleToTarget())),
    ).pipe(map((event) => ('cursor' in event ? { ...event, ...this.#restartPoint(event.cursor.number) } : event)))
  }

  /** A node may index a block late. A restart settles the blocks again that no recheck has read late enough. */
  #restartPoint(settled: number): { readonly restart?: Cursor } {
    const unchecked = this.#recentBlocks.firstUnchecked(settled - RECHECKED_BLOCKS_BOUND)
    if (unchecked === null || unchecked > settled) return {}
    const number = unchecked - 1
    return { restart: { number, hash: this.#recentBlocks.get(number)?.hash ?? null } }
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

  /** Reads the next blocks in parallel, since the node may be far away, and settles them in order. */
  #settleNext(first: number, count: number): Observable<SettlementEvent> {
    const numbers = Array.from({ length: count }, (_, index) => first + index)
    const readings = numbers.map((number) =>
      this.#headerAt(number).pipe(
        // The counted failures concern the first block, and must not decide about the others.
        mergeMap((header) => this.#readBlock(header, number === first ? this.#retries : new RetryCounter())),
        catchError((failure: unknown) => of({ failure })),
      ),
    )
    return forkJoin(readings).pipe(mergeMap((results) => this.#settle(results)))
  }

  /** Settles blocks up to the first one that failed or whose parent is not the block before. */
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
      // A token that was listed meanwhile may have logs in this block that were not requested.
      if (reading.listed !== this.#options.addresses())
        return concat(
          ...settlements,
          throwError(() => new UpstreamError('behind', 'the token list changed meanwhile')),
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
    // The announced header may not be part of the chain, so the next try reads it from the node.
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

  /** Reads a block. Its result is settled only after all blocks before it. */
  #readBlock(header: SealedHeader, retries: RetryCounter): Observable<BlockReading> {
    const { node, openKeys, addresses, clock } = this.#options
    const { number, hash, timestamp } = header
    const openKeysInBlock = openKeys.at(number)
    const listed = addresses()
    const queried = addressesToQuery(listed, openKeysInBlock)
    return readBlockLogs(node, {
      header,
      openKeys: openKeysInBlock,
      addresses: queried,
      acceptsMissing: retries.acceptsMissing(number),
    }).pipe(
      map(({ logs, unreadable }) => (): Observable<SettlementEvent> => {
        // A recheck reads the listed tokens alone.
        const listedLogs = queried === listed ? logs : logs.filter(({ address }) => listed.includes(address))
        this.#recentBlocks.add(number, { hash, logCount: listedLogs.length, addresses: listed, settledAt: clock.now() })
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
      map((settle) => ({ header, listed, settle })),
    )
  }

  /** The cursor includes backfill, since a restart continues from it. */
  #withCursor(build: (cursor: Cursor, newest: number) => SettlementEvent): Observable<SettlementEvent> {
    const newest = this.#settled
    return newest ? of(build(this.#backfill.cursor(newest), newest.number)) : EMPTY
  }

  #resettle(number: number): Observable<SettlementEvent> {
    return this.#headerAt(number).pipe(
      mergeMap((header) => {
        const isUnchanged = this.#recentBlocks.get(number)?.hash === header.hash
        if (!isUnchanged) this.#heads.compare(number, header.hash)
        const resettled = isUnchanged ? this.#readBlock(header, this.#retries).pipe(mergeMap(({ settle }) => settle())) : EMPTY
        return resettled.pipe(tap({ complete: () => this.#blocksToResettle.delete(number) }))
      }),
    )
  }

  /** The next block has another parent than the newest settled one: one of the two is of another branch. */
  #resolveMismatch({ number, hash }: Cursor): Observable<SettlementEvent> {
    this.#heads.forget(number + 1)
    return this.#options.node
      .header(number)
      .pipe(
        mergeMap((header) =>
          isSealed(header) && header.hash !== hash
            ? this.#rollBack(number)
            : throwError(() => new UpstreamError('behind', `the next block has another parent than our block ${number}`)),
        ),
      )
  }

  /** A node disagreed with a settled block: reads the block to find which one is right. */
  #resolveDispute(number: number): Observable<SettlementEvent> {
    return this.#options.node.header(number).pipe(
      mergeMap((header) => {
        if (!isSealed(header) && this.#retries.failuresOf('behind') < DISPUTE_TRIES)
          return throwError(() => new UpstreamError('behind', `block ${number} is gone, or not there yet`))
        const ourHash = this.#recentBlocks.get(number)?.hash
        if (isSealed(header) && ourHash && ourHash !== header.hash) return this.#rollBack(number)
        this.#heads.disputed = null
        // The announced header never became part of the chain.
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
        return of<SettlementEvent>({ type: 'reorg', from: to.number + 1 })
      }),
    )
  }

  /** No recent block is canonical: goes back to the safe block, or deep enough, as far as the node has blocks. */
  #deepForkPoint(number: number): Observable<Cursor> {
    const below = Math.min(number, this.#recentBlocks.oldest) - 1
    const deep = Math.min(below, this.#safe > 0 ? this.#safe : number - NEWEST_BLOCKS)
    const from = Math.max(0, deep, number - DEPTH_BOUND_BLOCKS)
    return firstAvailable(this.#options.node, from, number - 1).pipe(map((first) => ({ number: first, hash: null })))
  }

  /** Continues if the settled block is still canonical, and rolls back if not. */
  #ifStillCanonical(settled: Cursor, next: () => Observable<SettlementEvent>): Observable<SettlementEvent> {
    return (settled.hash ? this.#options.node.header(settled.number) : of(null)).pipe(
      mergeMap((header) => (isSealed(header) && header.hash !== settled.hash ? this.#rollBack(settled.number) : next())),
    )
  }

  /** After an outage: skips blocks beyond the backfill bound and reports them as missing. */
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

  /** Far behind: settles the newest blocks first and leaves the others to backfill. */
  #skipToNewest(settled: Cursor, target: SealedHeader): Observable<SettlementEvent> {
    const to = target.number - NEWEST_BLOCKS
    return this.#options.node.header(to).pipe(
      mergeMap((header) => {
        if (!isSealed(header)) return throwError(() => new UpstreamError('behind', `no block ${to} yet`))
        // Checked last: a node's view only moves forward, so if our block is canonical, the new one descends from it.
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
      // A recheck is optional: the next one reaches as far back.
      catchError(() => EMPTY),
      ignoreElements(),
    )
  }
}

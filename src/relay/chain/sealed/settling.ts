import type { WakeUp } from '../../../lib/async-loop.ts'
import type { SealedHeader } from '../rpc/block-header.ts'
import { UpstreamError, type UpstreamErrorKind } from '../rpc/upstream-error.ts'
import { firstWithinAge } from './binary-search.ts'
import { type BlockReading, readBlock, readHeader, reportPartial, settleableLogs } from './block-logs.ts'
import type { Outage } from './outage.ts'
import type { ReceivedHeaders } from './received-headers.ts'
import type { Cursor, RecentBlocks } from './recent-blocks.ts'
import type { Recheck } from './recheck.ts'
import { resolveDispute, rollBackIfReplaced } from './reorg.ts'
import { RetryPolicy } from './retry-policy.ts'
import type { SealedBlock, SettlementContext } from './settlement-types.ts'
import type { UnreadRanges } from './unread-ranges.ts'

/** Number of newest blocks that are settled one by one after an outage. Backfill reads the older ones in ranges. */
const NEWEST_BLOCKS = 64
/** Distance to the head beyond which settling skips to the newest blocks. For fewer blocks a skip saves no time. */
const BACKFILL_THRESHOLD_BLOCKS = 96
/** Limit of blocks read in parallel, to keep up with a node that answers more slowly than it seals. */
const PARALLEL_BLOCKS = 8
/** Number of times that the node may lack a block before the relay stops waiting for this block. */
const DISPUTE_TRIES = 5

/** Errors of these kinds may mean that the node is disconnected. */
const outageKinds: ReadonlySet<UpstreamErrorKind> = new Set(['unreachable', 'busy', 'unknown'])

type Options = SettlementContext & {
  readonly recentBlocks: RecentBlocks
  readonly heads: ReceivedHeaders
  readonly outage: Outage
  readonly recheck: Recheck
  readonly ranges: UnreadRanges
  /** Notified of everything that may need a step. */
  readonly wakeUp: WakeUp
  /** Limit of the age of blocks to catch up on after an outage, in chain time. */
  readonly backfillLimitMs: number
}

type UnreadableBlock = Pick<BlockReading, 'header' | 'listed'> & { readonly holeReason: UpstreamErrorKind }

/** Settles blocks from the newest settled one to the target head. */
export class Settling {
  readonly #options: Options
  readonly #retries = new RetryPolicy()
  /** Whether the last step settled a block again. New blocks must not wait for several such steps. */
  #hasResettled = false

  constructor(options: Options) {
    this.#options = options
  }

  async run(): Promise<never> {
    const { heads, outage, clock, wakeUp, signal } = this.#options
    for (;;) {
      try {
        await this.#step()
        outage.requestSucceeded(clock.now(), heads.target?.number ?? 0)
        this.#retries.succeeded()
      } catch (failure) {
        signal.throwIfAborted()
        await this.#waitToRetry(failure)
      }
      if (this.#isCaughtUp()) await wakeUp.wait(signal)
    }
  }

  #isCaughtUp(): boolean {
    const { recentBlocks, heads, recheck } = this.#options
    if (heads.disputed !== null || recheck.incompleteBlocks.size > 0) return false
    return !recentBlocks.newest || !heads.target || recentBlocks.newest.number >= heads.target.number
  }

  async #step(): Promise<void> {
    const { recentBlocks, heads, recheck, outage } = this.#options
    const [incompleteBlock] = recheck.incompleteBlocks
    const { disputed, target } = heads
    const settled = recentBlocks.newest
    if (disputed !== null) return resolveDispute(this.#options, disputed, this.#retries.failuresOf('behind') >= DISPUTE_TRIES)
    const isCaughtUp = !settled || !target || target.number <= settled.number
    this.#hasResettled = incompleteBlock !== undefined && (isCaughtUp || !this.#hasResettled)
    if (incompleteBlock !== undefined && this.#hasResettled) return this.#resettle(incompleteBlock)
    if (isCaughtUp) return
    if (outage.isUnbounded) return this.#limitCatchUp(settled, target)
    if (target.number - settled.number > BACKFILL_THRESHOLD_BLOCKS) return this.#skipToNewest(settled, target)
    return this.#settleNext(settled.number + 1, Math.min(target.number - settled.number, PARALLEL_BLOCKS))
  }

  async #waitToRetry(failure: unknown): Promise<void> {
    const { recentBlocks, heads, outage, clock, warn, signal } = this.#options
    if (failure instanceof UpstreamError && outageKinds.has(failure.kind)) outage.requestFailed(clock.now())
    // The received header of the next block may not be part of the chain, so the next try reads it from the node.
    if (recentBlocks.newest) heads.forget(recentBlocks.newest.number + 1)
    if (this.#retries.failuresOf('behind') >= DISPUTE_TRIES) heads.resetTarget()
    if (this.#retries.totalFailures > 0) warn('settling_delayed', { reason: String(failure) })
    await this.#retries.waitToRetry(failure, clock, signal)
  }

  /** Reads the next blocks in parallel, and settles them in order up to the first one that failed. */
  async #settleNext(first: number, count: number): Promise<void> {
    const { recentBlocks, addresses } = this.#options
    const numbers = Array.from({ length: count }, (_, index) => first + index)
    // The counted failures are those of the first block, so the other blocks get counters of their own.
    const readings = await Promise.allSettled(
      numbers.map((number) => this.#read(number, number === first ? this.#retries : new RetryPolicy())),
    )
    for (const reading of readings) {
      if (reading.status === 'rejected') throw reading.reason
      const { header, listed } = reading.value
      // A token that was listed during the read may have logs in this block that were not requested.
      if (listed !== addresses()) throw new UpstreamError('behind', 'the token list changed during the read')
      const previous = recentBlocks.newest
      if (previous?.hash && header.parentHash && header.parentHash !== previous.hash) return this.#resolveMismatch(previous)
      this.#settle(reading.value)
    }
  }

  async #read(number: number, retries: RetryPolicy): Promise<BlockReading | UnreadableBlock> {
    const { node, heads, addresses, signal } = this.#options
    const announced = heads.announced(number)
    const isPushed = announced?.isPushed === true
    // The header of the newest block is requested in parallel with its logs, to settle the block sooner.
    const isConfirmedBeside = isPushed && heads.target?.number === number
    const header = announced && (!isPushed || isConfirmedBeside) ? announced.header : await readHeader(node, number, signal)
    const listed = addresses()
    const reading = readBlock(this.#options, header, retries.acceptsMissing(number))
    try {
      return isConfirmedBeside ? await this.#confirm(header, reading) : await reading
    } catch (failure) {
      if (!retries.isExhausted(failure)) throw failure
      return { header, listed, holeReason: failure.kind }
    }
  }

  /** A pushed header counts only if the node confirms its hash. */
  async #confirm({ number, hash }: SealedHeader, read: Promise<BlockReading>): Promise<BlockReading> {
    const { node, signal } = this.#options
    const [reading, header] = await Promise.all([read, readHeader(node, number, signal)])
    if (header.hash !== hash) throw new UpstreamError('behind', `block ${number} is not ${hash}`)
    return { ...reading, header }
  }

  #settle(reading: BlockReading | UnreadableBlock): void {
    const { heads, recheck } = this.#options
    const { number } = reading.header
    heads.forget(number)
    this.#retries.succeeded()
    this.#emit(reading)
    recheck.blockSettled(number)
  }

  /** Adds and emits a block in one turn of the event loop, so that the cursor is never ahead of the events. */
  #emit(reading: BlockReading | UnreadableBlock): void {
    const { recentBlocks, outage, ranges, clock, emit } = this.#options
    const { number, hash, timestamp } = reading.header
    if ('holeReason' in reading) {
      recentBlocks.addUnread({ number, hash })
      const blocks = { from: number, to: number }
      return emit({ type: 'hole', blocks, reason: reading.holeReason, ...ranges.cursors() })
    }
    const { listed, queried, logs, unreadable } = reading
    // A recheck counts the logs of listed tokens only, so logs of other tokens are not counted here.
    const unlisted = new Set(queried.slice(listed.length))
    const logCount = unlisted.size === 0 ? logs.length : logs.filter(({ address }) => !unlisted.has(address)).length
    const via = outage.covers(number) ? 'backfill' : 'sealed'
    const block: SealedBlock = { number, hash, timestamp, ...settleableLogs(reading), addresses: queried, via }
    if (unreadable > 0) emit({ type: 'unreadable', count: unreadable })
    reportPartial([block], ranges, emit)
    recentBlocks.add(number, { hash, logCount, addresses: listed, settledAt: clock.now() })
    emit({ type: 'sealed', blocks: [block], newest: recentBlocks.newest?.number ?? number, ...ranges.cursors() })
  }

  /** Reads a settled block again that has more logs now, and emits it again. */
  async #resettle(number: number): Promise<void> {
    const { recentBlocks, heads, recheck } = this.#options
    const reading = await this.#read(number, this.#retries)
    const { hash } = reading.header
    if (recentBlocks.get(number)?.hash === hash) this.#emit(reading)
    else heads.compare(number, hash)
    recheck.incompleteBlocks.delete(number)
  }

  /** Called if the parent of the next block is not the newest settled block: one of the two is of another branch. */
  async #resolveMismatch(settled: Cursor): Promise<void> {
    this.#options.heads.forget(settled.number + 1)
    if (await rollBackIfReplaced(this.#options, settled)) return
    throw new UpstreamError('behind', `the next block has another parent than our block ${settled.number}`)
  }

  /** After an outage, skips the blocks that are too old, and reports them as missing. */
  async #limitCatchUp(settled: Cursor, { number }: SealedHeader): Promise<void> {
    const { node, heads, outage, backfillLimitMs, signal } = this.#options
    if (await rollBackIfReplaced(this.#options, settled)) return
    // A pushed header does not suffice: with a false time it would make all blocks too old.
    const announced = heads.announced(number)
    const head = announced?.isPushed === false ? announced.header : await readHeader(node, number, signal)
    const first = await firstWithinAge(node, settled.number + 1, head, backfillLimitMs, signal)
    outage.isUnbounded = false
    if (first > settled.number + 1) this.#skip(settled, { number: first - 1, hash: null }, 'backfill_bound')
  }

  /** Skips to the newest blocks. Backfill reads the skipped ones in parallel. */
  async #skipToNewest(settled: Cursor, target: SealedHeader): Promise<void> {
    const { node, outage, signal } = this.#options
    const { number, hash } = await readHeader(node, target.number - NEWEST_BLOCKS, signal)
    // Checked after the read: if the settled block is still canonical, the block that was read descends from it.
    if (await rollBackIfReplaced(this.#options, settled)) return
    outage.extend(target.number)
    this.#skip(settled, { number, hash }, null)
  }

  #skip(settled: Cursor, to: Cursor, missingReason: string | null): void {
    const { recentBlocks, ranges } = this.#options
    recentBlocks.addUnread(to)
    ranges.add({ from: settled.number + 1, to: to.number, missingReason })
  }
}

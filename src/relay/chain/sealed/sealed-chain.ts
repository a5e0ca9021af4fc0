import type { Observable } from 'rxjs'
import { observe, WakeUp } from '../../../lib/async-loop.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { Header, SealedHeader } from '../rpc/block-header.ts'
import { Backfill } from './backfill.ts'
import { Outage } from './outage.ts'
import { ReceivedHeaders } from './received-headers.ts'
import { type Cursor, RecentBlocks } from './recent-blocks.ts'
import { Recheck } from './recheck.ts'
import type { SettlementContext, SettlementEvent } from './settlement-types.ts'
import { Settling } from './settling.ts'
import { UnreadRanges } from './unread-ranges.ts'

type Options = Omit<SettlementContext, 'emit' | 'signal'> & {
  /** The last block that the previous run settled; null to start at the first head. */
  readonly cursor: Cursor | null
  readonly began?: number | null
  readonly safe: number | null
  /** Limit of the age of blocks to catch up on after an outage, in chain time. */
  readonly backfillLimitMs: number
  /** A step that fails for this long counts as an outage. */
  readonly silenceMs: number
}

/** Settles every sealed block in order, without gaps, and rolls back when the chain does. */
export class SealedChain {
  readonly #options: Options
  readonly #recentBlocks: RecentBlocks
  readonly #heads: ReceivedHeaders
  readonly #outage: Outage
  readonly #recheck: Recheck
  readonly #ranges: UnreadRanges
  readonly #wakeUp = new WakeUp()

  constructor(options: Options) {
    const { cursor, safe, openKeys, silenceMs } = options
    this.#options = options
    this.#recentBlocks = new RecentBlocks(options.began)
    this.#ranges = new UnreadRanges(this.#recentBlocks)
    this.#heads = new ReceivedHeaders(this.#recentBlocks, safe)
    this.#outage = new Outage(cursor !== null, silenceMs)
    this.#recheck = new Recheck({ ...options, recentBlocks: this.#recentBlocks })
    // A reorg during the outage may have replaced blocks below the cursor, so their hashes are remembered.
    for (const sealed of openKeys.sealedInPreviousRun)
      if (cursor && sealed.number < cursor.number) this.#recentBlocks.addUnread(sealed)
    if (cursor) this.#recentBlocks.addUnread(cursor)
  }

  get settled(): Cursor | null {
    return this.#recentBlocks.newest
  }

  /** The newest block up to which all blocks are settled, those that backfill reads included. */
  get cursor(): Cursor | null {
    return this.settled && this.#ranges.cursor
  }

  get head(): SealedHeader | null {
    return this.#heads.target
  }

  get disputed(): number | null {
    return this.#heads.disputed
  }

  /** Makes settling begin with the block after this one. Returns false if settling has already begun. */
  begin(cursor: Cursor): boolean {
    if (this.settled !== null) return false
    this.#recentBlocks.addUnread(cursor)
    return true
  }

  beginOutage(): void {
    this.#outage.begin()
  }

  /** Takes the node's `safe` block. It is the target of a deep rollback or, if its hash is new, evidence of a reorg. */
  markSafe(header: SealedHeader): void {
    this.#heads.receiveSafe(header)
    this.#wakeUp.notify()
  }

  /** Whether no settled block of this number has another hash. False from an outage until the blocks are compared. */
  isOurs({ number, hash }: SealedHeader): boolean {
    const ourHash = this.#recentBlocks.get(number)?.hash ?? hash
    return ourHash === hash && !this.#outage.isOpen
  }

  /** Whether the block is a settled one, or a head that waits to be settled. */
  knows({ number, hash }: Header): boolean {
    if (number === null || hash === null) return false
    return this.#recentBlocks.get(number)?.hash === hash || this.#heads.announced(number)?.header.hash === hash
  }

  retract(number: number, hash: Hex | null): void {
    this.#heads.retract(number, hash)
    this.#wakeUp.notify()
  }

  isOutOfReach(number: number): boolean {
    return this.#heads.isOutOfReach(number)
  }

  receiveHead(header: SealedHeader, isPushed = false): ReturnType<ReceivedHeaders['receiveHead']> {
    const result = this.#heads.receiveHead(header, isPushed)
    if (result !== 'taken') return result
    this.#outage.end(header.number)
    this.#wakeUp.notify()
    return result
  }

  /** Settles up to each new head. Settling, backfill and rechecks run in parallel. */
  follow(): Observable<SettlementEvent> {
    return observe((emit, signal) => {
      const [recentBlocks, ranges, wakeUp] = [this.#recentBlocks, this.#ranges, this.#wakeUp]
      const parts = { ...this.#options, recentBlocks, ranges, wakeUp, emit, signal }
      const settling = new Settling({ ...parts, heads: this.#heads, outage: this.#outage, recheck: this.#recheck })
      const backfill = new Backfill(parts)
      return Promise.all([settling.run(), backfill.run(), this.#recheck.run(() => wakeUp.notify(), signal)])
    })
  }
}

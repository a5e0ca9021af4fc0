import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { SealedHeader } from '../rpc/header.ts'
import type { RecentBlocks } from './recent-blocks.ts'

/** A head that jumps further ahead is garbage. */
const HEAD_JUMP_BOUND_BLOCKS = 100_000_000
/** No real block is pre-confirmed this far above the newest settled one, however far the relay is behind. */
export const FAR_AHEAD_BLOCKS = 100_000
/** A push is one message. Further above what was asked for or settled, only another answer makes it believed. */
export const WITHIN_REACH_BLOCKS = 64
/** Announced headers with a time, kept until their block is settled; others are read from the node. */
const ANNOUNCED_BOUND = 256

/** A header that came before its block was settled. A pushed one is one message: the node is asked whether it is so. */
type AnnouncedHeader = { readonly header: SealedHeader; readonly isPushed: boolean }

/** Tracks heads: which one to settle up to, and where a node disagrees with a settled block. */
export class HeadTracker {
  readonly #recentBlocks: RecentBlocks
  readonly #announced = new BoundedMap<number, AnnouncedHeader>(ANNOUNCED_BOUND)
  #disputed: number | null = null
  #lastHead: SealedHeader | null = null
  #target: SealedHeader | null = null
  /** The newest head that was asked for. */
  #asked: number | null = null
  #safe: number

  /** `safe` is the newest safe block of the previous run. */
  constructor(recentBlocks: RecentBlocks, safe: number | null) {
    this.#recentBlocks = recentBlocks
    this.#safe = safe ?? 0
  }

  /** The newest safe block of our chain: the target of a deep rollback. 0 without one. */
  get safe(): number {
    return this.#safe
  }

  /** The lowest number where a node gave another hash than the settled one. */
  get disputed(): number | null {
    return this.#disputed
  }

  /** The head to settle up to. */
  get target(): SealedHeader | null {
    return this.#target
  }

  /** Whether a pushed block is so far above those that were asked for or settled that one message does not suffice. */
  isOutOfReach(number: number): boolean {
    const known = Math.max(this.#asked ?? -1, this.#recentBlocks.newest?.number ?? -1)
    return known >= 0 && number > known + WITHIN_REACH_BLOCKS
  }

  /** Takes a head that was pushed or asked for. A pushed one counts only near a block that was asked for or settled. */
  receiveHead(header: SealedHeader, isPushed = false): 'taken' | 'unconfirmed' | 'garbage' {
    const { number, hash, timestamp } = header
    if (this.#target && number > this.#target.number + HEAD_JUMP_BOUND_BLOCKS) return 'garbage'
    if (isPushed && this.isOutOfReach(number)) return 'unconfirmed'
    if (!isPushed) this.#asked = number
    this.#lastHead = header
    this.compare(number, hash)
    // The block may have a time although this header has none: settling asks the node.
    if (timestamp === null) this.forget(number)
    else if (this.#recentBlocks.get(number)?.hash !== hash) this.#announce(header, isPushed)
    if (!this.#target || number > this.#target.number) this.#target = header
    return 'taken'
  }

  /** Takes a safe block: evidence of a reorganisation if it is not ours. */
  receiveSafe({ number, hash }: SealedHeader): void {
    // A safe block of another branch does not make ours safe.
    if (this.#recentBlocks.get(number)?.hash === hash) this.#safe = Math.max(this.#safe, number)
    this.compare(number, hash)
  }

  /** Compares a node's hash with the settled one. A lagging node gives a hash that is settled already. */
  compare(number: number, hash: Hex): void {
    const ourHash = this.#recentBlocks.get(number)?.hash
    if (ourHash && ourHash !== hash) this.#dispute(number)
  }

  /** The node withdrew a block. */
  retract(number: number, hash: Hex | null): void {
    if (hash !== null && this.#recentBlocks.get(number)?.hash === hash) this.#dispute(number)
  }

  /** The announced header of a number that is not settled yet. */
  announced(number: number): AnnouncedHeader | undefined {
    return this.#announced.get(number)
  }

  /** The block is settled, or the announced one may not be part of the chain. */
  forget(number: number): void {
    this.#announced.delete(number)
  }

  /** The node agrees with our block, or the announced one never became part of the chain. */
  resolveDispute(number: number): void {
    if (this.#disputed === number) this.#disputed = null
    this.forget(number)
  }

  /** The blocks above this one are abandoned. The target may be one of them. */
  rolledBackTo(number: number): void {
    if (this.#disputed !== null && this.#disputed > number) this.#disputed = null
    this.resetTarget()
  }

  /** Goes back to the last received head, since the highest one may have been wrong. */
  resetTarget(): void {
    this.#target = this.#lastHead
  }

  #announce(header: SealedHeader, isPushed: boolean): void {
    const known = this.#announced.get(header.number)
    const isKnown = isPushed && known?.header.hash === header.hash
    if (!isKnown) this.#announced.set(header.number, { header, isPushed })
  }

  #dispute(number: number): void {
    this.#disputed = Math.min(number, this.#disputed ?? number)
  }
}

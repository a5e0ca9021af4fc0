import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { SealedHeader } from '../rpc/block-header.ts'
import { WITHIN_REACH_BLOCKS } from './block-bounds.ts'
import type { RecentBlocks } from './recent-blocks.ts'

/** Limit of the distance of a new head above the newest known one. A head further above is ignored as garbage. */
const HEAD_JUMP_BOUND_BLOCKS = 100_000_000
/** Announced headers with a time are kept until their block is settled. Other headers are read from the node. */
const ANNOUNCED_BOUND = 256

/** A header that was received before its block was settled. A pushed header counts only if an answer confirms it. */
type AnnouncedHeader = { readonly header: SealedHeader; readonly isPushed: boolean }

/** Keeps what received headers say: the head to settle up to, and the lowest settled block for which a node gave another hash. */
export class ReceivedHeaders {
  readonly #recentBlocks: RecentBlocks
  readonly #announced = new BoundedMap<number, AnnouncedHeader>(ANNOUNCED_BOUND)
  #disputed: number | null = null
  #lastHead: SealedHeader | null = null
  #target: SealedHeader | null = null
  #asked: number | null = null
  #safe: number

  /** `safe` is the newest `safe` block in the previous run; null if there is none. */
  constructor(recentBlocks: RecentBlocks, safe: number | null) {
    this.#recentBlocks = recentBlocks
    this.#safe = safe ?? 0
  }

  /** The newest `safe` block that the relay has settled, which is the target of a deep rollback; 0 if there is none. */
  get safe(): number {
    return this.#safe
  }

  /** The lowest settled block for which a node gave another hash; null if there is none. */
  get disputed(): number | null {
    return this.#disputed
  }

  get target(): SealedHeader | null {
    return this.#target
  }

  /** Whether the block is so far above the known ones that a poll must confirm it. */
  isOutOfReach(number: number): boolean {
    const known = Math.max(this.#asked ?? -1, this.#recentBlocks.newest?.number ?? -1)
    return known >= 0 && number > known + WITHIN_REACH_BLOCKS
  }

  receiveHead(header: SealedHeader, isPushed = false): 'taken' | 'unconfirmed' | 'garbage' {
    const { number, hash, timestamp } = header
    if (this.#target && number > this.#target.number + HEAD_JUMP_BOUND_BLOCKS) return 'garbage'
    if (isPushed && this.isOutOfReach(number)) return 'unconfirmed'
    if (!isPushed) this.#asked = number
    this.#lastHead = header
    this.compare(number, hash)
    // The header that the node returns may have a time although this one has none, so settling has to read it.
    if (timestamp === null) this.forget(number)
    else if (this.#recentBlocks.get(number)?.hash !== hash) this.#announce(header, isPushed)
    if (!this.#target || number > this.#target.number) this.#target = header
    return 'taken'
  }

  /** Takes the node's `safe` block. If its hash differs from that of the settled block, it is evidence of a reorg. */
  receiveSafe({ number, hash }: SealedHeader): void {
    // A `safe` block of another branch proves nothing about the settled block.
    if (this.#recentBlocks.get(number)?.hash === hash) this.#safe = Math.max(this.#safe, number)
    this.compare(number, hash)
  }

  /** Marks a settled block as disputed if a node gave another hash for it, so that its header is read again. */
  compare(number: number, hash: Hex): void {
    const ourHash = this.#recentBlocks.get(number)?.hash
    if (ourHash && ourHash !== hash) this.#dispute(number)
  }

  retract(number: number, hash: Hex | null): void {
    if (hash !== null && this.#recentBlocks.get(number)?.hash === hash) this.#dispute(number)
  }

  /** Returns the received header of a block that is not settled yet. */
  announced(number: number): AnnouncedHeader | undefined {
    return this.#announced.get(number)
  }

  /** Called when the block is settled, or when its received header may not be part of the chain. */
  forget(number: number): void {
    this.#announced.delete(number)
  }

  /** Called when the node confirms the settled block, or has no other block in its place. */
  resolveDispute(number: number): void {
    if (this.#disputed === number) this.#disputed = null
    this.forget(number)
  }

  /** Called after a rollback to this block. The target is reset, since it may be one of the replaced blocks. */
  rolledBackTo(number: number): void {
    if (this.#disputed !== null && this.#disputed > number) this.#disputed = null
    this.resetTarget()
  }

  /** Makes the last received head the one to settle up to, since the highest head may have been wrong. */
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

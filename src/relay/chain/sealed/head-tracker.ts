import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { SealedHeader } from '../rpc/block-header.ts'
import { WITHIN_REACH_BLOCKS } from './block-bounds.ts'
import type { RecentBlocks } from './recent-blocks.ts'

/** A head further above the target is garbage. */
const HEAD_JUMP_BOUND_BLOCKS = 100_000_000
/** Announced headers with a time are kept until their block is settled. Other headers are read from the node. */
const ANNOUNCED_BOUND = 256

/** A header that was received before its block was settled. The node has to confirm a pushed one. */
type AnnouncedHeader = { readonly header: SealedHeader; readonly isPushed: boolean }

/** Tracks the head to settle up to, and the settled block that a node disagrees with. */
export class HeadTracker {
  readonly #recentBlocks: RecentBlocks
  readonly #announced = new BoundedMap<number, AnnouncedHeader>(ANNOUNCED_BOUND)
  #disputed: number | null = null
  #lastHead: SealedHeader | null = null
  #target: SealedHeader | null = null
  #asked: number | null = null
  #safe: number

  /** `safe` is the newest safe block of the previous run. */
  constructor(recentBlocks: RecentBlocks, safe: number | null) {
    this.#recentBlocks = recentBlocks
    this.#safe = safe ?? 0
  }

  /** The newest safe block of our chain, which is the target of a deep rollback; 0 if there is none. */
  get safe(): number {
    return this.#safe
  }

  /** The lowest settled block for which a node gave another hash. */
  get disputed(): number | null {
    return this.#disputed
  }

  get target(): SealedHeader | null {
    return this.#target
  }

  /** Whether a single pushed message does not suffice to believe in this block. */
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
    // The block may have a time although this header has none, so settling has to read the header.
    if (timestamp === null) this.forget(number)
    else if (this.#recentBlocks.get(number)?.hash !== hash) this.#announce(header, isPushed)
    if (!this.#target || number > this.#target.number) this.#target = header
    return 'taken'
  }

  /** A safe block that is not ours is evidence of a reorganisation. */
  receiveSafe({ number, hash }: SealedHeader): void {
    // A safe block of another branch does not make ours safe.
    if (this.#recentBlocks.get(number)?.hash === hash) this.#safe = Math.max(this.#safe, number)
    this.compare(number, hash)
  }

  /** Opens a dispute if a node has another hash than the settled block. */
  compare(number: number, hash: Hex): void {
    const ourHash = this.#recentBlocks.get(number)?.hash
    if (ourHash && ourHash !== hash) this.#dispute(number)
  }

  retract(number: number, hash: Hex | null): void {
    if (hash !== null && this.#recentBlocks.get(number)?.hash === hash) this.#dispute(number)
  }

  /** The announced header of an unsettled block. */
  announced(number: number): AnnouncedHeader | undefined {
    return this.#announced.get(number)
  }

  /** Called when the block is settled, or when the announced header may not be part of the chain. */
  forget(number: number): void {
    this.#announced.delete(number)
  }

  /** Called when the node agrees with our block, or when no other block replaced it. */
  resolveDispute(number: number): void {
    if (this.#disputed === number) this.#disputed = null
    this.forget(number)
  }

  /** The target may be one of the abandoned blocks. */
  rolledBackTo(number: number): void {
    if (this.#disputed !== null && this.#disputed > number) this.#disputed = null
    this.resetTarget()
  }

  /** Makes the last received head the target, since the highest head may have been wrong. */
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

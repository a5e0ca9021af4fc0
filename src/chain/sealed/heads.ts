import { BoundedMap } from '../../bounded-map.ts'
import type { Hex } from '../../protocol/fields.ts'
import type { SealedHeader } from '../logs/log-schema.ts'
import type { RecentBlocks } from './recent-blocks.ts'

/** No chain runs ahead of itself: a head further than this from the newest is garbage. */
const HEAD_JUMP_BOUND_BLOCKS = 100_000_000
/** Heads that were pushed and are not settled yet; beyond it they are asked for. */
const ANNOUNCED_BOUND = 256

/** The heads that were heard of: which one to reach, and where somebody names another block than the one we settled. */
export class HeadTracker {
  /** A block number where somebody names another hash than ours; the lowest. */
  disputed: number | null = null
  readonly #recentBlocks: RecentBlocks
  readonly #announced = new BoundedMap<number, SealedHeader>(ANNOUNCED_BOUND)
  #lastHead: SealedHeader | null = null
  #target: SealedHeader | null = null

  constructor(recentBlocks: RecentBlocks) {
    this.#recentBlocks = recentBlocks
  }

  /** The head to reach. */
  get target(): SealedHeader | null {
    return this.#target
  }

  /** A head that was pushed or polled. False where it cannot be one. */
  receiveHead(header: SealedHeader): boolean {
    const { number, hash } = header
    if (this.#target && number > this.#target.number + HEAD_JUMP_BOUND_BLOCKS) return false
    this.#lastHead = header
    this.compare(number, hash)
    if (this.#recentBlocks.get(number)?.hash !== hash) this.#announced.set(number, header)
    if (!this.#target || number > this.#target.number) this.#target = header
    return true
  }

  /** Somebody names a block: known, of another chain, or not settled yet. A node that is behind says what is known. */
  compare(number: number, hash: Hex): void {
    const ourHash = this.#recentBlocks.get(number)?.hash
    if (ourHash && ourHash !== hash) this.#dispute(number)
  }

  /** A node takes back what it said of a block. */
  retract(number: number, hash: Hex | null): void {
    if (hash !== null && this.#recentBlocks.get(number)?.hash === hash) this.#dispute(number)
  }

  /** The header that was pushed for a number, if it is still to be settled. */
  announced(number: number): SealedHeader | undefined {
    return this.#announced.get(number)
  }

  /** What was pushed for a number is settled, or may never have become part of the chain. */
  forget(number: number): void {
    this.#announced.delete(number)
  }

  /** The chain went back: the longest one that was known may be the one that is no more. */
  resetAfterReorg(): void {
    this.disputed = null
    this.resetTarget()
  }

  /** The highest head may never have been one: the one that was heard of last is to be reached. */
  resetTarget(): void {
    this.#target = this.#lastHead
  }

  #dispute(number: number): void {
    this.disputed = Math.min(number, this.disputed ?? number)
  }
}

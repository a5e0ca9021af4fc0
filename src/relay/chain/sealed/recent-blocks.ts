import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import { DEPTH_BOUND_BLOCKS, RECENT_BLOCKS_BOUND } from './block-bounds.ts'

/** A block of the sealed chain. The hash is null if the relay never read it. */
export type Cursor = { readonly number: number; readonly hash: Hex | null }

type RecentBlock = {
  readonly hash: Hex | null
  /** Number of logs of `addresses` in the block; null if the logs were not read. */
  readonly logCount: number | null
  readonly addresses: readonly Hex[]
  readonly settledAt: number
  /** Whether the logs of the block were read again, so late that every node has indexed them. */
  readonly isRechecked?: boolean
}

/** The newest settled blocks, in ascending order. Only blocks that were read in the middle of a hole are out of order. */
export class RecentBlocks {
  readonly #blocks = new BoundedMap<number, RecentBlock>(RECENT_BLOCKS_BOUND)
  /** Known hashes by block, kept as deep as a rollback can be. */
  readonly #hashes = new BoundedMap<number, Hex>(DEPTH_BOUND_BLOCKS)
  #newest: Cursor | null = null
  #first = Number.POSITIVE_INFINITY
  readonly #began: number

  /** `began` is the block above which the first run began to settle. */
  constructor(began: number | null = null) {
    this.#began = began ?? Number.POSITIVE_INFINITY
  }

  get(number: number): RecentBlock | undefined {
    return this.#blocks.get(number)
  }

  get oldest(): number {
    return this.#blocks.keys().next().value ?? 0
  }

  /** The lowest block number that was ever added, even if that block is no longer kept. */
  get first(): number {
    return this.#first
  }

  /** The block above which the first run began to settle or, if that is unknown, this run. */
  get began(): number {
    return Math.min(this.#began, this.#first)
  }

  /** The newest settled block, which is the parent of the next one to settle; null before the first block. */
  get newest(): Cursor | null {
    return this.#newest
  }

  /** The blocks of known hash in ascending order, as deep as a rollback can be. */
  get hashes(): readonly Cursor[] {
    return [...this.#hashes].map(([number, hash]) => ({ number, hash })).sort((a, b) => a.number - b.number)
  }

  /** Returns the newest kept block at or below `number`, or the oldest kept block if there is none. */
  nearest(number: number): number {
    let nearest = this.oldest
    for (const candidate of this.#blocks.keys()) if (candidate <= number && candidate > nearest) nearest = candidate
    return nearest
  }

  add(number: number, block: RecentBlock): void {
    this.#blocks.set(number, block)
    if (block.hash === null) this.#hashes.delete(number)
    else this.#hashes.set(number, block.hash)
    this.#first = Math.min(this.#first, number)
    if (number >= (this.#newest?.number ?? 0)) this.#newest = { number, hash: block.hash }
  }

  addUnread({ number, hash }: Cursor): void {
    this.add(number, { hash, logCount: null, addresses: [], settledAt: 0 })
  }

  rollBackTo(block: Cursor): void {
    for (const later of this.#blocks.keys()) if (later > block.number) this.#blocks.delete(later)
    for (const later of this.#hashes.keys()) if (later > block.number) this.#hashes.delete(later)
    this.#newest = block
    // A known block keeps its number of logs, so that it is still rechecked.
    if (this.#blocks.get(block.number)?.hash !== block.hash) this.addUnread(block)
  }

  /** Returns the first block up to `to` that waits for its last recheck. */
  firstUnchecked(to: number): number | undefined {
    for (const [number, block] of this.#blocks) {
      if (number > to) return undefined
      if (isUnchecked(block)) return number
    }
    return undefined
  }

  /** Whether the block waits for its last recheck. */
  isUnchecked(number: number): boolean {
    const block = this.#blocks.get(number)
    return block !== undefined && isUnchecked(block)
  }

  markRechecked(number: number): void {
    const block = this.#blocks.get(number)
    if (block) this.#blocks.set(number, { ...block, isRechecked: true })
  }
}

const isUnchecked = ({ logCount, isRechecked }: RecentBlock): boolean => logCount !== null && !isRechecked

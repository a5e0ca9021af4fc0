import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'

/** How many settled blocks are kept by hash. A deeper reorganisation goes back to the safe block, or to the first settled one. */
export const RECENT_BLOCKS_BOUND = 1_024
/** The deepest rollback, however old the last safe block is. */
export const DEPTH_BOUND_BLOCKS = 4_096

/** A block of the sealed chain; the hash is null if it was never read. */
export type Cursor = { readonly number: number; readonly hash: Hex | null }

type RecentBlock = {
  readonly hash: Hex | null
  /** How many logs these addresses had in it; null if its logs were not read. */
  readonly logCount: number | null
  readonly addresses: readonly Hex[]
  readonly settledAt: number
  /** Whether its logs were read again, from a node that has the block, late enough for every node to have indexed it. */
  readonly isRechecked?: boolean
}

/**
 * The newest settled blocks by number, for comparing heads and finding the fork point of a reorganisation. They are
 * added in ascending order, and a block that is settled again keeps its place, so the first one is the oldest. Only the
 * blocks that were read in the middle of a hole come later.
 */
export class RecentBlocks {
  readonly #blocks = new BoundedMap<number, RecentBlock>(RECENT_BLOCKS_BOUND)
  /** The known hashes, as deep as a rollback goes. */
  readonly #hashes = new BoundedMap<number, Hex>(DEPTH_BOUND_BLOCKS)
  #newest: Cursor | null = null
  #first = Number.POSITIVE_INFINITY
  readonly #began: number

  /** `began` is the block above which the first run began to settle. Its blocks need not be among those added. */
  constructor(began: number | null = null) {
    this.#began = began ?? Number.POSITIVE_INFINITY
  }

  get(number: number): RecentBlock | undefined {
    return this.#blocks.get(number)
  }

  /** The oldest number; 0 if there is none. */
  get oldest(): number {
    return this.#blocks.keys().next().value ?? 0
  }

  /** The lowest number that was ever added, kept or not. */
  get first(): number {
    return this.#first
  }

  /** The block above which this run or, where that is known, the first one began to settle. */
  get began(): number {
    return Math.min(this.#began, this.#first)
  }

  /** The block that the next one is settled on; null before the first. */
  get newest(): Cursor | null {
    return this.#newest
  }

  /** The blocks of known hashes, in ascending order: also those that are not kept any more, as deep as a rollback goes. */
  get hashes(): readonly Cursor[] {
    return [...this.#hashes].map(([number, hash]) => ({ number, hash })).sort((a, b) => a.number - b.number)
  }

  /** The newest number up to this one, or else the oldest of all. */
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

  /** Adds a block whose logs were not read. */
  addUnread({ number, hash }: Cursor): void {
    this.add(number, { hash, logCount: null, addresses: [], settledAt: 0 })
  }

  /** Makes this block the newest. */
  rollBackTo(block: Cursor): void {
    for (const later of this.#blocks.keys()) if (later > block.number) this.#blocks.delete(later)
    for (const later of this.#hashes.keys()) if (later > block.number) this.#hashes.delete(later)
    this.#newest = block
    // A kept block is still to be rechecked.
    if (this.#blocks.get(block.number)?.hash !== block.hash) this.addUnread(block)
  }

  /** The first block up to this one whose logs were not read again late enough; undefined if there is none. */
  firstUnchecked(to: number): number | undefined {
    for (const [number, block] of this.#blocks) {
      if (number > to) return undefined
      if (isUnchecked(block)) return number
    }
    return undefined
  }

  /** Whether its logs were read, but not again late enough. */
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

import { BoundedMap } from '../../bounded-map.ts'
import type { Hex } from '../../protocol/fields.ts'

/** How many settled blocks are kept by hash. A deeper reorganisation goes back to the safe block. */
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
  /** Whether its logs were read again, late enough for every node to have indexed it. */
  readonly isRechecked?: boolean
}

/**
 * The newest settled blocks by number, for comparing heads and finding the fork point of a reorganisation. They are
 * added in ascending order, and a block that is settled again keeps its place, so the first one is the oldest.
 */
export class RecentBlocks {
  readonly #blocks = new BoundedMap<number, RecentBlock>(RECENT_BLOCKS_BOUND)

  get(number: number): RecentBlock | undefined {
    return this.#blocks.get(number)
  }

  /** The oldest number; 0 if there is none. */
  get oldest(): number {
    return this.#blocks.keys().next().value ?? 0
  }

  /** The newest number up to this one, or else the oldest of all. */
  nearest(number: number): number {
    return [...this.#blocks.keys()].findLast((candidate) => candidate <= number) ?? this.oldest
  }

  add(number: number, block: RecentBlock): void {
    this.#blocks.set(number, block)
  }

  /** The first block from this number on whose logs were not read again; null if there is none. */
  firstUnchecked(from: number): number | null {
    for (const [number, { logCount, isRechecked }] of this.#blocks)
      if (number >= from && logCount !== null && !isRechecked) return number
    return null
  }

  markRechecked(number: number): void {
    const block = this.#blocks.get(number)
    if (block) this.#blocks.set(number, { ...block, isRechecked: true })
  }

  removeAfter(number: number): void {
    for (const later of this.#blocks.keys()) if (later > number) this.#blocks.delete(later)
  }
}

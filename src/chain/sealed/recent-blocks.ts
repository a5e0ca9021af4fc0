import { BoundedMap } from '../../bounded-map.ts'
import type { Hex } from '../../protocol/fields.ts'

/** How many of the newest sealed blocks are remembered by their hash; who goes back further goes back to what is safe. */
export const RECENT_BLOCKS_BOUND = 1_024
/** How far back anything is ever settled anew, however old the last safe block is. */
export const DEPTH_BOUND_BLOCKS = 4_096

/** A place in the sealed chain; the hash is null where it was never learnt. */
export type Cursor = { readonly number: number; readonly hash: Hex | null }

/** What was learnt of a block when it was settled. */
type RecentBlock = {
  readonly hash: Hex | null
  /** How many logs it had, of how many contracts was asked; null where nothing was asked. */
  readonly logCount: number | null
  readonly addresses: readonly Hex[]
  /** When it was settled. */
  readonly settledAt: number
  /** Whether it was asked for again since, late enough. */
  readonly isRechecked?: boolean
}

/**
 * The newest settled blocks by number: what a new head is held against, and where a reorganisation is rolled back to.
 * They come in ascending order, and one that is settled again keeps its place: the first is the oldest.
 */
export class RecentBlocks {
  readonly #blocks = new BoundedMap<number, RecentBlock>(RECENT_BLOCKS_BOUND)

  get(number: number): RecentBlock | undefined {
    return this.#blocks.get(number)
  }

  /** The oldest number that is remembered; 0 where none is. */
  get oldest(): number {
    return this.#blocks.keys().next().value ?? 0
  }

  /** The newest of those that are no newer than `number`, or the oldest of all. */
  nearest(number: number): number {
    return [...this.#blocks.keys()].findLast((known) => known <= number) ?? this.oldest
  }

  add(number: number, block: RecentBlock): void {
    this.#blocks.set(number, block)
  }

  /** It was asked for again, late enough. */
  markRechecked(number: number): void {
    const block = this.#blocks.get(number)
    if (block) this.#blocks.set(number, { ...block, isRechecked: true })
  }

  /** Forgets all that came after a block: it is no longer so. */
  removeAfter(number: number): void {
    for (const later of this.#blocks.keys()) if (later > number) this.#blocks.delete(later)
  }
}

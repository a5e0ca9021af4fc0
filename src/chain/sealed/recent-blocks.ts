import type { Hex } from '../../protocol/fields.ts'

/** How many of the newest sealed blocks are remembered by their hash; who goes back further goes back to what is safe. */
export const LATELY_BLOCKS = 1_024
/** How far back anything is ever settled anew, however old the last safe block is. */
export const DEPTH_BOUND_BLOCKS = 4_096

/** A place in the sealed chain; the hash is null where it was never learnt. */
export type Cursor = { readonly number: number; readonly hash: Hex | null }

/** What was learnt of a block when it was settled. */
type Seen = {
  readonly hash: Hex | null
  /** How many logs it had, of how many contracts was asked; null where nothing was asked. */
  readonly logs: number | null
  readonly asked: readonly Hex[]
  /** When it was settled. */
  readonly at: number
  /** Whether it was asked for again since, late enough. */
  readonly audited?: boolean
}

/**
 * The newest settled blocks by number: what a new head is held against, and where a reorganisation is rolled back to.
 * They come in ascending order, and one that is settled again keeps its place: the first is the oldest.
 */
export class Lately {
  readonly #seen = new Map<number, Seen>()

  at(number: number): Seen | undefined {
    return this.#seen.get(number)
  }

  /** The oldest number that is remembered; 0 where none is. */
  get oldest(): number {
    return this.#seen.keys().next().value ?? 0
  }

  /** The newest of those that are no newer than `number`, or the oldest of all. */
  nearest(number: number): number {
    return [...this.#seen.keys()].findLast((known) => known <= number) ?? this.oldest
  }

  add(number: number, seen: Seen): void {
    this.#seen.set(number, seen)
    if (this.#seen.size > LATELY_BLOCKS) this.#seen.delete(this.oldest)
  }

  /** It was asked for again, late enough. */
  done(number: number): void {
    const seen = this.#seen.get(number)
    if (seen) this.#seen.set(number, { ...seen, audited: true })
  }

  /** Forgets all that came after a block: it is no longer so. */
  cut(number: number): void {
    for (const later of this.#seen.keys()) if (later > number) this.#seen.delete(later)
  }
}

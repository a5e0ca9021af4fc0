import { WakeUp } from '../../../lib/async-loop.ts'
import type { Cursor, RecentBlocks } from './recent-blocks.ts'

/** Old blocks to read or, with a `missingReason`, to report as missing. */
export type BackfillRange = { readonly from: number; readonly to: number; readonly missingReason: string | null }

/** Limit of ranges. At the limit, the last range is extended instead, even over blocks that are already settled. */
const RANGES_BOUND = 64

/** Old blocks that are still to be read, in the order of reading. */
export class UnreadRanges {
  readonly added = new WakeUp()
  readonly #recentBlocks: RecentBlocks
  #ranges: readonly BackfillRange[] = []

  constructor(recentBlocks: RecentBlocks) {
    this.#recentBlocks = recentBlocks
  }

  get first(): BackfillRange | undefined {
    return this.#ranges[0]
  }

  /** Returns the newest block up to which all blocks are settled or reported as missing. */
  get cursor(): Cursor {
    const newest = this.#recentBlocks.newest ?? { number: 0, hash: null }
    // After a reorg a later range may start below an earlier one, and `newest` may be below them all.
    const number = Math.min(newest.number, ...this.#ranges.map(({ from }) => from - 1))
    return number === newest.number ? newest : { number, hash: null }
  }

  /** The cursor, and the block after which a restart continues. */
  cursors(): { readonly cursor: Cursor; readonly restartCursor: Cursor } {
    const { cursor } = this
    // A node may index a block late, so a restart settles those again that the relay has not rechecked.
    const unchecked = this.#recentBlocks.firstUnchecked(cursor.number)
    if (unchecked === undefined) return { cursor, restartCursor: cursor }
    const number = unchecked - 1
    return { cursor, restartCursor: { number, hash: this.#recentBlocks.get(number)?.hash ?? null } }
  }

  add(range: BackfillRange): void {
    const last = this.#ranges.at(-1)
    const isAdjacent = last?.missingReason === range.missingReason && last.to + 1 === range.from
    if (last && isAdjacent) this.#ranges = this.#ranges.with(-1, { ...last, to: range.to })
    else if (last && this.#ranges.length >= RANGES_BOUND)
      this.#ranges = this.#ranges.with(-1, { ...last, to: range.to, missingReason: null })
    else this.#ranges = [...this.#ranges, range]
    this.added.notify()
  }

  advance(number: number): void {
    const [range, ...others] = this.#ranges
    if (range) this.#ranges = number >= range.to ? others : [{ ...range, from: number + 1 }, ...others]
  }

  markMissing(to: number, reason: string): void {
    const [range, ...others] = this.#ranges
    if (!range || to < range.from) return
    const rest = to < range.to ? [{ ...range, from: to + 1 }] : []
    this.#ranges = [{ from: range.from, to, missingReason: reason }, ...rest, ...others]
  }
}

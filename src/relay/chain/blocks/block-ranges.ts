import type { BlockRange } from './sealed-block.ts'

/** Old blocks to read, but not before a time, or to report as missing with a `missingReason`. */
export type UnreadRange = BlockRange & { readonly missingReason: string | null; readonly readableAt: number }

/** Limit of ranges. At the limit, the last range is extended instead, even over blocks that are already settled. */
const RANGES_BOUND = 64

/** Returns the ranges that these blocks form, which are in ascending order. */
export function rangesOf(blocks: readonly number[]): readonly BlockRange[] {
  const firsts = blocks.filter((block, index) => blocks[index - 1] !== block - 1)
  const lasts = blocks.filter((block, index) => blocks[index + 1] !== block + 1)
  return firsts.map((from, index) => ({ from, to: lasts[index] ?? from }))
}

/** Returns the parts of a range that lie between the given blocks, which are in ascending order. */
export function rangesAround(blocks: readonly number[], { from, to }: BlockRange): readonly BlockRange[] {
  const ends = [...blocks, to + 1]
  return ends.flatMap((end, index) => {
    const start = index === 0 ? from : (ends[index - 1] ?? from) + 1
    return start < end ? [{ from: start, to: end - 1 }] : []
  })
}

export function addRange(unread: readonly UnreadRange[], range: UnreadRange): readonly UnreadRange[] {
  const last = unread.at(-1)
  const isAdjacent = last?.missingReason === range.missingReason && last.to + 1 === range.from
  const joined = { ...range, from: last?.from ?? range.from }
  if (isAdjacent) return unread.with(-1, joined)
  if (unread.length >= RANGES_BOUND) return unread.with(-1, { ...joined, missingReason: null })
  return [...unread, range]
}

/** Returns the ranges that are left once the first blocks of the first one are read or reported, up to `to`. */
export const unreadAfter = ([range, ...others]: readonly UnreadRange[], to: number): readonly UnreadRange[] =>
  range && to < range.to ? [{ ...range, from: to + 1 }, ...others] : others

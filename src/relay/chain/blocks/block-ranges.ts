import type { BlockRange } from './sealed-block.ts'

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

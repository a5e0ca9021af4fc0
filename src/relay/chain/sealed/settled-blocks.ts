import { DEPTH_BOUND_BLOCKS, RECENT_BLOCKS_BOUND } from '../blocks/block-bounds.ts'
import type { CountedBlock } from '../blocks/compare-counts.ts'
import type { Cursor } from '../blocks/sealed-block.ts'

export type SettledBlock = CountedBlock & {
  readonly settledAt: number
  /** True if the logs of the block were read again, so late that every node has indexed them. */
  readonly isRechecked?: true
}

export type SettledBlocks = {
  /** In ascending order, as deep as a rollback can be. A rollback looks for the fork point in the newest of them. */
  readonly all: readonly SettledBlock[]
  /** The newest settled block, which is the parent of the next one to settle; null before the first block. */
  readonly newest: Cursor | null
  /** The lowest block number that was ever added, even if that block is no longer kept. */
  readonly first: number
  /** The block above which the first run began to settle or, if that is unknown, this run. */
  readonly began: number
}

export const noBlocks = (began: number | null): SettledBlocks => ({
  all: [],
  newest: null,
  first: Number.POSITIVE_INFINITY,
  began: began ?? Number.POSITIVE_INFINITY,
})

export function findBlock({ all }: SettledBlocks, number: number): SettledBlock | undefined {
  const block = all[indexFrom(all, number)]
  return block?.number === number ? block : undefined
}

export function addBlock({ all, newest, first, began }: SettledBlocks, block: SettledBlock): SettledBlocks {
  const { number, hash } = block
  const index = indexFrom(all, number)
  return {
    all: all.toSpliced(index, all[index]?.number === number ? 1 : 0, block).slice(-DEPTH_BOUND_BLOCKS),
    newest: number >= (newest?.number ?? 0) ? { number, hash } : newest,
    first: Math.min(first, number),
    began: Math.min(began, number),
  }
}

export const addUnread = (blocks: SettledBlocks, { number, hash }: Cursor): SettledBlocks =>
  addBlock(blocks, { number, hash, logCount: null, filters: [], settledAt: 0 })

export function rollBackTo(blocks: SettledBlocks, { number, hash }: Cursor): SettledBlocks {
  const kept = { ...blocks, all: blocks.all.slice(0, indexFrom(blocks.all, number + 1)), newest: { number, hash } }
  // A known block keeps its number of logs, so that it is still rechecked.
  return findBlock(kept, number)?.hash === hash ? kept : addUnread(kept, { number, hash })
}

/** Returns the oldest block in which a rollback looks for the fork point; 0 if there is none. */
export const oldestRecent = ({ all }: SettledBlocks): number => all[Math.max(0, all.length - RECENT_BLOCKS_BOUND)]?.number ?? 0

/** Returns the newest recent block at or below `number`, or the oldest recent block if there is none. */
export const nearestRecent = (blocks: SettledBlocks, number: number): number =>
  Math.max(oldestRecent(blocks), blocks.all[indexFrom(blocks.all, number + 1) - 1]?.number ?? 0)

/** True for a block that waits for its last recheck. */
export const isUnchecked = (block: SettledBlock | undefined): boolean =>
  block !== undefined && block.logCount !== null && !block.isRechecked

/** Returns the first block up to `to` that waits for its last recheck. */
export function firstUnchecked({ all }: SettledBlocks, to: number): number | undefined {
  const first = all.find((block) => isUnchecked(block) || block.number > to)
  return first && first.number <= to ? first.number : undefined
}

/** Returns the index of the first block from `number` on. */
function indexFrom(all: readonly SettledBlock[], number: number): number {
  let [low, high] = [0, all.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((all[middle]?.number ?? 0) < number) low = middle + 1
    else high = middle
  }
  return low
}

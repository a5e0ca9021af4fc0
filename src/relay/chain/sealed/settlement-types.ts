import type { Hex } from '../../../lib/hex.ts'
import type { BlockResult } from '../blocks/block-logs.ts'
import type { UnreadRange } from '../blocks/block-ranges.ts'
import type { ReadFailure } from '../blocks/read-failures.ts'
import type { BlockRange, Cursor, SealedBlock } from '../blocks/sealed-block.ts'
import type { ReadFilter } from '../logs/log-filter.ts'
import type { SealedHeader } from '../rpc/block-header.ts'
import type { SettledBlock } from './settled-blocks.ts'

export type FinalityEvent = { readonly type: 'finality'; readonly stage: 'safe' | 'finalized'; readonly block: SealedHeader }

type Cursors = {
  /** All blocks up to this one are settled. */
  readonly cursor: Cursor
  /** A restart continues after this block. It may be below the cursor, to settle again blocks that may gain logs. */
  readonly restartCursor: Cursor
}

export type Hole = { readonly blocks: BlockRange; readonly reason: string }

/** Events of settling, in chain order except for backfill. */
export type SettlementEvent =
  | (Cursors & {
      readonly type: 'sealed'
      /** Blocks that could not be read. They come before the others, whose logs do not show changes inside of the holes. */
      readonly holes: readonly Hole[]
      readonly blocks: readonly SealedBlock[]
      /** No block up to this one can have pre-confirmed logs any more. */
      readonly newest: number
    })
  /** Settling starts with the block after the cursor. Reported only if no previous run has settled a block. */
  | { readonly type: 'cursor'; readonly cursor: Cursor; readonly timestamp: number | null }
  /** A reorganisation may have removed this block and all above. Unless it is only suspected, they are settled again. */
  | { readonly type: 'reorg'; readonly from: number; readonly isSuspected?: true }

/** Something to read from the node. At most one read of each lane is in progress. */
export type PlannedRead =
  /** A settled block for which a node gave another hash. With `acceptsMissing`, a node without the block proves nothing. */
  | { readonly lane: 'settle'; readonly what: 'disputed'; readonly number: number; readonly acceptsMissing: boolean }
  /** A settled block that has more logs now. */
  | { readonly lane: 'settle'; readonly what: 'incomplete'; readonly number: number }
  /** A block that was settled without a filter that it needs. A later need of the block has a higher `nth`. */
  | { readonly lane: 'outdated'; readonly what: 'outdated'; readonly number: number; readonly nth: number }
  /** In the first run, the block from which on the past is read. */
  | { readonly lane: 'settle'; readonly what: 'first'; readonly target: SealedHeader }
  /** After an outage, the first block that is not too old to catch up on. */
  | { readonly lane: 'settle'; readonly what: 'oldest'; readonly settled: Cursor; readonly target: SealedHeader }
  /** The block to skip to, because settling is far behind. */
  | { readonly lane: 'settle'; readonly what: 'newest'; readonly settled: Cursor; readonly target: SealedHeader }
  | { readonly lane: 'settle'; readonly what: 'next'; readonly settled: Cursor; readonly count: number }
  /** The first blocks of a range of old blocks. */
  | { readonly lane: 'backfill'; readonly what: 'page'; readonly page: BlockRange; readonly range: UnreadRange }
  /** The blocks with published keys in a range of blocks that are reported as missing. */
  | { readonly lane: 'backfill'; readonly what: 'missing'; readonly range: BlockRange; readonly reason: string }
  | { readonly lane: 'recheck'; readonly what: 'recent'; readonly below: number }
export type Lane = PlannedRead['lane']
export type ReadOf<What extends PlannedRead['what']> = Extract<PlannedRead, { readonly what: What }>

/** A read, and what it found. */
export type ReadAnswer = Found & { readonly read: PlannedRead }
export type Found =
  | { readonly type: 'failed'; readonly failure: ReadFailure }
  /** The next blocks in order, up to the first one that could not be read. */
  | { readonly type: 'blocks'; readonly results: readonly BlockResult[]; readonly failure: ReadFailure | null }
  /** The node cannot show an outdated block any more. */
  | { readonly type: 'lost'; readonly number: number }
  /** The node has the settled block, or none in its place. */
  | { readonly type: 'confirmed'; readonly number: number }
  /** The node has another block: those above `to` were replaced. Those in `lost` may be, but cannot be rolled back. */
  | { readonly type: 'replaced'; readonly to: Cursor; readonly lost: BlockRange | null }
  /** The block after which settling begins in the past. */
  | { readonly type: 'first'; readonly cursor: Cursor }
  /** The blocks up to `to` are not settled one by one. */
  | { readonly type: 'skipped'; readonly to: Cursor; readonly missingReason: string | null }
  /** Old blocks up to `to`. A page with many logs has several such parts. */
  | { readonly type: 'page'; readonly blocks: readonly SealedBlock[]; readonly to: number; readonly holes: readonly Hole[] }
  /** The node does not have the blocks of the page up to `to`. */
  | { readonly type: 'unavailable'; readonly to: number; readonly reason: string }
  /** Blocks that have more logs now, blocks whose last recheck this was, and those that the node cannot show any more. */
  | {
      readonly type: 'rechecked'
      readonly incomplete: readonly number[]
      readonly complete: readonly SettledBlock[]
      readonly holes: readonly Hole[]
    }

/** Everything from which the relay learns about the sealed chain. */
export type SealedEvidence =
  | ReadAnswer
  | { readonly type: 'listed'; readonly filters: readonly ReadFilter[] }
  /** Blocks to settle again, because they were settled without a filter that they need. */
  | { readonly type: 'outdated'; readonly blocks: readonly number[] }
  /** Settling begins with the block after the cursor, unless it has begun, or begins in the past. */
  | { readonly type: 'began'; readonly cursor: Cursor }
  | { readonly type: 'head'; readonly header: SealedHeader; readonly isPushed: boolean }
  /** The node withdrew a log of this block. */
  | { readonly type: 'removed'; readonly number: number; readonly hash: Hex | null }
  /** The upstream is disconnected. */
  | { readonly type: 'down' }
  | FinalityEvent

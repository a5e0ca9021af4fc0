import type { Hex } from '../../../lib/hex.ts'
import { WITHIN_REACH_BLOCKS } from '../blocks/block-bounds.ts'
import type { UnreadRange } from '../blocks/block-ranges.ts'
import { largestPage, type PageSize } from '../blocks/page-size.ts'
import { type Failures, noFailures } from '../blocks/read-failures.ts'
import type { Cursor, OpenKeys } from '../blocks/sealed-block.ts'
import type { ReadFilter } from '../logs/log-filter.ts'
import type { Header, SealedHeader } from '../rpc/block-header.ts'
import { addUnread, findBlock, firstUnchecked, noBlocks, type SettledBlocks } from './settled-blocks.ts'
import type { FinalityEvent, Lane } from './settlement-types.ts'

/** Limit of the distance of a new head above the newest known one. A head further above is ignored as garbage. */
const HEAD_JUMP_BOUND_BLOCKS = 100_000_000

/** A header that was received before its block was settled. A pushed header counts only if an answer confirms it. */
type AnnouncedHeader = { readonly header: SealedHeader; readonly isPushed: boolean }

/** All that the relay knows about the sealed chain. `plan` says what to read next, and `learn` returns the next state. */
export type SealedState = {
  /** The filters of the next reads. Each change makes a new array. */
  readonly filters: readonly ReadFilter[]
  readonly blocks: SettledBlocks
  /** Whether this is the first run, and settling begins in the past. */
  readonly beginsInPast: boolean
  /** Number of pages of the past that may still be read before newer blocks are settled. In chain order, no fact is corrected. */
  readonly pagesFirst: number
  /** The head to settle up to, the last received one, and the number of the last one that was asked for. */
  readonly target: SealedHeader | null
  readonly lastHead: SealedHeader | null
  readonly polledHead: number | null
  /** The newest `safe` block that the relay has settled, which is the target of a deep rollback; 0 if there is none. */
  readonly safe: number
  /** The lowest settled block for which a node gave another hash; null if there is none. */
  readonly disputed: number | null
  /** Headers with a time of blocks that are not settled. Other headers are read from the node. */
  readonly announced: ReadonlyMap<number, AnnouncedHeader>
  readonly outage: {
    readonly isDisconnected: boolean
    /** True from the end of an outage until the blocks that are too old to catch up on are skipped. */
    readonly isUnbounded: boolean
    /** Blocks up to this one were sealed during an outage, so they count as backfill. */
    readonly lastBlock: number
    readonly failingSince: number | null
  }
  /** When the relay last rolled back. */
  readonly rolledBackAt: number
  /** Old blocks that are still to be read, in the order of reading. */
  readonly unread: readonly UnreadRange[]
  readonly page: PageSize
  readonly recheck: {
    /** The recheck that is due reads the blocks below this one. */
    readonly below: number | null
    readonly scheduledAt: number
    /** Settled blocks that have more logs now, so they have to be settled again. */
    readonly incomplete: ReadonlySet<number>
    /** True if the last step settled a block again. New blocks must not wait for several such steps. */
    readonly hasResettled: boolean
  }
  /** Blocks to settle again, because they were settled without a filter that they need. A later need has a higher number. */
  readonly outdated: ReadonlyMap<number, number>
  /** Finality events that wait until all blocks up to their block are settled, so that clients have all facts they cover. */
  readonly finality: readonly FinalityEvent[]
  readonly failures: Readonly<Record<Lane, Failures>>
  /** Reads that fail for this long count as an outage. */
  readonly silenceMs: number
}

type SealedStart = {
  /** The last block that the previous run settled; null to start at the first head. */
  readonly cursor: Cursor | null
  /** The block above which the first run began to settle. */
  readonly began?: number | null
  /** How far back in block time settling begins without a cursor; 0 at the first head. */
  readonly backfillFirstMs?: number
  /** The newest `safe` block in the previous run. */
  readonly safe: number | null
  readonly openKeys: Pick<OpenKeys, 'sealedInPreviousRun'>
  readonly outdated?: readonly number[]
  readonly silenceMs: number
}

export function startSealed({
  cursor,
  began = null,
  backfillFirstMs = 0,
  safe,
  openKeys,
  outdated = [],
  silenceMs,
}: SealedStart): SealedState {
  // A reorg during the outage may have replaced blocks below the cursor, so their hashes are remembered.
  const known = cursor ? [...openKeys.sealedInPreviousRun.filter(({ number }) => number < cursor.number), cursor] : []
  return {
    filters: [],
    blocks: known.reduce(addUnread, noBlocks(began)),
    beginsInPast: cursor === null && backfillFirstMs > 0,
    pagesFirst: 0,
    target: null,
    lastHead: null,
    polledHead: null,
    safe: safe ?? 0,
    disputed: null,
    announced: new Map(),
    outage: { isDisconnected: cursor !== null, isUnbounded: false, lastBlock: -1, failingSince: null },
    rolledBackAt: Number.NEGATIVE_INFINITY,
    unread: [],
    page: largestPage,
    recheck: { below: null, scheduledAt: Number.NEGATIVE_INFINITY, incomplete: new Set(), hasResettled: false },
    outdated: new Map(outdated.map((number) => [number, 0])),
    finality: [],
    failures: { settle: noFailures, outdated: noFailures, backfill: noFailures, recheck: noFailures },
    silenceMs,
  }
}

/** Returns the newest block up to which all blocks are settled or reported as missing; null before the first one. */
export function cursorOf(state: SealedState): Cursor | null {
  const { newest } = state.blocks
  // After a reorg a later range may start below an earlier one, and `newest` may be below them all.
  const number = Math.min(newest?.number ?? 0, ...state.unread.map(({ from }) => from - 1))
  return newest === null || number === newest.number ? newest : { number, hash: hashOf(state, number) }
}

/** The cursor, and the block after which a restart continues. */
export function cursorsOf(state: SealedState): { readonly cursor: Cursor; readonly restartCursor: Cursor } {
  const cursor = cursorOf(state) ?? { number: 0, hash: null }
  // A node may index a block late, so a restart settles those again that the relay has not rechecked.
  const unchecked = firstUnchecked(state.blocks, cursor.number)
  if (unchecked === undefined) return { cursor, restartCursor: cursor }
  return { cursor, restartCursor: { number: unchecked - 1, hash: hashOf(state, unchecked - 1) } }
}

/** Returns the hash of a settled block; null if the block is not settled or was never read. */
export const hashOf = ({ blocks }: SealedState, number: number): Hex | null => findBlock(blocks, number)?.hash ?? null

/** Whether the block is so far above the known ones that a poll must confirm it. */
export function isOutOfReach({ polledHead, blocks: { newest } }: SealedState, number: number): boolean {
  const known = Math.max(polledHead ?? -1, newest?.number ?? -1)
  return known >= 0 && number > known + WITHIN_REACH_BLOCKS
}

/** A pushed head that is `unconfirmed` has to be polled. */
export function judgeHead(state: SealedState, { number }: SealedHeader, isPushed: boolean): 'taken' | 'unconfirmed' | 'garbage' {
  if (state.target && number > state.target.number + HEAD_JUMP_BOUND_BLOCKS) return 'garbage'
  return isPushed && isOutOfReach(state, number) ? 'unconfirmed' : 'taken'
}

/** Whether the block is a settled one, or a head that waits to be settled. */
export function isKnown(state: SealedState, { number, hash }: Header): boolean {
  if (number === null || hash === null) return false
  return hashOf(state, number) === hash || state.announced.get(number)?.header.hash === hash
}

export const isCaughtUp = ({ blocks: { newest }, target }: SealedState): boolean =>
  newest === null || target === null || target.number <= newest.number

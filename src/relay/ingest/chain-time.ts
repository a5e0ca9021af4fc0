import { correctMultipliers } from './facts/amend.ts'
import type { PublishedFact } from './facts/fact.ts'
import type { BlockTime, IngestState } from './ingest-state.ts'
import type { Moment } from './moment.ts'
import { NOTHING, type Publication, withoutFacts } from './publication.ts'
import { applyDueSchedules } from './token-updates.ts'

// Chain time goes on with the blocks. Schedules take effect by it, also for facts that were published before.

/** Claimed times kept, one per block. Only blocks above the newest settled one need them. */
export const CLAIMED_TIMES_BOUND = 64
/** How many blocks before one with a believed time may be unsettled: sealed, but not read yet. */
const UNSETTLED_BLOCKS_BOUND = 2

/**
 * Takes one answer about the time of a block that is not settled. One message proves nothing: the time is believed once
 * another answer gives the same, and one of the two is a header that was asked for.
 */
export function observeClaimedTime(
  state: IngestState,
  { number, timestamp }: BlockTime,
  isAsked: boolean,
  moment: Moment,
): readonly Publication[] {
  if (timestamp === null) return NOTHING
  const known = state.claimedTimes.get(number)
  const isRepeated = known?.timestamp === timestamp
  if (isRepeated && (isAsked || known.isAsked))
    return observeBlockTime(state, { number, timestamp }, moment, UNSETTLED_BLOCKS_BOUND)
  if (!isRepeated && (isAsked || !known?.isAsked)) state.claimedTimes.refresh(number, { timestamp, isAsked })
  return NOTHING
}

/** Advances to the time of a block once at most `aheadBlocks` blocks before it are not settled. */
export function observeBlockTime(state: IngestState, block: BlockTime, moment: Moment, aheadBlocks = 0): readonly Publication[] {
  const { cursor, aheadBlock } = state
  if (cursor === null || block.number <= cursor.number + 1 + aheadBlocks) return advanceTime(state, block, moment)
  if (block.number >= (aheadBlock?.number ?? 0)) state.aheadBlock = block
  return NOTHING
}

/** All blocks up to the cursor are settled now. */
export function advanceAheadBlock(state: IngestState, moment: Moment): readonly Publication[] {
  const { cursor, aheadBlock } = state
  if (!cursor || !aheadBlock || aheadBlock.number > cursor.number + 1) return NOTHING
  state.aheadBlock = null
  return advanceTime(state, aheadBlock, moment)
}

/** Advances to the time of a block, and applies the schedules that are due. */
export function advanceTime(
  state: IngestState,
  { number, timestamp }: BlockTime,
  moment: Moment,
  isAmended?: (published: PublishedFact) => boolean,
): readonly Publication[] {
  const { chainTime } = state
  if (timestamp !== null) {
    const time = Math.max(timestamp, chainTime?.timestamp ?? 0)
    state.chainTime = { number: Math.max(number, chainTime?.number ?? 0), timestamp: time }
  }
  return applyDue(state, moment, isAmended)
}

/** Applies the schedules that are due, and amends the published facts that they concern. */
export function applyDue(
  state: IngestState,
  moment: Moment,
  isAmended?: (published: PublishedFact) => boolean,
): readonly Publication[] {
  const { chainTime, scheduled } = state
  if (!chainTime || scheduled.size === 0) return NOTHING
  const steps = [...scheduled].map((address) => ({ address, ...applyDueSchedules(state, address, chainTime.timestamp, moment) }))
  const due = steps.filter(({ isMultiplierChanged }) => isMultiplierChanged)
  return [
    ...withoutFacts(due.flatMap(({ drafts }) => drafts)),
    ...due.flatMap(({ address }) => correctMultipliers(state, address, moment, isAmended)),
  ]
}

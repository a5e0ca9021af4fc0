import { isDeepStrictEqual } from 'node:util'
import { applyDueSchedules } from './apply-to-tokens.ts'
import type { Moment } from './batch-values.ts'
import { correctMultipliers } from './facts/amend.ts'
import type { PublishedFact } from './facts/fact.ts'
import type { BlockTime, IngestState } from './ingest-state.ts'
import { forAllTokens, NOTHING, type Publication, withoutFacts } from './publication.ts'

/** Limit of unsettled blocks for which the relay keeps a time that it does not believe yet. */
export const CLAIMED_TIMES_BOUND = 64
/** Number of unsettled blocks that may precede a block with a believed time: they are sealed, but not read yet. */
const UNSETTLED_BLOCKS_BOUND = 2

/** Records one answer about a block's time. The relay believes it once two answers agree, and it asked for one of them. */
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

/** Advances chain time to that of a block if at most `aheadBlocks` blocks before it are unsettled; otherwise keeps it for later. */
export function observeBlockTime(state: IngestState, block: BlockTime, moment: Moment, aheadBlocks = 0): readonly Publication[] {
  const { cursor, aheadBlock } = state
  if (cursor === null || block.number <= cursor.number + 1 + aheadBlocks) return advanceTime(state, block, moment)
  if (block.number >= (aheadBlock?.number ?? 0)) state.aheadBlock = block
  return NOTHING
}

/** Advances chain time to the time in `aheadBlock`, once all blocks before that block are settled. */
export function advanceAheadBlock(state: IngestState, moment: Moment): readonly Publication[] {
  const { cursor, aheadBlock } = state
  if (!cursor || !aheadBlock || aheadBlock.number > cursor.number + 1) return NOTHING
  state.aheadBlock = null
  return advanceTime(state, aheadBlock, moment)
}

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

/** Applies the scheduled multipliers that are due, and amends the facts that were published without them. */
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

export function applySession(state: IngestState, { time }: Moment): readonly Publication[] {
  const { sessionAt, chainTime } = state
  if (!sessionAt || !chainTime) return NOTHING
  const session = sessionAt(chainTime.timestamp)
  if (isDeepStrictEqual(session, state.session)) return NOTHING
  state.session = session
  return [forAllTokens({ type: 'session', ...session }, time)]
}

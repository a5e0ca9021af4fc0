import { correctMultipliers } from './amend.ts'
import type { BlockTime, IngestState } from './ingest-state.ts'
import type { Moment } from './moment.ts'
import { NOTHING, type Publication, withoutFacts } from './publication.ts'
import { applyDueSchedules } from './token-updates.ts'

// Chain time goes on with the blocks. Schedules take effect by it, also for facts that were published before.

/** Advances to the time of a block once at most `aheadBlocks` blocks before it are not settled. */
export function observeBlockTime(state: IngestState, block: BlockTime, moment: Moment, aheadBlocks = 0): readonly Publication[] {
  const { cursor, aheadBlock } = state
  if (cursor === null || block.number <= cursor.number + 1 + aheadBlocks) return advanceTime(state, block.timestamp, moment)
  if (block.number >= (aheadBlock?.number ?? 0)) state.aheadBlock = block
  return NOTHING
}

/** All blocks up to the cursor are settled now. */
export function advanceAheadBlock(state: IngestState, moment: Moment): readonly Publication[] {
  const { cursor, aheadBlock } = state
  if (!cursor || !aheadBlock || aheadBlock.number > cursor.number + 1) return NOTHING
  state.aheadBlock = null
  return advanceTime(state, aheadBlock.timestamp, moment)
}

/** Applies the schedules that are due at this chain time, in seconds. */
export function advanceTime(state: IngestState, timestamp: number | null, moment: Moment): readonly Publication[] {
  const time = Math.max(timestamp ?? 0, state.chainTime ?? 0)
  if (time > 0) state.chainTime = time
  if (state.scheduled.size === 0) return NOTHING
  const steps = [...state.scheduled].map((address) => ({ address, ...applyDueSchedules(state, address, time, moment) }))
  const due = steps.filter(({ isMultiplierChanged }) => isMultiplierChanged)
  return [
    ...withoutFacts(due.flatMap(({ drafts }) => drafts)),
    ...due.flatMap(({ address }) => correctMultipliers(state, address, moment)),
  ]
}

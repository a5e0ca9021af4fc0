import { countOf } from '../blocks/read-failures.ts'
import { isCaughtUp, type SealedState } from './sealed-state.ts'
import type { PlannedRead } from './settlement-types.ts'

/** Distance to the head beyond which settling skips to the newest blocks. For fewer blocks a skip saves no time. */
const BACKFILL_THRESHOLD_BLOCKS = 96
/** Limit of blocks read in parallel, to keep up with a node that answers more slowly than it seals. */
const PARALLEL_BLOCKS = 8
/** Number of times that the node may lack a block before the relay stops waiting for this block. */
export const DISPUTE_TRIES = 5

/** Returns what to read from the node next, at most one read for each lane. */
export const plan = (state: SealedState): readonly PlannedRead[] =>
  [planSettling(state), planOutdated(state), planBackfill(state), planRecheck(state)].filter((read) => read !== null)

function planSettling(state: SealedState): PlannedRead | null {
  const { blocks, target, disputed, outage, recheck, failures, filters } = state
  const lane = 'settle'
  if (disputed !== null)
    return { lane, what: 'disputed', number: disputed, acceptsMissing: countOf(failures.settle, 'behind') >= DISPUTE_TRIES }
  const [incomplete] = recheck.incomplete
  if (incomplete !== undefined && (isCaughtUp(state) || !recheck.hasResettled))
    return { lane, what: 'incomplete', number: incomplete }
  const { newest: settled } = blocks
  // Before the list is read, the past would be read without its tokens.
  if (settled === null && state.beginsInPast && target !== null && filters.length > 0) return { lane, what: 'first', target }
  if (settled === null || target === null || target.number <= settled.number) return null
  if (state.pagesFirst > 0 && state.unread.length > 0) return null
  const ahead = target.number - settled.number
  if (outage.isUnbounded) return { lane, what: 'oldest', settled, target }
  if (ahead > BACKFILL_THRESHOLD_BLOCKS) return { lane, what: 'newest', settled, target }
  return { lane, what: 'next', settled, count: Math.min(ahead, PARALLEL_BLOCKS) }
}

function planOutdated({ outdated }: SealedState): PlannedRead | null {
  const [first] = outdated
  return first ? { lane: 'outdated', what: 'outdated', number: first[0], nth: first[1] } : null
}

/** Reads ranges of old blocks, in pages that the node accepts. Settling reads the newest blocks in parallel. */
function planBackfill({ unread: [range], page }: SealedState): PlannedRead | null {
  if (!range) return null
  const { from, to, missingReason: reason } = range
  if (reason !== null) return { lane: 'backfill', what: 'missing', range: { from, to }, reason }
  return { lane: 'backfill', what: 'page', page: { from, to: Math.min(from + page.blocks - 1, to) }, range }
}

const planRecheck = ({ recheck: { below } }: SealedState): PlannedRead | null =>
  below === null ? null : { lane: 'recheck', what: 'recent', below }

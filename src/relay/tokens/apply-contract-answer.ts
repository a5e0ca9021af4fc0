import { clampSeconds } from '../../lib/iso-time.ts'
import type { TokenContractState } from '../chain/contracts/token-contract.ts'
import { type ChainPosition, isBefore, type KeyedPosition, moveToEndOf, UNKNOWN_POSITION, withChanges } from './chain-position.ts'
import {
  addReportedChange,
  formatMultiplier,
  isSameDouble,
  type MultiplierChange,
  type MultiplierHistory,
  multiplierAt,
  rollBackAnswers,
} from './multiplier-history.ts'
import type { NavTiming } from './nav.ts'
import { addPauseChange, applyPauseChange, type PauseHistory, pausedAt } from './pause-history.ts'
import { type Token, withDerivedState } from './token.ts'
import { type ChangedToken, multiplierDraft, pauseDrafts } from './token-drafts.ts'

/** Applies the state of the token's contract. It differs from the known state only if the relay missed a log. */
export function applyContractAnswer(token: Token, result: TokenContractState, timing: NavTiming): ChangedToken {
  const position: ChainPosition = { block: result.block, logIndex: Number.MAX_SAFE_INTEGER }
  return withHistories(
    token,
    multiplierAfterCall(token.multiplierHistory, result, position),
    pausesAfterCall(token, result, position),
    timing,
  )
}

/** Applies what the contract said in the block where the first run begins. The present values of the list hold from the head on. */
export function applyFirstAnswer(token: Token, result: TokenContractState, head: ChainPosition, timing: NavTiming): ChangedToken {
  const { multiplier, pauseHistory } = token
  const { after } = applyContractAnswer(token, result, timing)
  const isSameMultiplier = isSameDouble(multiplier, after.multiplier)
  const listed = { ...head, key: null, source: 'list', phase: 'effective', from: null, timestamp: null, isApplied: false } as const
  const paused = pausedAt(pauseHistory, null)
  const isSamePause = paused.join() === pausedAt(after.pauseHistory, null).join()
  return withHistories(
    after,
    isSameMultiplier
      ? after.multiplierHistory
      : addReportedChange(after.multiplierHistory, { ...listed, to: multiplier, effectiveAt: null }),
    isSamePause ? after.pauseHistory : addPauseChange(after.pauseHistory, { ...head, key: null, kind: 'all', features: paused }),
    timing,
  )
}

/** Called after a reorg that replaces the blocks from `from`. Moves contract answers of those blocks to the block before them. */
export function rollBackReports(token: Token, from: number, timing: NavTiming): ChangedToken {
  const { multiplierHistory, pauseHistory } = token
  const isReplacedAnswer = ({ block, key }: KeyedPosition) => block >= from && key === null
  return withHistories(
    token,
    withChanges(multiplierHistory, rollBackAnswers(multiplierHistory, from)),
    withChanges(pauseHistory, moveToEndOf(pauseHistory.changes, from - 1, isReplacedAnswer)),
    timing,
  )
}

/** Called with the first known head. Gives earlier values of the list that position, so that any later block overrides them. */
export function placeReports(token: Token, head: number, timing: NavTiming): ChangedToken {
  const isUnplaced = ({ block }: ChainPosition) => block === UNKNOWN_POSITION.block
  const { multiplierHistory, pauseHistory } = token
  return withHistories(
    token,
    withChanges(multiplierHistory, moveToEndOf(multiplierHistory.changes, head, isUnplaced)),
    withChanges(pauseHistory, moveToEndOf(pauseHistory.changes, head, isUnplaced)),
    timing,
  )
}

/** Returns the token with these histories, and the updates for changes that no log reported. */
function withHistories(
  token: Token,
  multiplierHistory: MultiplierHistory,
  pauseHistory: PauseHistory,
  timing: NavTiming,
): ChangedToken {
  if (multiplierHistory === token.multiplierHistory && pauseHistory === token.pauseHistory) return { after: token, drafts: [] }
  const after = withDerivedState({ ...token, multiplierHistory, pauseHistory }, timing)
  const { multiplier: from } = token
  // The source is `clock`, because neither a log nor the list reported the change.
  const multiplierDrafts = isSameDouble(from, after.multiplier)
    ? []
    : [multiplierDraft(after, timing, { from, effectiveAt: null, source: 'clock' })]
  return { after, drafts: [...multiplierDrafts, ...pauseDrafts(token, after, timing)] }
}

function pausesAfterCall(
  { pauseHistory, multiplierHistory }: Token,
  { paused }: TokenContractState,
  position: ChainPosition,
): PauseHistory {
  if (paused === null) return pauseHistory
  const features = pauseHistory.changes
    .filter(
      (change) => change.kind !== 'all' && isAfterGap(change, multiplierHistory.lastUnreadBlock) && isBefore(change, position),
    )
    .reduce(applyPauseChange, paused)
  if (features.join() === pausedAt(pauseHistory, position).join()) return pauseHistory
  return addPauseChange(pauseHistory, { ...position, key: null, kind: 'all', features })
}

/** Whether the relay read all blocks from this position on. */
const isAfterGap = ({ block }: ChainPosition, lastUnreadBlock: number | null): boolean => block > (lastUnreadBlock ?? -1)

function multiplierAfterCall(
  history: MultiplierHistory,
  { multiplier, scheduled }: TokenContractState,
  position: ChainPosition,
): MultiplierHistory {
  // If all blocks since a log were read, the log counts: a node that answers something else lags behind.
  const lastChange = history.changes.findLast((change) => change.source !== 'list' && isBefore(change, position))
  if (multiplier === null || (lastChange?.source === 'log' && isAfterGap(lastChange, history.lastUnreadBlock))) return history
  const before = multiplierAt(history, { ...position, timestamp: null })
  const add = (known: MultiplierHistory, change: Pick<MultiplierChange, 'phase' | 'to' | 'effectiveAt'>) =>
    addReportedChange(known, { ...position, key: null, source: 'call', from: null, timestamp: null, isApplied: false, ...change })
  const value = formatMultiplier(multiplier)
  const schedule = scheduled && { to: formatMultiplier(scheduled.to), effectiveAt: clampSeconds(scheduled.effectiveAt) }
  const isSchedule = (change: Pick<MultiplierChange, 'to' | 'effectiveAt'> | null) =>
    change?.to === schedule?.to && change?.effectiveAt === schedule?.effectiveAt
  // The relay has applied this schedule already, so the answer is of an older block.
  if (schedule && history.changes.some((change) => change.isApplied && isSchedule(change))) return history
  const isKnown = before.value === value && before.source !== 'list' && before.source !== null
  const updated = isKnown ? history : add(history, { phase: 'effective', to: value, effectiveAt: null })
  if (isSchedule(before.scheduled)) return updated
  if (schedule) return add(updated, { phase: 'scheduled', ...schedule })
  return add(updated, { phase: 'cancelled', to: before.scheduled?.to ?? null, effectiveAt: null })
}

import type { Hex } from '../../lib/hex.ts'
import type { Draft } from '../../protocol/updates.ts'
import { clampSeconds, formatMultiplier } from './apply-log.ts'
import { type ChainPosition, isBefore, moveToEndOf, UNKNOWN_POSITION } from './chain-position.ts'
import { multiplierDraft, pauseDrafts } from './drafts-of-token.ts'
import {
  addReportedChange,
  isSameDouble,
  type MultiplierChange,
  type MultiplierHistory,
  multiplierAt,
  rollBackAnswers,
} from './multiplier.ts'
import type { NavTiming } from './nav.ts'
import { addPauseChange, applyPauseChange, type PauseHistory, pausedAt } from './pauses.ts'
import { type Token, withDerivedState } from './token.ts'

/** A token's state as its contract answers it at a block; null where the contract lacks the function. */
export type TokenContractState = {
  readonly address: Hex
  readonly block: number
  readonly multiplier: bigint | null
  readonly scheduled: { readonly to: bigint; readonly effectiveAt: bigint } | null
  readonly paused: readonly number[] | null
}

/** The token, and what changed in it without a log. */
export type TokenReport = { readonly after: Token; readonly drafts: readonly Draft[] }

/**
 * Applies the contract's answer to the token. Usually it equals the known state, to the last digit. A difference means
 * that a log was missed. It is published with the source `clock`, since neither a log nor the list reported it.
 * A change from a log stands if all blocks since then were read: a different answer then comes from a node that lags.
 */
export function applyCall(token: Token, result: TokenContractState, timing: NavTiming): TokenReport {
  const position: ChainPosition = { block: result.block, logIndex: Number.MAX_SAFE_INTEGER }
  const multiplierHistory = multiplierAfterCall(token.multiplierHistory, result, position)
  const pauseHistory = pausesAfterCall(token, result, position)
  return withHistories(token, { multiplierHistory, pauseHistory }, timing)
}

/** Another chain has replaced this block and all above it: what contracts answered there is older than its logs. */
export const rollBackReports = (token: Token, from: number, timing: NavTiming): TokenReport =>
  withChanges(
    token,
    rollBackAnswers(token.multiplierHistory, from),
    moveToEndOf(token.pauseHistory.changes, from - 1, ({ block, key }) => block >= from && key === null),
    timing,
  )

/** The head of the chain is known now: what the list reported before is older than the blocks after it. */
export function placeReports(token: Token, head: number, timing: NavTiming): TokenReport {
  const isUnplaced = ({ block }: ChainPosition) => block === UNKNOWN_POSITION.block
  const { multiplierHistory, pauseHistory } = token
  return withChanges(
    token,
    moveToEndOf(multiplierHistory.changes, head, isUnplaced),
    moveToEndOf(pauseHistory.changes, head, isUnplaced),
    timing,
  )
}

function withChanges(
  token: Token,
  changes: MultiplierHistory['changes'],
  pauseChanges: PauseHistory['changes'],
  timing: NavTiming,
): TokenReport {
  const { multiplierHistory, pauseHistory } = token
  if (changes === multiplierHistory.changes && pauseChanges === pauseHistory.changes) return { after: token, drafts: [] }
  const histories = {
    multiplierHistory: { ...multiplierHistory, changes },
    pauseHistory: { ...pauseHistory, changes: pauseChanges },
  }
  return withHistories(token, histories, timing)
}

function withHistories(token: Token, histories: Pick<Token, 'multiplierHistory' | 'pauseHistory'>, timing: NavTiming): TokenReport {
  const after = withDerivedState({ ...token, ...histories }, timing)
  const { multiplier: from } = token
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

/** Whether all blocks since that position were read. */
const isAfterGap = ({ block }: ChainPosition, lastUnreadBlock: number | null): boolean => block > (lastUnreadBlock ?? -1)

function multiplierAfterCall(
  history: MultiplierHistory,
  { multiplier, scheduled }: TokenContractState,
  position: ChainPosition,
): MultiplierHistory {
  const lastChange = history.changes.findLast((change) => change.source !== 'list' && isBefore(change, position))
  if (multiplier === null || (lastChange?.source === 'log' && isAfterGap(lastChange, history.lastUnreadBlock))) return history
  const before = multiplierAt(history, { ...position, timestamp: null })
  const commonFields = { ...position, key: null, source: 'call', timestamp: null, isApplied: false } as const
  const callChange = (change: Pick<MultiplierChange, 'phase' | 'to' | 'effectiveAt'>): MultiplierChange => ({
    ...commonFields,
    from: null,
    ...change,
  })
  const value = formatMultiplier(multiplier)
  // An answer from before the schedule took effect: it has its value by chain time, and a block may be older than that.
  if (scheduled && isAppliedSchedule(history, formatMultiplier(scheduled.to), clampSeconds(scheduled.effectiveAt))) return history
  const isKnown = before.value === value && before.source !== 'list' && before.source !== null
  const updated = isKnown ? history : addReportedChange(history, callChange({ phase: 'effective', to: value, effectiveAt: null }))
  const schedule = scheduled && { to: formatMultiplier(scheduled.to), effectiveAt: clampSeconds(scheduled.effectiveAt) }
  const { scheduled: currentSchedule } = before
  if (schedule?.to === currentSchedule?.to && schedule?.effectiveAt === currentSchedule?.effectiveAt) return updated
  return addReportedChange(
    updated,
    callChange(
      schedule ? { phase: 'scheduled', ...schedule } : { phase: 'cancelled', to: currentSchedule?.to ?? null, effectiveAt: null },
    ),
  )
}

const isAppliedSchedule = ({ changes }: MultiplierHistory, to: string, effectiveAt: number): boolean =>
  changes.some((change) => change.isApplied && change.to === to && change.effectiveAt === effectiveAt)

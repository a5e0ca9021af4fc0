import { amountOf } from '../../protocol/decimal.ts'
import { type ChainPosition, dropUnsealed, insertInOrder, isBefore, moveToEndOf } from './chain-position.ts'
import type { MultiplierHistorySchema, Stored } from './token-schema.ts'

/** The initial multiplier of a token, and later changes in chain order. */
export type MultiplierHistory = Stored<typeof MultiplierHistorySchema>
export type MultiplierChange = MultiplierHistory['changes'][number]

export type MultiplierState = {
  readonly value: string | null
  readonly source: MultiplierChange['source'] | null
  readonly scheduled: MultiplierChange | null
}

export type TimedPosition = ChainPosition & { readonly timestamp: number | null }

/** Limit of kept changes of a multiplier. Beyond it the oldest becomes the initial value. */
const CHANGES_BOUND = 64

/** The chain stores a multiplier as an integer with this many decimals. */
const MULTIPLIER_DECIMALS = 18

export const formatMultiplier = (value: bigint): string => amountOf(value, MULTIPLIER_DECIMALS)

/** Returns the doubles that the list may contain for an exact value: from its text, or from the integer on the chain. */
const possibleDoubles = (value: string): readonly number[] => {
  const [whole = '0', fraction = ''] = value.split('.')
  const onChain = whole + fraction.slice(0, MULTIPLIER_DECIMALS).padEnd(MULTIPLIER_DECIMALS, '0')
  return [Number(value), Number(onChain) / 10 ** MULTIPLIER_DECIMALS]
}

/** Whether two values may be the same double. The list contains doubles, so only a larger difference contradicts an exact value. */
export const isSameDouble = (a: string | null, b: string | null): boolean =>
  a === b || (a !== null && b !== null && possibleDoubles(a).some((double) => possibleDoubles(b).includes(double)))

/**
 * Returns the multiplier just before a position; null means now. A schedule counts only if it is applied, from the first block
 * that reaches its time.
 */
export function multiplierAt(history: MultiplierHistory, position: TimedPosition | null): MultiplierState {
  const timestamp = position?.timestamp ?? null
  let state = initialState(history)
  for (const change of history.changes) {
    if (position && !isBefore(change, position)) break
    // A change without a time, such as one of the list, counts as made at the time of the position.
    state = applyChange(applyDueSchedule(state, change.timestamp ?? timestamp), change)
  }
  return applyDueSchedule(state, timestamp)
}

/** Whether older changes than those that are kept decided the multiplier of this position. */
export const isForgotten = ({ initialFrom }: MultiplierHistory, position: ChainPosition): boolean =>
  initialFrom !== undefined && isBefore(position, initialFrom)

/** Adds a change from a log. Drops changes of the list that anticipated the log, or that a late log makes void. */
export function addLogChange(history: MultiplierHistory, change: MultiplierChange): MultiplierHistory {
  const { changes, initialFrom, ...rest } = withMissedChange(history, change)
  // A change before the forgotten ones is of other blocks, which replace theirs.
  const from = initialFrom && !isForgotten(history, change) ? { initialFrom } : {}
  const before = changes.filter((earlier) => isBefore(earlier, change))
  const lastLog = before.findLastIndex(({ source }) => source === 'log')
  const known = changes.find(({ key }) => key === change.key)
  const redundantListChanges = new Set([
    ...before.slice(lastLog + 1).filter(({ source, to }) => source === 'list' && !isConfirmedByLog(to, change)),
    ...(known ? [] : listChangesEndedBy(change, changes.slice(before.length), history)),
  ])
  const others = changes.filter((known) => !redundantListChanges.has(known))
  return boundChanges({
    ...rest,
    ...from,
    changes: insertInOrder(others, known ? { ...change, isApplied: known.isApplied && isSameSchedule(known, change) } : change),
  })
}

/** Returns later changes of the list that a late log makes void. After unread blocks, the list may still report real changes. */
function listChangesEndedBy(
  change: MultiplierChange,
  later: readonly MultiplierChange[],
  { lastUnreadBlock }: MultiplierHistory,
): readonly MultiplierChange[] {
  const isComplete = determinesValue(change) && change.block > (lastUnreadBlock ?? -1)
  const nextLog = later.findIndex(({ source }) => source === 'log')
  const next = new Set(isComplete ? later.slice(0, nextLog === -1 ? later.length : nextLog) : [])
  const hasEnded = (one: MultiplierChange) => next.has(one) || isSameDouble(one.to, change.to) || isSameDouble(one.to, change.from)
  return later.filter((one) => one.source === 'list' && hasEnded(one))
}

/** Whether a log alone tells the value after it. The previous value in a log of a schedule holds until the schedule is due. */
const determinesValue = ({ phase, from }: MultiplierChange): boolean => phase === 'effective' || from !== null

/** Whether the last change is a log that replaced this value. A list with this value is older than that log. */
export function isSupersededByLog({ lastUnreadBlock, changes }: MultiplierHistory, value: string | null): boolean {
  const last = changes.at(-1)
  return (
    last?.source === 'log' && last.phase === 'effective' && last.block > (lastUnreadBlock ?? -1) && isSameDouble(last.from, value)
  )
}

/** Whether a change tells the value after it: the list may be late, and a log of a cancellation leaves the value as it is. */
const tellsValue = ({ source, phase }: MultiplierChange): boolean =>
  source === 'call' || (source === 'log' && phase !== 'cancelled')

/** Adds a change that unread blocks must contain if the next log's previous value differs. Replaces an earlier derived one. */
function withMissedChange(history: MultiplierHistory, change: MultiplierChange): MultiplierHistory {
  const { lastUnreadBlock } = history
  if (lastUnreadBlock === null || change.source !== 'log' || change.block <= lastUnreadBlock) return history
  if (!determinesValue(change)) return history
  const changes = history.changes.filter(({ isDerived, block }) => !isDerived || block !== lastUnreadBlock)
  const position = { block: lastUnreadBlock, logIndex: Number.MAX_SAFE_INTEGER }
  // Logs of the last unread block do not count: they may not be in that block, and others may follow them in it.
  const isAfterUnread = (earlier: MultiplierChange) =>
    !isBefore(earlier, position) && isBefore(earlier, change) && tellsValue(earlier)
  if (changes.some(isAfterUnread)) return history
  const known = { ...history, changes }
  if (change.from === null || isReachedFrom(multiplierAt(known, { ...position, timestamp: change.timestamp }), change)) return known
  const missed = { ...position, key: null, timestamp: null, from: null, to: change.from, effectiveAt: null, isApplied: false }
  return addReportedChange(known, { ...missed, source: 'call', phase: 'effective', isDerived: true })
}

/** Whether a log's previous value is the value of this state, or of its schedule if that one was due before the log. */
function isReachedFrom(state: MultiplierState, { from, timestamp }: MultiplierChange): boolean {
  const scheduled = state.scheduled && { ...state.scheduled, isApplied: true }
  return from === state.value || from === applyDueSchedule({ ...state, scheduled }, timestamp).value
}

/** Marks blocks as unread. Logs after them then no longer decide the initial value. */
export function addHole(
  history: MultiplierHistory,
  { from, to }: { readonly from: number; readonly to: number },
): MultiplierHistory {
  const { value } = initialState(history)
  const firstUnreadBlock = Math.min(from, history.firstUnreadBlock ?? from)
  const earlierBlock = history.lastUnreadBlock ?? -1
  const lastUnreadBlock = Math.max(to, earlierBlock)
  const logs = history.changes.filter(({ source }) => source === 'log')
  // A change that was derived for an earlier hole may have happened in this hole.
  const isDerivedAnew = logs.every((log) => log.block <= earlierBlock || log.block > lastUnreadBlock)
  const withHole = {
    ...history,
    initial: isSameDouble(history.initial, value) ? value : history.initial,
    firstUnreadBlock,
    lastUnreadBlock,
    changes: history.changes.filter((change) => !(isDerivedAnew && change.isDerived && change.block === earlierBlock)),
  }
  const next = logs.find((log) => log.block > lastUnreadBlock)
  return next ? addLogChange(withHole, next) : withHole
}

/** Called after a reorg that replaces the blocks from `from`. Moves contract answers of those blocks to the block before them. */
export function rollBackAnswers({ lastUnreadBlock, changes }: MultiplierHistory, from: number): readonly MultiplierChange[] {
  const isReplaced = ({ block, source, isDerived }: MultiplierChange) => block >= from && source === 'call' && !isDerived
  const hole = lastUnreadBlock ?? -1
  // An answer after unread blocks proves nothing about blocks before these, so it is moved only to the end of the unread blocks.
  const isBehindHole = (change: MultiplierChange) => isReplaced(change) && change.block >= hole
  const others = hole < from ? changes : moveToEndOf(changes, hole, isBehindHole, { isDerived: true })
  return moveToEndOf(others, from - 1, isReplaced)
}

/** Whether a log confirms an earlier value of the list: it changes the multiplier from that value to another. */
const isConfirmedByLog = (to: string | null, change: MultiplierChange): boolean =>
  !isSameDouble(to, change.to) && (change.from === null || isSameDouble(to, change.from))

export const addReportedChange = (history: MultiplierHistory, change: MultiplierChange): MultiplierHistory =>
  boundChanges({ ...history, changes: insertInOrder(history.changes, change) })

export function dropUnsealedMultiplierChanges(
  history: MultiplierHistory,
  block: number,
  sealedKeys: ReadonlySet<string>,
): MultiplierHistory {
  const { initial, changes: before } = history
  const changes = dropUnsealed(before, block, sealedKeys)
  if (changes === before) return history
  const kept = new Set(changes)
  const { value } = initialState(history)
  return {
    ...history,
    initial: isSameDouble(initial, value) ? value : initial,
    // The previous value of a log may be that of a dropped change. A derived change may depend on a dropped log.
    changes: before.flatMap((change, index) => {
      const earlier = before[index - 1]
      const later = before.slice(index).find(({ isDerived }) => !isDerived)
      if (!kept.has(change) || (change.isDerived && later && !kept.has(later))) return []
      return earlier && !kept.has(earlier) ? [{ ...change, from: null }] : [change]
    }),
  }
}

/** Returns the schedules that are not applied yet, and that no change before their time ended. */
export const pendingSchedules = ({ changes }: MultiplierHistory): readonly MultiplierChange[] =>
  changes.filter(({ phase, isApplied, effectiveAt }, index) => {
    if (phase !== 'scheduled' || isApplied || effectiveAt === null) return false
    const next = changes.slice(index + 1).find((later) => later.source === 'log' || later.phase !== 'effective')
    // A contract answer without this schedule ends it. If the schedule was due, the answer's multiplier includes it.
    return !next || (next.source !== 'call' && (next.timestamp === null || next.timestamp >= effectiveAt))
  })

/** Marks a schedule as applied, and what else reports the same one: a log and a contract answer may both have it. */
export const markScheduleApplied = (history: MultiplierHistory, schedule: MultiplierChange): MultiplierHistory => ({
  ...history,
  changes: history.changes.map((change) =>
    change.phase === 'scheduled' && isSameSchedule(change, schedule) ? { ...change, isApplied: true } : change,
  ),
})

/** Takes the initial value with all its digits from the first log or call, if all blocks before that one were read. */
function initialState({ initial, firstUnreadBlock, changes: [first] }: MultiplierHistory): MultiplierState {
  const reachesStart = firstUnreadBlock === null || (first !== undefined && first.block < firstUnreadBlock)
  if (reachesStart && first?.source === 'log' && first.from !== null) return { value: first.from, source: 'log', scheduled: null }
  const isRefined = reachesStart && first?.source === 'call' && first.phase === 'effective' && isSameDouble(initial, first.to)
  if (isRefined) return { value: first.to, source: 'call', scheduled: null }
  return { value: initial, source: initial === null ? null : 'list', scheduled: null }
}

function applyChange(state: MultiplierState, change: MultiplierChange): MultiplierState {
  const { phase, source, to } = change
  if (phase === 'scheduled') return { ...state, scheduled: change }
  if (phase === 'cancelled') return { ...state, scheduled: null }
  if (source === 'list') return isSameDouble(state.value, to) ? state : { ...state, value: to, source: to === null ? null : source }
  if (source === 'call') return state.value === to ? state : { ...state, value: to, source }
  // A contract has one schedule at a time, and an immediate change ends it.
  return { value: to, source, scheduled: null }
}

/** Applies a schedule that is due and marked as applied. Without the mark, a log that is not received yet may still end it. */
function applyDueSchedule(state: MultiplierState, timestamp: number | null): MultiplierState {
  const { scheduled } = state
  if (!scheduled || scheduled.effectiveAt === null) return state
  const isDue = scheduled.isApplied && (timestamp === null || timestamp >= scheduled.effectiveAt)
  return isDue ? { value: scheduled.to, source: scheduled.source, scheduled: null } : state
}

const isSameSchedule = (a: MultiplierChange, b: MultiplierChange): boolean => a.to === b.to && a.effectiveAt === b.effectiveAt

function boundChanges(history: MultiplierHistory): MultiplierHistory {
  const [oldest, ...rest] = history.changes
  if (!oldest || history.changes.length <= CHANGES_BOUND) return history
  const { value } = multiplierAt({ ...history, changes: [oldest] }, rest[0] ?? { ...oldest, timestamp: null })
  const { block, logIndex } = oldest
  return boundChanges({ ...history, initial: value, initialFrom: { block, logIndex }, changes: rest })
}

export const newMultiplierHistory = (initial: string | null): MultiplierHistory => {
  return { initial, firstUnreadBlock: null, lastUnreadBlock: null, changes: [] }
}

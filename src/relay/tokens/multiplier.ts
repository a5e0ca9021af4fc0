import { type ChainPosition, dropUnsealed, insertInOrder, isBefore, type KeyedPosition, moveToEndOf } from './chain-position.ts'

export type MultiplierSource = 'log' | 'call' | 'list'

/** A change of the multiplier, at a place in the chain. */
export type MultiplierChange = KeyedPosition & {
  readonly source: MultiplierSource
  readonly phase: 'scheduled' | 'effective' | 'cancelled'
  /** The value before, where the source contains it. */
  readonly from: string | null
  /** Null where the list no longer has one. */
  readonly to: string | null
  /** In seconds; only of a schedule. */
  readonly effectiveAt: number | null
  /** Time of its block in seconds, where known. */
  readonly timestamp: number | null
  /** Of a schedule: whether chain time has reached it and the change was published. */
  readonly isApplied: boolean
  /** Behind unread blocks: derived from the previous value of the next log, or from an answer of a replaced chain. */
  readonly isDerived?: true
}

/** A token's multiplier: the initial value, and the changes since in chain order. */
export type MultiplierHistory = {
  readonly initial: string | null
  /** The first and the last block that could not be read. A log's previous value may have changed there. */
  readonly firstUnreadBlock: number | null
  readonly lastUnreadBlock: number | null
  readonly changes: readonly MultiplierChange[]
}

export type MultiplierState = {
  readonly value: string | null
  readonly source: MultiplierSource | null
  readonly scheduled: MultiplierChange | null
}

/** A place in the chain, and the time of its block in seconds, where known. */
export type TimedPosition = ChainPosition & { readonly timestamp: number | null }

/** How many changes are kept; beyond it the oldest becomes the initial value. */
const CHANGES_BOUND = 64

/** The chain stores a multiplier as an integer with this many decimals. */
export const MULTIPLIER_DECIMALS = 18

/** The doubles of an exact value: parsed from its decimal text, or divided from the integer on chain. */
const possibleDoubles = (value: string): readonly number[] => {
  const [whole = '0', fraction = ''] = value.split('.')
  return [
    Number(value),
    Number(whole + fraction.slice(0, MULTIPLIER_DECIMALS).padEnd(MULTIPLIER_DECIMALS, '0')) / 10 ** MULTIPLIER_DECIMALS,
  ]
}

/** The list contains doubles. It contradicts an exact value only where no rounding makes the two equal. */
export const isSameDouble = (a: string | null, b: string | null): boolean =>
  a === b || (a !== null && b !== null && possibleDoubles(a).some((double) => possibleDoubles(b).includes(double)))

/** The multiplier just before a position. A schedule counts from the first block whose time has reached it. */
export function multiplierAt(history: MultiplierHistory, position: TimedPosition): MultiplierState {
  let state = initialState(history)
  for (const change of history.changes) {
    if (!isBefore(change, position)) break
    // A change without a time, as from the list, is no later than the position after it.
    state = applyChange(applyDueSchedule(state, change.timestamp ?? position.timestamp), change)
  }
  return applyDueSchedule(state, position.timestamp)
}

/** The multiplier now. A schedule counts once it was published as effective. */
export function currentMultiplier(history: MultiplierHistory): MultiplierState {
  let state = initialState(history)
  for (const change of history.changes) state = applyChange(applyDueSchedule(state, change.timestamp), change)
  return applyDueSchedule(state, null)
}

/**
 * Adds a change from a log. An earlier list change to the same value was only ahead of the log, so it is dropped. So is a later one that
 * was read before the log arrived: what the list goes on saying never displaces a log.
 */
export function addLogChange(history: MultiplierHistory, change: MultiplierChange): MultiplierHistory {
  const { changes, ...rest } = withMissedChange(history, change)
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
    changes: insertInOrder(others, known ? { ...change, isApplied: known.isApplied && isSameSchedule(known, change) } : change),
  })
}

/**
 * The list changes among these later ones that a log ends which arrives after them: those with its value or the one before it, and all
 * up to the next log, unless they may tell of unread blocks in between.
 */
function listChangesEndedBy(
  change: MultiplierChange,
  later: readonly MultiplierChange[],
  { lastUnreadBlock }: MultiplierHistory,
): readonly MultiplierChange[] {
  const isComplete = change.phase === 'effective' && change.block > (lastUnreadBlock ?? -1)
  const nextLog = later.findIndex(({ source }) => source === 'log')
  const next = new Set(isComplete ? later.slice(0, nextLog === -1 ? later.length : nextLog) : [])
  const hasEnded = (one: MultiplierChange) => next.has(one) || isSameDouble(one.to, change.to) || isSameDouble(one.to, change.from)
  return later.filter((one) => one.source === 'list' && hasEnded(one))
}

/** Whether a log has replaced this value by the current one; a list with this value is older than the log. */
export function isSupersededByLog({ lastUnreadBlock, changes }: MultiplierHistory, value: string | null): boolean {
  const last = changes.at(-1)
  return (
    last?.source === 'log' && last.phase === 'effective' && last.block > (lastUnreadBlock ?? -1) && isSameDouble(last.from, value)
  )
}

/**
 * The previous value of the first log after unread blocks tells whether they held a change. A later log or an answer of a replaced
 * chain may have given a wrong one, also where the first one names no previous value.
 */
function withMissedChange(history: MultiplierHistory, change: MultiplierChange): MultiplierHistory {
  const { lastUnreadBlock } = history
  if (lastUnreadBlock === null || change.source !== 'log' || change.block <= lastUnreadBlock) return history
  if (change.from === null && change.phase !== 'effective') return history
  const changes = history.changes.filter(({ isDerived, block }) => !isDerived || block !== lastUnreadBlock)
  const position = { block: lastUnreadBlock, logIndex: Number.MAX_SAFE_INTEGER }
  // A log of the unread block itself, from before its hole, may not be in it, or not be its last.
  const isAfterUnread = (earlier: MultiplierChange) =>
    !isBefore(earlier, position) && isBefore(earlier, change) && earlier.source !== 'list'
  if (changes.some(isAfterUnread)) return history
  const known = { ...history, changes }
  if (change.from === null || isReachedFrom(multiplierAt(known, { ...position, timestamp: change.timestamp }), change)) return known
  const missed = { ...position, key: null, timestamp: null, from: null, to: change.from, effectiveAt: null, isApplied: false }
  return addReportedChange(known, { ...missed, source: 'call', phase: 'effective', isDerived: true })
}

/** Whether a log's previous value is the one of this state, or that of its schedule, if the log comes after its time. */
function isReachedFrom(state: MultiplierState, { from, timestamp }: MultiplierChange): boolean {
  const scheduled = state.scheduled && { ...state.scheduled, isApplied: true }
  return from === state.value || from === applyDueSchedule({ ...state, scheduled }, timestamp).value
}

/** Marks blocks as unread. Later logs no longer refine the initial value, also those that were read before. */
export function addHole(
  history: MultiplierHistory,
  { from, to }: { readonly from: number; readonly to: number },
): MultiplierHistory {
  const { value } = initialState(history)
  const firstUnreadBlock = Math.min(from, history.firstUnreadBlock ?? from)
  const earlierBlock = history.lastUnreadBlock ?? -1
  const lastUnreadBlock = Math.max(to, earlierBlock)
  const logs = history.changes.filter(({ source }) => source === 'log')
  // What was derived behind an earlier hole may as well have changed in this one.
  const isDerivedAnew = logs.every((log) => log.block <= earlierBlock || log.block > lastUnreadBlock)
  const withHole = {
    initial: isSameDouble(history.initial, value) ? value : history.initial,
    firstUnreadBlock,
    lastUnreadBlock,
    changes: history.changes.filter((change) => !(isDerivedAnew && change.isDerived && change.block === earlierBlock)),
  }
  const next = logs.find((log) => log.block > lastUnreadBlock)
  return next ? addLogChange(withHole, next) : withHole
}

/**
 * Another chain has replaced this block and all above it. What contracts answered there holds from the last common block on, but one
 * behind unread blocks tells nothing of the blocks before them: it stays behind them until a log or another hole tells more. So does
 * what a log told of them, which goes with it. A value of the list stays in its place: it does not depend on what this node reports.
 */
export function rollBackAnswers({ lastUnreadBlock, changes }: MultiplierHistory, from: number): readonly MultiplierChange[] {
  const isReplaced = ({ block, source, isDerived }: MultiplierChange) => block >= from && source === 'call' && !isDerived
  const hole = lastUnreadBlock ?? -1
  const isBehindHole = (change: MultiplierChange) => isReplaced(change) && change.block >= hole
  const others = hole < from ? changes : moveToEndOf(changes, hole, isBehindHole, { isDerived: true })
  return moveToEndOf(others, from - 1, isReplaced)
}

/** Whether a log confirms an earlier value of the list: it changes the multiplier from that value to another. */
const isConfirmedByLog = (to: string | null, change: MultiplierChange): boolean =>
  !isSameDouble(to, change.to) && (change.from === null || isSameDouble(to, change.from))

/** Adds a change without a log, from the list or from a contract call. */
export const addReportedChange = (history: MultiplierHistory, change: MultiplierChange): MultiplierHistory =>
  boundChanges({ ...history, changes: insertInOrder(history.changes, change) })

/** Drops the log changes of a block whose keys the sealed block does not contain. */
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
    // A log's previous value may be the result of a dropped change, and a value may have been derived from a dropped log.
    changes: before.flatMap((change, index) => {
      const earlier = before[index - 1]
      const later = before.slice(index).find(({ isDerived }) => !isDerived)
      if (!kept.has(change) || (change.isDerived && later && !kept.has(later))) return []
      return earlier && !kept.has(earlier) ? [{ ...change, from: null }] : [change]
    }),
  }
}

/** Schedules that no change ended before their time, and that were not yet published as effective. */
export const pendingSchedules = ({ changes }: MultiplierHistory): readonly MultiplierChange[] =>
  changes.filter(({ phase, isApplied, effectiveAt }, index) => {
    if (phase !== 'scheduled' || isApplied || effectiveAt === null) return false
    const next = changes.slice(index + 1).find((later) => later.source === 'log' || later.phase !== 'effective')
    // A call has no time: it answers the state after any schedule that was due.
    return !next || (next.source !== 'call' && (next.timestamp === null || next.timestamp >= effectiveAt))
  })

/** Marks a schedule as published as effective. */
export const markScheduleApplied = (history: MultiplierHistory, schedule: MultiplierChange): MultiplierHistory => ({
  ...history,
  changes: history.changes.map((change) => (change === schedule ? { ...change, isApplied: true } : change)),
})

/** The first log or call refines the list's initial value to the last digit, if all blocks before it were read. */
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
  // There is one schedule at a time, and an immediate change ends it.
  return { value: to, source, scheduled: null }
}

/** A schedule counts only once it was published as effective: until then, a log not yet received may end it. */
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
  return boundChanges({ ...history, initial: value, changes: rest })
}

/** Starts with the list's value. */
export const newMultiplierHistory = (initial: string | null): MultiplierHistory => ({
  initial,
  firstUnreadBlock: null,
  lastUnreadBlock: null,
  changes: [],
})

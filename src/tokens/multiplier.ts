import { type ChainPosition, dropUnsealed, insertInOrder, isBefore, type KeyedPosition } from './chain-position.ts'

/** Who says what the factor between tokens and shares is. */
export type MultiplierSource = 'log' | 'call' | 'list'

/** One thing that was said of the factor, and where in the chain. */
export type MultiplierChange = KeyedPosition & {
  readonly source: MultiplierSource
  readonly phase: 'scheduled' | 'effective' | 'cancelled'
  /** What was held just before, where it was said. */
  readonly from: string | null
  /** Null where the list no longer knows. */
  readonly to: string | null
  /** In seconds; of a schedule alone. */
  readonly effectiveAt: number | null
  /** Of its block, in seconds, as far as is known. */
  readonly timestamp: number | null
  /** Of a schedule: whether chain time has reached it and that was told. */
  readonly isApplied: boolean
}

/** All that is known of a token's factor: what was held at first, and what was said since, in the order of the chain. */
export type MultiplierHistory = {
  readonly initial: string | null
  /** The last block of which nothing could be read: what a log says was held before it may have begun in there. */
  readonly lastUnreadBlock: number | null
  readonly changes: readonly MultiplierChange[]
}

/** What the factor is somewhere. */
export type MultiplierState = {
  readonly value: string | null
  readonly source: MultiplierSource | null
  readonly scheduled: MultiplierChange | null
}

/** Where in the chain it is asked for, and the time of that block in seconds, as far as is known. */
export type TimedPosition = ChainPosition & { readonly timestamp: number | null }

/** How many changes of a factor are remembered; of more, the oldest is what was held at first. */
const CHANGES_BOUND = 64

/** On chain a factor is a whole number of this many decimals. */
const DECIMALS = 18

/** What an exact value may have become as a double: of its decimal text, or of the whole number on chain divided. */
const possibleDoubles = (value: string): readonly number[] => {
  const [whole = '0', fraction = ''] = value.split('.')
  return [Number(value), Number(whole + fraction.slice(0, DECIMALS).padEnd(DECIMALS, '0')) / 10 ** DECIMALS]
}

/** The list says doubles: it contradicts an exact value only where no rounding makes one of the other. */
export const isSameDouble = (one: string | null, other: string | null): boolean =>
  one === other ||
  (one !== null && other !== null && possibleDoubles(one).some((double) => possibleDoubles(other).includes(double)))

/** The factor just before a place: a schedule counts from the block whose own time has reached it. */
export function multiplierAt(history: MultiplierHistory, position: TimedPosition): MultiplierState {
  let state = initialState(history)
  for (const change of history.changes) {
    if (!isBefore(change, position)) break
    state = applyChange(applyDueSchedule(state, change.timestamp), change)
  }
  return applyDueSchedule(state, position.timestamp)
}

/** The factor now: a schedule counts once that was told. */
export function currentMultiplier(history: MultiplierHistory): MultiplierState {
  let state = initialState(history)
  for (const change of history.changes) state = applyChange(applyDueSchedule(state, change.timestamp), change)
  return applyDueSchedule(state, null)
}

/** With what a log says. A list that had said the same before it was ahead of the log, and no change of its own. */
export function addLogChange(history: MultiplierHistory, change: MultiplierChange): MultiplierHistory {
  const before = history.changes.filter((one) => isBefore(one, change))
  const lastLog = before.findLastIndex(({ source }) => source === 'log')
  const redundantListChanges = new Set(
    before.slice(lastLog + 1).filter(({ source, to }) => source === 'list' && !isConfirmedByLog(to, change)),
  )
  const missedChange = missedChangeBefore(history, change)
  if (missedChange) return addLogChange(addReportedChange(history, missedChange), change)
  const known = history.changes.find(({ key }) => key === change.key)
  const others = history.changes.filter((one) => !redundantListChanges.has(one))
  return boundChanges({
    ...history,
    changes: insertInOrder(
      others,
      known ? { ...change, isApplied: known.isApplied && isSameSchedule(known, change) } : change,
    ),
  })
}

/** Whether a log has replaced this value by the one that is held: whoever still says it was read before the log. */
export function isSupersededByLog({ lastUnreadBlock, changes }: MultiplierHistory, value: string | null): boolean {
  const last = changes.at(-1)
  return (
    last?.source === 'log' &&
    last.phase === 'effective' &&
    last.block > (lastUnreadBlock ?? -1) &&
    isSameDouble(last.from, value)
  )
}

/** What was changed where nothing could be read, as the first log after it says. */
function missedChangeBefore(history: MultiplierHistory, change: MultiplierChange): MultiplierChange | null {
  const { lastUnreadBlock, changes } = history
  if (lastUnreadBlock === null || change.source !== 'log' || change.from === null || change.block <= lastUnreadBlock)
    return null
  const isAfterGap = (one: MultiplierChange) =>
    one.block >= lastUnreadBlock && isBefore(one, change) && one.source !== 'list'
  if (changes.some(isAfterGap)) return null
  const lastKnown = multiplierAt(history, {
    block: lastUnreadBlock,
    logIndex: Number.MAX_SAFE_INTEGER,
    timestamp: change.timestamp,
  }).value
  if (lastKnown === change.from) return null
  const position = { block: lastUnreadBlock, logIndex: Number.MAX_SAFE_INTEGER, key: null, timestamp: null }
  return {
    ...position,
    source: 'call',
    phase: 'effective',
    from: null,
    to: change.from,
    effectiveAt: null,
    isApplied: false,
  }
}

/** Nothing could be read up to this block: what was held before it is no more than that. */
export function addUnreadGap(history: MultiplierHistory, block: number): MultiplierHistory {
  const { value } = initialState(history)
  return {
    ...history,
    initial: isSameDouble(history.initial, value) ? value : history.initial,
    lastUnreadBlock: Math.max(block, history.lastUnreadBlock ?? 0),
  }
}

/** Whether a log bears out what the list had said before it: it says that this was held until then, and changes it. */
const isConfirmedByLog = (to: string | null, change: MultiplierChange): boolean =>
  !isSameDouble(to, change.to) && (change.from === null || isSameDouble(to, change.from))

/** With what nobody's log says: the list, or the contract itself when it was asked. */
export const addReportedChange = (history: MultiplierHistory, change: MultiplierChange): MultiplierHistory =>
  boundChanges({ ...history, changes: insertInOrder(history.changes, change) })

/** Without what logs of a block said that it does not hold. */
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
    // What a log says was held before it may have followed from what is gone.
    changes: before.flatMap((change, index) => {
      const earlier = before[index - 1]
      if (!kept.has(change)) return []
      return earlier && !kept.has(earlier) ? [{ ...change, from: null }] : [change]
    }),
  }
}

/** Schedules that nothing ended before their time, and of which nobody was told that they are in force. */
export const pendingSchedules = ({ changes }: MultiplierHistory): readonly MultiplierChange[] =>
  changes.filter(({ phase, isApplied, effectiveAt }, index) => {
    if (phase !== 'scheduled' || isApplied || effectiveAt === null) return false
    const next = changes.slice(index + 1).find((one) => one.source === 'log' || one.phase !== 'effective')
    // What a contract answers has no time: it answers what stands by then.
    return !next || (next.source !== 'call' && (next.timestamp === null || next.timestamp >= effectiveAt))
  })

/** With a schedule told as effective. */
export const markScheduleApplied = (history: MultiplierHistory, schedule: MultiplierChange): MultiplierHistory => ({
  ...history,
  changes: history.changes.map((change) => (change === schedule ? { ...change, isApplied: true } : change)),
})

/** The first exact word says what was held before it, down to the last digit. */
function initialState({ initial, lastUnreadBlock, changes: [first] }: MultiplierHistory): MultiplierState {
  const reachesStart = lastUnreadBlock === null || (first !== undefined && first.block <= lastUnreadBlock)
  if (reachesStart && first?.source === 'log' && first.from !== null)
    return { value: first.from, source: 'log', scheduled: null }
  const isRefined =
    reachesStart && first?.source === 'call' && first.phase === 'effective' && isSameDouble(initial, first.to)
  if (isRefined) return { value: first.to, source: 'call', scheduled: null }
  return { value: initial, source: initial === null ? null : 'list', scheduled: null }
}

function applyChange(state: MultiplierState, change: MultiplierChange): MultiplierState {
  const { phase, source, to } = change
  if (phase === 'scheduled') return { ...state, scheduled: change }
  if (phase === 'cancelled') return { ...state, scheduled: null }
  if (source === 'list')
    return isSameDouble(state.value, to) ? state : { ...state, value: to, source: to === null ? null : source }
  if (source === 'call') return state.value === to ? state : { ...state, value: to, source }
  // There is one schedule at a time, and an instant change ends it.
  return { value: to, source, scheduled: null }
}

/** What is scheduled counts only once that was told: before, something may still end it that was not heard yet. */
function applyDueSchedule(state: MultiplierState, timestamp: number | null): MultiplierState {
  const { scheduled } = state
  if (!scheduled || scheduled.effectiveAt === null) return state
  const isDue = scheduled.isApplied && (timestamp === null || timestamp >= scheduled.effectiveAt)
  return isDue ? { value: scheduled.to, source: scheduled.source, scheduled: null } : state
}

const isSameSchedule = (one: MultiplierChange, other: MultiplierChange): boolean =>
  one.to === other.to && one.effectiveAt === other.effectiveAt

function boundChanges(history: MultiplierHistory): MultiplierHistory {
  const [oldest, ...rest] = history.changes
  if (!oldest || history.changes.length <= CHANGES_BOUND) return history
  const { value } = multiplierAt({ ...history, changes: [oldest] }, rest[0] ?? { ...oldest, timestamp: null })
  return boundChanges({ ...history, initial: value, changes: rest })
}

/** What was held at first, as the list says it. */
export const newMultiplierHistory = (initial: string | null): MultiplierHistory => ({
  initial,
  lastUnreadBlock: null,
  changes: [],
})

import * as missedLogs from './missed-logs.ts'
import type { PendingStatus } from './pending-status.ts'

/** State of the upstream WebSocket. `refused`: the node pushes no pre-confirmed logs. `leaving`: it connects to the next node. */
type LinkState = 'none' | 'opening' | 'down' | 'refused' | 'pushing' | 'leaving'
/** Whether pushed logs count as complete, as `unproven` and `proven` do, or why not. Only a log pushed in time ends a doubt. */
type Trust = 'unproven' | 'proven' | 'silent' | 'behind' | 'no_pending'
/** Whether the node shows pre-confirmed blocks. `behind`: its pending block is far behind the head. */
type PendingView = 'unknown' | 'shown' | 'missing' | 'behind'

/** The evidence that decides which source is in use. Silence alone is no evidence. Times are in milliseconds. */
export type SourceState = {
  readonly silenceMs: number
  readonly hasNextLink: boolean
  readonly link: LinkState
  readonly trust: Trust
  readonly pending: PendingView
  /** Polls in a row that showed no pre-confirmed block; null if the last poll showed one. */
  readonly gap: { readonly since: number; readonly polls: number } | null
  readonly missed: missedLogs.MissedLogs
  /** Number of the newest head. Both `head` and `settled`, the newest settled block, are null before the first head. */
  readonly head: number | null
  readonly settled: number | null
  readonly headAt: number
  /** Time of the last change of `settled`. */
  readonly settledAt: number
  /** Time at which a head was last received, even a known one. */
  readonly headReadAt: number
  /** Until this time a lag of settling is excused, because it catches up after the start or after an outage. */
  readonly mayLagUntil: number
  readonly lagsSince: number | null
  /** Send time of the oldest unanswered request. */
  readonly requestedAt: number | null
  /** The newest pushed head. `polledAhead` counts newer polled heads in a row. Null without a subscription to heads. */
  readonly linkHead: {
    readonly number: number
    readonly at: number
    readonly isPushed: boolean
    readonly polledAhead: number
  } | null
  readonly pendingPolledAt: number
  readonly headPolledAt: number
  readonly probedAt: number
  /** Times at which the relay last left the node of its WebSocket, and the first RPC endpoint. */
  readonly leftAt: { readonly link: number; readonly endpoint: number }
}

/** An observation of the upstream, or an action of the source itself. Both can change the state. */
export type Evidence =
  | { readonly type: 'tick' }
  /** The node pushes logs now: pre-confirmed ones, or only sealed ones. */
  | { readonly type: 'live'; readonly subscription: 'pendingLogs' | 'logs' }
  | { readonly type: 'heads_live' }
  /** The node refuses to push pre-confirmed logs of the current addresses. */
  | { readonly type: 'refused' }
  | { readonly type: 'down'; readonly isRefused: boolean }
  /** Logs up to the block `newest` were pushed before their blocks were sealed. */
  | { readonly type: 'pushed'; readonly newest: number }
  | { readonly type: 'pushed_late' }
  /** A block was settled with this many logs that the link should have pushed. */
  | { readonly type: 'settled'; readonly number: number; readonly logs: number }
  | { readonly type: 'reorg' }
  | { readonly type: 'head'; readonly number: number; readonly via: 'link' | 'poll' }
  | { readonly type: 'progress'; readonly head: number | null; readonly settled: number | null }
  | { readonly type: 'pending'; readonly status: PendingStatus }
  /** Pre-confirmed logs up to the block `newest` were polled. `closesGap`: the poll followed a new subscription. */
  | { readonly type: 'polled_logs'; readonly newest: number | null; readonly closesGap: boolean }
  | { readonly type: 'requested' }
  | { readonly type: 'answered' }
  | { readonly type: 'polling'; readonly poll: 'pending' | 'head' }
  /** A message shows that there is a newer head, so the head has to be polled. */
  | { readonly type: 'head_wanted' }
  | { readonly type: 'probed' }
  | { readonly type: 'left'; readonly what: 'link' | 'endpoint' }
  /** A block waits, because the node refuses one of the filters. */
  | { readonly type: 'filter_refused' }

/** A node may show no pending block between two flashblocks. A longer absence, in time and in polls, counts. */
const NO_PENDING_MIN_MS = 2_000
/** Number of polls in a row after which a missing pending block counts. */
export const NO_PENDING_MIN_POLLS = 3
/** Settling is behind if it is further from the head than this for `silenceMs`. */
const SETTLING_LAG_BLOCKS = 2
/** Distance to the head at which settling is no longer behind. It is shorter, so that a slow node does not change the status. */
const SETTLING_CAUGHT_UP_BLOCKS = 1
/** Time for which a lag of settling is excused after the start or a refused filter. After an outage, its length is a limit too. */
const CATCH_UP_MS = 7_000

const NEVER = Number.NEGATIVE_INFINITY

export const initialState = (links: number, silenceMs: number, at: number): SourceState => ({
  silenceMs,
  hasNextLink: links > 1,
  link: links > 0 ? 'opening' : 'none',
  trust: 'unproven',
  pending: 'unknown',
  gap: null,
  missed: missedLogs.noMissedLogs,
  head: null,
  settled: null,
  headAt: at,
  settledAt: at,
  headReadAt: at,
  mayLagUntil: NEVER,
  lagsSince: null,
  requestedAt: null,
  linkHead: null,
  pendingPolledAt: NEVER,
  headPolledAt: NEVER,
  probedAt: NEVER,
  leftAt: { link: NEVER, endpoint: NEVER },
})

export function next(state: SourceState, evidence: Evidence, at: number): SourceState {
  const learned = learn(state, evidence, at)
  if (learned.link !== 'pushing') return learned
  const health = missedLogs.streamHealth(learned.missed, at)
  return health === 'ok' || health === learned.trust ? learned : { ...learned, trust: health }
}

function learn(state: SourceState, evidence: Evidence, at: number): SourceState {
  const { missed } = state
  switch (evidence.type) {
    case 'tick':
      return state
    case 'live':
      if (evidence.subscription === 'pendingLogs') return { ...state, link: 'pushing', missed: missedLogs.noMissedLogs }
      // A subscription to sealed logs is only a probe while the node still pushes pre-confirmed ones.
      return state.link === 'pushing' ? state : { ...state, link: 'refused' }
    case 'heads_live':
      return { ...state, linkHead: { number: state.head ?? -1, at, isPushed: false, polledAhead: 0 } }
    case 'refused':
      if (state.link !== 'pushing') return state
      return { ...state, link: 'refused', trust: withoutProof(state.trust), missed: missedLogs.noMissedLogs }
    case 'down': {
      // While the link connects to the next node, the status stays.
      const link = evidence.isRefused ? 'refused' : state.link === 'leaving' ? 'opening' : 'down'
      return { ...state, link, trust: withoutProof(state.trust), missed: missedLogs.noMissedLogs, linkHead: null }
    }
    case 'pushed': {
      if (state.link !== 'pushing') return state
      const pushed = missedLogs.afterTimelyPush(missed, evidence.newest)
      return pushed === missed && state.trust === 'proven' ? state : { ...state, missed: pushed, trust: 'proven' }
    }
    case 'pushed_late':
      return { ...state, missed: missedLogs.afterLatePush(missed) }
    case 'settled':
      return { ...state, missed: missedLogs.afterSettling(missed, evidence.number, evidence.logs, at) }
    case 'reorg':
      return { ...state, missed: missedLogs.afterReorg(missed, state.settled ?? -1) }
    case 'head':
      return afterHead(state, evidence, at)
    case 'progress':
      return afterProgress(state, evidence, at)
    case 'pending':
      return afterPending(state, evidence.status, at)
    case 'polled_logs':
      return { ...state, missed: missedLogs.afterPoll(missed, evidence.newest, evidence.closesGap, state.head ?? -1) }
    case 'requested':
      return state.requestedAt === null ? { ...state, requestedAt: at } : state
    case 'answered':
      return isUnanswered(state, at) ? afterOutage(state, at) : { ...state, requestedAt: null }
    case 'polling':
      return evidence.poll === 'pending' ? { ...state, pendingPolledAt: at } : { ...state, headPolledAt: at }
    case 'head_wanted':
      return { ...state, headPolledAt: NEVER }
    case 'probed':
      return { ...state, probedAt: at }
    case 'filter_refused':
      // It excuses no lag from before.
      return isSettlingBehind(state, at) ? state : { ...state, mayLagUntil: Math.max(state.mayLagUntil, at + CATCH_UP_MS) }
    case 'left': {
      const leftAt = { ...state.leftAt, [evidence.what]: at }
      const isLeaving = evidence.what === 'link' && state.hasNextLink && isLinkUp(state)
      return isLeaving ? { ...state, leftAt, link: 'leaving', trust: withoutProof(state.trust) } : { ...state, leftAt }
    }
  }
}

function afterHead(before: SourceState, { number, via }: Extract<Evidence, { type: 'head' }>, at: number): SourceState {
  const { linkHead } = before
  const state = { ...before, headReadAt: at, missed: missedLogs.afterHead(before.missed, Math.max(before.head ?? -1, number)) }
  if (via === 'link') {
    const isNew = !linkHead || number > linkHead.number
    return { ...state, linkHead: { number, at: isNew ? at : linkHead.at, isPushed: true, polledAhead: 0 } }
  }
  if (!linkHead) return state
  return { ...state, linkHead: { ...linkHead, polledAhead: number > linkHead.number ? linkHead.polledAhead + 1 : 0 } }
}

function afterProgress(state: SourceState, { head, settled }: Extract<Evidence, { type: 'progress' }>, at: number): SourceState {
  const isNew = head !== null && head > (state.head ?? -1)
  const lag = head === null || settled === null ? 0 : head - settled
  const bound = isSettlingBehind(state, at) ? SETTLING_CAUGHT_UP_BLOCKS : SETTLING_LAG_BLOCKS
  const mayLagUntil = state.head === null ? at + CATCH_UP_MS : state.mayLagUntil
  const lagsSince = lag > bound ? (state.lagsSince ?? at) : null
  const [headAt, settledAt] = [isNew ? at : state.headAt, settled === state.settled ? state.settledAt : at]
  return { ...state, head, settled, headAt, settledAt, mayLagUntil, lagsSince }
}

/** Excuses a lag of settling that began during the outage, once: nothing could be settled while no request was answered. */
function afterOutage(state: SourceState, at: number): SourceState {
  const { lagsSince, mayLagUntil, requestedAt } = state
  const isExcused = requestedAt !== null && (lagsSince === null || lagsSince >= Math.max(requestedAt, mayLagUntil))
  return { ...state, requestedAt: null, mayLagUntil: isExcused ? at + Math.min(CATCH_UP_MS, at - requestedAt) : mayLagUntil }
}

function afterPending(state: SourceState, status: PendingStatus, at: number): SourceState {
  const isUnproven = state.link === 'pushing' && state.trust === 'unproven'
  if (status === 'preconfirmed') return { ...state, pending: 'shown', gap: null, trust: isUnproven ? 'proven' : state.trust }
  const gap = { since: state.gap?.since ?? at, polls: (state.gap?.polls ?? 0) + 1 }
  const isLasting = gap.polls >= NO_PENDING_MIN_POLLS && at - gap.since >= NO_PENDING_MIN_MS
  const pending = state.pending === 'shown' && !isLasting ? 'shown' : status === 'behind' ? 'behind' : 'missing'
  // A node without a pending block may still push logs. A node that shows the latest block instead does not pre-confirm.
  const trust = isLasting && status !== 'null' && isUnproven ? 'no_pending' : state.trust
  return { ...state, pending, gap, trust }
}

/** Returns the trust at the start of a new connection: a doubt about the pushed logs stays, a proof does not. */
const withoutProof = (trust: Trust): Trust => (trust === 'proven' ? 'unproven' : trust)

export const isLinkUp = ({ link }: SourceState): boolean => link === 'pushing' || link === 'refused'

export const isPushing = ({ link, trust }: SourceState): boolean =>
  link === 'pushing' && (trust === 'unproven' || trust === 'proven')

export const isUnanswered = ({ requestedAt, silenceMs }: SourceState, at: number): boolean =>
  requestedAt !== null && at - requestedAt > silenceMs

export const isSettlingBehind = ({ lagsSince, mayLagUntil, silenceMs }: SourceState, at: number): boolean =>
  lagsSince !== null && at - Math.max(lagsSince, mayLagUntil) > silenceMs

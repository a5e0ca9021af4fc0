import type { SourceName, SourceReason } from '../../../protocol/fields.ts'
import { isLinkUp, isPushing, isSettlingBehind, isUnanswered, type SourceState } from './source-evidence.ts'

/** Interval between polls of the pending block until the pushed logs are proven. */
export const UNPROVEN_POLL_MS = 500
/** Interval between retries of a subscription, and between polls of the pending block if none is shown and heads are pushed. */
const PROBE_INTERVAL_MS = 60_000
/** Without a new head for this long, the chain or the node has stopped. */
export const STALE_HEAD_MS = 30_000
/** Heads are asked for at least every `SILENCE`. Without any for this long the relay does not know the chain. */
const UNREAD_HEAD_MS = 10_000
/** If a request is unanswered for this long, the head is asked for, to see whether the node answers at all. */
const UNANSWERED_CHECK_MS = 1_000
/** Heads are polled once so many polled heads in a row were newer than the pushed one. */
const POLLED_AHEAD_BOUND = 2
/** Heads are polled while no new one is pushed for this long. Pushes may be lost, and a chain rarely stands still. */
const PUSH_PAUSE_MS = 5_000
/** The link reconnects if its heads stand still for this long while the chain gains more than this many blocks. */
const STALE_LINK_MS = 30_000
const STALE_LINK_BLOCKS = 5
/** Interval between switches to another node while every node performs badly. */
const LEAVE_INTERVAL_MS = 60_000

export const isSealedOnly = ({ pending }: SourceState): boolean => pending === 'missing' || pending === 'behind'

const areHeadsPushed = ({ linkHead }: SourceState): boolean =>
  linkHead?.isPushed === true && linkHead.polledAhead < POLLED_AHEAD_BOUND

/** The source and its reason; null before there is evidence. */
export function statusOf(state: SourceState, at: number): { source: SourceName; reason: SourceReason } | null {
  const isStarted = state.settled !== null
  if (isUnanswered(state, at)) return { source: isPushing(state) && isStarted ? 'pendingLogs' : 'down', reason: 'unreachable' }
  if (!isStarted) return null
  if (isPushing(state)) return { source: 'pendingLogs', reason: reasonOf(state, at, 'ok') }
  if (state.link === 'opening' || state.link === 'leaving' || state.pending === 'unknown') return null
  if (isSealedOnly(state))
    return { source: 'sealed', reason: reasonOf(state, at, state.pending === 'behind' ? 'behind' : 'no_pending') }
  return { source: 'poll', reason: reasonOf(state, at, pollReasonOf(state)) }
}

/** A chain that stands still takes precedence over `reason`. Unread heads and lagging settling count only if `reason` is `ok`. */
function reasonOf(state: SourceState, at: number, reason: SourceReason): SourceReason {
  if (at - state.headAt > STALE_HEAD_MS) return 'stale_head'
  if (reason !== 'ok') return reason
  if (at - state.headReadAt > UNREAD_HEAD_MS) return 'unreachable'
  return isSettlingBehind(state, at) ? 'behind' : 'ok'
}

function pollReasonOf({ link, trust }: SourceState): SourceReason {
  if (link === 'none') return 'ok'
  if (link === 'pushing') return trust === 'behind' ? 'behind' : 'silent'
  return link === 'refused' ? 'refused' : 'unreachable'
}

/** The poll that is due: the pending block with or without its logs, or the head alone. */
export function duePoll(state: SourceState, at: number): 'pending_logs' | 'pending' | 'head' | null {
  if (at - state.pendingPolledAt >= pendingIntervalMs(state)) return isPushing(state) ? 'pending' : 'pending_logs'
  const isPushed = areHeadsPushed(state) && at - (state.linkHead?.at ?? 0) < PUSH_PAUSE_MS
  return at - state.headPolledAt >= (isPushed ? state.silenceMs : 0) ? 'head' : null
}

/** Whether to ask for the head while another request hangs. */
export const isCheckDue = ({ requestedAt, headPolledAt }: SourceState, at: number): boolean =>
  requestedAt !== null && at - requestedAt >= UNANSWERED_CHECK_MS && at - headPolledAt >= UNANSWERED_CHECK_MS

function pendingIntervalMs(state: SourceState): number {
  if (isPushing(state)) return state.trust === 'proven' ? Number.POSITIVE_INFINITY : UNPROVEN_POLL_MS
  return isSealedOnly(state) && areHeadsPushed(state) ? PROBE_INTERVAL_MS : 0
}

/** Whether to retry the subscription: the link is up, but does not push as it should, or not for all filters. */
export const isProbeDue = (state: SourceState, pushesAll: boolean, at: number): boolean =>
  isLinkUp(state) && !(isPushing(state) && pushesAll) && at - state.probedAt >= PROBE_INTERVAL_MS

/** Whether to connect to the node under the next URL. With a single URL, the link reconnects only if its heads stand still. */
export function isLinkLeft(state: SourceState, at: number): boolean {
  const { hasNextLink, link, trust, linkHead, leftAt } = state
  if (isLinkStale(state, at)) return true
  if (!hasNextLink || at - leftAt.link < LEAVE_INTERVAL_MS) return false
  // A frozen node may be all that the relay knows of the chain.
  const standsStill = linkHead !== null && at - linkHead.at > STALE_LINK_MS
  return standsStill || link === 'refused' || (link === 'pushing' && (trust === 'silent' || trust === 'behind'))
}

/** Whether to ask other endpoints first: this one returns headers, but settling stands still or does not catch up in time. */
export function isEndpointLeft(state: SourceState, at: number): boolean {
  const { lagsSince, settledAt, leftAt, silenceMs } = state
  if (lagsSince === null || !isSettlingBehind(state, at) || at - leftAt.endpoint < LEAVE_INTERVAL_MS) return false
  return at - settledAt > silenceMs || at - lagsSince > LEAVE_INTERVAL_MS
}

const isLinkStale = ({ linkHead, head }: SourceState, at: number): boolean =>
  linkHead !== null && at - linkHead.at > STALE_LINK_MS && (head ?? -1) - linkHead.number > STALE_LINK_BLOCKS

import type { Hex } from '../../../lib/hex.ts'
import type { SourceName, SourceReason } from '../../../protocol/fields.ts'
import type { Cursor } from '../blocks/sealed-block.ts'
import type { LinkSignal } from '../link/subscription-socket.ts'
import { matchesAny, type ReadFilter } from '../logs/log-filter.ts'
import { type Log, type Logs, parseLogs } from '../logs/log-parser.ts'
import { Header, isSealed, type SealedHeader } from '../rpc/block-header.ts'
import { learn } from '../sealed/learn.ts'
import { isOutOfReach, judgeHead, type SealedState } from '../sealed/sealed-state.ts'
import type { FinalityEvent, ReadAnswer, SealedEvidence, SettlementEvent } from '../sealed/settlement-types.ts'
import type { ChainEvent } from './chain-event.ts'
import { BEHIND_BLOCKS, noPendingMemory, type PendingMemory } from './pending-status.ts'
import type { PollResult } from './polls.ts'
import {
  afterAnswer,
  afterRead,
  filtersWithoutRefused,
  isUnread,
  noRefusals,
  type RefusedFilters,
  refusalIn,
  withoutAnswered,
} from './refused-filters.ts'
import { statusOf } from './source-decisions.ts'
import { type Evidence, initialState, isPushing, next, type SourceState } from './source-evidence.ts'

type LogsEvent = Extract<ChainEvent, { type: 'logs' }>

/** Inputs from the token list, the link, the polls, settling, finality and the clock. */
export type SourceInput =
  /** The logs to read from now on. */
  | { readonly type: 'filters'; readonly filters: readonly ReadFilter[] }
  /** The node answers a filter that is left out. `outdated` are the blocks that were settled without it and need it. */
  | { readonly type: 'filter_answered'; readonly contract: Hex; readonly outdated: readonly number[] }
  | { readonly type: 'tick' | 'requested' | 'answered' | 'probed' }
  | { readonly type: 'left'; readonly what: 'link' | 'endpoint' }
  | LinkSignal
  | PollResult
  | { readonly type: 'answer'; readonly answer: ReadAnswer }
  | FinalityEvent

/** Limit of logs that are held until the first head. Further logs are published when their block is settled. */
const EARLY_LOGS_BOUND = 2_000
/** Limit of the blocks below the first head at which settling starts, to include logs that were pushed before this head. */
const EARLY_LOGS_MAX_DEPTH_BLOCKS = 64

/** State of the source. */
export type SourceProgress = {
  readonly state: SourceState
  readonly sealed: SealedState
  readonly memory: PendingMemory
  readonly refused: RefusedFilters
  /** The filters of the last subscription to pre-confirmed logs, and those of them whose logs the link pushes. */
  readonly subscribed: readonly ReadFilter[]
  readonly pushed: readonly ReadFilter[]
  /** The filters of the last `subscribed` event; empty before the first one. `status` is the last emitted status. */
  readonly covered: readonly ReadFilter[]
  readonly status: { readonly source: SourceName; readonly reason: SourceReason } | null
  readonly earlyLogs: readonly LogsEvent[]
  readonly events: readonly ChainEvent[]
  /** Number of messages and logs so far that cannot be read. */
  readonly unreadable: number
}

type SourceStart = {
  readonly links: number
  readonly silenceMs: number
  readonly sealed: SealedState
  /** The filters that the previous run left out. */
  readonly leftOut: readonly ReadFilter[]
  readonly at: number
}

export function startProgress({ links, silenceMs, sealed, leftOut, at }: SourceStart): SourceProgress {
  const none = sealed.filters
  const filters = { refused: noRefusals(leftOut), subscribed: none, pushed: none, covered: none }
  const state = initialState(links, silenceMs, at)
  return { state, sealed, ...filters, earlyLogs: [], events: [], status: null, memory: noPendingMemory, unreadable: 0 }
}

/** Returns the next state, with the events that follow from the input. Equal inputs have equal results. */
export const sourceStep = (progress: SourceProgress, input: SourceInput, at: number): SourceProgress =>
  report(take({ ...progress, events: [] }, input, at), at)

/** Takes evidence about the source. */
const after = (progress: SourceProgress, at: number, evidence: Evidence): SourceProgress => ({
  ...progress,
  state: next(progress.state, evidence, at),
})

/** Takes evidence about the sealed chain, and emits the events that follow from it. */
function afterSealed(progress: SourceProgress, at: number, evidence: SealedEvidence): SourceProgress {
  const [sealed, events] = learn(progress.sealed, evidence, at)
  return events.reduce((judged, event) => takeSealedEvent(judged, event, at), { ...progress, sealed })
}

const emitted = (progress: SourceProgress, ...events: readonly ChainEvent[]): SourceProgress => ({
  ...progress,
  events: [...progress.events, ...events],
})

const unreadable = (progress: SourceProgress, count: number): SourceProgress =>
  count === 0 ? progress : { ...progress, unreadable: progress.unreadable + count }

function take(progress: SourceProgress, input: SourceInput, at: number): SourceProgress {
  switch (input.type) {
    case 'filters':
      return withFilters(progress, { ...progress.refused, wanted: input.filters }, at)
    case 'filter_answered':
      return takeFilterAnswered(progress, input, at)
    case 'tick':
    case 'requested':
    case 'answered':
    case 'probed':
    case 'left':
    case 'polling':
    case 'down':
    case 'refused':
    case 'heads_live':
      return after(progress, at, input)
    case 'live': {
      const { filters: subscribed, pushed, subscription } = input
      const live = after(progress, at, input)
      return subscription === 'pendingLogs' ? { ...live, subscribed, pushed } : live
    }
    case 'head': {
      const header = Header.safeParse(input.header).data ?? null
      return isSealed(header) ? takeHead(progress, header, 'link', at) : unreadable(progress, 1)
    }
    case 'latest':
      return takeHead(progress, input.header, 'poll', at)
    case 'log':
      if (input.subscription === 'logs') return takeSealedLogs(progress, parseLogs(input.log), at)
      return takePushedLogs(progress, parseLogs(input.log), input.receivedAt, at)
    case 'pending': {
      const { number: pending = null, timestamp = null } = input.block ?? {}
      const polled = after({ ...progress, memory: input.memory }, at, { type: 'pending', status: input.memory.status })
      return emitted(polled, { type: 'head', sealed: null, pending, timestamp })
    }
    case 'polled_logs':
      return takePolledLogs(progress, input, at)
    case 'covered': {
      const covered = { ...progress, memory: input.memory ?? progress.memory }
      const { filters } = input
      // Without pushed logs, tokens are covered once the node answers, since each block is read for their logs.
      const isNews = !isPushing(progress.state) && progress.state.settled !== null && filters !== progress.covered
      return isNews ? emitted({ ...covered, covered: filters }, { type: 'subscribed', filters }) : covered
    }
    case 'unreadable':
      return unreadable(progress, input.count)
    case 'answer':
      return takeAnswer(progress, input.answer, at)
    case 'finality':
      return afterSealed(progress, at, input)
  }
}

const withFilters = (progress: SourceProgress, refused: RefusedFilters, at: number): SourceProgress =>
  afterSealed({ ...progress, refused }, at, { type: 'listed', filters: filtersWithoutRefused(refused) })

/** Takes the answer to a read. Filters that the node refuses for too long are left out. */
function takeAnswer(before: SourceProgress, answer: ReadAnswer, at: number): SourceProgress {
  const learned = afterSealed(before, at, answer)
  const progress = refusalIn(answer) ? after(learned, at, { type: 'filter_refused' }) : learned
  const refused = afterRead(progress.refused, answer, at)
  if (refused === progress.refused) return readAnswered(progress, at)
  if (refused.leftOut === progress.refused.leftOut) return { ...progress, refused }
  const added = [...refused.leftOut.keys()].filter((contract) => !progress.refused.leftOut.has(contract))
  const events = added.map((contract) => ({ type: 'refusal', contract, isOver: false }) as const)
  return emitted(withFilters(progress, refused, at), ...events)
}

/** First, the blocks are settled again that were settled without the filter and have published logs of the contract. */
function takeFilterAnswered(
  progress: SourceProgress,
  { contract, outdated }: Extract<SourceInput, { type: 'filter_answered' }>,
  at: number,
): SourceProgress {
  if (!isUnread(progress.refused, contract)) return progress
  const refused = afterAnswer(progress.refused, contract)
  return readAnswered(afterSealed({ ...progress, refused }, at, { type: 'outdated', blocks: outdated }), at)
}

/** Reads the filters again that the node answers, once no block is left that was settled without them. */
function readAnswered(progress: SourceProgress, at: number): SourceProgress {
  const answered = [...progress.refused.leftOut].flatMap(([contract, { isAnswered }]) => (isAnswered ? [contract] : []))
  if (answered.length === 0 || progress.sealed.outdated.size > 0) return progress
  const events = answered.map((contract) => ({ type: 'refusal', contract, isOver: true }) as const)
  return emitted(withFilters(progress, withoutAnswered(progress.refused), at), ...events)
}

/** The first head starts settling, and each newer one extends it. An older head may reveal a reorg. */
function takeHead(progress: SourceProgress, header: SealedHeader, via: 'link' | 'poll', at: number): SourceProgress {
  const { number, hash, parentHash, timestamp } = header
  const { sealed } = progress
  const isPushed = via === 'link'
  const verdict = judgeHead(sealed, header, isPushed)
  if (verdict === 'garbage') return unreadable(progress, 1)
  // A single pushed message does not prove that many new blocks, so the head is polled.
  if (verdict === 'unconfirmed') return after(progress, at, { type: 'head_wanted' })
  const received = after(afterSealed(progress, at, { type: 'head', header, isPushed }), at, { type: 'head', number, via })
  const cursor = startOf(header, progress.earlyLogs)
  const begun = afterSealed(received, at, { type: 'began', cursor })
  if (number <= (sealed.target?.number ?? -1)) return begun
  const head = { type: 'head', sealed: number, pending: null, timestamp, hash, parentHash } as const
  const start = { type: 'cursor', cursor, timestamp: cursor.number === number && !isPushed ? timestamp : null } as const
  return emitted(
    begun,
    isPushed ? { ...head, isPushed } : head,
    ...(sealed.blocks.newest === null && begun.sealed.blocks.newest !== null ? [start] : []),
  )
}

/** Settling starts at the first head, or lower, to include the logs that were pushed before that head. */
function startOf({ number, hash }: SealedHeader, earlyLogs: readonly LogsEvent[]): Cursor {
  const blocks = earlyLogs.flatMap(({ logs }) => logs.map(({ blockNumber }) => blockNumber))
  const near = blocks.filter((block) => number - block < EARLY_LOGS_MAX_DEPTH_BLOCKS)
  const start = Math.max(0, Math.min(number, ...near.map((block) => block - 1)))
  return { number: start, hash: start === number ? hash : null }
}

/** Settling publishes sealed logs. Pushed ones only reveal new or withdrawn blocks. */
function takeSealedLogs(progress: SourceProgress, { logs, unreadable: unreadableLogs }: Logs, at: number): SourceProgress {
  const removed = logs.filter((log) => log.removed)
  const doubted = removed.reduce(
    (judged, { blockNumber: number, blockHash: hash }) => afterSealed(judged, at, { type: 'removed', number, hash }),
    unreadable(progress, unreadableLogs),
  )
  const revealsHead = logs.some((log) => !log.removed && log.blockNumber > (progress.sealed.target?.number ?? 0))
  return revealsHead ? after(doubted, at, { type: 'head_wanted' }) : doubted
}

/** Leaves out sealed logs, which some nodes push as pending ones, and logs far above the head, which no real block has. */
const preconfirmedLogs = (logs: readonly Log[], sealed: SealedState): readonly Log[] =>
  logs.filter((log) => !log.removed && log.blockHash !== sealed.target?.hash && !isOutOfReach(sealed, log.blockNumber))

/** Emits pushed logs, and judges the stream by them. A log of an unlisted address proves nothing. */
function takePushedLogs(progress: SourceProgress, pushed: Logs, receivedAt: number, at: number): SourceProgress {
  const { target: head } = progress.sealed
  const logs = preconfirmedLogs(pushed.logs, progress.sealed)
  let [newest, isLate] = [-1, false]
  for (const log of logs) {
    if (!head || !matchesAny(progress.refused.wanted, log)) continue
    const { blockNumber } = log
    if (blockNumber > head.number) newest = Math.max(newest, blockNumber)
    else if (blockNumber <= head.number - BEHIND_BLOCKS) isLate = true
  }
  const evidence: Evidence | null = newest >= 0 ? { type: 'pushed', newest } : isLate ? { type: 'pushed_late' } : null
  const judged = evidence ? after(progress, at, evidence) : progress
  return unreadable(emitOrHold(judged, { type: 'logs', logs, via: 'pendingLogs', receivedAt }), pushed.unreadable)
}

function takePolledLogs(
  progress: SourceProgress,
  { logs: answer, closesGap }: Extract<PollResult, { type: 'polled_logs' }>,
  at: number,
): SourceProgress {
  const logs = preconfirmedLogs(answer.logs, progress.sealed)
  const newest = logs.reduce<number | null>((highest, { blockNumber }) => Math.max(highest ?? -1, blockNumber), null)
  const polled = after(progress, at, { type: 'polled_logs', newest, closesGap })
  return unreadable(emitOrHold(polled, { type: 'logs', logs, via: 'poll', receivedAt: at }), answer.unreadable)
}

/** Emits logs or, until the first head sets the start of settling, holds them. */
function emitOrHold(progress: SourceProgress, event: LogsEvent): SourceProgress {
  if (event.logs.length === 0) return progress
  if (progress.state.settled !== null) return emitted(progress, event)
  const room = EARLY_LOGS_BOUND - progress.earlyLogs.reduce((sum, { logs }) => sum + logs.length, 0)
  const early = { ...event, logs: event.logs.slice(0, room) }
  return early.logs.length > 0 ? { ...progress, earlyLogs: [...progress.earlyLogs, early] } : progress
}

/** Emits an event of settling. A settled block shows whether its logs were pushed: the link can miss those that it should push. */
function takeSealedEvent(progress: SourceProgress, event: SettlementEvent | FinalityEvent, at: number): SourceProgress {
  if (event.type === 'reorg' && !event.isSuspected) return emitted(after(progress, at, { type: 'reorg' }), event)
  if (event.type === 'cursor') {
    // All blocks of the past are read for the filters of this moment.
    const { filters } = progress.sealed
    return emitted({ ...progress, covered: filters }, event, { type: 'subscribed', filters })
  }
  if (event.type !== 'sealed') return emitted(progress, event)
  const blocks = progress.state.link === 'pushing' ? event.blocks.filter(({ via }) => via === 'sealed') : []
  const judged = blocks.reduce((state, { number, logs }) => {
    const count = logs.reduce((sum, log) => (matchesAny(progress.pushed, log) ? sum + 1 : sum), 0)
    return count > 0 ? next(state, { type: 'settled', number, logs: count }, at) : state
  }, progress.state)
  const unreadableLogs = event.blocks.reduce((sum, block) => sum + (block.unreadable ?? 0), 0)
  return emitted(unreadable({ ...progress, state: judged }, unreadableLogs), event)
}

/** Adds events for changed filters and a changed status and, after the start, the held logs. */
function report(progress: SourceProgress, at: number): SourceProgress {
  const { sealed } = progress
  const [head, settled] = [sealed.target?.number ?? null, sealed.blocks.newest?.number ?? null]
  const hasMoved = head !== progress.state.head || settled !== progress.state.settled
  const moved = hasMoved ? after(progress, at, { type: 'progress', head, settled }) : progress
  const { state } = moved
  const covered = settled !== null && isPushing(state) ? progress.subscribed : progress.covered
  const status = statusOf(state, at) ?? progress.status
  const hasNewStatus = status !== null && (status.source !== progress.status?.source || status.reason !== progress.status.reason)
  const isReleasing = settled !== null && progress.earlyLogs.length > 0
  // Most inputs are logs, which need no further event.
  if (covered === progress.covered && !hasNewStatus && !isReleasing) return moved
  const events: ChainEvent[] = []
  if (covered !== progress.covered) events.push({ type: 'subscribed', filters: covered })
  if (hasNewStatus) events.push({ type: 'status', ...status })
  if (isReleasing) events.push(...progress.earlyLogs.map((early) => ({ ...early, logs: preconfirmedLogs(early.logs, sealed) })))
  const reported = emitted({ ...moved, covered, status, earlyLogs: isReleasing ? [] : progress.earlyLogs }, ...events)
  return hasNewStatus && status.source === 'down' ? afterSealed(reported, at, { type: 'down' }) : reported
}

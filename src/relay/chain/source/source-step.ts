import type { Hex } from '../../../lib/hex.ts'
import type { SourceName, SourceReason } from '../../../protocol/fields.ts'
import type { LinkSignal } from '../link/subscription-socket.ts'
import { type Log, type Logs, parseLogs } from '../logs/log-parser.ts'
import { addressSetOf } from '../logs/memoized-address-set.ts'
import { Header, isSealed, type SealedHeader } from '../rpc/block-header.ts'
import { type FinalityEvent, FinalityGate } from '../sealed/finality.ts'
import type { Cursor } from '../sealed/recent-blocks.ts'
import type { SealedChain } from '../sealed/sealed-chain.ts'
import type { SettlementEvent } from '../sealed/settlement-types.ts'
import type { ChainEvent } from './chain-event.ts'
import { BEHIND_BLOCKS, noPendingMemory, type PendingMemory } from './pending-status.ts'
import type { PollResult } from './polls.ts'
import { statusOf } from './source-decisions.ts'
import { type Evidence, initialState, isPushing, next, type SourceState } from './source-evidence.ts'

type LogsEvent = Extract<ChainEvent, { type: 'logs' }>

/** Inputs from the token list, the link, the polls, settling, finality and the clock. */
export type SourceInput =
  | { readonly type: 'addresses'; readonly addresses: readonly Hex[] }
  | { readonly type: 'tick' | 'requested' | 'answered' | 'probed' }
  | { readonly type: 'left'; readonly what: 'link' | 'endpoint' }
  | LinkSignal
  | PollResult
  | SettlementEvent
  | FinalityEvent

/** Limit of logs that are held until the first head. Further logs are published when their block is settled. */
const EARLY_LOGS_BOUND = 2_000
/** Limit of the blocks below the first head at which settling starts, to include logs that were pushed before this head. */
const EARLY_LOGS_MAX_DEPTH_BLOCKS = 64

/** State of the source. */
export type SourceProgress = {
  readonly state: SourceState
  readonly memory: PendingMemory
  readonly addresses: readonly Hex[]
  /** The addresses whose pre-confirmed logs the link pushes. */
  readonly subscribed: readonly Hex[]
  /** The addresses of the last `subscribed` event; empty before the first one. `status` is the last emitted status. */
  readonly covered: readonly Hex[]
  readonly status: { readonly source: SourceName; readonly reason: SourceReason } | null
  readonly earlyLogs: readonly LogsEvent[]
  readonly events: readonly ChainEvent[]
}

export function startProgress(links: number, silenceMs: number, at: number): SourceProgress {
  const [state, none]: [SourceState, readonly Hex[]] = [initialState(links, silenceMs, at), []]
  const addresses = { addresses: none, subscribed: none, covered: none }
  return { state, ...addresses, earlyLogs: [], events: [], status: null, memory: noPendingMemory }
}

export function sourceStep(sealed: SealedChain, now: () => number) {
  const gate = new FinalityGate()
  return (progress: SourceProgress, input: SourceInput): SourceProgress =>
    report(take(progress, input, { sealed, gate, at: now() }), sealed, now())
}

type Context = { readonly sealed: SealedChain; readonly gate: FinalityGate; readonly at: number }

const after = (
  progress: SourceProgress,
  at: number,
  evidence: Evidence | null,
  ...events: readonly ChainEvent[]
): SourceProgress => ({ ...progress, state: evidence ? next(progress.state, evidence, at) : progress.state, events })

function take(progress: SourceProgress, input: SourceInput, context: Context): SourceProgress {
  const { sealed, gate, at } = context
  switch (input.type) {
    case 'addresses':
      return { ...progress, addresses: input.addresses, events: [] }
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
      const { addresses, subscription } = input
      const live = after(progress, at, input)
      return subscription === 'pendingLogs' ? { ...live, subscribed: addresses } : live
    }
    case 'head': {
      const header = Header.safeParse(input.header).data ?? null
      return isSealed(header)
        ? takeHead(progress, header, 'link', context)
        : after(progress, at, null, { type: 'unreadable', count: 1 })
    }
    case 'latest':
      return takeHead(progress, input.header, 'poll', context)
    case 'log':
      if (input.subscription === 'logs') return takeSealedLogs(progress, parseLogs(input.log), context)
      return takePushedLogs(progress, parseLogs(input.log), input.receivedAt, context)
    case 'pending': {
      const { number: pending = null, timestamp = null } = input.block ?? {}
      const polled = after(
        progress,
        at,
        { type: 'pending', status: input.memory.status },
        { type: 'head', sealed: null, pending, timestamp },
      )
      return { ...polled, memory: input.memory }
    }
    case 'polled_logs':
      return takePolledLogs(progress, input, context)
    case 'covered': {
      // Without pushed logs, tokens are covered once the node answers, since each block is read for their logs.
      const isNews = !isPushing(progress.state) && progress.state.settled !== null && input.addresses !== progress.covered
      const events: readonly ChainEvent[] = isNews ? [{ type: 'subscribed', addresses: input.addresses }] : []
      return { ...progress, memory: input.memory ?? progress.memory, covered: isNews ? input.addresses : progress.covered, events }
    }
    case 'sealed':
    case 'hole':
      return takeSettlement(progress, input, context)
    case 'reorg':
      return after(progress, at, { type: 'reorg' }, input)
    case 'unreadable':
      return after(progress, at, null, input)
    case 'finality':
      gate.add(input)
      sealed.markSafe(input.block)
      return after(progress, at, null, ...releaseFinality(context, sealed.cursor?.number ?? -1))
  }
}

/** The first head starts settling, and each newer one extends it. An older head may reveal a reorg. */
function takeHead(progress: SourceProgress, header: SealedHeader, via: 'link' | 'poll', { sealed, at }: Context): SourceProgress {
  const { number, hash, parentHash, timestamp } = header
  const isPushed = via === 'link'
  const previousHead = sealed.head?.number ?? -1
  const { disputed } = sealed
  const result = sealed.receiveHead(header, isPushed)
  if (result === 'garbage') return after(progress, at, null, { type: 'unreadable', count: 1 })
  // A single pushed message does not prove that many new blocks, so the head is polled.
  if (result === 'unconfirmed') return after(progress, at, { type: 'head_wanted' })
  const cursor = startOf(header, progress.earlyLogs)
  const isStart = sealed.begin(cursor)
  const evidence = { type: 'head', number, via } as const
  if (number <= previousHead) return after(progress, at, evidence, ...newlyDisputed(sealed, disputed))
  const head: ChainEvent = {
    type: 'head',
    sealed: number,
    pending: null,
    timestamp,
    hash,
    parentHash,
    ...(isPushed ? { isPushed } : {}),
  }
  const start = { type: 'cursor', cursor, timestamp: cursor.number === number && !isPushed ? timestamp : null } as const
  return after(progress, at, evidence, head, ...(isStart ? [start] : []))
}

/** Settling starts at the first head, or lower, to include the logs that were pushed before that head. */
function startOf({ number, hash }: SealedHeader, earlyLogs: readonly LogsEvent[]): Cursor {
  const blocks = earlyLogs.flatMap(({ logs }) => logs.map(({ blockNumber }) => blockNumber))
  const near = blocks.filter((block) => number - block < EARLY_LOGS_MAX_DEPTH_BLOCKS)
  const start = Math.max(0, Math.min(number, ...near.map((block) => block - 1)))
  return { number: start, hash: start === number ? hash : null }
}

/** Reports a newly disputed block at once, before requests show who is right. */
const newlyDisputed = ({ disputed }: SealedChain, before: number | null): readonly ChainEvent[] =>
  disputed === null || disputed === before ? [] : [{ type: 'reorg', from: disputed, isSuspected: true }]

/** Settling publishes sealed logs. Pushed ones only reveal new or withdrawn blocks. */
function takeSealedLogs(progress: SourceProgress, { logs, unreadable }: Logs, { sealed, at }: Context): SourceProgress {
  const { disputed } = sealed
  for (const log of logs) if (log.removed) sealed.retract(log.blockNumber, log.blockHash)
  const revealsHead = logs.some((log) => !log.removed && log.blockNumber > (sealed.head?.number ?? 0))
  return after(
    progress,
    at,
    revealsHead ? { type: 'head_wanted' } : null,
    ...newlyDisputed(sealed, disputed),
    ...unreadableLogs(unreadable),
  )
}

const unreadableLogs = (count: number): readonly ChainEvent[] => (count > 0 ? [{ type: 'unreadable', count }] : [])

/** Leaves out sealed logs, which some nodes push as pending ones, and logs far above the head, which no real block has. */
const preconfirmedLogs = (logs: readonly Log[], sealed: SealedChain): readonly Log[] =>
  logs.filter((log) => !log.removed && log.blockHash !== sealed.head?.hash && !sealed.isOutOfReach(log.blockNumber))

/** Emits pushed logs, and judges the stream by them. A log of an unlisted address proves nothing. */
function takePushedLogs(
  progress: SourceProgress,
  { logs, unreadable }: Logs,
  receivedAt: number,
  { sealed, at }: Context,
): SourceProgress {
  const { head } = sealed
  const received = preconfirmedLogs(logs, sealed)
  let [newest, isLate] = [-1, false]
  for (const { address, blockNumber } of received) {
    if (!head || !addressSetOf(progress.addresses).has(address)) continue
    if (blockNumber > head.number) newest = Math.max(newest, blockNumber)
    else if (blockNumber <= head.number - BEHIND_BLOCKS) isLate = true
  }
  const evidence: Evidence | null = newest >= 0 ? { type: 'pushed', newest } : isLate ? { type: 'pushed_late' } : null
  return emitOrHold(after(progress, at, evidence), { type: 'logs', logs: received, via: 'pendingLogs', receivedAt }, unreadable)
}

function takePolledLogs(
  progress: SourceProgress,
  { logs: { logs, unreadable }, closesGap }: Extract<PollResult, { type: 'polled_logs' }>,
  { sealed, at }: Context,
): SourceProgress {
  const received = preconfirmedLogs(logs, sealed)
  const newest = received.reduce<number | null>((highest, { blockNumber }) => Math.max(highest ?? -1, blockNumber), null)
  const polled = after(progress, at, { type: 'polled_logs', newest, closesGap })
  return emitOrHold(polled, { type: 'logs', logs: received, via: 'poll', receivedAt: at }, unreadable)
}

/** Emits logs or, until the first head sets the start of settling, holds them. */
function emitOrHold(progress: SourceProgress, event: LogsEvent, unreadable: number): SourceProgress {
  const events = unreadableLogs(unreadable)
  if (progress.state.settled !== null) return { ...progress, events: event.logs.length > 0 ? [event, ...events] : events }
  const room = EARLY_LOGS_BOUND - progress.earlyLogs.reduce((sum, { logs }) => sum + logs.length, 0)
  const early = { ...event, logs: event.logs.slice(0, room) }
  return { ...progress, earlyLogs: early.logs.length > 0 ? [...progress.earlyLogs, early] : progress.earlyLogs, events }
}

/** A settled block shows whether its logs were pushed. Only logs of subscribed addresses can be missed. */
function takeSettlement(
  progress: SourceProgress,
  event: Extract<SettlementEvent, { type: 'sealed' | 'hole' }>,
  context: Context,
): SourceProgress {
  const blocks =
    event.type === 'sealed' && progress.state.link === 'pushing' ? event.blocks.filter(({ via }) => via === 'sealed') : []
  const state = blocks.reduce((judged, { number, logs }) => {
    const count = logs.reduce((sum, { address }) => (addressSetOf(progress.subscribed).has(address) ? sum + 1 : sum), 0)
    return count > 0 ? next(judged, { type: 'settled', number, logs: count }, context.at) : judged
  }, progress.state)
  return { ...progress, state, events: [event, ...releaseFinality(context, event.cursor.number)] }
}

const releaseFinality = ({ sealed, gate }: Context, settled: number): readonly FinalityEvent[] =>
  gate.release(settled, (block) => sealed.isOurs(block))

/** Adds events for changed addresses and a changed status and, after the start, the held logs. */
function report(progress: SourceProgress, sealed: SealedChain, at: number): SourceProgress {
  const [head, settled] = [sealed.head?.number ?? null, sealed.settled?.number ?? null]
  const hasMoved = head !== progress.state.head || settled !== progress.state.settled
  const state = hasMoved ? next(progress.state, { type: 'progress', head, settled }, at) : progress.state
  const covered = settled !== null && isPushing(state) ? progress.subscribed : progress.covered
  const status = statusOf(state, at) ?? progress.status
  const hasNewStatus = status !== null && (status.source !== progress.status?.source || status.reason !== progress.status.reason)
  if (hasNewStatus && status.source === 'down') sealed.beginOutage()
  const isReleasing = settled !== null && progress.earlyLogs.length > 0
  // Most inputs are logs, which need no further event.
  if (covered === progress.covered && !hasNewStatus && !isReleasing) return hasMoved ? { ...progress, state } : progress
  const events: ChainEvent[] = [...progress.events]
  if (covered !== progress.covered) events.push({ type: 'subscribed', addresses: covered })
  if (hasNewStatus) events.push({ type: 'status', ...status })
  if (isReleasing) events.push(...progress.earlyLogs.map((early) => ({ ...early, logs: preconfirmedLogs(early.logs, sealed) })))
  return { ...progress, state, covered, status, earlyLogs: isReleasing ? [] : progress.earlyLogs, events }
}

import { MACHINE_LAG_MS } from '../blocks/block-bounds.ts'
import { type BlockResult, settleableLogs } from '../blocks/block-logs.ts'
import { addRange, unreadAfter } from '../blocks/block-ranges.ts'
import { grownPage, shrunkPage } from '../blocks/page-size.ts'
import { afterFailure, countOf, noFailures, type ReadFailure } from '../blocks/read-failures.ts'
import type { BlockRange, Cursor, SealedBlock } from '../blocks/sealed-block.ts'
import { matchesAny, type ReadFilter } from '../logs/log-filter.ts'
import { UpstreamError, type UpstreamErrorKind } from '../rpc/upstream-error.ts'
import { forget, learnHead, learnRemoved, learnSafe, releaseFinality, suspectBlock } from './learn-heads.ts'
import { DISPUTE_TRIES } from './plan.ts'
import { cursorsOf, hashOf, type SealedState } from './sealed-state.ts'
import { addBlock, addUnread, rollBackTo } from './settled-blocks.ts'
import type { FinalityEvent, Hole, PlannedRead, ReadAnswer, SealedEvidence, SettlementEvent } from './settlement-types.ts'

/** Number of retries of an unanswered page before a smaller one is tried. */
const UNREACHABLE_RETRIES_BOUND = 3
/** Limit of the pages that a first run reads before it settles newer blocks. A failed page ends that too. */
const FIRST_PAGES_BOUND = 32
/** A recheck reads recent blocks again after this many new blocks. */
const RECHECK_EVERY_BLOCKS = 2
/** Least interval between the starts of two rechecks. */
const RECHECK_INTERVAL_MS = 1_000

/** Errors of these kinds may mean that the node is disconnected. */
const outageKinds: ReadonlySet<UpstreamErrorKind> = new Set(['unreachable', 'busy', 'unknown'])

/** The next state, and the events that follow from the evidence. */
export type Learned = readonly [SealedState, readonly (SettlementEvent | FinalityEvent)[]]

/** Learns from evidence that arrived at this time, in milliseconds. */
export function learn(state: SealedState, evidence: SealedEvidence, at: number): Learned {
  const [next, events] = take(state, evidence, at)
  const [released, finality] = releaseFinality(next)
  return finality.length > 0 ? [released, [...events, ...finality]] : [released, events]
}

function take(state: SealedState, evidence: SealedEvidence, at: number): Learned {
  switch (evidence.type) {
    case 'listed':
      return [{ ...state, filters: evidence.filters }, []]
    case 'outdated': {
      const nth = 1 + Math.max(0, ...state.outdated.values())
      return [{ ...state, outdated: new Map([...state.outdated, ...evidence.blocks.map((number) => [number, nth] as const)]) }, []]
    }
    case 'began':
      return [state.blocks.newest || state.beginsInPast ? state : begin(state, evidence.cursor), []]
    case 'head':
      return suspecting(state, learnHead(state, evidence.header, evidence.isPushed))
    case 'removed':
      return suspecting(state, learnRemoved(state, evidence.number, evidence.hash))
    case 'down':
      return [{ ...state, outage: { ...state.outage, isDisconnected: true } }, []]
    case 'finality':
      return [learnSafe(state, evidence), []]
    default:
      return takeAnswer(state, evidence, at)
  }
}

const begin = (state: SealedState, cursor: Cursor): SealedState => ({ ...state, blocks: addUnread(state.blocks, cursor) })

/** Reports a newly disputed block at once, before requests show who is right. */
const suspecting = ({ disputed: before }: SealedState, state: SealedState): Learned => {
  const { disputed } = state
  return [state, disputed === null || disputed === before ? [] : [{ type: 'reorg', from: disputed, isSuspected: true }]]
}

function takeAnswer(state: SealedState, answer: ReadAnswer, at: number): Learned {
  const { read } = answer
  switch (answer.type) {
    case 'failed':
      return [fail(state, read, answer.failure, at), []]
    case 'blocks':
      return takeBlocks(state, answer, at)
    case 'confirmed': {
      const disputed = state.disputed === answer.number ? null : state.disputed
      return [succeed({ ...forget(state, answer.number), disputed }, read, at), []]
    }
    case 'replaced':
      return rollBack({ ...succeed(state, read, at), rolledBackAt: at }, answer.to, answer.lost)
    case 'first': {
      const { cursor } = answer
      return [
        succeed({ ...begin(state, cursor), pagesFirst: FIRST_PAGES_BOUND }, read, at),
        [{ type: 'cursor', cursor, timestamp: null }],
      ]
    }
    case 'skipped':
      return [succeed(skip(state, answer), read, at), []]
    case 'page':
      return takePage(state, answer, at)
    case 'unavailable': {
      const { to, reason: missingReason } = answer
      const missing = state.unread.slice(0, 1).map((range) => ({ ...range, to, missingReason }))
      return [succeed({ ...state, unread: [...missing, ...unreadAfter(state.unread, to)] }, read, at), []]
    }
    case 'lost': {
      const settled = succeed(resettled(state, read, answer.number), read, at)
      return [settled, [sealedEvent(settled, [], [holeAt(answer.number, 'pruned')])]]
    }
    case 'rechecked':
      return [recheck(state, answer), answer.holes.length > 0 ? [sealedEvent(state, [], answer.holes)] : []]
  }
}

/** Keeps the incomplete blocks, which are settled again, and rechecked after that. */
function recheck(state: SealedState, answer: Extract<ReadAnswer, { type: 'rechecked' }>): SealedState {
  const found = answer.incomplete.filter((number) => !isTakenBack(state, number))
  const incomplete = new Set([...state.recheck.incomplete, ...found])
  const complete = new Map(answer.complete.map((block) => [block.number, block]))
  const all = state.blocks.all.map((block) => {
    const { hash, settledAt } = complete.get(block.number) ?? {}
    // A block that was settled again during the recheck needs another one.
    const isSame = hash === block.hash && settledAt === block.settledAt
    return isSame && !incomplete.has(block.number) ? { ...block, isRechecked: true as const } : block
  })
  return { ...state, blocks: { ...state.blocks, all }, recheck: { ...state.recheck, below: null, incomplete } }
}

function succeed(state: SealedState, { lane, what }: PlannedRead, at: number): SealedState {
  const failures = { ...state.failures, [lane]: noFailures }
  if (lane !== 'settle') return { ...state, failures }
  const { failingSince, ...outage } = state.outage
  // If requests fail for longer than the limit, that counts as an outage too.
  const wasOutage = failingSince !== null && at - failingSince > state.silenceMs
  const lastBlock = wasOutage ? Math.max(outage.lastBlock, state.target?.number ?? 0) : outage.lastBlock
  const recheck = { ...state.recheck, hasResettled: what === 'incomplete' }
  return { ...state, failures, recheck, outage: { ...outage, lastBlock, failingSince: null } }
}

function fail(state: SealedState, read: PlannedRead, failure: ReadFailure, at: number): SealedState {
  const kind = failure instanceof UpstreamError ? failure.kind : null
  // A recheck is optional, and the next one includes these blocks.
  if (read.lane === 'recheck') return { ...state, recheck: { ...state.recheck, below: null } }
  const before = state.failures[read.lane]
  if (read.what === 'page' && kind === 'too_large' && read.page.to > read.page.from)
    return succeed({ ...state, page: shrunkPage(read.page, failure.message) }, read, at)
  const failures = { ...state.failures, [read.lane]: afterFailure(before, failure, at) }
  if (read.lane === 'backfill') {
    // A node may time out on a range that is too large instead of refusing it.
    const isShrunk = read.what === 'page' && kind === 'unreachable' && countOf(before, kind) >= UNREACHABLE_RETRIES_BOUND
    return { ...state, failures, page: isShrunk ? shrunkPage(read.page) : state.page, pagesFirst: 0 }
  }
  if (read.lane === 'outdated') return { ...state, failures }
  const failingSince = kind !== null && outageKinds.has(kind) ? (state.outage.failingSince ?? at) : state.outage.failingSince
  // The highest head may have been wrong, so the last received one is the next target.
  const target = countOf(before, 'behind') >= DISPUTE_TRIES ? state.lastHead : state.target
  const recheck = { ...state.recheck, hasResettled: read.what === 'incomplete' }
  const failed = { ...state, failures, target, recheck, outage: { ...state.outage, failingSince } }
  // The received header of the next block may not be part of the chain, so the next try reads it from the node.
  return state.blocks.newest ? forget(failed, state.blocks.newest.number + 1) : failed
}

/** Whether a rollback took the block back while it was read: it is settled in order, after those below it. */
const isTakenBack = ({ blocks: { newest } }: SealedState, number: number): boolean => number > (newest?.number ?? -1)

/** Settles the blocks in order up to the first one that failed. */
function takeBlocks(before: SealedState, { read, results, failure }: Extract<ReadAnswer, { type: 'blocks' }>, at: number): Learned {
  const events: Learned[1][number][] = []
  let state = before
  for (const result of results) {
    // A token that was listed during the read may have logs in this block that were not requested.
    if (read.what === 'next' && result.listed !== state.filters)
      return [fail(state, read, new UpstreamError('behind', 'the filters changed during the read'), at), events]
    const { number, hash } = result.header
    if (read.what === 'next') state = succeed(forget(state, number), read, at)
    else if (isTakenBack(state, number)) return [succeed(resettled(state, read, number), read, at), []]
    // The hash of an old block may be forgotten.
    else if ((hashOf(state, number) ?? hash) !== hash)
      return [succeed(resettled(suspectBlock(state, number, hash), read, number), read, at), []]
    const [settled, blockEvents] = settleBlock(state, result, read, at)
    // A finality event follows the block that it waited for, so clients have the facts that it covers and no later ones.
    const [released, finality] = releaseFinality(settled)
    events.push(...blockEvents, ...finality)
    state = read.what === 'next' ? scheduleRecheck(released, number, at) : resettled(released, read, number)
  }
  return [failure ? fail(state, read, failure, at) : succeed(state, read, at), events]
}

function settleBlock(state: SealedState, result: BlockResult, read: PlannedRead, at: number): Learned {
  const { number, hash, timestamp } = result.header
  if ('holeReason' in result) {
    const unread = { ...state, blocks: addUnread(state.blocks, { number, hash }) }
    return [unread, [sealedEvent(unread, [], [holeAt(number, result.holeReason)])]]
  }
  const { listed, filters, logs } = result
  // A recheck counts the logs of listed tokens only, so logs of other tokens are not counted here.
  const countOfFilters = (counted: readonly ReadFilter[]) => logs.filter((log) => matchesAny(counted, log)).length
  const logCount = filters === listed ? logs.length : countOfFilters(listed)
  const wholeCount = listed.length === 1 ? logCount : countOfFilters(listed.slice(0, 1))
  const via = number <= state.outage.lastBlock ? 'backfill' : 'sealed'
  const block: SealedBlock = { number, hash, timestamp, ...settleableLogs(result), filters, via }
  const counted = { number, hash, logCount, wholeCount, filters: listed, settledAt: at }
  // An outdated block may be so old that no recheck is needed.
  const isOld = read.what === 'outdated' && number <= cursorsOf(state).restartCursor.number
  const settled = { ...state, blocks: addBlock(state.blocks, isOld ? { ...counted, isRechecked: true } : counted) }
  return [settled, [sealedEvent(settled, [block])]]
}

/** Schedules a recheck of the blocks below the settled one, unless the last one began too recently. */
function scheduleRecheck(state: SealedState, number: number, at: number): SealedState {
  const { recheck } = state
  if (number % RECHECK_EVERY_BLOCKS !== 0 || at - recheck.scheduledAt < RECHECK_INTERVAL_MS) return state
  return { ...state, recheck: { ...recheck, below: number, scheduledAt: at } }
}

function resettled(state: SealedState, read: PlannedRead, number: number): SealedState {
  if (read.what === 'outdated') {
    // Another filter that the block needs may have become known during the read.
    const outdated = new Map([...state.outdated].filter(([other, nth]) => other !== number || nth !== read.nth))
    return { ...state, outdated }
  }
  const incomplete = new Set([...state.recheck.incomplete].filter((other) => other !== number))
  return { ...state, recheck: { ...state.recheck, incomplete } }
}

function rollBack(state: SealedState, to: Cursor, lost: BlockRange | null): Learned {
  const incomplete = new Set([...state.recheck.incomplete].filter((number) => number <= to.number))
  const rolledBack: SealedState = {
    ...state,
    outdated: new Map([...state.outdated].filter(([number]) => number <= to.number)),
    blocks: rollBackTo(state.blocks, to),
    disputed: state.disputed !== null && state.disputed > to.number ? null : state.disputed,
    // The highest head may be one of the replaced blocks.
    target: state.lastHead,
    recheck: { ...state.recheck, incomplete },
  }
  // The updates about the blocks in `lost` can be neither confirmed nor retracted.
  const holes = lost ? [sealedEvent(rolledBack, [], [{ blocks: lost, reason: 'reorg' }])] : []
  return [rolledBack, [{ type: 'reorg', from: to.number + 1 }, ...holes]]
}

/** Leaves the blocks between the settled one and `to` to the backfill, or reports them as missing. */
function skip(state: SealedState, { read, to, missingReason }: Extract<ReadAnswer, { type: 'skipped' }>): SealedState {
  const from = (state.blocks.newest?.number ?? 0) + 1
  const { lastBlock, isUnbounded } = state.outage
  const outage = {
    ...state.outage,
    lastBlock: read.what === 'newest' ? Math.max(lastBlock, read.target.number) : lastBlock,
    isUnbounded: isUnbounded && read.what !== 'oldest',
  }
  if (to.number < from) return { ...state, outage }
  // A lagging node may still answer for the replaced blocks. The answer would lack logs of blocks that had none before.
  const readableAt = state.rolledBackAt + MACHINE_LAG_MS
  const unread = addRange(state.unread, { from, to: to.number, missingReason, readableAt })
  return { ...state, outage, blocks: addUnread(state.blocks, to), unread }
}

function takePage(state: SealedState, { read, blocks, holes, to }: Extract<ReadAnswer, { type: 'page' }>, at: number): Learned {
  const unread = unreadAfter(state.unread, to)
  // After a reorg, the relay can roll back a block that was read inside of a hole only if it knows the hash.
  const below = blocks.filter(({ number }) => !isTakenBack(state, number))
  const known = read.what === 'missing' ? below.reduce(addUnread, state.blocks) : state.blocks
  const pagesFirst = Math.max(0, state.pagesFirst - 1)
  const next = succeed({ ...state, unread, blocks: known, page: grownPage(state.page), pagesFirst }, read, at)
  return [next, [sealedEvent(next, blocks, holes)]]
}

function sealedEvent(state: SealedState, blocks: readonly SealedBlock[], holes: readonly Hole[] = []): SettlementEvent {
  const partial = blocks.flatMap(({ number, unreadable }) => (unreadable ? [holeAt(number, 'unreadable')] : []))
  return { type: 'sealed', holes: [...holes, ...partial], blocks, newest: state.blocks.newest?.number ?? 0, ...cursorsOf(state) }
}

const holeAt = (number: number, reason: string): Hole => ({ blocks: { from: number, to: number }, reason })

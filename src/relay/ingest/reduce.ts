import { isDeepStrictEqual } from 'node:util'
import type { Draft } from '../../protocol/updates.ts'
import type { Cursor } from '../chain/blocks/sealed-block.ts'
import type { Hole } from '../chain/sealed/settlement-types.ts'
import {
  headNote,
  lastTradeNotes,
  listOrderNote,
  listReadNote,
  newestSettledNote,
  quoteNotes,
  sessionNote,
  statusNote,
  tokenNotes,
  venueNotes,
} from '../notes/published-notes.ts'
import type { BarRow } from '../tape/bars/bar-row.ts'
import { Notes } from '../tape/notes.ts'
import type { TapeBatch } from '../tape/tape.ts'
import { listedAddresses } from '../tokens/list/list-diff.ts'
import type { PolledList } from '../tokens/list/list-poller.ts'
import { venueKey } from '../tokens/venue.ts'
import {
  advancePosition,
  applyFirstHead,
  applyFrozen,
  applyList,
  applyReorg,
  applySubscribed,
  applyTokenAnswer,
  applyUnreadList,
  endList,
  markHole,
} from './apply-to-tokens.ts'
import { forgetBlockTimes, observeSettled } from './bars/bar-book.ts'
import { closeBars, noteBars } from './bars/close-bars.ts'
import { trackBarTrades } from './bars/track-bars.ts'
import { type Moment, openMoment } from './batch-values.ts'
import { advanceAheadBlock, applySession, observeClaimedTime } from './chain-time.ts'
import { correctMultipliers } from './facts/amend.ts'
import { publishPending } from './facts/publish-pending.ts'
import { settleBlock } from './facts/settle-block.ts'
import type { Batch, FoldedEvent } from './fold-batch.ts'
import { applyFinality, applyStatus, raiseHead, recordNewestSettled } from './head-and-status.ts'
import type { IngestState } from './ingest-state.ts'
import { applyFeedAnswer } from './nav-rounds.ts'
import { trackLastTrade } from './pools/last-trades.ts'
import { applyPoolAnswer, dropQuotes, forgetQuotedTrades, requote } from './pools/pool-quotes.ts'
import { dropVenuesFrom, dropVenuesOf, followAgain, followVenues, refuseVenues, reviewVenues } from './pools/venues.ts'
import {
  type EventOutput,
  forAllTokens,
  NEXT_TURN,
  NOTHING,
  type Outputs,
  outputsOfParts,
  PUBLISHED_PER_TURN,
  type Publication,
  place,
  withoutFacts,
} from './publication.ts'
import { chainTimeNote, feedsNote, restartPointNote } from './restore-state.ts'

/** Numbers of received logs that the batch does not publish, by reason. Only a swap of a pool can be unreadable here. */
export type LogCounts = { readonly repeated: number; readonly unlisted: number; readonly unreadable: number }

/** The batch that a batch of events writes to the tape, or a part of it. */
export type Reduction = Required<TapeBatch> & {
  readonly counts: LogCounts
  /** Steady time at which the oldest open key was published; null without open keys. */
  readonly oldestOpenAt: number | null
}

/** Limit of new tokens in one turn of the event loop. Each makes up to three updates, which the turn delivers together. */
const TOKENS_PER_TURN = 66

/** Applies a batch to the state, and returns its updates and notes: a large batch in parts. Uses no clock and no I/O. */
export function* reduce(state: IngestState, { events, ...times }: Batch<FoldedEvent>): Generator<Reduction, Reduction> {
  const moment = openMoment(times, state.navStaleAfterMs)
  // A key that is open before this batch must not be evicted until its seal or retract is written.
  const { openSeq } = state.ledger
  state.tapeEnd = state.nextSeq - 1
  let part = openPart(state)
  // Without a calendar no market session is known, even if the previous run had a calendar.
  if (!state.sessionAt) state.session = null
  for (const event of events) {
    const { chainTime } = state
    for (const output of outputsOf(state, part, event, moment)) {
      if (output === NEXT_TURN) {
        yield closePart(part, state, openSeq)
        part = openPart(state)
      } else addOutput(part, state, output, moment)
    }
    if (state.chainTime?.timestamp !== chainTime?.timestamp && !isBackfilled(event))
      addOutput(part, state, { publications: applySession(state, moment) }, moment)
    if (!settlesNewest(state, event)) continue
    let isFull = part.updates.length >= PUBLISHED_PER_TURN
    for (const bars of closeBars(state, moment)) {
      if (isFull) {
        yield closePart(part, state, openSeq)
        part = openPart(state)
      }
      addOutput(part, state, stepOf(bars), moment)
      isFull = true
    }
  }
  return closePart(part, state, null)
}

/** Whether an event has only backfilled blocks. They are old: their time says nothing about the current market session. */
const isBackfilled = (event: FoldedEvent): boolean => event.type === 'sealed' && event.blocks.every(({ via }) => via === 'backfill')

/** Whether an event settles new blocks, or the last one that is known. Before that one, blocks are being caught up. */
const settlesNewest = ({ head }: IngestState, event: FoldedEvent): boolean =>
  event.type === 'cursor' || (event.type === 'sealed' && (!isBackfilled(event) || event.cursor.number >= (head.sealed ?? 0)))

const openPart = (state: IngestState) => ({
  before: { ...state, bars: { ...state.bars } },
  first: state.nextSeq,
  updates: [] as Draft[],
  counts: { repeated: 0, unlisted: 0, unreadable: 0 },
})
type ReductionPart = ReturnType<typeof openPart>

function addOutput({ updates, counts }: ReductionPart, state: IngestState, output: EventOutput, moment: Moment): void {
  const { publications, repeated = 0, unlisted = 0, unreadable = 0 } = output
  counts.repeated += repeated
  counts.unlisted += unlisted
  counts.unreadable += unreadable
  for (const publication of publications) {
    const { draft } = publication
    for (const one of [publication, ...withoutFacts(draftsAfter(state, draft, moment))]) {
      updates.push(place(one, state.nextSeq, state.epoch))
      state.nextSeq += 1
      trackLastTrade(state, one.draft)
      trackBarTrades(state, one.draft)
      if (one.draft.type === 'retract' && one.fact?.draft.type === 'trade') {
        const { pool } = one.fact.draft.venue
        forgetQuotedTrades(state, (_, other) => other === pool)
      }
    }
  }
}

/** Returns what follows an update: the quotes that its NAV changes, and the pools that a delisted token loses. */
function draftsAfter(state: IngestState, draft: Draft, moment: Moment): readonly Draft[] {
  if (draft.type === 'nav') return requote(state, draft, moment)
  if (draft.type !== 'token' || draft.change !== 'delisted') return []
  dropQuotes(state, draft.address)
  return dropVenuesOf(state, draft.address, moment)
}

function closePart({ before, first, updates, counts }: ReductionPart, state: IngestState, openSeqBefore: number | null): Reduction {
  const { openSeq, oldestOpenAt } = state.ledger
  const keepAfter = openSeqBefore ?? openSeq ?? Number.POSITIVE_INFINITY
  const { rows: bars } = state.bars
  state.bars.rows = []
  return { first, updates, notes: takeNotes(before, state, bars), bars, keepAfter, counts, oldestOpenAt }
}

function* outputsOf(state: IngestState, { updates }: ReductionPart, event: FoldedEvent, moment: Moment): Outputs {
  // The updates of earlier events fill this turn.
  if (updates.length >= PUBLISHED_PER_TURN) yield NEXT_TURN
  if (event.type === 'head' || event.type === 'pendingLogs' || event.type === 'sealed') state.chainSeenAt = moment.at
  switch (event.type) {
    case 'pendingLogs':
      return yield* publishPending(state, event, moment)
    case 'sealed':
      return yield* applySealed(state, event, moment)
    case 'subscribed':
      state.received = event.filters
      yield* outputsOfParts(event.filters[0]?.addresses ?? [], TOKENS_PER_TURN, (part) =>
        stepOf(applySubscribed(state, part, moment)),
      )
      return yield stepOf(followVenues(state, moment))
    case 'list': {
      yield stepOf(reviewVenues(state, moment))
      if (event.list) return yield* outputsOfList(state, event.list, moment)
      const unread = listedAddresses(state.tokens)
      return yield* outputsOfParts(unread, TOKENS_PER_TURN, (part) => stepOf(applyUnreadList(state, part, moment)))
    }
    default:
      yield applyEvent(state, event, moment)
  }
}

function* outputsOfList(state: IngestState, list: PolledList, moment: Moment): Outputs {
  yield stepOf(applyList(state, list, moment))
  const { order, partial } = list
  if (!order) return
  // The end of a long list looks at all tokens, and what is asked of the node is made from it.
  if (order.length > TOKENS_PER_TURN) yield NEXT_TURN
  yield stepOf(endList(state, order, partial, moment))
}

type EventAtOnce = Exclude<FoldedEvent, { readonly type: 'pendingLogs' | 'sealed' | 'subscribed' | 'list' }>

function applyEvent(state: IngestState, event: EventAtOnce, moment: Moment): EventOutput {
  switch (event.type) {
    case 'token': {
      const { drafts, isMultiplierChanged } = applyTokenAnswer(state, event, moment)
      const corrections = isMultiplierChanged ? correctMultipliers(state, event.address, moment) : NOTHING
      return { publications: [...withoutFacts(drafts), ...corrections] }
    }
    case 'feed':
      return stepOf(applyFeedAnswer(state, event, moment))
    case 'oracle':
      return stepOf(applyFrozen(state, event, moment))
    case 'pools':
      return stepOf(applyPoolAnswer(state, event, moment))
    case 'head': {
      const { pending, sealed, timestamp, isPushed = false } = event
      const claim = { number: pending ?? sealed ?? 0, timestamp }
      const placed = sealed === null ? [] : applyFirstHead(state, sealed, moment)
      const corrections = placed.flatMap(({ address }) => correctMultipliers(state, address, moment))
      const timed = observeClaimedTime(state, claim, !isPushed, moment)
      // One pushed message does not prove a head: soon its block is settled, or a requested head confirms it.
      if (!isPushed) raiseHead(state, event)
      return { publications: [...corrections, ...timed] }
    }
    case 'cursor':
      state.ledger.setSettled(event.cursor.number)
      recordNewestSettled(state, { number: event.cursor.number, timestamp: event.timestamp })
      observeSettled(state.bars, { number: event.cursor.number, timestamp: event.timestamp })
      return { publications: advanceCursor(state, { ...event, restartCursor: event.cursor }, moment) }
    case 'finality':
      return { publications: applyFinality(state, event, moment) }
    case 'status':
      return { publications: applyStatus(state, event, moment) }
    case 'refusal':
      return stepOf(event.isOver ? followAgain(state, event.contract, moment) : refuseVenues(state, event.contract, moment))
    case 'reorg':
      state.ledger.expectReorg()
      // A suspicion that proves false settles nothing again, so that the times would be lost.
      if (!event.isSuspected) forgetBlockTimes(state.bars, event.from)
      forgetQuotedTrades(state, ({ block }) => block >= event.from)
      if (state.cursor && state.cursor.number >= event.from) state.cursor = { number: event.from - 1, hash: null }
      return stepOf([
        ...applyReorg(state, event.from, moment),
        ...(event.isSuspected ? [] : dropVenuesFrom(state, event.from, moment)),
      ])
  }
}

const stepOf = (drafts: readonly Draft[]): EventOutput => ({ publications: withoutFacts(drafts) })

function* applySealed(state: IngestState, event: Extract<FoldedEvent, { type: 'sealed' }>, moment: Moment): Outputs {
  const { holes, blocks, newest, cursor, restartCursor } = event
  const isPreconfirming = state.status?.source === 'pendingLogs' || state.status?.source === 'poll'
  state.ledger.setSettled(newest, Math.min(restartCursor.number, blocks[0]?.number ?? newest))
  yield { publications: holes.flatMap((hole) => applyHole(state, hole, newest, moment)) }
  for (const block of blocks) {
    const late = isPreconfirming || block.via === 'backfill'
    yield* settleBlock(state, block, { late, newest, settlesAllBefore: block.number <= cursor.number }, moment)
    recordNewestSettled(state, block)
    observeSettled(state.bars, block)
  }
  advancePosition(state, newest, Number.MAX_SAFE_INTEGER)
  raiseHead(state, { sealed: newest })
  yield { publications: advanceCursor(state, event, moment) }
}

function applyHole(state: IngestState, { blocks, reason }: Hole, newest: number, moment: Moment): readonly Publication[] {
  const { from: first, to: last } = blocks
  const changedTokens = markHole(state, blocks)
  const hole = forAllTokens({ type: 'hole', blocks: { first, last }, reason }, moment.time)
  // Logs of newer blocks may have decided the multiplier of older facts. With the hole between them, they no longer do.
  // Facts between the hole and the next log may have another one too. What is sealed above both is settled again.
  const highest = Math.max(last, newest)
  const corrections = changedTokens.flatMap(({ address }) =>
    correctMultipliers(state, address, moment, ({ draft, sealedIn }) => sealedIn === null || draft.block.number <= highest),
  )
  return [hole, ...corrections]
}

function advanceCursor(
  state: IngestState,
  { cursor, restartCursor }: { readonly cursor: Cursor; readonly restartCursor: Cursor },
  moment: Moment,
): readonly Publication[] {
  state.cursor = cursor
  state.restartCursor = restartCursor
  state.began = Math.min(state.began ?? restartCursor.number, restartCursor.number)
  return advanceAheadBlock(state, moment)
}

function takeNotes(before: IngestState, state: IngestState, bars: readonly BarRow[]): Notes {
  const { head, status, newestSettled, chainTime, listReadAt, listOrder, feeds, restartCursor, ledger, session } = state
  const notes = new Notes()
  if (head !== before.head) notes.set(headNote, head)
  if (status !== before.status) notes.set(statusNote, status)
  if (newestSettled !== before.newestSettled) notes.set(newestSettledNote, newestSettled)
  if (chainTime && !isDeepStrictEqual(chainTime, before.chainTime)) notes.set(chainTimeNote, chainTime)
  if (listReadAt !== before.listReadAt) notes.set(listReadNote, listReadAt)
  if (listOrder !== before.listOrder) notes.set(listOrderNote, listOrder)
  if (feeds !== before.feeds) notes.set(feedsNote, feeds)
  if (restartCursor && restartCursor !== before.restartCursor) {
    const { number: block, hash } = restartCursor
    const [settled, seq] = [ledger.settled ?? block, ledger.restartSeq(state.tapeEnd)]
    notes.set(restartPointNote, { block, hash, settled, seq, began: state.began ?? block })
  }
  for (const address of state.changedTokens) notes.set(tokenNotes.at(address), state.tokens.get(address) ?? null)
  state.changedTokens.clear()
  for (const address of state.changedQuotes) notes.set(quoteNotes.at(address), state.quotes.get(address) ?? [])
  state.changedQuotes.clear()
  for (const address of state.changedTrades) notes.set(lastTradeNotes.at(address), { trade: state.lastTrades.get(address) ?? null })
  state.changedTrades.clear()
  if (state.venues !== before.venues) noteVenues(notes, before.venues, state.venues)
  if (session !== before.session) notes.set(sessionNote, { session })
  noteBars(notes, state.bars, { rows: bars, before: before.bars })
  return notes
}

function noteVenues(notes: Notes, before: IngestState['venues'], now: IngestState['venues']): void {
  const all = [...before.values(), ...now.values()]
  const changed = all.filter(({ pool }) => before.get(venueKey(pool)) !== now.get(venueKey(pool)))
  for (const token of new Set(changed.map(({ pool }) => pool.token)))
    notes.set(
      venueNotes.at(token),
      [...now.values()].filter(({ pool }) => pool.token === token),
    )
}

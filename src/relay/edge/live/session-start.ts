import { clockStepsMs } from '../../../lib/steady-clock.ts'
import { chunk, nextTurn, runAtOnce, runInTurns, type Steps } from '../../../lib/turns.ts'
import type { NoticeOf, RejectedSymbol } from '../../../protocol/notices.ts'
import { type OnGap, SYMBOLS_BOUND } from '../../../protocol/parameters/selection.ts'
import type { StartPoint } from '../../../protocol/parameters/start-point.ts'
import { shownFilters } from '../../../protocol/parameters/value-filters.ts'
import { resumeAfter, type TapePosition } from '../../../protocol/position.ts'
import { MESSAGE_BOUND_BYTES } from '../../../protocol/requests.ts'
import { updateTypes } from '../../../protocol/updates.ts'
import { LineDigest } from '../../tape/line-digest.ts'
import type { Entry } from '../../tape/tape.ts'
import type { Token } from '../../tokens/token.ts'
import type { Selection } from '../select/compiled-selection.ts'
import { concatBytes, evictedOf, type Frame, framesOf, isAfter } from '../select/frame.ts'
import { createMatcher, type Matcher } from '../select/match.ts'
import { snapshotOf } from '../select/snapshot.ts'
import { backfillUrlOf } from './backfill-link.ts'
import type { EdgeContext } from './edge-context.ts'
import type { Listener } from './listener.ts'
import { findResumePoint, type ResumeGap, type ResumePoint } from './resume-point.ts'

/** Number of updates in a page of a replay. Between two pages the replay waits for the reader. */
const REPLAY_PAGE = 100
/** Limit of the keys that the last page of a replay looks up, because this page is sent in one step. */
const LOOKUPS_AT_ONCE = 250
/** Limit of the backlog of a listener when a replay sends the next page. */
const REPLAY_AHEAD_BYTES = 65_536
export const SNAPSHOTS_PER_TURN = 100

export type FirstSubscription = {
  readonly since: StartPoint
  readonly snapshot: boolean | 'always'
  readonly onGap: OnGap
  readonly rejected: readonly RejectedSymbol[]
  readonly req?: string | number | undefined
}

/** Sends `hello`. `id` is the position at which the stream starts; null if it is unknown, or if a gap is sent first. */
export function sendHello(edge: EdgeContext, listener: Listener, id: string | null): void {
  const { hub, current, tape, chainId, server, demo } = edge
  listener.sendNotice({
    type: 'hello',
    id,
    end: hub.position(tape.end()),
    oldest: hub.position(tape.oldest()),
    oldest_time: tape.oldestTime,
    protocol: 'stocktape.v1',
    server,
    connection: listener.id,
    chain_id: chainId(),
    heartbeat_s: listener.heartbeatMs === null ? null : Math.max(1, Math.round(listener.heartbeatMs / 1_000)),
    limits: {
      symbols_max: SYMBOLS_BOUND,
      selections_max: edge.maxSelections,
      replay_max: edge.maxReplay,
      backlog_bytes: edge.maxBacklogBytes,
      message_bytes: MESSAGE_BOUND_BYTES,
      retention_ms: edge.tapeRetentionMs,
    },
    source: current.source,
    head: current.head,
    demo: demo(),
    ...(!tape.isDurable && { durable: false as const }),
  })
}

/** Sends everything from `hello` to `live`, in the order of the contract, at the reader's pace. */
export async function startSession(edge: EdgeContext, listener: Listener, subscription: FirstSubscription): Promise<void> {
  if (isRecent(edge, subscription.since)) return startStream(edge, listener, subscription)
  const releaseSlot = await edge.hub.connectionLimits.acquireReplaySlot(listener)
  try {
    await startStream(edge, listener, subscription)
  } finally {
    releaseSlot()
  }
}

/** Whether all missed updates are in memory. Such a replay does not read the tape, so it needs no replay slot. */
const isRecent = ({ hub, tape }: EdgeContext, since: StartPoint): boolean =>
  since.from === 'now' ||
  (since.from === 'position' && since.position?.epoch === tape.epoch && resumeAfter(since.position) >= hub.delivery.recent.sinceSeq)

async function startStream(edge: EdgeContext, listener: Listener, subscription: FirstSubscription): Promise<void> {
  const { hub, tape, now, wallTime, maxReplay } = edge
  const selection = { tokens: listener.tokens, options: listener.options }
  if (!isConnected(listener)) return
  hub.delivery.flush()
  const isGone = () => !isConnected(listener)
  const resumeContext = {
    tape,
    now: now(),
    clockStepsMs: clockStepsMs(wallTime, now),
    onGap: subscription.onGap,
    maxReplay,
    isGone,
  }
  const start = await findResumePoint(subscription.since, selection, resumeContext)
  if (!isConnected(listener)) return
  const { seq, n } = start.after
  const id = start.gaps.length > 0 ? null : hub.position(seq, n)
  listener.state = 'replaying'
  listener.advance(seq, n)
  if (!listener.hasSentHello) sendHello(edge, listener, id)
  await sendInitialState(edge, listener, subscription, start)
  // A stream from a time begins with the updates that are kept. A stream that continues from a position reports evicted ones.
  await replay(edge, listener, { ...subscription, reportsEvicted: subscription.since.from === 'position' })
}

/** Replays to a live listener of the sealed view if its next update lacks evicted facts. Reads memory: it needs no replay slot. */
export const continueSession = (edge: EdgeContext, listener: Listener, subscription: FirstSubscription): Promise<void> =>
  replay(edge, listener, { ...subscription, reportsEvicted: true })

async function sendInitialState(edge: EdgeContext, listener: Listener, subscription: FirstSubscription, start: ResumePoint) {
  const { after, resume, gaps } = start
  const position = edge.hub.position(after.seq, after.n)
  const id = gaps.length > 0 ? null : position
  listener.sendNotice(subscribedNotice(edge, listener, { ...subscription, id, resume }))
  for (const gap of gaps) sendGap(edge, listener, gap)
  if (subscription.snapshot === 'always' || (subscription.snapshot && resume !== 'full'))
    await sendSnapshots(edge, listener, position)
}

function sendGap({ hub, tape, current }: EdgeContext, listener: Listener, { reason, from, to, skippedAfter }: ResumeGap): void {
  const selection = { tokens: listener.tokens, options: listener.options }
  const skipped = skippedAfter && { epoch: tape.epoch, after: skippedAfter, upTo: to.seq }
  const id = hub.position(to.seq, to.n)
  const backfill = skipped && backfillUrlOf(selection, skipped, current.directory)
  listener.sendNotice({ type: 'gap', id, reason, after: from, through: id, backfill })
  hub.countGap(reason)
}

export function subscribedNotice(
  edge: EdgeContext,
  listener: Listener,
  answer: Pick<NoticeOf<'subscribed'>, 'id' | 'resume'> & Pick<FirstSubscription, 'rejected' | 'req'>,
): NoticeOf<'subscribed'> {
  const symbols = listener.tokens === null ? ['*'] : tokensOf(edge, listener.tokens).map((token) => token.symbol)
  const { types, stage } = listener.options
  return {
    type: 'subscribed',
    req: answer.req,
    id: answer.id,
    symbols,
    types: types.length === updateTypes.length ? ['*'] : [...types],
    stage,
    ...shownFilters(listener.options),
    rejected: [...answer.rejected],
    resume: answer.resume,
  }
}

/** The selected tokens; with `*` all listed ones. */
export const tokensOf = ({ current }: EdgeContext, tokens: Listener['tokens']): readonly Token[] =>
  tokens === null
    ? current.tokens.filter((token) => token.state !== 'delisted')
    : [...tokens].flatMap((address) => current.token(address) ?? []).sort((a, b) => (a.symbol < b.symbol ? -1 : 1))

export function sendSnapshot(edge: EdgeContext, listener: Listener, id: string, token: Token): void {
  const { hub, tape, current, wallTime, navStaleAfterMs } = edge
  listener.sendNotice(snapshotOf(token, current, { id, asOf: hub.position(tape.end()), now: wallTime(), navStaleAfterMs }))
}

/** Sends a snapshot of every selected token, at the reader's pace because there may be many. */
async function sendSnapshots(edge: EdgeContext, listener: Listener, id: string): Promise<void> {
  for (const [index, { address }] of tokensOf(edge, listener.tokens).entries()) {
    await waitForRoom(listener)
    if (index % SNAPSHOTS_PER_TURN === SNAPSHOTS_PER_TURN - 1) await nextTurn()
    // Read again, because the token may have changed since the loop began.
    const token = edge.current.token(address)
    if (token) sendSnapshot(edge, listener, id, token)
  }
}

async function waitForRoom(listener: Listener): Promise<void> {
  while (listener.outlet.backlog > REPLAY_AHEAD_BYTES && isConnected(listener)) await listener.outlet.drained()
}

/** If `reportsEvicted` is set, a gap reports the updates that the sealed view lacks because of eviction. */
type Replay = Pick<FirstSubscription, 'snapshot' | 'onGap'> & { readonly reportsEvicted: boolean }

/** Runs a replay. Its last page and the join to live are one synchronous step, so that no update is lost or sent twice. */
async function replay(edge: EdgeContext, listener: Listener, request: Replay): Promise<void> {
  const { hub, tape } = edge
  const { tokens, options } = listener
  const match = createMatcher({ tokens, options })
  const types = new Set(options.types)
  const wanted = { tokens, types, followersOf: types }
  const reportsEvicted = options.stage === 'sealed' && request.reportsEvicted
  let replayed = 0
  let receipt = beginReceipt(edge, listener)
  const send = (frames: readonly Frame[]): void => {
    const last = frames.at(-1)
    if (last) listener.send(concatBytes(frames, listener.transport), last.seq, frames.length, last.n)
    replayed += frames.length
    receipt.ids.add(frames.map(({ seq, n }) => hub.position(seq, n)))
  }
  const skipEvicted = async (kept: TapePosition): Promise<void> => {
    await reportEvicted(edge, listener, request, kept)
    receipt = beginReceipt(edge, listener)
  }
  const sendInPages = async (frames: readonly Frame[]): Promise<void> => {
    for (const part of chunk(frames, REPLAY_PAGE)) {
      await waitForRoom(listener)
      if (!isConnected(listener)) return
      send(part)
      await nextTurn()
    }
  }
  for (;;) {
    await waitForRoom(listener)
    if (!isConnected(listener)) return
    const position: TapePosition = { seq: listener.seq ?? 0, n: listener.n }
    const after = resumeAfter(position)
    const select = (entries: readonly Entry[]) =>
      selectAfter(position, framesOf(entries, tape), { tokens, options, reportsEvicted }, match)
    // The replay ends at the delivered position: later updates are sent live.
    hub.delivery.flush()
    if (!hub.isJoinable(options.stage, position)) {
      await nextTurn()
      continue
    }
    const rest = hub.delivery.recent.after(after)
    const last = rest && isQuick(rest) ? runAtOnce(select(rest)) : null
    if (last?.evicted === null && last.frames.length <= REPLAY_PAGE) {
      send(last.frames)
      return goLive(edge, listener, { replayed, ...receipt })
    }
    if (!rest && after < tape.oldest()) {
      await skipEvicted({ seq: tape.oldest(), n: null })
      continue
    }
    const upTo = hub.delivery.recent.sinceSeq
    const recentPage = rest?.slice(0, REPLAY_PAGE)
    const { entries: page, reached } = recentPage
      ? { entries: recentPage, reached: recentPage.at(-1)?.seq ?? null }
      : tape.read(wanted, { after, before: upTo + 1, order: 'asc', limit: REPLAY_PAGE })
    const { frames, evicted } = await runInTurns(select(page))
    await sendInPages(frames)
    if (evicted && isConnected(listener)) {
      await skipEvicted(evicted)
      continue
    }
    if (!isConnected(listener)) return
    listener.advance(reached ?? upTo)
    await nextTurn()
  }
}

type ReplayReceipt = { readonly after: string; readonly ids: LineDigest }

const beginReceipt = ({ hub }: EdgeContext, { seq, n }: Listener): ReplayReceipt => ({
  after: hub.position(seq ?? 0, n),
  ids: new LineDigest(),
})

function goLive(
  { hub }: EdgeContext,
  listener: Listener,
  { replayed, after, ids }: ReplayReceipt & { readonly replayed: number },
): void {
  listener.markCaughtUp()
  const id = hub.position(hub.deliveredSeq)
  listener.sendNotice({ type: 'live', id, after, through: id, replayed, digest: ids.finish() })
  hub.join(listener)
}

/**
 * Selects the frames to send. They end before the first update that eviction removed from the sealed view. `evicted` is the
 * position of the last such update: one gap covers all of them, and everything between them.
 */
function* selectAfter(
  position: TapePosition,
  frames: readonly Frame[],
  { reportsEvicted, ...selection }: Selection & { readonly reportsEvicted: boolean },
  match: Matcher,
): Steps<{ readonly frames: readonly Frame[]; readonly evicted: TapePosition | null }> {
  const matched = (yield* match(frames)).filter((frame) => isAfter(frame, position))
  const evicted = reportsEvicted ? evictedOf(frames, selection, position) : []
  const [first] = evicted
  return { frames: first ? matched.filter((frame) => !isAfter(frame, first)) : matched, evicted: evicted.at(-1) ?? null }
}

/** Whether these updates can be matched in one turn. A seal may list thousands of keys. */
const isQuick = (entries: readonly Entry[]): boolean =>
  entries.length <= REPLAY_PAGE &&
  entries.reduce((sum, { update }) => sum + (update.type === 'seal' ? update.keys.length : 1), 0) <= LOOKUPS_AT_ONCE

const isConnected = (listener: Listener): boolean => listener.state !== 'disconnected'

/** Reports a gap, because eviction removed updates before the stream sent them. The stream continues after it, or at its end. */
async function reportEvicted(
  edge: EdgeContext,
  listener: Listener,
  { snapshot, onGap }: Replay,
  kept: TapePosition,
): Promise<void> {
  const { hub } = edge
  const to = onGap === 'skip' ? { seq: hub.deliveredSeq, n: null } : kept
  const from = hub.positionOf(listener)
  listener.advance(to.seq, to.n)
  sendGap(edge, listener, { reason: 'expired', from, to, skippedAfter: onGap === 'skip' ? kept : null })
  if (snapshot) await sendSnapshots(edge, listener, hub.position(to.seq, to.n))
}

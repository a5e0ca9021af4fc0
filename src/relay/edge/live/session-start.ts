import { clockStepsMs } from '../../../lib/steady-clock.ts'
import { chunk, nextTurn, runAtOnce } from '../../../lib/turns.ts'
import type { NoticeOf, RejectedSymbol } from '../../../protocol/notices.ts'
import { type OnGap, type SelectionPatch, SYMBOLS_BOUND } from '../../../protocol/parameters/selection.ts'
import type { StartPoint } from '../../../protocol/parameters/start-point.ts'
import { shownFilters } from '../../../protocol/parameters/value-filters.ts'
import { resumeAfter, type TapePosition } from '../../../protocol/position.ts'
import { MESSAGE_BOUND_BYTES } from '../../../protocol/requests.ts'
import { updateTypes } from '../../../protocol/updates.ts'
import { LineDigest } from '../../tape/line-digest.ts'
import type { Entry } from '../../tape/tape.ts'
import type { Token } from '../../tokens/token.ts'
import type { Selection } from '../select/compiled-selection.ts'
import { concatBytes, type Frame } from '../select/frame.ts'
import { justBefore, type MatchedContext, openMatchedReader, PAGE_BOUND } from '../select/matched-reader.ts'
import { snapshotOf } from '../select/snapshot.ts'
import { backfillUrlOf } from './backfill-link.ts'
import type { EdgeContext } from './edge-context.ts'
import type { Listener } from './listener.ts'
import { findResumePoint, type ResumeGap, type ResumePoint } from './resume-point.ts'

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

type FirstQuery = Pick<SelectionPatch, 'since' | 'snapshot' | 'on_gap'>

/** Returns how a stream starts. `defaults` are the parameters of a URL, which apply if a later request does not set them. */
export function subscriptionOf(
  query: FirstQuery,
  { defaults, rejected, req }: Pick<FirstSubscription, 'rejected' | 'req'> & { readonly defaults?: FirstQuery | null },
): FirstSubscription {
  // Null counts as a value: it resets the parameter.
  const given = <Name extends keyof FirstQuery>(name: Name) => (query[name] === undefined ? defaults?.[name] : query[name])
  return {
    since: given('since') ?? { from: 'now' },
    snapshot: given('snapshot') ?? true,
    onGap: given('on_gap') ?? 'replay',
    rejected,
    req,
  }
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
      backlog_bytes: edge.clients.patience.maxBacklogBytes,
      message_bytes: MESSAGE_BOUND_BYTES,
      retention_ms: edge.tapeRetentionMs,
    },
    source: current.source,
    head: current.head,
    demo: demo(),
    ...(!tape.isDurable && { durable: false as const }),
  })
  listener.greet()
}

/** Follows a session to its end. It ends with an error if the tape cannot be read. */
type FollowSession = (session: Promise<void>) => void

/**
 * Sends everything from `hello` to `live`, in the order of the contract, at the reader's pace. A live listener of the sealed view
 * replays again if its next update lacks evicted facts. That replay reads memory, so it needs no replay slot.
 */
export async function startSession(
  edge: EdgeContext,
  listener: Listener,
  subscription: FirstSubscription,
  followAgain: FollowSession,
): Promise<void> {
  const isSealed = listener.selection.options.stage === 'sealed'
  if (isSealed) listener.replayAgain = () => followAgain(replay(edge, listener, { ...subscription, reportsEvicted: true }))
  if (isRecent(edge, subscription.since)) return startStream(edge, listener, subscription)
  await edge.clients.replaySlots.run(listener, () => startStream(edge, listener, subscription))
}

/** Whether all missed updates are in memory. Such a replay does not read the tape, so it needs no replay slot. */
const isRecent = ({ hub, tape }: EdgeContext, since: StartPoint): boolean =>
  since.from === 'now' ||
  (since.from === 'position' && since.position?.epoch === tape.epoch && resumeAfter(since.position) >= hub.delivery.recent.sinceSeq)

async function startStream(edge: EdgeContext, listener: Listener, subscription: FirstSubscription): Promise<void> {
  const { hub, tape, now, wallTime, maxReplay } = edge
  if (listener.isGone) return
  hub.delivery.flush()
  const resumeContext = {
    tape,
    now: now(),
    clockStepsMs: clockStepsMs(wallTime, now),
    onGap: subscription.onGap,
    maxReplay,
    isGone: () => listener.isGone,
  }
  const start = await findResumePoint(subscription.since, listener.selection, resumeContext)
  if (listener.isGone) return
  const { seq, n } = start.after
  const id = start.gaps.length > 0 ? null : hub.position(seq, n)
  if (listener.phase.name === 'opening') sendHello(edge, listener, id)
  hub.beginReplay(listener, start.after)
  await sendInitialState(edge, listener, subscription, start)
  // A stream from a time begins with the updates that are kept. A stream that continues from a position reports evicted ones.
  await replay(edge, listener, { ...subscription, reportsEvicted: subscription.since.from === 'position' })
}

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
  const skipped = skippedAfter && { epoch: tape.epoch, after: skippedAfter, upTo: to.seq }
  const id = hub.position(to.seq, to.n)
  const backfill = skipped && backfillUrlOf(listener.selection, skipped, current.directory)
  listener.sendNotice({ type: 'gap', id, reason, after: from, through: id, backfill })
  hub.countGap(reason)
}

export function subscribedNotice(
  edge: EdgeContext,
  listener: Listener,
  answer: Pick<NoticeOf<'subscribed'>, 'id' | 'resume'> & Pick<FirstSubscription, 'rejected' | 'req'>,
): NoticeOf<'subscribed'> {
  const { tokens, options } = listener.selection
  const symbols = tokens === null ? ['*'] : tokensOf(edge, tokens).map((token) => token.symbol)
  const { types, stage } = options
  return {
    type: 'subscribed',
    req: answer.req,
    id: answer.id,
    symbols,
    types: types.length === updateTypes.length ? ['*'] : [...types],
    stage,
    ...shownFilters(options),
    rejected: [...answer.rejected],
    resume: answer.resume,
  }
}

/** The selected tokens; with `*` all listed ones. */
export const tokensOf = ({ current }: EdgeContext, tokens: Selection['tokens']): readonly Token[] =>
  tokens === null
    ? current.tokens.filter((token) => token.state !== 'delisted')
    : [...tokens].flatMap((address) => current.token(address) ?? []).sort((a, b) => (a.symbol < b.symbol ? -1 : 1))

export function sendSnapshot(edge: EdgeContext, listener: Listener, id: string, token: Token): void {
  const { hub, tape, current, wallTime, navStaleAfterMs } = edge
  listener.sendNotice(snapshotOf(token, current, { id, asOf: hub.position(tape.end()), now: wallTime(), navStaleAfterMs }))
}

/** Sends a snapshot of every selected token, at the reader's pace because there may be many. */
async function sendSnapshots(edge: EdgeContext, listener: Listener, id: string): Promise<void> {
  for (const [index, { address }] of tokensOf(edge, listener.selection.tokens).entries()) {
    await waitForRoom(listener)
    if (index % SNAPSHOTS_PER_TURN === SNAPSHOTS_PER_TURN - 1) await nextTurn()
    // Read again, because the token may have changed since the loop began.
    const token = edge.current.token(address)
    if (token) sendSnapshot(edge, listener, id, token)
  }
}

async function waitForRoom(listener: Listener): Promise<void> {
  while (listener.outlet.backlog > REPLAY_AHEAD_BYTES && !listener.isGone) await listener.outlet.drained()
}

/** If `reportsEvicted` is set, a gap reports the updates that the sealed view lacks because of eviction. */
type Replay = Pick<FirstSubscription, 'snapshot' | 'onGap'> & { readonly reportsEvicted: boolean }

/** Runs a replay. Its last page and the join to live are one synchronous step, so that no update is lost or sent twice. */
async function replay(edge: EdgeContext, listener: Listener, request: Replay): Promise<void> {
  const { hub, tape } = edge
  const { recent } = hub.delivery
  const { stage } = listener.selection.options
  const reportsEvicted = stage === 'sealed' && request.reportsEvicted
  const recentOrTape: MatchedContext['tape'] = {
    read: (wanted, range) => recent.read(range) ?? tape.read(wanted, range),
    find: (subject) => tape.find(subject),
  }
  const reader = openMatchedReader({ tape: recentOrTape, isGone: () => listener.isGone, reportsEvicted }, listener.selection)
  let replayed = 0
  let receipt = beginReceipt(edge, listener)
  const send = (frames: readonly Frame[]): void => {
    const last = frames.at(-1)
    if (last) listener.send(concatBytes(frames, listener.transport), last, frames.length)
    replayed += frames.length
    receipt.ids.add(frames.map(({ seq, n }) => hub.position(seq, n)))
  }
  const skipEvicted = async (kept: TapePosition): Promise<void> => {
    await reportEvicted(edge, listener, request, kept)
    receipt = beginReceipt(edge, listener)
  }
  for (;;) {
    await waitForRoom(listener)
    if (listener.phase.name !== 'replaying') return
    const after = listener.phase.at
    // The replay ends at the delivered position: later updates are sent live.
    hub.delivery.flush()
    if (!hub.isJoinable(stage, after)) {
      await nextTurn()
      continue
    }
    const range = { after, before: justBefore(hub.deliveredSeq + 1, stage), order: 'asc' } as const
    const rest = recent.after(resumeAfter(after))
    const last = rest && isQuick(rest) ? runAtOnce(reader.select(rest, range)) : null
    if (last?.evicted === null && last.frames.length <= PAGE_BOUND) {
      send(last.frames)
      return goLive(edge, listener, { replayed, ...receipt })
    }
    if (!rest && resumeAfter(after) < tape.oldest()) {
      await skipEvicted({ seq: tape.oldest(), n: null })
      continue
    }
    const { frames, evicted, next } = await reader.readPage(range)
    for (const part of chunk(frames, PAGE_BOUND)) {
      await waitForRoom(listener)
      if (listener.isGone) return
      send(part)
      await nextTurn()
    }
    if (listener.isGone) return
    if (evicted) await skipEvicted(evicted)
    else listener.replayFrom(next ?? { seq: range.before.seq - 1, n: null })
    await nextTurn()
  }
}

type ReplayReceipt = { readonly after: string; readonly ids: LineDigest }

const beginReceipt = ({ hub }: EdgeContext, listener: Listener): ReplayReceipt => ({
  after: hub.positionOf(listener) ?? hub.position(0),
  ids: new LineDigest(),
})

function goLive(
  { hub }: EdgeContext,
  listener: Listener,
  { replayed, after, ids }: ReplayReceipt & { readonly replayed: number },
): void {
  listener.excuseBacklog()
  const id = hub.position(hub.deliveredSeq)
  listener.sendNotice({ type: 'live', id, after, through: id, replayed, digest: ids.finish() })
  hub.join(listener)
}

/** Whether these updates can be matched in one turn. A seal may list thousands of keys. */
const isQuick = (entries: readonly Entry[]): boolean =>
  entries.length <= PAGE_BOUND &&
  entries.reduce((sum, { update }) => sum + (update.type === 'seal' ? update.keys.length : 1), 0) <= LOOKUPS_AT_ONCE

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
  listener.replayFrom(to)
  sendGap(edge, listener, { reason: 'expired', from, to, skippedAfter: onGap === 'skip' ? kept : null })
  if (snapshot) await sendSnapshots(edge, listener, hub.position(to.seq, to.n))
}

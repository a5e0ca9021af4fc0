import { setImmediate as nextTurn } from 'node:timers/promises'
import type { NoticeOf, Rejected } from '../../protocol/notices.ts'
import { type Place, resumeAfter } from '../../protocol/position.ts'
import { MESSAGE_BOUND_BYTES } from '../../protocol/requests.ts'
import { type Since, SYMBOLS_BOUND } from '../../protocol/selection.ts'
import type { Entry, Tape } from '../../tape/tape.ts'
import type { Token } from '../../tokens/token.ts'
import { bytesOf, Frame, isAfter } from '../select/frame.ts'
import { hearing } from '../select/match.ts'
import { snapshotOf, type View } from '../select/view.ts'
import { backfillOf } from './backfill-link.ts'
import type { Hub } from './hub.ts'
import type { Listener } from './listener.ts'
import { type Beginning, beginningOf, type Gap } from './resume.ts'

/** Updates read from the tape at once while a replay runs; the reader sets the pace between two pages. */
const REPLAY_PAGE = 100
/** The next page waits until no more than this is unread. */
const REPLAY_AHEAD_BYTES = 65_536

/** What every stream of this server is told about it. */
export type House = {
  readonly hub: Hub
  readonly view: View
  readonly tape: Tape
  readonly now: () => number
  /** Milliseconds that only grow, whatever becomes of the wall clock. */
  readonly uptime: () => number
  readonly chainId: () => number | null
  readonly server: string
  readonly demo: boolean
  readonly heartbeatMs: number
  readonly staleMs: number
  readonly limits: {
    readonly selections: number
    readonly replay: number
    readonly backlog: number
    readonly retentionMs: number
  }
}

/** What a first subscription asked for, its symbols already found. */
export type Subscription = {
  readonly since: Since
  readonly snapshot: boolean
  readonly rejected: readonly Rejected[]
  readonly req?: string | number | undefined
}

/** Says hello. `id` is where the stream starts, where that is known and nothing is missing before it. */
export function greet(
  { hub, view, tape, chainId, server, demo, heartbeatMs, limits }: House,
  listener: Listener,
  id: string | null,
): void {
  listener.say({
    type: 'hello',
    id,
    end: hub.position(tape.end()),
    oldest: hub.position(tape.oldest()),
    protocol: 'stocktape.v1',
    server,
    connection: listener.id,
    chain_id: chainId(),
    heartbeat_s: Math.max(1, Math.round((listener.heartbeatMs ?? heartbeatMs) / 1_000)),
    limits: {
      symbols: SYMBOLS_BOUND,
      selections: limits.selections,
      replay: limits.replay,
      backlog: limits.backlog,
      message: MESSAGE_BOUND_BYTES,
      retention_ms: limits.retentionMs,
    },
    source: view.source,
    head: view.head,
    demo,
  })
}

/**
 * Everything from `hello` to `live`, in the order of the contract, as one unbroken step: pages at the reader's pace, and
 * a last stretch in which nothing is awaited, so that nothing is lost or told twice between replay and live.
 */
export async function welcome(house: House, listener: Listener, subscription: Subscription): Promise<void> {
  if (isAtHand(house, subscription.since)) return begin(house, listener, subscription)
  const through = await house.hub.replayTurn(listener)
  try {
    await begin(house, listener, subscription)
  } finally {
    through()
  }
}

/** What little was missed by somebody who comes back soon is not read from the tape, and nobody has to wait for it. */
const isAtHand = ({ hub, tape }: House, since: Since): boolean =>
  since.from === 'now' ||
  (since.from === 'position' && since.position?.epoch === tape.epoch && resumeAfter(since.position) >= hub.recentSince)

async function begin(house: House, listener: Listener, subscription: Subscription): Promise<void> {
  const { hub, tape, now, limits } = house
  const selection = { tokens: listener.tokens, options: listener.options }
  if (!isHere(listener)) return
  hub.flush()
  const isGone = () => !isHere(listener)
  const asked = { tape, now: now(), replayBound: limits.replay, isGone }
  const found = await beginningOf(subscription.since, selection, asked)
  if (!isHere(listener)) return
  const { seq, n } = found.after
  const id = found.gaps.length > 0 ? null : hub.position(seq, n)
  listener.state = 'replaying'
  listener.passOver(seq, n)
  if (!listener.greeted) greet(house, listener, id)
  await sayState(house, listener, subscription, found)
  await replay(house, listener, subscription, (replayed) => {
    listener.caughtUp()
    listener.say({ type: 'live', id: hub.position(hub.delivered), replayed })
    hub.join(listener)
  })
}

async function sayState(
  house: House,
  listener: Listener,
  subscription: Subscription,
  { after, resume, gaps }: Beginning,
): Promise<void> {
  const at = house.hub.position(after.seq, after.n)
  const id = gaps.length > 0 ? null : at
  listener.say(subscribedOf(house, listener, { id, resume, rejected: subscription.rejected, req: subscription.req }))
  for (const gap of gaps) sayGap(house, listener, gap)
  if (subscription.snapshot && resume !== 'full') await saySnapshots(house, listener, at)
}

function sayGap({ hub, tape, view }: House, listener: Listener, { reason, from, to, leftOut }: Gap): void {
  const selection = { tokens: listener.tokens, options: listener.options }
  const stretch = leftOut && { epoch: tape.epoch, after: leftOut, upTo: to.seq }
  const id = hub.position(to.seq, to.n)
  const backfill = stretch && backfillOf(selection, stretch, view.directory)
  listener.say({ type: 'gap', id, reason, from, to: id, backfill })
}

/** The answer to everything that changes or asks what is subscribed. */
export function subscribedOf(
  { view }: House,
  listener: Listener,
  said: Pick<NoticeOf<'subscribed'>, 'id' | 'resume'> & {
    readonly rejected: readonly Rejected[]
    readonly req?: string | number | undefined
  },
): NoticeOf<'subscribed'> {
  const { tokens } = listener
  const symbols =
    tokens === null ? ['*'] : view.tokens.filter((token) => tokens.has(token.address)).map((token) => token.symbol)
  return {
    type: 'subscribed',
    ...(said.req === undefined ? {} : { req: said.req }),
    id: said.id,
    symbols,
    rejected: [...said.rejected],
    resume: said.resume,
  }
}

/** The tokens that a listener selected; with `*` all that are listed. */
export const tokensOf = ({ view }: House, tokens: Listener['tokens']): readonly Token[] =>
  view.tokens.filter((token) => (tokens === null ? token.state !== 'delisted' : tokens.has(token.address)))

/** How a token stands now, said to one listener. */
export function saySnapshot({ hub, tape, now, staleMs }: House, listener: Listener, id: string, token: Token): void {
  listener.say(snapshotOf(token, { id, asOf: hub.position(tape.end()), now: now(), staleMs }))
}

/** How all that it selected stands, at the reader's pace: the list may be long. */
async function saySnapshots(house: House, listener: Listener, id: string): Promise<void> {
  for (const token of tokensOf(house, listener.tokens)) {
    await roomAt(listener)
    saySnapshot(house, listener, id, token)
  }
}

/** Resolves when the listener has read most of what it was given, or is gone. */
async function roomAt(listener: Listener): Promise<void> {
  while (listener.outlet.backlog > REPLAY_AHEAD_BYTES && isHere(listener)) await listener.outlet.drained()
}

/**
 * Sends what the tape holds since the listener's place. `goLive` is called in the same breath as the last of it is sent:
 * between the two nothing can be appended.
 */
async function replay(
  house: House,
  listener: Listener,
  subscription: Subscription,
  goLive: (replayed: number) => void,
): Promise<void> {
  const { hub, tape } = house
  const { tokens, options } = listener
  const hear = hearing({ tokens, options })
  const types = new Set(options.types)
  const read = tape.reader({ tokens, types, followersOf: types })
  let replayed = 0
  const offer = (frames: readonly Frame[]): void => {
    const last = frames.at(-1)
    if (last) listener.offer(bytesOf(frames, listener.carrier), last.seq, frames.length, last.n)
    replayed += frames.length
  }
  for (;;) {
    await roomAt(listener)
    if (!isHere(listener)) return
    const place: Place = { seq: listener.seq ?? 0, n: listener.n }
    const after = resumeAfter(place)
    const heardOf = (entries: readonly Entry[]) =>
      hear(entries.map((entry) => new Frame(entry, tape))).filter((frame) => isAfter(frame, place))
    // Nobody may read further than what was delivered: the rest comes live.
    hub.flush()
    const rest = hub.recentAfter(after)
    const last = rest && rest.length <= REPLAY_PAGE ? heardOf(rest) : null
    if (last && last.length <= REPLAY_PAGE) {
      offer(last)
      return goLive(replayed)
    }
    if (!rest && after < tape.oldest()) {
      await overtaken(house, listener, subscription)
      continue
    }
    const upTo = hub.recentSince
    const atHand = rest?.slice(0, REPLAY_PAGE)
    const { entries: page, reached } = atHand
      ? { entries: atHand, reached: atHand.at(-1)?.seq ?? null }
      : await read({ after, before: upTo + 1, order: 'asc', limit: REPLAY_PAGE })
    // One seal of the sealed view may stand for many messages, so that what is heard of a page has pages of its own.
    const heard = heardOf(page)
    for (let at = 0; at < heard.length; at += REPLAY_PAGE) {
      await roomAt(listener)
      if (!isHere(listener)) return
      offer(heard.slice(at, at + REPLAY_PAGE))
    }
    if (!isHere(listener)) return
    listener.passOver(reached ?? upTo)
    await nextTurn()
  }
}

const isHere = (listener: Listener): boolean => listener.state !== 'parted'

/** Eviction was faster than the reader: the stream goes on at the oldest, and says so. */
async function overtaken(house: House, listener: Listener, { snapshot }: Subscription): Promise<void> {
  const { hub, tape } = house
  const from = hub.positionOf(listener)
  const to = hub.position(tape.oldest())
  listener.passOver(tape.oldest())
  listener.say({ type: 'gap', id: to, reason: 'expired', from, to, backfill: null })
  if (snapshot) await saySnapshots(house, listener, to)
}

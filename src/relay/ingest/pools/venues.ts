import type { Hex } from '../../../lib/hex.ts'
import type { Draft } from '../../../protocol/updates.ts'
import { type Pool, poolAccount } from '../../chain/pools/pool.ts'
import type { PoolReading } from '../../chain/pools/pool-queries.ts'
import { isSamePool, type Venue, venueFields } from '../../tokens/venue.ts'
import type { Moment } from '../batch-values.ts'
import type { IngestState } from '../ingest-state.ts'

/**
 * Follows a pool once its tokens are known to be the right ones, and drops one that trades other tokens. If the node
 * answers no calls, the settings are believed.
 */
export function judgeVenue(state: IngestState, pool: Pool, reading: PoolReading, moment: Moment): readonly Draft[] {
  // The swaps of a pool manager are not read yet.
  if (pool.manager !== null) return []
  const known = state.venues.get(pool.id)
  const isSame = known !== undefined && isSamePool(known.pool, pool)
  const isWrong = reading.kind === 'unreadable' && reading.isWrong === true
  const isSettled = isSame && known.droppedFor === (isWrong ? 'wrong_tokens' : null)
  const wasWrong = isSame && known.droppedFor === 'wrong_tokens'
  const isBelieved = reading.kind === 'read' ? !reading.areTokensUnread : reading.isRefused && !wasWrong
  if (isSettled) return learnFee(state, known, reading)
  if (!isWrong && !isBelieved) return []
  // The settings give the pool to another token now.
  const drafts = known && !isSame && known.droppedFor === null ? dropVenue(state, known, 'settings', moment) : []
  const feeBps = reading.kind === 'read' ? reading.feeBps : null
  const { token, kind, id, manager, currency } = pool
  // A note of the tape keeps the pool, so it has these fields alone.
  const noted = { token, kind, id, manager, currency }
  const venue: Venue = {
    pool: noted,
    feeBps,
    droppedFor: null,
    fromBlock: isSame && known.droppedFor === null ? known.fromBlock : null,
  }
  if (isWrong) return [...drafts, ...dropVenue(state, venue, 'wrong_tokens', moment)]
  setVenue(state, venue)
  return drafts
}

/** A node that answered no calls did not give the fee, and another one may. */
function learnFee(state: IngestState, venue: Venue, reading: PoolReading): readonly Draft[] {
  if (venue.feeBps === null && reading.kind === 'read' && reading.feeBps !== null)
    setVenue(state, { ...venue, feeBps: reading.feeBps })
  return []
}

/** Publishes that pools are followed: the source receives their logs in all blocks that are not settled yet. */
export function followVenues(state: IngestState, received: readonly Hex[], moment: Moment): readonly Draft[] {
  const isNew = ({ droppedFor, fromBlock }: Venue) => droppedFor === null && fromBlock === null
  const waiting = [...state.venues.values()].filter(isNew)
  if (waiting.length === 0) return []
  const accounts = new Set(received)
  return waiting
    .filter(({ pool }) => accounts.has(poolAccount(pool)))
    .flatMap((venue) => publishVenue(state, { ...venue, fromBlock: nextToSettle(state) }, moment))
}

/** Drops the pools of a token that was delisted. */
export const dropVenuesOf = (state: IngestState, token: Hex, moment: Moment): readonly Draft[] =>
  [...state.venues.values()]
    .filter(({ pool, droppedFor }) => pool.token === token && droppedFor === null)
    .flatMap((venue) => dropVenue(state, venue, 'delisted', moment))

/** Drops the pools that the settings no longer name, and forgets those of which no fact is published. */
export function reviewVenues(state: IngestState, moment: Moment): readonly Draft[] {
  const named = new Set(state.quoteSettings.pools.map(({ id }) => id))
  const unnamed = [...state.venues.values()].filter(({ pool }) => !named.has(pool.id))
  if (unnamed.length === 0) return []
  const drafts = unnamed
    .filter(({ droppedFor }) => droppedFor === null)
    .flatMap((venue) => dropVenue(state, venue, 'settings', moment))
  const forgotten = unnamed.filter(({ pool }) => !hasTrades(state, pool))
  if (forgotten.length > 0)
    state.venues = new Map([...state.venues].filter(([id]) => !forgotten.some(({ pool }) => pool.id === id)))
  return drafts
}

/** A pool that was never followed is dropped in silence, unless it trades other tokens. */
function dropVenue(
  state: IngestState,
  venue: Venue,
  droppedFor: Exclude<Venue['droppedFor'], null>,
  moment: Moment,
): readonly Draft[] {
  const dropped: Venue = { ...venue, droppedFor, fromBlock: nextToSettle(state) }
  if (venue.fromBlock !== null || droppedFor === 'wrong_tokens') return publishVenue(state, dropped, moment)
  setVenue(state, dropped)
  return []
}

function publishVenue(state: IngestState, venue: Venue, { time }: Moment): readonly Draft[] {
  setVenue(state, venue)
  const token = state.tokens.get(venue.pool.token)
  if (!token) return []
  const { symbol, address } = token
  const change = venue.droppedFor === null ? 'followed' : 'dropped'
  return [{ type: 'venue', symbol, address, time, change, ...venueFields(venue), reason: venue.droppedFor }]
}

function setVenue(state: IngestState, venue: Venue): void {
  state.venues = new Map(state.venues).set(venue.pool.id, venue)
}

const nextToSettle = ({ ledger, head }: IngestState): number => (ledger.settled ?? head.sealed ?? 0) + 1

const hasTrades = ({ ledger }: IngestState, { token, id }: Pool): boolean =>
  ledger.factsOf(token).some(({ published: { draft } }) => draft.type === 'trade' && draft.venue.pool === id)

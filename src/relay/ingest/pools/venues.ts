import { isDeepStrictEqual } from 'node:util'
import type { Hex } from '../../../lib/hex.ts'
import type { Draft } from '../../../protocol/updates.ts'
import { matchesAny } from '../../chain/logs/log-filter.ts'
import type { Pool } from '../../chain/pools/pool.ts'
import type { PoolReading } from '../../chain/pools/pool-queries.ts'
import { isSamePool, originOf, type Venue, venueFields, venueKey, venuesOfPool } from '../../tokens/venue.ts'
import type { Moment } from '../batch-values.ts'
import type { IngestState } from '../ingest-state.ts'
import { openPoolSettings } from './named-pools.ts'

/**
 * Follows a pool once its tokens are known to be the right ones, and drops one that trades other tokens. If the node
 * answers no calls, the settings are believed.
 */
export function judgeVenue(state: IngestState, pool: Pool, reading: PoolReading, moment: Moment): readonly Draft[] {
  const known = state.venues.get(venueKey(pool))
  const isSame = known !== undefined && isSamePool(known.pool, pool)
  const isWrong = reading.kind === 'unreadable' && reading.isWrong === true
  const droppedFor = isWrong ? 'wrong_tokens' : pool.manager !== null && state.refusedManagers.has(pool.manager) ? 'refused' : null
  if (isSame && known.droppedFor === droppedFor) {
    learnFee(state, known, reading)
    return NONE
  }
  // The published trades are logs of the other manager, and are settled first.
  if (known && known.pool.manager !== pool.manager && hasTrades(state, pool))
    return known.droppedFor === null ? dropVenue(state, known, 'settings', moment) : NONE
  const isOnlyBelieved = reading.kind === 'read' ? reading.tokens === 'refused' : reading.isRefused === true
  const isBelieved = isOnlyBelieved && !(isSame && known.droppedFor === 'wrong_tokens')
  const isRight = reading.kind === 'read' && reading.tokens === undefined
  if (!isWrong && !isRight && !isBelieved) return NONE
  // The settings give the pool to another token now, or say of another kind that it is.
  const replaced = venuesOfPool(state.venues, pool.id).filter((venue) => venue.droppedFor === null && !(isSame && venue === known))
  const drafts = replaced.flatMap((venue) => dropVenue(state, venue, 'settings', moment))
  const { token, kind, id, manager, currency, hooks } = pool
  // A note of the tape keeps the pool, so it has these fields alone.
  const noted = { token, kind, id, manager, currency, hooks }
  const venue: Venue = { pool: noted, feeBps: reading.kind === 'read' ? reading.feeBps : null, droppedFor: null, fromBlock: null }
  if (droppedFor !== null) return [...drafts, ...dropVenue(state, venue, droppedFor, moment)]
  setVenue(state, venue)
  // The source may receive the logs already, for another token.
  return [...drafts, ...followVenues(state, moment)]
}
const NONE: readonly Draft[] = []

/** A node that answered no calls did not give the fee, and another one may. */
function learnFee(state: IngestState, venue: Venue, reading: PoolReading): void {
  if (venue.feeBps === null && reading.kind === 'read' && reading.feeBps !== null)
    setVenue(state, { ...venue, feeBps: reading.feeBps })
}

/** Publishes that pools are followed: the source receives their logs in all blocks that are not settled yet. */
export function followVenues(state: IngestState, moment: Moment): readonly Draft[] {
  const isNew = ({ droppedFor, fromBlock }: Venue) => droppedFor === null && fromBlock === null
  const waiting = [...state.venues.values()].filter(isNew)
  if (waiting.length === 0) return NONE
  return waiting
    .filter(({ pool }) => matchesAny(state.received, originOf(pool)))
    .flatMap((venue) => publishVenue(state, { ...venue, fromBlock: nextToSettle(state) }, moment))
}

/** Drops the pools of a manager whose swaps the node refuses. */
export function refuseVenues(state: IngestState, manager: Hex, moment: Moment): readonly Draft[] {
  state.refusedManagers.add(manager)
  return [...state.venues.values()]
    .filter(({ pool, droppedFor }) => pool.manager === manager && droppedFor === null)
    .flatMap((venue) => dropVenue(state, venue, 'refused', moment))
}

/** Follows the pools of a manager again, once the node answers. */
export function followAgain(state: IngestState, manager: Hex, moment: Moment): readonly Draft[] {
  state.refusedManagers.delete(manager)
  const settingOf = openPoolSettings(state)
  const refused = [...state.venues.values()].filter((venue) => venue.pool.manager === manager && venue.droppedFor === 'refused')
  for (const venue of refused) {
    const { token } = venue.pool
    const droppedFor = !settingOf(venue.pool) ? 'settings' : state.tokens.get(token)?.state === 'listed' ? null : 'delisted'
    setVenue(state, droppedFor === null ? { ...venue, droppedFor, fromBlock: null } : { ...venue, droppedFor })
  }
  return followVenues(state, moment)
}

/** After a reorg from this block on, blocks are settled again that were read with a pool before it was dropped. */
export const dropVenuesFrom = (state: IngestState, block: number, moment: Moment): readonly Draft[] =>
  [...state.venues.values()]
    .filter(({ droppedFor, fromBlock }) => droppedFor !== null && droppedFor !== 'wrong_tokens' && (fromBlock ?? 0) > block)
    .flatMap((venue) => publishVenue(state, { ...venue, fromBlock: block }, moment))

/** Drops the pools of a token that was delisted. */
export const dropVenuesOf = (state: IngestState, token: Hex, moment: Moment): readonly Draft[] =>
  [...state.venues.values()]
    .filter(({ pool, droppedFor }) => pool.token === token && droppedFor === null)
    .flatMap((venue) => dropVenue(state, venue, 'delisted', moment))

/** Drops the pools that the settings no longer name, and forgets dropped ones of which no trade is published. */
export function reviewVenues(state: IngestState, moment: Moment): readonly Draft[] {
  const settingOf = openPoolSettings(state)
  const drafts: Draft[] = []
  for (const venue of state.venues.values()) {
    const { currency, hooks } = settingOf(venue.pool) ?? {}
    if (!currency && venue.droppedFor === null) drafts.push(...dropVenue(state, venue, 'settings', moment))
    const isSame = hooks === venue.pool.hooks && isDeepStrictEqual(currency, venue.pool.currency)
    if (currency?.address === venue.pool.currency.address && !isSame)
      setVenue(state, { ...venue, pool: { ...venue.pool, currency, hooks } })
  }
  const isForgotten = ({ pool, droppedFor }: Venue) => (droppedFor === 'settings' || !settingOf(pool)) && !hasTrades(state, pool)
  const forgotten = new Set([...state.venues.values()].filter(isForgotten))
  if (forgotten.size > 0) state.venues = new Map([...state.venues].filter(([, venue]) => !forgotten.has(venue)))
  return drafts
}

/** A pool that was never followed is dropped in silence, unless it trades other tokens. */
function dropVenue(
  state: IngestState,
  venue: Venue,
  droppedFor: Exclude<Venue['droppedFor'], null>,
  moment: Moment,
): readonly Draft[] {
  // Older blocks that are still to be read, may gain logs, or were replaced are read without the pool too.
  const cursors = [state.cursor, state.restartCursor].filter((cursor) => cursor !== null)
  const fromBlock = Math.min(nextToSettle(state), ...cursors.map(({ number }) => number + 1))
  const dropped: Venue = { ...venue, droppedFor, fromBlock }
  if (venue.fromBlock !== null || droppedFor === 'wrong_tokens') return publishVenue(state, dropped, moment)
  setVenue(state, { ...dropped, fromBlock: null })
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
  state.venues = new Map(state.venues).set(venueKey(venue.pool), venue)
}

const nextToSettle = ({ ledger, head }: IngestState): number => (ledger.settled ?? head.sealed ?? 0) + 1

const hasTrades = ({ ledger }: IngestState, { token, id }: Pool): boolean =>
  ledger.factsOf(token).some(({ published: { draft } }) => draft.type === 'trade' && draft.venue.pool === id)

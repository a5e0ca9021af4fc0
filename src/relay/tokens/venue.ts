import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { getOrAdd } from '../../lib/bounded-map.ts'
import type { Hex } from '../../lib/hex.ts'
import { Address, Bytes32 } from '../../protocol/fields.ts'
import type { DraftOf } from '../../protocol/updates.ts'
import { MANAGER_SWAP_TOPIC } from '../chain/logs/event-decoder.ts'
import type { LogOrigin, ReadFilter } from '../chain/logs/log-filter.ts'
import type { Pool } from '../chain/pools/pool.ts'
import { feeText } from '../chain/pools/pool-queries.ts'
import { isSameList } from './list/list-diff.ts'
import { venueOf } from './quotes.ts'
import { Decimals, type Stored } from './token-schema.ts'
import type { Swap } from './trades.ts'

const reasons = ['settings', 'delisted', 'refused', 'wrong_tokens'] as const satisfies readonly DraftOf<'venue'>['reason'][]

/** A pool that is followed or was dropped. A dropped one is kept as long as the settings name it, or a fact of it is published. */
export const VenueSchema = z.object({
  pool: z.object({
    token: Address,
    kind: z.enum(['uniswap_v3', 'uniswap_v4', 'slipstream']),
    id: z.union([Address, Bytes32]),
    manager: Address.nullable(),
    currency: z.object({ symbol: z.string(), address: Address, decimals: Decimals }),
    /** Absent if the settings have no key of the pool. */
    hooks: z.union([Address, z.literal('none')]).optional(),
  }),
  /** Null if the upstream did not give the fee. */
  feeBps: z.string().nullable(),
  /** Why the pool was dropped; null while it is followed. */
  droppedFor: z.enum(reasons).nullable(),
  /** The first block from which it is followed or dropped; null if it was never followed. */
  fromBlock: z.int().nullable(),
})
export type Venue = Stored<typeof VenueSchema>
/** The venues of a token. */
export type TokenVenues = readonly Venue[]

export type Venues = ReadonlyMap<string, Venue>
/** A pool may be kept for several tokens, if the settings gave it to another one while facts of the first were published. */
export const venueKey = ({ token, id }: Pick<Pool, 'token' | 'id'>): string => `${token} ${id}`

export const venuesFrom = (stored: Iterable<TokenVenues>): Venues =>
  new Map([...stored].flat().map((venue) => [venueKey(venue.pool), venue]))

const byPool = new WeakMap<Venues, ReadonlyMap<string, readonly Venue[]>>()
const noVenues: readonly Venue[] = []

/** Returns the venues of a pool. They are grouped only once after each change, because every log of a pool needs them. */
export const venuesOfPool = (venues: Venues, id: string): readonly Venue[] =>
  getOrAdd(byPool, venues, () => Map.groupBy(venues.values(), ({ pool }) => pool.id as string)).get(id) ?? noVenues

export const isSamePool = (a: Pool, b: Pool): boolean =>
  a.kind === b.kind && a.manager === b.manager && a.token === b.token && a.currency.address === b.currency.address

/** The fee that a swap paid, in basis points. That of a Slipstream pool may change with each swap, and the event omits it. */
export function swapFeeOf({ pool, feeBps }: Venue, { fee }: Swap): string | null {
  if (fee !== null) return feeText(BigInt(fee))
  return pool.kind === 'uniswap_v3' ? feeBps : null
}

/** Whether the source receives its logs. */
export const isFollowed = ({ droppedFor, fromBlock }: Venue): boolean => droppedFor === null && fromBlock !== null

/** Fields of a venue in a message and in a snapshot. */
export const venueFields = ({ pool, feeBps, fromBlock }: Venue) => ({ venue: venueOf(pool, feeBps), from_block: fromBlock ?? 0 })

/** Says by which contract and topics the swaps of a pool are found. */
export const originOf = ({ id, manager }: Pick<Pool, 'id' | 'manager'>): LogOrigin =>
  manager === null ? { address: id } : { address: manager, topics: [MANAGER_SWAP_TOPIC, id] }

/** Returns the filters that match the logs of these contracts, and the swaps of these pools: one more for each pool manager. */
export function filtersOf(contracts: readonly Hex[], venues: Iterable<Venue>): readonly ReadFilter[] {
  // The source leaves a refused pool out by itself, and asks for it again.
  const wanted = [...venues].filter(({ droppedFor }) => droppedFor === null || droppedFor === 'refused')
  const byManager = Map.groupBy(
    wanted.map(({ pool }) => pool),
    ({ manager }) => manager,
  )
  const own = byManager.get(null) ?? []
  byManager.delete(null)
  const ofManagers = [...byManager].flatMap(([manager, pools]) =>
    manager === null ? [] : [{ addresses: [manager], topics: [[MANAGER_SWAP_TOPIC], pools.map(({ id }) => id).sort()] }],
  )
  return [{ addresses: own.length > 0 ? [...contracts, ...own.map(({ id }) => id)] : contracts }, ...ofManagers]
}

export const isSameFilters = (a: readonly ReadFilter[], b: readonly ReadFilter[]): boolean =>
  a.length === b.length &&
  a.every(
    ({ addresses, topics }, index) =>
      isSameList(addresses, b[index]?.addresses ?? []) && isDeepStrictEqual(topics, b[index]?.topics),
  )

import type { Hex } from '../../lib/hex.ts'
import { type DecodedEvent, isSwapTopic } from '../chain/logs/event-decoder.ts'
import type { Log } from '../chain/logs/log-parser.ts'
import { poolAccount } from '../chain/pools/pool.ts'
import { isFollowed, type Venue, venuesOfPool } from '../tokens/venue.ts'
import type { IngestState } from './ingest-state.ts'

/** The token of a log. `venue` is the pool that swapped it, or null for a log of the token's contract. */
export type LogSubject = { readonly token: Hex; readonly venue: Venue | null; readonly isFollowed: boolean }

/** Returns what a log is about, or why it is no fact. Null for an event of a pool that is no swap. */
export function subjectOf(
  { tokens, venues, ledger }: Pick<IngestState, 'tokens' | 'venues' | 'ledger'>,
  { log, decoded }: { readonly log: Log; readonly decoded: DecodedEvent },
): LogSubject | 'unlisted' | 'unreadable' | null {
  const ofContract = tokens.get(log.address)
  if (ofContract) return { token: log.address, venue: null, isFollowed: ofContract.state !== 'delisted' }
  const poolId = decoded.event === 'Swap' ? decoded.poolId : null
  const ofPool = venuesOfPool(venues, poolId ?? log.address).filter(({ pool }) => poolAccount(pool) === log.address)
  // The event of a pool manager, from a contract that is itself a pool.
  if (ofPool.length === 0) return poolId !== null && venuesOfPool(venues, log.address).length > 0 ? 'unreadable' : 'unlisted'
  if (decoded.event !== 'Swap') return isSwapTopic(log.topics[0]) ? 'unreadable' : null
  // In a block with published trades of a pool all its trades are of their token, whatever the settings say by now.
  const isPublished = ({ pool }: Venue) => ledger.hasFactOf(pool.id, log.blockNumber, pool.token)
  const [only, another] = ofPool
  const venue = only && !another && isFollowed(only) ? only : (ofPool.find(isPublished) ?? ofPool.find(isFollowed))
  return venue ? { token: venue.pool.token, venue, isFollowed: isFollowed(venue) } : 'unlisted'
}

import type { Hex } from '../../lib/hex.ts'
import { type DecodedEvent, isSwapTopic } from '../chain/logs/event-decoder.ts'
import type { Log } from '../chain/logs/log-parser.ts'
import { poolAccount } from '../chain/pools/pool.ts'
import type { Venue } from '../tokens/venue.ts'
import type { IngestState } from './ingest-state.ts'

/** The token of a log. `venue` is the pool that swapped it, or null for a log of the token's contract. */
export type LogSubject = { readonly token: Hex; readonly venue: Venue | null; readonly isFollowed: boolean }

/** Returns what a log is about, or why it is no fact. Null for an event of a pool that is no swap. */
export function subjectOf(
  { tokens, venues }: Pick<IngestState, 'tokens' | 'venues'>,
  { log, decoded }: { readonly log: Log; readonly decoded: DecodedEvent },
): LogSubject | 'unlisted' | 'unreadable' | null {
  const ofContract = tokens.get(log.address)
  if (ofContract) return { token: log.address, venue: null, isFollowed: ofContract.state !== 'delisted' }
  const poolId = decoded.event === 'Swap' ? decoded.poolId : null
  const venue = venues.get(poolId ?? log.address)
  const token = venue && tokens.get(venue.pool.token)
  if (!venue || !token || poolAccount(venue.pool) !== log.address) return 'unlisted'
  if (decoded.event !== 'Swap') return isSwapTopic(log.topics[0]) ? 'unreadable' : null
  return { token: token.address, venue, isFollowed: venue.droppedFor === null && token.state !== 'delisted' }
}

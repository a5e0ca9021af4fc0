import { type DecodedEvent, isSwapTopic } from '../chain/logs/event-decoder.ts'
import type { Log } from '../chain/logs/log-parser.ts'
import { poolAccount } from '../chain/pools/pool.ts'
import type { Token } from '../tokens/token.ts'
import type { Venue } from '../tokens/venue.ts'
import type { IngestState } from './ingest-state.ts'

/** The token that a log is about. `venue` is null for a log of the token's contract, or else the pool that swapped the token. */
export type LogSubject = { readonly token: Token; readonly venue: Venue | null; readonly isFollowed: boolean }

/** Returns what a log is about, or why it is no fact. Null for an event of a pool that is no swap. */
export function subjectOf(
  { tokens, venues }: Pick<IngestState, 'tokens' | 'venues'>,
  { log, decoded }: { readonly log: Log; readonly decoded: DecodedEvent },
): LogSubject | 'unlisted' | 'unreadable' | null {
  const ofContract = tokens.get(log.address)
  if (ofContract) return { token: ofContract, venue: null, isFollowed: ofContract.state !== 'delisted' }
  const poolId = decoded.event === 'Swap' ? decoded.poolId : null
  const venue = venues.get(poolId ?? log.address)
  const token = venue && tokens.get(venue.pool.token)
  if (!venue || !token || poolAccount(venue.pool) !== log.address) return 'unlisted'
  if (decoded.event !== 'Swap') return isSwapTopic(log.topics[0]) ? 'unreadable' : null
  return { token, venue, isFollowed: venue.droppedFor === null && token.state !== 'delisted' }
}

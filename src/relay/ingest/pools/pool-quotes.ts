import type { Hex } from '../../../lib/hex.ts'
import { isoFromSecondsOrNull } from '../../../lib/iso-time.ts'
import type { Block } from '../../../protocol/fields.ts'
import type { Draft, DraftOf } from '../../../protocol/updates.ts'
import type { DecodedLog } from '../../chain/logs/fold-logs.ts'
import { type Pool, SQRT_PRICE_BOUNDS } from '../../chain/pools/pool.ts'
import type { PoolsRead } from '../../chain/pools/pool-poller.ts'
import type { PoolReading } from '../../chain/pools/pool-queries.ts'
import { type ChainPosition, isBefore } from '../../tokens/chain-position.ts'
import { isSameQuote, type QuoteFields, quoteFrom, withNav, withQuote } from '../../tokens/quotes.ts'
import type { Token } from '../../tokens/token.ts'
import { isFollowed, swapFeeOf, venueKey } from '../../tokens/venue.ts'
import type { Moment } from '../batch-values.ts'
import type { IngestState } from '../ingest-state.ts'
import { type Publication, withoutFacts } from '../publication.ts'
import { judgeVenue } from './venues.ts'

/** Applies one reading of the pools. */
export function applyPoolAnswer(state: IngestState, { block, pools }: PoolsRead, moment: Moment): readonly Draft[] {
  const readBlock = block && moment.blockOf(block.number, block.hash, block.timestamp)
  return [...pools].flatMap(([pool, reading]) => {
    const token = state.tokens.get(pool.token)
    // Before a token is listed, its pools are read only to know which to follow.
    if (token?.state === 'awaited' && (reading.kind === 'read' || reading.isRefused))
      return judgeVenue(state, pool, reading, moment)
    if (token?.state !== 'listed') return []
    const isRead = reading.kind === 'read' && token.decimals !== null
    const at = isRead && readBlock ? readBlock : newestHead(state)
    const judged = judgeVenue(state, pool, reading, moment)
    return isSuperseded(state, pool, reading, at)
      ? judged
      : [...judged, ...updateQuote(state, token, { pool, reading, block: at }, moment)]
  })
}

/** Whether a trade says more of a pool: the reading is of an older block, or the node answers no such requests. */
function isSuperseded({ quotedTrades }: IngestState, { id }: Pool, reading: PoolReading, { number }: Block): boolean {
  const traded = quotedTrades.get(id)
  return traded !== undefined && (reading.kind === 'read' ? number < traded.block : reading.isRefused === true)
}

/** Adds the quote that a trade leaves behind to its publication. A trade that is older than the quote leaves none. */
export function withTradeQuote(
  state: IngestState,
  publication: Publication,
  { decoded }: DecodedLog,
  moment: Moment,
): readonly Publication[] {
  const fact = publication.fact?.draft
  if (decoded.event !== 'Swap' || fact?.type !== 'trade' || fact.ingest.source === 'backfill') return [publication]
  const { pool: id } = fact.venue
  const [venue, token] = [state.venues.get(venueKey({ token: fact.address, id })), state.tokens.get(fact.address)]
  const { sqrtPriceX96, liquidity } = decoded
  if (!venue || !isFollowed(venue) || token?.state !== 'listed' || isOutOfBounds(sqrtPriceX96)) return [publication]
  const before = state.quotes.get(token.address)?.find(({ venue: { pool } }) => pool === id)
  const position = { block: fact.block.number, logIndex: fact.tx.log_index }
  const traded = state.quotedTrades.get(id)
  if ((before && before.block.number > fact.block.number) || (traded && isBefore(position, traded))) return [publication]
  state.quotedTrades.set(id, position)
  // The event of a Slipstream pool omits its fee.
  const feeBps = swapFeeOf(venue, decoded) ?? before?.venue.fee_bps ?? null
  const reading = { kind: 'read', sqrtPriceX96, liquidity, feeBps } as const
  return [publication, ...withoutFacts(updateQuote(state, token, { pool: venue.pool, reading, block: fact.block }, moment))]
}

const isOutOfBounds = (sqrtPriceX96: bigint): boolean =>
  sqrtPriceX96 < SQRT_PRICE_BOUNDS.min || sqrtPriceX96 > SQRT_PRICE_BOUNDS.max

/** Publishes a quote only if its price, its state or the kind of its basis changed. */
function updateQuote(
  state: IngestState,
  token: Token,
  read: { readonly pool: Pool; readonly reading: PoolReading; readonly block: Block },
  moment: Moment,
): readonly Draft[] {
  const { poolMinDepth } = state.quoteSettings
  const order = [...state.namedPools.values()].map(({ id }) => id)
  const nav = moment.navOf(token.navReading, token.frozen)
  const quote = quoteFrom(read, { decimals: token.decimals, nav, poolMinDepth })
  const quotes = state.quotes.get(token.address) ?? []
  const before = quotes.find(({ venue }) => venue.pool === read.pool.id)
  if (before && isSameQuote(before, quote)) return []
  setQuotes(state, token, withQuote(quotes, quote, order))
  return [quoteDraft(token, quote, moment)]
}

/** Publishes the quotes of a token whose basis changed because the token's NAV was published. */
export function requote(state: IngestState, { address, nav }: DraftOf<'nav'>, moment: Moment): readonly Draft[] {
  const token = state.tokens.get(address)
  const quotes = state.quotes.get(address)
  if (!token || !quotes) return []
  const requoted = quotes.map((quote) => {
    const compared = withNav(quote, nav)
    return compared.basis === quote.basis && compared.basis_bps === quote.basis_bps ? quote : compared
  })
  const changed = requoted.filter((quote) => !quotes.includes(quote))
  if (changed.length === 0) return []
  setQuotes(state, token, requoted)
  return changed.map((quote) => quoteDraft(token, quote, moment))
}

/** The trade that set the quote of a pool may be gone, so the next trade or reading sets it, of whatever block. */
export function forgetQuotedTrades(
  { quotedTrades }: IngestState,
  isGone: (position: ChainPosition, pool: string) => boolean,
): void {
  for (const [pool, position] of quotedTrades) if (isGone(position, pool)) quotedTrades.delete(pool)
}

export function dropQuotes(state: IngestState, address: Hex): void {
  if (state.quotes.delete(address)) state.changedQuotes.add(address)
}

function setQuotes(state: IngestState, { address }: Token, quotes: readonly QuoteFields[]): void {
  state.quotes.set(address, quotes)
  state.changedQuotes.add(address)
}

function quoteDraft({ symbol, address }: Token, quote: QuoteFields, { time }: Moment): DraftOf<'quote'> {
  return { type: 'quote', symbol, address, time, ...quote }
}

/** Returns the newest sealed block, with hash and time if it is settled. A quote is dated with it if its pool could not be read. */
function newestHead({ head, cursor, newestSettled }: IngestState): Block {
  const number = head.sealed ?? 0
  return {
    number,
    hash: cursor?.number === number ? cursor.hash : null,
    timestamp: newestSettled?.number === number ? isoFromSecondsOrNull(newestSettled.timestamp) : null,
  }
}

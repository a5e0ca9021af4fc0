import type { BoundedMap } from '../../lib/bounded-map.ts'
import type { Hex } from '../../lib/hex.ts'
import type { Decimal } from '../../protocol/decimal.ts'
import type { Head } from '../../protocol/fields.ts'
import type { TradeFields } from '../../protocol/updates.ts'
import type { Cursor } from '../chain/blocks/sealed-block.ts'
import type { ReadFilter } from '../chain/logs/log-filter.ts'
import type { Pool } from '../chain/pools/pool.ts'
import type { PoolSetting } from '../config/pool-settings.ts'
import type { MarketSession } from '../market/market-calendar.ts'
import type { SealedBlockTime, SourceStatusNote } from '../notes/published-notes.ts'
import type { ChainPosition } from '../tokens/chain-position.ts'
import type { PriceFeed } from '../tokens/price-feeds.ts'
import type { TokenQuotes } from '../tokens/quotes.ts'
import type { Token } from '../tokens/token.ts'
import type { TokenDirectory } from '../tokens/token-directory.ts'
import type { Venues } from '../tokens/venue.ts'
import type { BarBook } from './bars/bar-book.ts'
import type { Ledger } from './facts/ledger.ts'

export type QuoteSettings = {
  readonly pools: readonly PoolSetting[]
  /** The currency of the trades in bars; null for any. */
  readonly mainCurrency: Hex | null
  /** Least depth of a pool: with less, its quote has no price. */
  readonly poolMinDepth: Decimal
}

/** A block and its time in seconds. The time is null if it is unknown. */
export type BlockTime = { readonly number: number; readonly timestamp: number | null }

/** The greatest believed time of a block, in seconds, and the highest block with a believed time. */
export type ChainTime = { readonly number: number; readonly timestamp: number }

/** All that the ingest knows. At a start, `restoreState` builds it from the tape. */
export type IngestState = {
  readonly epoch: string
  nextSeq: number
  /** Number of the last update on the tape before this batch. */
  tapeEnd: number
  readonly navStaleAfterMs: number
  readonly ledger: Ledger
  head: Head
  newestSettled: SealedBlockTime | null
  status: SourceStatusNote | null
  /** Newest block up to which all blocks are settled. */
  cursor: Cursor | null
  /** Block after which a restart continues to read. It is at or below the cursor. */
  restartCursor: Cursor | null
  /** Number of the block above which the first run began to settle; null until it is known. */
  began: number | null
  /** The only clock by which schedules take effect. */
  chainTime: ChainTime | null
  /** Times of blocks that the relay does not believe yet, each from one answer. `isAsked`: the relay asked for the header. */
  readonly claimedTimes: BoundedMap<number, { readonly timestamp: number; readonly isAsked: boolean }>
  /** Block with a believed time that chain time has not reached, because blocks before it are unsettled. */
  aheadBlock: BlockTime | null
  readonly tokens: Map<Hex, Token>
  readonly directory: TokenDirectory | null
  readonly changedTokens: Set<Token['address']>
  /** Tokens with a scheduled multiplier whose time chain time has not reached. */
  readonly scheduled: Set<Hex>
  /** Tokens that a log changed. The block of that log may be sealed without the log. */
  readonly changedByLogs: Set<Hex>
  /** Steady time in ms at which the relay last read the whole token list; null before the first reading. */
  listReadAt: number | null
  listOrder: readonly Hex[] | null
  /** Position of the last log. A list that is read now has this position too. After a restart, unknown until the first head. */
  position: ChainPosition
  /** Steady time in ms of the last log, head or sealed block; null before the first. */
  chainSeenAt: number | null
  feeds: readonly PriceFeed[]
  feedAddresses: ReadonlySet<Hex>
  readonly quoteSettings: QuoteSettings
  /** Pool of each setting whose token is known, in the order of the settings. */
  namedPools: ReadonlyMap<PoolSetting, Pool>
  readonly quotes: Map<Hex, TokenQuotes>
  /** Pools by `venueKey`. Each change makes a new map. */
  venues: Venues
  /** The filters whose logs the source receives. */
  received: readonly ReadFilter[]
  /** The pool managers whose swaps the node refuses. */
  readonly refusedManagers: Set<Hex>
  /** For each pool, the position of the last trade that set its quote, unless it was taken back. */
  readonly quotedTrades: Map<string, ChainPosition>
  /** The last trade of each token; null after its retract if none before it is known. */
  readonly lastTrades: Map<Hex, TradeFields | null>
  readonly changedTrades: Set<Hex>
  readonly changedQuotes: Set<Hex>
  readonly bars: BarBook
  /** Returns the market session at a time in seconds; null without a calendar. */
  readonly sessionAt: ((seconds: number) => MarketSession) | null
  session: MarketSession | null
  /** Token of each feed, by the address of the feed's proxy. Once found it stays, because another token may take its symbol. */
  readonly tokenByFeed: Map<Hex, Hex>
}

import type { BoundedMap } from '../../lib/bounded-map.ts'
import type { Hex } from '../../lib/hex.ts'
import type { Decimal } from '../../protocol/decimal.ts'
import type { Head } from '../../protocol/fields.ts'
import type { Cursor } from '../chain/sealed/recent-blocks.ts'
import type { PoolSetting } from '../config/pools.ts'
import type { MarketSession } from '../market/calendar.ts'
import type { SealedBlockTime, SourceStatusNote } from '../tape/notes.ts'
import type { ChainPosition } from '../tokens/chain-position.ts'
import type { PriceFeed } from '../tokens/price-feeds.ts'
import type { TokenQuotes } from '../tokens/quotes.ts'
import type { Token } from '../tokens/token.ts'
import type { Directory } from '../tokens/token-directory.ts'
import type { Ledger } from './facts/ledger.ts'

/** What the settings say of pools. */
export type QuoteSettings = {
  readonly pools: readonly PoolSetting[]
  /** A pool with less depth has no price. */
  readonly poolMinDepth: Decimal
}

/** A block and its time, in seconds. */
export type BlockTime = { readonly number: number; readonly timestamp: number | null }

/** The greatest believed time of a block, in seconds, and the highest block with a believed time. */
export type ChainTime = { readonly number: number; readonly timestamp: number }

/** All that the ingest knows. Each field is changed by one file, and all of it survives a restart. */
export type IngestState = {
  /** The epoch of the tape. */
  readonly epoch: string
  /** The number of the next update. Only the ingest writes updates. */
  nextSeq: number
  /** The end of the tape before this batch. */
  tapeEnd: number
  /** The age from which a NAV is stale. */
  readonly navStaleAfterMs: number
  readonly ledger: Ledger
  head: Head
  newestSettled: SealedBlockTime | null
  status: SourceStatusNote | null
  /** The sealed block up to which all were settled. */
  cursor: Cursor | null
  /** Where a restart goes on reading: not above the cursor. */
  restartCursor: Cursor | null
  /** The block above which the first run began to settle; null where that is not known yet. */
  began: number | null
  /** Schedules take effect by this clock only. */
  chainTime: ChainTime | null
  /** The times of unsettled blocks, each from one answer. */
  readonly claimedTimes: BoundedMap<number, { readonly timestamp: number; readonly isAsked: boolean }>
  /** The highest block whose time is known while blocks before it are not settled. */
  aheadBlock: BlockTime | null
  readonly tokens: Map<Hex, Token>
  /** Finds the tokens of the feeds; null without feeds. */
  readonly directory: Directory | null
  /** The tokens that changed in this batch. */
  readonly changedTokens: Set<Token['address']>
  /** Tokens with a scheduled multiplier whose time no block has reached. */
  readonly scheduled: Set<Hex>
  /** Tokens with a change that a log made: the block of that log may be sealed without it. */
  readonly changedByLogs: Set<Hex>
  /** When the list was read (ms), and its order; null before the first. */
  listReadAt: number | null
  listOrder: readonly Hex[] | null
  /** The position of the last received log. A list that is read now comes after it. After a restart it is unknown until a head comes. */
  position: ChainPosition
  /** When the chain was last seen to move on, in steady time; null before that. */
  chainSeenAt: number | null
  feeds: readonly PriceFeed[]
  /** The addresses of their aggregators. */
  feedAddresses: ReadonlySet<Hex>
  readonly quoteSettings: QuoteSettings
  /** The latest quotes of each token, one per pool. */
  readonly quotes: Map<Hex, TokenQuotes>
  /** The pools that were read in this run: a quote of the previous run says nothing about now. */
  readonly readPools: Set<Hex>
  /** The tokens whose quotes changed in this batch. */
  readonly changedQuotes: Set<Hex>
  /** The session of the market at a time in seconds; null without a calendar. */
  readonly sessionAt: ((seconds: number) => MarketSession) | null
  /** The last published session. */
  session: MarketSession | null
  /** The token of each feed, fixed once found: its symbol may pass to another token. */
  readonly tokenByFeed: Map<Hex, Hex>
}

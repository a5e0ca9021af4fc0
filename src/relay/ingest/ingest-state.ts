import type { BoundedMap } from '../../lib/bounded-map.ts'
import type { Hex } from '../../lib/hex.ts'
import type { Decimal } from '../../protocol/decimal.ts'
import type { Head } from '../../protocol/fields.ts'
import type { Cursor } from '../chain/sealed/recent-blocks.ts'
import type { PoolSetting } from '../config/pool-settings.ts'
import type { MarketSession } from '../market/market-calendar.ts'
import type { SealedBlockTime, SourceStatusNote } from '../tape/notes.ts'
import type { ChainPosition } from '../tokens/chain-position.ts'
import type { PriceFeed } from '../tokens/price-feeds.ts'
import type { TokenQuotes } from '../tokens/quotes.ts'
import type { Token } from '../tokens/token.ts'
import type { TokenDirectory } from '../tokens/token-directory.ts'
import type { Ledger } from './facts/ledger.ts'

export type QuoteSettings = {
  readonly pools: readonly PoolSetting[]
  /** A pool with less depth than this gets no price. */
  readonly poolMinDepth: Decimal
}

/** A block and its time, in seconds. */
export type BlockTime = { readonly number: number; readonly timestamp: number | null }

/** The greatest believed time of a block, in seconds, and the highest block with a believed time. */
export type ChainTime = { readonly number: number; readonly timestamp: number }

/** All that the ingest knows. One file changes each field, and all of it survives a restart. */
export type IngestState = {
  readonly epoch: string
  nextSeq: number
  /** The end of the tape before this batch. */
  tapeEnd: number
  readonly navStaleAfterMs: number
  readonly ledger: Ledger
  head: Head
  newestSettled: SealedBlockTime | null
  status: SourceStatusNote | null
  /** All blocks up to this sealed one are settled. */
  cursor: Cursor | null
  /** A restart continues to read after this block, which is at or below the cursor. */
  restartCursor: Cursor | null
  /** The block above which the first run began to settle; null until it is known. */
  began: number | null
  /** Schedules take effect by this clock only. */
  chainTime: ChainTime | null
  /** The times of unsettled blocks, each from one answer. `isAsked`: the relay asked for the header. */
  readonly claimedTimes: BoundedMap<number, { readonly timestamp: number; readonly isAsked: boolean }>
  /** The highest block whose time is known while blocks before it are not settled. */
  aheadBlock: BlockTime | null
  readonly tokens: Map<Hex, Token>
  readonly directory: TokenDirectory | null
  readonly changedTokens: Set<Token['address']>
  /** Tokens with a scheduled multiplier whose time no block has reached. */
  readonly scheduled: Set<Hex>
  /** Tokens that a log changed. The block of that log may be sealed without it. */
  readonly changedByLogs: Set<Hex>
  /** Steady time in ms of the last reading of the list; null before the first. */
  listReadAt: number | null
  listOrder: readonly Hex[] | null
  /** The position of the last log: a list that is read now is newer. After a restart it is unknown until the first head. */
  position: ChainPosition
  /** Steady time of the last log, head or sealed block; null before the first. */
  chainSeenAt: number | null
  feeds: readonly PriceFeed[]
  feedAddresses: ReadonlySet<Hex>
  readonly quoteSettings: QuoteSettings
  readonly quotes: Map<Hex, TokenQuotes>
  /** The pools that this run has read: a quote of the previous run says nothing about now. */
  readonly readPools: Set<Hex>
  readonly changedQuotes: Set<Hex>
  /** The market session at a time in seconds; null without a calendar. */
  readonly sessionAt: ((seconds: number) => MarketSession) | null
  session: MarketSession | null
  /** The token of each feed. It stays once it is found, because another token may take its symbol. */
  readonly tokenByFeed: Map<Hex, Hex>
}

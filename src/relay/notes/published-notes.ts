import { z } from 'zod'
import type { Hex } from '../../lib/hex.ts'
import { Address, Head, quoteFields, SourceName, SourceReason, sessionFields } from '../../protocol/fields.ts'
import { type TradeFields, tradeFields } from '../../protocol/updates.ts'
import type { MarketSession } from '../market/market-calendar.ts'
import { defineNote, defineNotes } from '../tape/notes.ts'
import type { TokenQuotes } from '../tokens/quotes.ts'
import type { Token } from '../tokens/token.ts'
import { Milliseconds, TokenSchema } from '../tokens/token-schema.ts'
import { type TokenVenues, VenueSchema } from '../tokens/venue.ts'

/** A sealed block and its time, in seconds. */
export type SealedBlockTime = { readonly number: number; readonly timestamp: number }

export type SourceStatusNote = { readonly source: SourceName; readonly reason: SourceReason; readonly started_at: string }

// The ingest writes the following notes, and the edge reads them. Any other note is declared beside the code that owns it.

export const headNote = defineNote<Head>('head', Head)
export const statusNote = defineNote<SourceStatusNote>(
  'status',
  z.object({ source: SourceName, reason: SourceReason, started_at: z.string() }),
)
export const newestSettledNote = defineNote<SealedBlockTime>('newest-settled', z.object({ number: z.int(), timestamp: z.number() }))
/** Whether the ingester runs the built-in chain. */
export const demoNote = defineNote<boolean>('demo', z.boolean())
/** Steady time in ms at which the relay last read the whole token list. Each successful poll of the list writes this note. */
export const listReadNote = defineNote<number>('list-read', Milliseconds)
/** Addresses of the token list, in its order. A poll writes this note only if the order has changed. */
export const listOrderNote = defineNote<readonly Hex[]>('list-order', z.array(Address))
export const tokenNotes = defineNotes<Token>('token/', TokenSchema)
/** The pools of a token that are followed or were dropped. */
export const venueNotes = defineNotes<TokenVenues>('venues/', z.array(VenueSchema))
export const lastTradeNotes = defineNotes<{ readonly trade: TradeFields | null }>(
  'last-trade/',
  z.object({ trade: z.object(tradeFields).nullable() }),
)
export const quoteNotes = defineNotes<TokenQuotes>('quote/', z.array(z.object(quoteFields)))
/** The last published market session; null without a calendar. */
export const sessionNote = defineNote<{ readonly session: MarketSession | null }>(
  'session',
  z.object({ session: z.object({ ...sessionFields, market: z.literal('XNYS') }).nullable() }),
)

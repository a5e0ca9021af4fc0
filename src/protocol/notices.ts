import { z } from 'zod'
import {
  Address,
  DecimalText,
  Digest,
  Head,
  Nav,
  PositionText,
  quoteFields,
  SourceName,
  Stage,
  sessionFields,
  Time,
  TokenRecord,
} from './fields.ts'
import { filterFields } from './parameters/value-filters.ts'
import { messageSchema, registerSchema } from './schema-registry.ts'
import { tradeFields, type Update, venueStartFields } from './updates.ts'

export const RequestId = z
  .union([z.int(), z.string().max(64)])
  .describe("The client's own identifier for its request, returned with the answer.")
const req = RequestId.optional()
const resumePosition = PositionText.describe('The position to resume from.')

export const RejectedSymbol = z.object({
  symbol: z.string().describe('The symbol as requested.'),
  reason: z.enum(['unknown_symbol', 'ambiguous_symbol']),
  suggest: z.array(z.string()).describe('Close known symbols.'),
})
export type RejectedSymbol = z.infer<typeof RejectedSymbol>

const TokenWarning = registerSchema(
  'TokenWarning',
  'Why the symbol or the name of a token may mislead a reader. mixed_scripts: letters of several scripts, such as Latin and Cyrillic; hidden_characters: characters that nobody sees; direction_override: characters that change the order in which a text is shown; looks_like_another: the symbol or the name looks like that of another listed token, or the symbol is the same.',
  z.enum(['mixed_scripts', 'hidden_characters', 'direction_override', 'looks_like_another']),
)
export type TokenWarning = z.infer<typeof TokenWarning>

/** Fields that a `snapshot` shares with the answer of `/v1/tokenized-stocks/{selector}`. */
export const tokenStateFields = {
  symbol: z.string(),
  address: Address,
  as_of: PositionText.describe('The state includes every message up to this position.'),
  token: TokenRecord,
  token_warnings: z.array(TokenWarning).describe('Why the symbol or the name may mislead a reader; empty if nothing may.'),
  multiplier: DecimalText.nullable().describe('The multiplier from tokens to shares; 1 if there is none, null if unknown.'),
  multiplier_source: z
    .enum(['log', 'call', 'list'])
    .nullable()
    .describe('The source of the multiplier; call is a read of the token contract.'),
  scheduled: z
    .object({ multiplier: DecimalText, effective_at: Time.nullable() })
    .nullable()
    .describe('The next multiplier, which takes effect when chain time reaches effective_at; null is a time after the year 9999.'),
  paused: z.array(z.string()).describe('The names of the paused features.'),
  supply: z.object({ tokens: DecimalText.nullable(), shares: DecimalText.nullable() }),
  nav: Nav,
  quote: z
    .object(quoteFields)
    .nullable()
    .describe('The latest quote of the deepest pool in the state ok, or of the first pool; null before any pool was read.'),
  last_trade: z
    .object(tradeFields)
    .nullable()
    .describe('The newest trade in chain order that is not retracted; null if none is known.'),
  venues: z.array(z.object(venueStartFields)).describe('The pools that are followed, each from its first block.'),
  session: z.object(sessionFields).nullable().describe('The session of the market; null without a calendar.'),
}

export const Snapshot = messageSchema('snapshot', 'The state of a token at as_of.', {
  id: resumePosition.nullable(),
  ...tokenStateFields,
})

export const Notice = z.discriminatedUnion('type', [
  messageSchema('hello', 'The first message of every connection: server, ends of the tape, and limits.', {
    id: resumePosition.nullable().describe('The start of this stream; null when a gap follows or nothing is selected yet.'),
    end: PositionText.describe('The end of the tape.'),
    oldest: PositionText.describe('The position after which no message has been deleted.'),
    oldest_time: Time.nullable().describe('The time of the first message after oldest; null if there is none.'),
    protocol: z.literal('stocktape.v1'),
    server: z.string(),
    connection: z.string().describe('The name of this connection, for bug reports.'),
    chain_id: z.int().nonnegative().nullable(),
    heartbeat_s: z.int().positive().nullable().describe('Seconds between two heartbeats; null if heartbeat=0 turns them off.'),
    limits: z
      .object({
        symbols_max: z.int().positive().describe('Symbols in one connection.'),
        selections_max: z.int().positive().describe('Different selections with value filters, of all clients.'),
        replay_max: z.int().positive().describe('Messages in one replay; if there are more, the relay sends a gap instead.'),
        backlog_bytes: z.int().positive().describe('Limit of unsent bytes; a client that stays above it is disconnected.'),
        message_bytes: z.int().positive().describe('Bytes in one client message.'),
        retention_ms: z.int().positive().describe('How long a message stays on the tape.'),
      })
      .describe('The limits of a connection.'),
    source: SourceName,
    head: Head,
    demo: z.boolean().describe('True when the upstream is the built-in chain: its data is not real.'),
    durable: z
      .literal(false)
      .optional()
      .describe('Sent while the disk or NATS does not store the tape: a restart then causes a gap.'),
  }),
  messageSchema('subscribed', 'The selection. Answers subscribe and list, and is the second message of a stream.', {
    req,
    id: resumePosition.nullable().describe('The position at which the stream starts; null when a gap follows.'),
    symbols: z.array(z.string()).describe('The full set of symbols now.'),
    types: z.array(z.string()).describe('The message types, in the order of this contract; * for all.'),
    stage: Stage,
    ...filterFields,
    rejected: z.array(RejectedSymbol),
    resume: z.enum(['none', 'full', 'gap']).describe('none: no position given; full: continues from it; gap: a gap follows.'),
  }),
  messageSchema('unsubscribed', 'The symbols that were removed from the selection.', { req, symbols: z.array(z.string()) }),
  Snapshot,
  messageSchema('live', 'The replay has ended; live messages follow. It is a receipt of the replay.', {
    id: resumePosition,
    after: PositionText.describe('The position of subscribed, or of the last gap of this stream.'),
    through: PositionText.describe('The end of the replay, equal to id.'),
    replayed: z.int().nonnegative().describe('The number of replayed messages.'),
    digest: Digest.describe(
      'The first 16 bytes, in hex, of SHA-256 over the ids, joined by line feeds, of the replayed messages since after.',
    ),
  }),
  messageSchema('heartbeat', 'Sent at a steady interval: the connection is alive, and the client is complete up to id.', {
    id: resumePosition.describe('The last position that was sent to this listener or did not match its selection.'),
    end: PositionText.describe('The end of the tape.'),
    time: Time,
    head: Head,
    source: SourceName,
    sent: z.int().nonnegative().describe('Tape messages sent before this one.'),
    backlog: z.int().nonnegative().describe('Bytes queued for this listener and not yet sent.'),
  }),
  messageSchema('gap', 'Messages are missing from this stream.', {
    id: resumePosition.describe('The position at which the stream continues.'),
    reason: z
      .enum(['expired', 'epoch', 'ahead', 'long'])
      .describe(
        'expired: the position is before oldest, or its number was lost; epoch: it belongs to another tape; ahead: it is after the end; long: too many messages for one replay.',
      ),
    after: z.string().nullable().describe('The position that the client gave: the missing messages begin after it.'),
    through: PositionText.describe('The position of the last missing message, at which the stream continues.'),
    backfill: z.string().nullable().describe('A path on this server whose pages contain exactly the missing messages.'),
  }),
  messageSchema('error', 'A request was wrong. Says why, and what to do.', {
    req,
    code: z.int().describe('The matching HTTP status.'),
    reason: z.string().describe('A word for programs.'),
    message: z.string().describe('A sentence for people.'),
    details: z.array(z.record(z.string(), z.unknown())).optional(),
  }),
  messageSchema('bye', 'The relay is about to close this connection.', {
    id: resumePosition.nullable(),
    reason: z.string().describe('The word for the close code.'),
    retry_ms: z.int().nonnegative().describe('How long to wait before reconnecting.'),
  }),
  messageSchema('pong', 'The answer to ping.', { req, time: Time }),
])
export type Notice = z.infer<typeof Notice>
export type NoticeOf<Type extends Notice['type']> = Extract<Notice, { type: Type }>

export type Message = Update | Notice

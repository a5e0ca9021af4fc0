import { z } from 'zod'
import {
  Address,
  DecimalText,
  Head,
  Nav,
  PositionText,
  registerSchema,
  SourceName,
  Time,
  TokenRecord,
} from './fields.ts'
import type { Update } from './updates.ts'

/**
 * What a connection says of itself: messages that are not on the tape. Where one has an `id`, it is the position from
 * which a resume continues.
 */

export const RequestId = z
  .union([z.int(), z.string().max(64)])
  .describe("A client's own number for its request, given back with the answer.")
const req = RequestId.optional()
const resumePosition = PositionText.describe('The position from which a resume continues.')

const Hello = registerSchema(
  'hello',
  'Who is speaking, and where the tape ends. The first message of every connection.',
  z.object({
    type: z.literal('hello'),
    id: resumePosition
      .nullable()
      .describe('Where this stream starts; null where a gap follows or nothing is selected yet.'),
    end: PositionText.describe('The end of the tape.'),
    oldest: PositionText.describe('The position after which nothing has been evicted.'),
    protocol: z.literal('stocktape.v1'),
    server: z.string(),
    connection: z.string().describe('A name for this connection, to be told in a complaint.'),
    chain_id: z.int().nonnegative().nullable(),
    heartbeat_s: z.int().positive().describe('Seconds between two heartbeats.'),
    limits: z
      .object({
        symbols_max: z.int().positive().describe('Symbols of one connection.'),
        selections_max: z.int().positive().describe('Distinct selections with value filters.'),
        replay_max: z.int().positive().describe('Messages of one replay; a longer one is a gap.'),
        backlog_bytes: z.int().positive().describe('Bytes that may be unread.'),
        message_bytes: z.int().positive().describe('Bytes of a message of yours.'),
        retention_ms: z.int().positive().describe('How long the tape is kept.'),
      })
      .describe('What a client may ask and leave unread.'),
    source: SourceName,
    head: Head,
    demo: z.boolean().describe('True where the upstream is the built-in chain: nothing on it is real.'),
  }),
)

const RejectedSymbol = z.object({
  symbol: z.string().describe('As it was asked for.'),
  reason: z.enum(['unknown_symbol', 'ambiguous_symbol']),
  suggest: z.array(z.string()).describe('What may have been meant.'),
})
export type RejectedSymbol = z.infer<typeof RejectedSymbol>

const Subscribed = registerSchema(
  'subscribed',
  'What is heard now: the answer to subscribe and list, and the second message of a stream.',
  z.object({
    type: z.literal('subscribed'),
    req,
    id: resumePosition.nullable().describe('Where its stream starts; null where a gap follows.'),
    symbols: z.array(z.string()).describe('The full set now.'),
    rejected: z.array(RejectedSymbol),
    resume: z
      .enum(['none', 'full', 'gap'])
      .describe('full: a position was honoured, and no snapshots come; gap: it could not be, and a gap follows.'),
  }),
)

const Unsubscribed = registerSchema(
  'unsubscribed',
  'What is heard no longer.',
  z.object({ type: z.literal('unsubscribed'), req, symbols: z.array(z.string()) }),
)

/** How a token stands: what a snapshot and the record of one token share. */
export const tokenStateFields = {
  symbol: z.string(),
  address: Address,
  as_of: PositionText.describe('The position that this state includes.'),
  token: TokenRecord,
  multiplier: DecimalText.nullable().describe('The scaling factor; 1 is none, null is unknown.'),
  multiplier_source: z.enum(['log', 'call', 'list']).nullable().describe('Who said so.'),
  scheduled: z
    .object({ to: DecimalText, effective_at: Time })
    .nullable()
    .describe('The factor that takes effect next, by chain time.'),
  paused: z.array(z.string()).describe('The names of the features that are paused.'),
  supply: z.object({ tokens: DecimalText.nullable(), shares: DecimalText.nullable() }),
  nav: Nav,
}

const Snapshot = registerSchema(
  'snapshot',
  'A token as it is at as_of.',
  z.object({ type: z.literal('snapshot'), id: resumePosition.nullable(), ...tokenStateFields }),
)

const Live = registerSchema(
  'live',
  'The replay is over; what follows happens now.',
  z.object({
    type: z.literal('live'),
    id: resumePosition,
    replayed: z.int().nonnegative().describe('How many messages were replayed.'),
  }),
)

const Heartbeat = registerSchema(
  'heartbeat',
  'Still here, and this is how far you are.',
  z.object({
    type: z.literal('heartbeat'),
    id: resumePosition.describe('The last position sent to this listener, or passed over as not concerning it.'),
    end: PositionText.describe('The end of the tape.'),
    time: Time,
    head: Head,
    source: SourceName,
    sent: z.int().nonnegative().describe('Messages of the tape sent before this one.'),
    backlog: z.int().nonnegative().describe('Bytes accepted for this listener and not taken yet.'),
  }),
)

const Gap = registerSchema(
  'gap',
  'Something is missing, and why. Never silence.',
  z.object({
    type: z.literal('gap'),
    id: resumePosition.describe('Where the stream goes on.'),
    reason: z
      .enum(['expired', 'epoch', 'ahead', 'long'])
      .describe(
        'expired: before the oldest; epoch: of another tape; ahead: beyond the end; long: too much for one replay.',
      ),
    from: z.string().nullable().describe('The position that you gave.'),
    to: PositionText,
    backfill: z.string().nullable().describe('A path on this server whose pages are exactly what was left out.'),
  }),
)

const ErrorMessage = registerSchema(
  'error',
  'A request was wrong, and what to do.',
  z.object({
    type: z.literal('error'),
    req,
    code: z.int().describe('As an HTTP status.'),
    reason: z.string().describe('A word for machines.'),
    message: z.string().describe('A sentence for people.'),
    details: z.array(z.record(z.string(), z.unknown())).optional(),
  }),
)

const Bye = registerSchema(
  'bye',
  'This connection ends now.',
  z.object({
    type: z.literal('bye'),
    id: resumePosition.nullable(),
    reason: z.string().describe('The word of the close code.'),
    retry_ms: z.int().nonnegative().describe('Come back after so long.'),
  }),
)

const Pong = registerSchema('pong', 'The answer to ping.', z.object({ type: z.literal('pong'), req, time: Time }))

/** One thing that a connection says of itself. */
export const Notice = z.discriminatedUnion('type', [
  Hello,
  Subscribed,
  Unsubscribed,
  Snapshot,
  Live,
  Heartbeat,
  Gap,
  ErrorMessage,
  Bye,
  Pong,
])
export type Notice = z.infer<typeof Notice>
export type NoticeOf<Type extends Notice['type']> = Extract<Notice, { type: Type }>

/** Anything that a listener can be told. */
export type Message = Update | Notice

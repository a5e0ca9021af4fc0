import { z } from 'zod'
import { Address, DecimalText, Head, Nav, PositionText, SourceName, Time, TokenRecord } from './parts.ts'
import type { Update } from './updates.ts'

/**
 * What a connection says of itself: messages that are not on the tape. Where one has an `id`, it is the position from
 * which a resume continues.
 */

/** A client's own number for its request, given back with the answer. */
export const RequestId = z.union([z.int(), z.string().max(64)])
const req = RequestId.optional()

const Hello = z.object({
  type: z.literal('hello'),
  id: PositionText.nullable(),
  end: PositionText,
  oldest: PositionText,
  protocol: z.literal('stocktape.v1'),
  server: z.string(),
  connection: z.string(),
  chain_id: z.int().nonnegative().nullable(),
  heartbeat_s: z.int().positive(),
  limits: z.object({
    symbols: z.int().positive(),
    selections: z.int().positive(),
    replay: z.int().positive(),
    backlog: z.int().positive(),
    message: z.int().positive(),
    retention_ms: z.int().positive(),
  }),
  source: SourceName,
  head: Head,
  demo: z.boolean(),
})

const Rejected = z.object({
  symbol: z.string(),
  reason: z.enum(['unknown_symbol', 'ambiguous_symbol']),
  suggest: z.array(z.string()),
})
export type Rejected = z.infer<typeof Rejected>

const Subscribed = z.object({
  type: z.literal('subscribed'),
  req,
  id: PositionText.nullable(),
  symbols: z.array(z.string()),
  rejected: z.array(Rejected),
  resume: z.enum(['none', 'full', 'gap']),
})

const Unsubscribed = z.object({ type: z.literal('unsubscribed'), req, symbols: z.array(z.string()) })

const Snapshot = z.object({
  type: z.literal('snapshot'),
  id: PositionText.nullable(),
  symbol: z.string(),
  address: Address,
  as_of: PositionText,
  token: TokenRecord,
  multiplier: DecimalText.nullable(),
  multiplier_source: z.enum(['log', 'call', 'list']).nullable(),
  scheduled: z.object({ to: DecimalText, effective_at: Time }).nullable(),
  paused: z.array(z.string()),
  supply: z.object({ tokens: DecimalText.nullable(), shares: DecimalText.nullable() }),
  nav: Nav,
})

const Live = z.object({ type: z.literal('live'), id: PositionText, replayed: z.int().nonnegative() })

const Heartbeat = z.object({
  type: z.literal('heartbeat'),
  id: PositionText,
  end: PositionText,
  time: Time,
  head: Head,
  source: SourceName,
  sent: z.int().nonnegative(),
  backlog: z.int().nonnegative(),
})

const Gap = z.object({
  type: z.literal('gap'),
  id: PositionText,
  reason: z.enum(['expired', 'epoch', 'ahead', 'long']),
  from: z.string().nullable(),
  to: PositionText,
  backfill: z.string().nullable(),
})

const ErrorMessage = z.object({
  type: z.literal('error'),
  req,
  code: z.int(),
  reason: z.string(),
  message: z.string(),
  details: z.array(z.record(z.string(), z.unknown())).optional(),
})

const Bye = z.object({
  type: z.literal('bye'),
  id: PositionText.nullable(),
  reason: z.string(),
  retry_ms: z.int().nonnegative(),
})

const Pong = z.object({ type: z.literal('pong'), req, time: Time })

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

import { z } from 'zod'

/** Lower-case hex, as every address and hash on the wire. */
export type Hex = `0x${string}`

const hex = (digits: number) => z.templateLiteral(['0x', z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`))])

export const Address = hex(40)
export const Word = hex(64)
const Data = z.templateLiteral(['0x', z.string().regex(/^([0-9a-f]{2})*$/)])

/** A number that a machine must not round: no exponent, no plus sign, no trailing zeros, `0` for zero. */
export const DecimalText = z.string().regex(/^-?(0|[1-9]\d*)(\.\d*[1-9])?$/)
/** An amount in the token's smallest unit. */
const RawText = z.string().regex(/^(0|[1-9]\d*)$/)
/** Money, always with two decimals. */
const MoneyText = z.string().regex(/^-?(0|[1-9]\d*)\.\d{2}$/)

export const Time = z.string().regex(/^\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
export const PositionText = z.string().regex(/^[0-9a-z]+\.(0|[1-9]\d*)(\.[1-9]\d*)?$/)
export const Key = z.string().regex(/^(0|[1-9]\d*)-0x[0-9a-f]{64}-(0|[1-9]\d*)$/)

export const BlockNumber = z.int().nonnegative()
export const Block = z.object({ number: BlockNumber, hash: Word.nullable(), timestamp: Time.nullable() })
export type Block = z.infer<typeof Block>

export const Tx = z.object({ hash: Word, index: z.int().nonnegative(), log_index: z.int().nonnegative() })

export const Stage = z.enum(['preconfirmed', 'sealed'])
export type Stage = z.infer<typeof Stage>

export const SourceName = z.enum(['pendingLogs', 'poll', 'sealed', 'down'])
export type SourceName = z.infer<typeof SourceName>

export const SourceReason = z.enum(['ok', 'silent', 'refused', 'behind', 'no_pending', 'unreachable', 'stale_head'])
export type SourceReason = z.infer<typeof SourceReason>

export const Ingest = z.object({
  source: z.enum(['pendingLogs', 'poll', 'sealed', 'backfill']),
  received_at: Time,
  published_at: Time,
})
export type Ingest = z.infer<typeof Ingest>

export const Nav = z.object({
  price: DecimalText.nullable(),
  updated_at: Time.nullable(),
  age_s: z.int().nonnegative().nullable(),
  state: z.enum(['fresh', 'stale', 'missing', 'invalid']),
  bound_s: z.int().nonnegative(),
})
export type Nav = z.infer<typeof Nav>

/** How far the chain is, as far as is known: the block being built, the newest sealed one, and the two watermarks. */
export const Head = z.object({
  pending: BlockNumber.nullable(),
  sealed: BlockNumber.nullable(),
  safe: BlockNumber.nullable(),
  finalized: BlockNumber.nullable(),
})
export type Head = z.infer<typeof Head>

/** A token's record exactly as the Read API gave it: its own JSON types, unknown fields kept. */
export const TokenRecord = z.record(z.string(), z.unknown())
export type TokenRecord = z.infer<typeof TokenRecord>

export const parts = { Data, RawText, MoneyText }

import { z } from 'zod'

/** Lower-case hex, as every address and hash on the wire. */
export type Hex = `0x${string}`

/** The schemas that the published documents call by a name, wherever one stands in another. */
export const schemaRegistry = z.registry<{ readonly id: string }>()

/** Gives a schema its name in the published documents, and the sentence that says what it is. */
export function registerSchema<Schema extends z.ZodType>(id: string, description: string, schema: Schema): Schema {
  const described = schema.describe(description)
  schemaRegistry.add(described, { id })
  return described
}

const hex = (digits: number) => z.templateLiteral(['0x', z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`))])

export const Address = registerSchema('Address', 'An address: 40 hex digits, lower case.', hex(40))
export const Bytes32 = registerSchema('Word', '32 bytes, a hash or a topic: 64 hex digits, lower case.', hex(64))
const Data = z.templateLiteral(['0x', z.string().regex(/^([0-9a-f]{2})*$/)])

export const DecimalText = registerSchema(
  'Decimal',
  'A number that a machine must not round: no exponent, no plus sign, no trailing zeros, 0 for zero.',
  z.string().regex(/^-?(0|[1-9]\d*)(\.\d*[1-9])?$/),
)
const RawText = registerSchema(
  'Raw',
  "An amount in the token's smallest unit, as the chain has it.",
  z.string().regex(/^(0|[1-9]\d*)$/),
)
const MoneyText = registerSchema(
  'Money',
  'Money, always with two decimals.',
  z.string().regex(/^-?(0|[1-9]\d*)\.\d{2}$/),
)

export const Time = registerSchema(
  'Time',
  'RFC 3339, UTC, with milliseconds.',
  z.string().regex(/^\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
)
export const PositionText = registerSchema(
  'Position',
  'A place on the tape, <epoch>.<seq>, or <epoch>.<seq>.<n> in the sealed view: opaque text, good for since, after and before.',
  z.string().regex(/^[0-9a-z]+\.(0|[1-9]\d*)(\.[1-9]\d*)?$/),
)
export const Key = registerSchema(
  'Key',
  'The name of an on-chain fact for ever: <block number>-<transaction hash>-<log index>.',
  z.string().regex(/^(0|[1-9]\d*)-0x[0-9a-f]{64}-(0|[1-9]\d*)$/),
)

export const BlockNumber = z.int().nonnegative()
export const Block = registerSchema(
  'Block',
  'A block.',
  z.object({
    number: BlockNumber,
    hash: Bytes32.nullable().describe('Null while the block is pre-confirmed, whatever the upstream says.'),
    timestamp: Time.nullable().describe("The block's own time."),
  }),
)
export type Block = z.infer<typeof Block>

export const Tx = registerSchema(
  'Tx',
  'The transaction, and the place of the log.',
  z.object({
    hash: Bytes32,
    index: z.int().nonnegative().describe("The transaction's place in its block."),
    log_index: z.int().nonnegative().describe("The log's place in its block."),
  }),
)

export const Stage = registerSchema(
  'Stage',
  'How firm it is: said before the block is sealed, or in a block with a hash.',
  z.enum(['preconfirmed', 'sealed']),
)
export type Stage = z.infer<typeof Stage>

export const SourceName = registerSchema(
  'Source',
  'Where pre-confirmations come from now; sealed: nothing is pre-confirmed, down: nothing comes at all.',
  z.enum(['pendingLogs', 'poll', 'sealed', 'down']),
)
export type SourceName = z.infer<typeof SourceName>

export const SourceReason = registerSchema(
  'SourceReason',
  'Why it is that source and no better one.',
  z.enum(['ok', 'silent', 'refused', 'behind', 'no_pending', 'unreachable', 'stale_head']),
)
export type SourceReason = z.infer<typeof SourceReason>

export const Ingest = registerSchema(
  'Ingest',
  'How it was heard.',
  z.object({
    source: z.enum(['pendingLogs', 'poll', 'sealed', 'backfill']).describe('By which way the log came.'),
    received_at: Time.describe('When the log came from upstream.'),
    published_at: Time.describe('When it was written to the tape.'),
  }),
)
export type Ingest = z.infer<typeof Ingest>

export const Nav = registerSchema(
  'ReferenceValue',
  'What a token is worth by its price feed with its age, never a price to trade at. It carries the multiplier already.',
  z.object({
    price: DecimalText.nullable().describe('In USD; null where it is missing or invalid.'),
    updated_at: Time.nullable().describe('When it was last published.'),
    age_s: z.int().nonnegative().nullable().describe("Whole seconds from then to the message's own time."),
    state: z.enum(['fresh', 'stale', 'missing', 'invalid']).describe('Stale: older than bound_s.'),
    bound_s: z.int().nonnegative().describe('From which age on it is stale.'),
  }),
)
export type Nav = z.infer<typeof Nav>

export const Head = registerSchema(
  'Head',
  'How far the chain is, as far as is known.',
  z.object({
    pending: BlockNumber.nullable().describe('The block that is being built.'),
    sealed: BlockNumber.nullable().describe('The newest sealed block.'),
    safe: BlockNumber.nullable().describe('The watermark that a reorganisation hardly reaches below.'),
    finalized: BlockNumber.nullable().describe('The watermark below which nothing changes.'),
  }),
)
export type Head = z.infer<typeof Head>

export const TokenRecord = registerSchema(
  'TokenRecord',
  "A token's record exactly as the Read API gave it: its own JSON types, unknown fields kept.",
  z.record(z.string(), z.unknown()),
)
export type TokenRecord = z.infer<typeof TokenRecord>

export const scalars = { Data, RawText, MoneyText }

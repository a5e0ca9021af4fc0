import { z } from 'zod'
import type { Hex } from '../lib/hex.ts'
import { registerObject, registerSchema } from './schema-registry.ts'

const hex = (digits: number) => z.templateLiteral(['0x', z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`))])

export const Address = registerSchema('Address', 'An address: 40 hex digits, lower case.', hex(40))
export const Bytes32 = registerSchema('Word', '32 bytes, a hash or a topic: 64 hex digits, lower case.', hex(64))
const Data = z.templateLiteral(['0x', z.string().regex(/^([0-9a-f]{2})*$/)])

export const DecimalText = registerSchema(
  'Decimal',
  'An exact number that must not be rounded: no exponent, no plus sign, no trailing zeros, 0 for zero.',
  z.string().regex(/^-?(0|[1-9]\d*)(\.\d*[1-9])?$/),
)
const RawText = registerSchema('Raw', "An amount in the token's smallest unit.", z.string().regex(/^(0|[1-9]\d*)$/))
const MoneyText = registerSchema('Money', 'Money, always with two decimals.', z.string().regex(/^-?(0|[1-9]\d*)\.\d{2}$/))

export const Time = registerSchema(
  'Time',
  'RFC 3339, UTC, with milliseconds.',
  z.string().regex(/^\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
)
export const PositionText = registerSchema(
  'Position',
  'A place on the tape, <epoch>.<seq>, or <epoch>.<seq>.<n> in the sealed view. Opaque text for since, after and before.',
  z.string().regex(/^[0-9a-z]+\.(0|[1-9]\d*)(\.[1-9]\d*)?$/),
)
export const Key = registerSchema(
  'Key',
  'The permanent name of an on-chain fact: <block number>-<transaction hash>-<log index>.',
  z.string().regex(/^(0|[1-9]\d*)-0x[0-9a-f]{64}-(0|[1-9]\d*)$/),
)

export const Digest = registerSchema(
  'Digest',
  'The first 16 bytes, in hex, of SHA-256 over texts that are joined by line feeds.',
  z.string().regex(/^[0-9a-f]{32}$/),
)

/** Makes a key. It contains no block hash, because the hash is null until the block is sealed. */
export const formatKey = (block: number, tx: Hex, logIndex: number): string => `${block}-${tx}-${logIndex}`
export const blockOf = (key: string): number => Number.parseInt(key, 10)
export const txOf = (key: string): Hex => key.split('-')[1] as Hex

export const BlockNumber = z.int().nonnegative()
export const Block = registerObject('Block', 'A block.', {
  number: BlockNumber,
  hash: Bytes32.nullable().describe('Null while the block is pre-confirmed, even if the upstream sends one.'),
  timestamp: Time.nullable().describe("The block's own time."),
})
export type Block = z.infer<typeof Block>

export const Tx = registerObject('Tx', 'The transaction, and the index of the log.', {
  hash: Bytes32,
  index: z.int().nonnegative().describe("The transaction's index in its block."),
  log_index: z.int().nonnegative().describe("The log's index in its block."),
})

export const Stage = registerSchema(
  'Stage',
  'preconfirmed: published before the block is sealed; sealed: in a block with a hash.',
  z.enum(['preconfirmed', 'sealed']),
)
export type Stage = z.infer<typeof Stage>

export const SourceName = registerSchema(
  'Source',
  'How the relay receives events now. sealed: nothing is pre-confirmed; down: nothing arrives.',
  z.enum(['pendingLogs', 'poll', 'sealed', 'down']),
)
export type SourceName = z.infer<typeof SourceName>

export const SourceReason = registerSchema(
  'SourceReason',
  'Why this is the source, and not a better one.',
  z.enum(['ok', 'silent', 'refused', 'behind', 'no_pending', 'unreachable', 'stale_head']),
)
export type SourceReason = z.infer<typeof SourceReason>

export const Ingest = registerObject('Ingest', 'How the log reached the relay.', {
  source: z
    .enum(['pendingLogs', 'poll', 'sealed', 'backfill'])
    .describe('pendingLogs: pushed; poll: polled; sealed: read with its sealed block; backfill: read after an interruption.'),
  received_at: Time.describe('When the relay received the log.'),
  published_at: Time.describe('When it was written to the tape.'),
})
export type Ingest = z.infer<typeof Ingest>

export const Nav = registerObject(
  'ReferenceValue',
  'The reference value of a token (NAV) with its age. Never a price to trade at. It already includes the multiplier.',
  {
    price: DecimalText.nullable().describe('In USD; null when missing or invalid.'),
    updated_at: Time.nullable().describe('When it was last published.'),
    age_s: z.int().nonnegative().nullable().describe("Whole seconds from updated_at to the message's own time, rounded down."),
    state: z
      .enum(['fresh', 'stale', 'missing', 'invalid'])
      .describe(
        'stale: older than stale_after_s, still with a price; missing: no price; invalid: the price or its time is unusable.',
      ),
    stale_after_s: z.int().nonnegative().describe('The age above which the value is stale.'),
    frozen: z
      .boolean()
      .nullable()
      .describe(
        'Whether the registry of the oracle reports that the feed is frozen for a corporate action; null if that is unknown.',
      ),
  },
)
export type Nav = z.infer<typeof Nav>

/** The address of a pool, or in Uniswap v4 its id. */
export const PoolId = z.union([Address, Bytes32])

export const Venue = registerObject('Venue', 'A pool on the chain where the token trades.', {
  kind: z.enum(['uniswap_v3', 'uniswap_v4', 'slipstream']),
  pool: PoolId.describe('The address of the pool; in Uniswap v4 its id.'),
  fee_bps: DecimalText.nullable().describe('The fee of a swap in basis points; null if the upstream does not give it.'),
  currency: z.object({ symbol: z.string(), address: Address }).describe('The other token of the pool, taken as one dollar.'),
  hooks: z
    .union([Address, z.literal('none')])
    .nullable()
    .describe(
      'The contract that may change a Uniswap v4 swap after its event; null if only the id of the pool is known. With a contract the amounts of a trade are those of the pool, not of the trader.',
    ),
})

const BasisBps = DecimalText.nullable().describe(
  '(price / nav.price − 1) × 10,000, rounded half even to two decimals; the currency is taken as one dollar.',
)
const Basis = z
  .enum(['premium', 'drift'])
  .nullable()
  .describe('premium: against a fresh NAV; drift: against a stale or frozen NAV, from which the market may have moved.')
/** Fields that compare a price with the NAV. */
export const basisFields = { basis_bps: BasisBps, basis: Basis, nav: Nav }

/** Fields of a quote on the tape and in a snapshot. */
export const quoteFields = {
  venue: Venue,
  price: DecimalText.nullable().describe('Units of the currency for one token; only in the state ok. Not a price to trade at.'),
  state: z
    .enum(['ok', 'thin', 'empty', 'unreadable'])
    .describe('thin: less depth than POOL_MIN_DEPTH; empty: no liquidity in range; unreadable: no usable answer.'),
  depth: DecimalText.nullable().describe('Units of the currency that buy the token up to one percent above the price.'),
  ...basisFields,
  block: Block.describe('The block whose state was read; pre-confirmed if the hash is null.'),
}

/** Fields of a market session on the tape and in a snapshot. */
export const sessionFields = {
  market: z.string().describe('The market of the underlying stocks, such as XNYS.'),
  state: z.enum(['pre', 'open', 'post', 'overnight', 'closed', 'unknown']).describe('unknown: the date is outside the calendar.'),
  started_at: Time.nullable().describe('When this state began.'),
  ends_at: Time.nullable().describe('When the next state begins.'),
  closed_at: Time.nullable().describe('The end of the last open state before this one; null if the calendar does not contain it.'),
  reason: z.string().nullable().describe('The name of the holiday or early close; null otherwise.'),
  valid_to: Time.describe('The time at which the calendar ends.'),
}

export const Head = registerObject('Head', 'The newest known block numbers.', {
  pending: BlockNumber.nullable().describe('The block being built.'),
  sealed: BlockNumber.nullable().describe('The newest sealed block.'),
  safe: BlockNumber.nullable().describe('The safe block: a reorg below it is unlikely.'),
  finalized: BlockNumber.nullable().describe('The finalized block: nothing below it changes.'),
})
export type Head = z.infer<typeof Head>

export const TokenRecord = registerSchema(
  'TokenRecord',
  "A token's record exactly as the Read API sends it: its own JSON types, unknown fields kept.",
  z.record(z.string(), z.unknown()),
)
export type TokenRecord = z.infer<typeof TokenRecord>

export const scalars = { Data, RawText, MoneyText }

import { z } from 'zod'
import {
  Address,
  Block,
  BlockNumber,
  Bytes32,
  DecimalText,
  Head,
  Ingest,
  Key,
  Nav,
  PositionText,
  registerSchema,
  SourceName,
  SourceReason,
  Stage,
  scalars,
  Time,
  TokenRecord,
  Tx,
} from './fields.ts'

/**
 * What is on the tape: one schema per message. Every message begins with the same six fields, and its fields stand in
 * the order in which they are written here, which is the order on the wire.
 */
const updateFields = <Type extends string>(type: Type) => ({
  type: z.literal(type),
  id: PositionText.describe('The position of this message: come back with it and hear what follows.'),
  prev: PositionText.nullable().describe(
    'The position of the previous message with the same address and type; null if there was none, and in the sealed view.',
  ),
  symbol: z.string().min(1).describe("The token's symbol, the key of its channel; * concerns all of them."),
  address: Address.describe("The token's contract: its identity, whatever its symbol becomes."),
  time: Time.describe('When it was written to the tape.'),
})

/** The common fields of what concerns every token at once. */
const globalUpdateFields = <Type extends string>(type: Type) => ({
  ...updateFields(type),
  symbol: z.literal('*'),
  address: z.null(),
})

const Late = z.boolean().describe('First told when it was sealed, though it could have been told before.')
const factFields = { key: Key, stage: Stage, late: Late }
const locationFields = { block: Block, tx: Tx }
/** What a change carries beside its content when a log, and not the list or the clock, said so. */
const optionalLogFields = {
  key: Key.optional(),
  stage: Stage.optional(),
  late: Late.optional(),
  block: Block.optional(),
  tx: Tx.optional(),
}

const Amount = DecimalText.nullable().describe('raw / 10^decimals; null where the decimals are unknown.')

const movementSchema = <Type extends string>(type: Type, description: string) =>
  registerSchema(
    type,
    description,
    z.object({
      ...updateFields(type),
      ...factFields,
      from: Address.describe('Who gave; the zero address for a mint.'),
      to: Address.describe('Who received; the zero address for a burn.'),
      raw: scalars.RawText,
      amount: Amount,
      multiplier: DecimalText.nullable().describe(
        "The scaling factor as of the log's place in the chain; 1 is none, null is unknown.",
      ),
      shares: DecimalText.nullable().describe(
        'floor(raw × multiplier) / 10^decimals: rounded down to base units, as the token itself does.',
      ),
      reference_value: scalars.MoneyText.nullable().describe(
        'amount × nav.price, half up. The multiplier is in the NAV already. Not a price to trade at.',
      ),
      nav: Nav,
      memo: Bytes32.nullable().describe('What the sender wrote beside it.'),
      ...locationFields,
      ingest: Ingest,
    }),
  )

const Transfer = movementSchema('transfer', 'Tokens went from one holder to another.')
const Mint = movementSchema('mint', 'Tokens were issued.')
const Burn = movementSchema('burn', 'Tokens were taken out of the world.')
const Seize = movementSchema('seize', 'The issuer took tokens from a holder.')

const Approval = registerSchema(
  'approval',
  'An allowance was set. Told only to those who name the type.',
  z.object({
    ...updateFields('approval'),
    ...factFields,
    owner: Address.describe('Whose tokens they are.'),
    spender: Address.describe('Who may move them.'),
    raw: scalars.RawText,
    amount: Amount,
    ...locationFields,
    ingest: Ingest,
  }),
)

const Multiplier = registerSchema(
  'multiplier',
  'A corporate action on the scaling factor. A scheduled one takes effect by chain time, before the first movement that uses it.',
  z.object({
    ...updateFields('multiplier'),
    phase: z.enum(['scheduled', 'effective', 'cancelled']),
    from: DecimalText.nullable().describe('The factor before.'),
    to: DecimalText.nullable().describe('The factor from effective_at on.'),
    effective_at: Time.nullable().describe("The block's own time from which on it holds."),
    source: z.enum(['log', 'clock', 'list']).describe('Who said so; clock is the chain’s own.'),
    ...optionalLogFields,
  }),
)

const Pause = registerSchema(
  'pause',
  'Features of a token were paused or unpaused.',
  z.object({
    ...updateFields('pause'),
    change: z.enum(['paused', 'unpaused']),
    features: z
      .array(z.string())
      .describe('The features that changed, by name: TRANSFER, MINT, BURN, SEIZE, or UNKNOWN_<n>.'),
    feature_ids: z.array(z.int()).describe('Their ordinals.'),
    paused: z.array(z.string()).describe('The names of all features that are paused now.'),
    source: z.enum(['log', 'list']).describe('Who said so.'),
    ...optionalLogFields,
  }),
)

const Action = registerSchema(
  'action',
  'The issuer announced a corporate action, and why.',
  z.object({
    ...updateFields('action'),
    ...factFields,
    action_id: z.string(),
    description: z.string().describe("The issuer's words: text, never markup."),
    uri: z.string().describe("The issuer's words: text, never markup."),
    keys: z.array(Key).describe('What happened inside the announcement; each has a message of its own.'),
    ...locationFields,
  }),
)

const Token = registerSchema(
  'token',
  'A token is listed, delisted, or its record changed.',
  z.object({
    ...updateFields('token'),
    change: z.enum(['listed', 'delisted', 'changed']),
    changed: z.array(z.string()).describe('The fields that differ; what has a type of its own is not among them.'),
    token: TokenRecord,
    before: TokenRecord.nullable().describe('The former values of the changed fields.'),
    source: z.enum(['list', 'log']).describe('Who said so.'),
    ...optionalLogFields,
  }),
)

const NavChange = registerSchema(
  'nav',
  'The reference value of a token, its time or its state changed.',
  z.object({
    ...updateFields('nav'),
    nav: Nav,
    before: Nav.nullable().describe('The former NAV; null if there was none.'),
    source: z.enum(['list', 'log']).describe('Who said so.'),
  }),
)

const OtherLog = registerSchema(
  'log',
  'A listed token said something that has no type of its own. Told only to those who name the type.',
  z.object({
    ...updateFields('log'),
    ...factFields,
    topics: z.array(Bytes32).max(4),
    data: scalars.Data,
    ...locationFields,
  }),
)

/** What is told of one on-chain fact: all that a retraction can take back and an amendment can correct. */
const factSchemas = [Transfer, Mint, Burn, Seize, Approval, Multiplier, Pause, Action, Token, OtherLog] as const
const FactType = z.enum(factSchemas.map((schema) => schema.shape.type.value))

const Retract = registerSchema(
  'retract',
  'Something that was told is not so.',
  z.object({
    ...updateFields('retract'),
    key: Key,
    of: FactType.describe('As what it was told.'),
    was: PositionText.describe('The last message that told or amended it.'),
    reason: z
      .enum(['reorg', 'replaced', 'not_sealed'])
      .describe(
        'reorg: it had been sealed; replaced: the same content is sealed under the key by; not_sealed: neither.',
      ),
    by: Key.nullable(),
    now: z
      .union([
        z.object({ multiplier: DecimalText.nullable() }),
        z.object({ paused: z.array(z.string()) }),
        z.object({ token: TokenRecord }),
      ])
      .nullable()
      .describe('For multiplier, pause and token: the value that holds again; else null.'),
    block: Block.describe('The sealed block that shows it.'),
  }),
)

/** A whole message as an amendment carries it: without the three fields that the tape gives. */
const withoutTapeFields = <Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>) => {
  const { id: _id, prev: _prev, time: _time, ...rest } = schema.shape
  return z.object(rest as Omit<Shape, 'id' | 'prev' | 'time'>)
}

const AmendedMessage = z
  .union([
    withoutTapeFields(Transfer),
    withoutTapeFields(Mint),
    withoutTapeFields(Burn),
    withoutTapeFields(Seize),
    withoutTapeFields(Approval),
    withoutTapeFields(Multiplier),
    withoutTapeFields(Pause),
    withoutTapeFields(Action),
    withoutTapeFields(Token),
    withoutTapeFields(OtherLog),
  ])
  .describe('The whole new message, but for id, prev and time.')

const Amend = registerSchema(
  'amend',
  'A fact stands, and its content is another than was told; the type may change.',
  z.object({
    ...updateFields('amend'),
    key: Key,
    of: FactType.describe('As what it was told before.'),
    was: PositionText.describe('The last message that told or amended it.'),
    changed: z.array(z.string()).describe('The fields that differ.'),
    update: AmendedMessage,
  }),
)

const Seal = registerSchema(
  'seal',
  'A block that holds logs of this token was sealed: each of them, and how they hang together. It replaces an earlier one of the same block number.',
  z.object({
    ...updateFields('seal'),
    block: Block,
    keys: z.array(Key).describe('Every sealed log of the token in this block, in log order.'),
    types: z
      .array(z.enum([...FactType.options, 'part']))
      .describe('Beside keys: as what each was told, or part where it was folded into another.'),
    late_keys: z.array(Key).describe('Those that were first published, with late: true, when this block was sealed.'),
    count: z.int().nonnegative().describe('How many keys there are.'),
    digest: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .describe('The first 16 bytes, as hex, of SHA-256 over the keys joined by line feeds.'),
  }),
)

const Hole = registerSchema(
  'hole',
  'Sealed blocks could not be read: what they hold is not on the tape.',
  z.object({
    ...globalUpdateFields('hole'),
    blocks: z.object({ first: BlockNumber, last: BlockNumber }).describe('Both ends are missing too.'),
    reason: z.string(),
  }),
)

const Finality = registerSchema(
  'finality',
  'A watermark of the chain moved.',
  z.object({
    ...globalUpdateFields('finality'),
    stage: z.enum(['safe', 'finalized']),
    block: Block.describe('The newest block that is that firm.'),
  }),
)

const Status = registerSchema(
  'status',
  'Where pre-confirmations come from changed, or why.',
  z.object({
    ...globalUpdateFields('status'),
    source: SourceName,
    since: Time.describe('Since when it is so.'),
    reason: SourceReason,
    head: Head,
  }),
)

/** One thing that happened, as it stands on the tape. */
export const Update = z.discriminatedUnion('type', [
  Transfer,
  Mint,
  Burn,
  Seize,
  Approval,
  Multiplier,
  Pause,
  Action,
  Token,
  NavChange,
  OtherLog,
  Retract,
  Amend,
  Seal,
  Hole,
  Finality,
  Status,
])
export type Update = z.infer<typeof Update>
export type UpdateType = Update['type']
type UpdateOf<Type extends UpdateType> = Extract<Update, { type: Type }>

type WithoutTapeFields<Message> = Message extends unknown ? Omit<Message, 'id' | 'prev'> : never
/** An update that the tape has not numbered yet. */
export type Draft = WithoutTapeFields<Update>
export type DraftOf<Type extends UpdateType> = Extract<Draft, { type: Type }>

export const updateTypes: readonly UpdateType[] = Update.options.map((schema) => schema.shape.type.value)
/** What a selection hears that names no types: all but the two that few ask for. */
export const defaultTypes: readonly UpdateType[] = updateTypes.filter((type) => type !== 'approval' && type !== 'log')

/** An ERC-20 movement, whichever of its four names it bears. */
export type Movement = UpdateOf<'transfer' | 'mint' | 'burn' | 'seize'>
export const movementTypes: ReadonlySet<UpdateType> = new Set(['transfer', 'mint', 'burn', 'seize'])

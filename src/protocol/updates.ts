import { z } from 'zod'
import {
  Address,
  Block,
  BlockNumber,
  Bytes32,
  basisFields,
  DecimalText,
  Digest,
  Head,
  Ingest,
  Key,
  Nav,
  PoolId,
  PositionText,
  quoteFields,
  SourceName,
  SourceReason,
  Stage,
  scalars,
  sessionFields,
  Time,
  TokenRecord,
  Tx,
  Venue,
} from './fields.ts'
import { registerObject } from './schema-registry.ts'

/** The order of fields in a schema is their order on the wire. */
const updateFields = <Type extends string>(type: Type) => ({
  type: z.literal(type),
  id: PositionText.describe('The position of this message. Reconnect with it to receive what follows.'),
  prev: PositionText.nullable().describe(
    'The position of the previous message with this address and type; null if there is none, and in the sealed view.',
  ),
  symbol: z.string().min(1).describe("The token's symbol; * concerns all tokens."),
  address: Address.describe("The token's contract. Unlike the symbol it never changes."),
  time: Time.describe('The time at which it was written to the tape.'),
})

const updateSchema = <Type extends string, Fields extends z.ZodRawShape>(type: Type, description: string, fields: Fields) =>
  registerObject(type, description, { ...updateFields(type), ...fields })

/** Makes the schema of a message that concerns every token. */
const globalSchema = <Type extends string, Fields extends z.ZodRawShape>(type: Type, description: string, fields: Fields) =>
  registerObject(type, description, { ...updateFields(type), symbol: z.literal('*'), address: z.null(), ...fields })

const Late = z.boolean().describe('First published when its block was already sealed; not new.')
const factFields = { key: Key, stage: Stage, late: Late }
const locationFields = { block: Block, tx: Tx }
/** Fields that a message has only if `source` is `log`, not `list` or `clock`. */
const optionalLogFields = z.object({ ...factFields, ...locationFields }).partial().shape

const Amount = DecimalText.nullable().describe('raw / 10^decimals; null if the decimals are unknown.')

/** An amount of the token, and the shares that it stands for at this position of the chain. */
const amountFields = {
  raw: scalars.RawText,
  amount: Amount,
  multiplier: DecimalText.nullable().describe(
    "The multiplier at the log's position in the chain; 1 if there is none, null if unknown.",
  ),
  shares: DecimalText.nullable().describe('floor(raw × multiplier) / 10^decimals, rounded down as the token contract does.'),
}
const ReferenceMoney = scalars.MoneyText.nullable().describe(
  'amount × nav.price, rounded half up. The NAV is the value of one token and already includes the multiplier. Not a price to trade at.',
)

const movementSchema = <Type extends string>(type: Type, description: string) =>
  updateSchema(type, description, {
    ...factFields,
    from: Address.describe('The sender; the zero address for a mint.'),
    to: Address.describe('The recipient; the zero address for a burn.'),
    ...amountFields,
    reference_value: ReferenceMoney,
    nav: Nav,
    memo: Bytes32.nullable().describe('The memo of the movement; null if there is none.'),
    ...locationFields,
    ingest: Ingest,
  })

const Transfer = movementSchema('transfer', 'Tokens moved from one holder to another.')
const Mint = movementSchema('mint', 'Tokens were issued.')
const Burn = movementSchema('burn', 'Tokens were destroyed.')
const Seize = movementSchema('seize', 'The issuer seized tokens from a holder.')

/** Fields of a trade on the tape and in a snapshot. */
export const tradeFields = {
  ...factFields,
  venue: Venue,
  side: z.enum(['buy', 'sell']).nullable().describe('buy: the token left the pool; sell: it went in; null if nothing moved.'),
  ...amountFields,
  currency_amount: DecimalText.describe('Units of the currency that went the other way, with the fee of the pool.'),
  price: DecimalText.nullable().describe('currency_amount / amount, rounded half even to eight decimals; null if either is 0.'),
  pool_price: DecimalText.nullable().describe('The price of the pool after the swap, as in a quote; null at a bound.'),
  reference_value: ReferenceMoney,
  ...basisFields,
  sender: Address.describe('As in the event. It need not be the trader.'),
  recipient: Address.nullable().describe('As in the event; null in Uniswap v4.'),
  ...locationFields,
  ingest: Ingest,
}
export type TradeFields = z.infer<z.ZodObject<typeof tradeFields>>

const Trade = updateSchema(
  'trade',
  'A pool that the relay follows swapped the token. Not its transfers: tx.hash joins them.',
  tradeFields,
)

const Approval = updateSchema('approval', 'An allowance was set. Sent only if types names it.', {
  ...factFields,
  owner: Address.describe('The holder of the tokens.'),
  spender: Address.describe('The address that may move them.'),
  raw: scalars.RawText,
  amount: Amount,
  ...locationFields,
  ingest: Ingest,
})

const Multiplier = updateSchema(
  'multiplier',
  'A corporate action on the multiplier. A scheduled one takes effect when chain time reaches effective_at; its effective message precedes the first movement that uses it.',
  {
    phase: z.enum(['scheduled', 'effective', 'cancelled']),
    previous: DecimalText.nullable().describe('The former multiplier.'),
    multiplier: DecimalText.nullable().describe('The multiplier from effective_at on.'),
    effective_at: Time.nullable().describe('The block time from which the new multiplier is used.'),
    source: z.enum(['log', 'clock', 'list']).describe('The source of the change; clock is chain time.'),
    ...optionalLogFields,
  },
)

const Pause = updateSchema('pause', 'Features of a token were paused or unpaused.', {
  change: z.enum(['paused', 'unpaused']),
  features: z.array(z.string()).describe('The features that changed, by name: TRANSFER, MINT, BURN, SEIZE, or UNKNOWN_<n>.'),
  feature_ids: z.array(z.int()).describe('Their numbers in the contract.'),
  paused: z.array(z.string()).describe('The names of all features that are paused after this change.'),
  source: z.enum(['log', 'list']).describe('The source of the change.'),
  ...optionalLogFields,
})

const Action = updateSchema('action', 'The issuer announced a corporate action.', {
  ...factFields,
  action_id: z.string(),
  description: z.string().describe("The issuer's own text; show it as plain text."),
  uri: z.string().describe("The issuer's own text; show it as plain text."),
  keys: z.array(Key).describe('The facts between the start log and the end log; each has its own message.'),
  ...locationFields,
})

const Token = updateSchema('token', 'A token was listed or delisted, or its record changed.', {
  change: z.enum(['listed', 'delisted', 'changed']),
  changed: z.array(z.string()).describe('The names of the changed fields, without those that have their own message type.'),
  token: TokenRecord,
  before: TokenRecord.nullable().describe('The former values of the changed fields.'),
  source: z.enum(['list', 'log']).describe('The source of the change.'),
  ...optionalLogFields,
})

const NavChange = updateSchema('nav', 'The reference value of a token, its time or its state changed.', {
  nav: Nav,
  before: Nav.nullable().describe('The former NAV; null if there was none.'),
  source: z.enum(['list', 'log']).describe('The source of the change.'),
})

const OtherLog = updateSchema('log', 'A log of a listed token that has no message type of its own. Sent only if types names it.', {
  ...factFields,
  topics: z.array(Bytes32).max(4),
  data: scalars.Data,
  ...locationFields,
})

/** A row of the table of update types. Everything else about a type is derived from its row, and printed into the SDK. */
type UpdateRow = {
  readonly schema: z.ZodObject<{ readonly type: z.ZodLiteral<string> } & z.ZodRawShape>
  /**
   * Four kinds have a key, which may be amended and retracted: `movement` of tokens, `trade`, `change` of a token's state,
   * and any other `event`. A `fate` seals, amends or retracts a key. `state` and `reading` have no key; a new reading
   * replaces the last one.
   */
  readonly kind: 'movement' | 'trade' | 'change' | 'event' | 'fate' | 'state' | 'reading'
  /** Whether a selection that names no types contains this type. */
  readonly isDefault: boolean
  /** Whether eviction by count may delete the message. `byKeys`: only if it may delete every publication of its keys. */
  readonly isEvictable: boolean | 'byKeys'
}

type FactRow = UpdateRow & {
  /** Fields that depend on the log alone, not on source, time, block or NAV. Facts have equal content if these are equal. */
  readonly content: readonly string[]
}

const movementContent = ['from', 'to', 'raw', 'memo']

export const factRows = {
  transfer: { schema: Transfer, kind: 'movement', isDefault: true, isEvictable: true, content: movementContent },
  mint: { schema: Mint, kind: 'movement', isDefault: true, isEvictable: true, content: movementContent },
  burn: { schema: Burn, kind: 'movement', isDefault: true, isEvictable: true, content: movementContent },
  seize: { schema: Seize, kind: 'movement', isDefault: true, isEvictable: true, content: movementContent },
  trade: {
    schema: Trade,
    kind: 'trade',
    isDefault: true,
    isEvictable: true,
    content: ['side', 'raw', 'currency_amount', 'sender', 'recipient'],
  },
  approval: { schema: Approval, kind: 'event', isDefault: false, isEvictable: true, content: ['owner', 'spender', 'raw'] },
  multiplier: {
    schema: Multiplier,
    kind: 'change',
    isDefault: true,
    isEvictable: false,
    content: ['phase', 'multiplier', 'effective_at'],
  },
  pause: { schema: Pause, kind: 'change', isDefault: true, isEvictable: false, content: ['change', 'feature_ids'] },
  action: { schema: Action, kind: 'event', isDefault: true, isEvictable: false, content: ['action_id', 'description', 'uri'] },
  token: { schema: Token, kind: 'change', isDefault: true, isEvictable: false, content: ['changed'] },
  log: { schema: OtherLog, kind: 'event', isDefault: false, isEvictable: true, content: ['topics', 'data'] },
} as const satisfies Readonly<Record<string, FactRow>>

export type FactType = keyof typeof factRows
const factTypeNames = Object.keys(factRows) as [FactType, ...FactType[]]
const FactTypeText = z.enum(factTypeNames)
const followedFields = {
  key: Key,
  fact_type: FactTypeText.describe('The type under which it was published or last amended.'),
  fact_id: PositionText.describe('The position of the last message that published or amended it.'),
}

const Retract = updateSchema('retract', 'A published fact did not happen.', {
  ...followedFields,
  reason: z
    .enum(['reorg', 'replaced', 'not_sealed'])
    .describe('replaced: its content is sealed under replaced_by; reorg: the fact had been sealed; not_sealed: neither.'),
  replaced_by: Key.nullable(),
  restored: z
    .union([
      z.object({ multiplier: DecimalText.nullable() }),
      z.object({ paused: z.array(z.string()) }),
      z.object({ token: TokenRecord }),
    ])
    .nullable()
    .describe('The value that is valid again, for multiplier, pause and token; else null.'),
  block: Block.describe('The sealed block that proves the retract.'),
})

type TapeField = 'id' | 'prev' | 'time'
type Amended = { readonly [Type in FactType]: Omit<z.infer<(typeof factRows)[Type]['schema']>, TapeField> }[FactType]

const AmendedMessage = z
  .union(
    factTypeNames.map((type) => {
      const { schema }: UpdateRow = factRows[type]
      return schema.omit({ id: true, prev: true, time: true }) as unknown as z.ZodType<Amended>
    }),
  )
  .describe('The whole new message, without id, prev and time.')

const Amend = updateSchema('amend', 'The content of a published fact changed. Its type may change too.', {
  ...followedFields,
  changed: z.array(z.string()).describe('The names of the changed fields.'),
  update: AmendedMessage,
})

const Seal = updateSchema(
  'seal',
  'A block with logs of this token was sealed. Lists all of them, and replaces an earlier seal of the same block number.',
  {
    block: Block,
    keys: z.array(Key).describe('The keys of all logs of the token in this block, in log order.'),
    types: z
      .array(z.enum([...FactTypeText.options, 'part']))
      .describe(
        'For each key the type under which it was published or last amended, or part if the message of another key contains the log.',
      ),
    late_keys: z.array(Key).describe('The keys that are first published now with late: true.'),
    count: z.int().nonnegative().describe('The number of keys.'),
    digest: Digest.describe('The first 16 bytes, in hex, of SHA-256 over the keys joined by line feeds.'),
  },
)

const Hole = globalSchema('hole', 'Sealed blocks could not be read; their logs are not on the tape.', {
  blocks: z.object({ first: BlockNumber, last: BlockNumber }).describe('The blocks that could not be read, both ends included.'),
  reason: z.string().describe('For example pruned, backfill_bound, or reorg: replaced deeper than the relay can roll back.'),
})

const Finality = globalSchema('finality', 'The safe or the finalized block moved.', {
  stage: z.enum(['safe', 'finalized']),
  block: Block.describe('The newest block at that stage.'),
})

const Status = globalSchema('status', 'The source of events or its reason changed.', {
  source: SourceName,
  started_at: Time.describe('When this source began, for this reason.'),
  reason: SourceReason,
  head: Head,
})

const Quote = updateSchema(
  'quote',
  "The token's price in a pool on the chain changed: a reading, never sealed or retracted. The next one replaces it.",
  quoteFields,
)

/** A pool that the relay follows, in a snapshot. */
export const venueStartFields = { venue: Venue, from_block: BlockNumber.describe('The first block for which the change holds.') }

const VenueChange = updateSchema('venue', 'A pool is followed from a block on, or no longer.', {
  change: z.enum(['followed', 'dropped']),
  ...venueStartFields,
  reason: z
    .enum(['settings', 'delisted', 'refused', 'wrong_tokens'])
    .nullable()
    .describe('Why it was dropped. refused: the upstream does not answer for its logs; wrong_tokens: it trades other tokens.'),
})

/** Fields of a bar on the tape and in a page of bars, from `start` to `partial`. */
export const barFields = {
  start: Time.describe('The first moment of the bar, in chain time.'),
  end: Time.describe('The first moment after the bar.'),
  revision: z
    .int()
    .positive()
    .describe('1 when a minute is first published, then one more each time. Of a longer bar: the sum over its minutes.'),
  open: DecimalText.nullable().describe('The price of the first trade, in units of the currency; null if no trade has a price.'),
  high: DecimalText.nullable(),
  low: DecimalText.nullable(),
  close: DecimalText.nullable().describe('The price of the last trade.'),
  vwap: DecimalText.nullable().describe('currency_volume / volume, rounded half even to eight decimals.'),
  trades: z.int().nonnegative().describe('The number of trades; 0 if all of them are gone.'),
  volume: DecimalText.describe('Tokens that were traded.'),
  shares: DecimalText.nullable().describe('The shares that they stood for; null if a multiplier is unknown.'),
  currency_volume: DecimalText.describe('Units of the currency that were traded.'),
  buy_volume: DecimalText.describe('Tokens that left the pools.'),
  buy_currency_volume: DecimalText.describe('Units of the currency that were paid for them.'),
  ...basisFields,
  venues: z.array(PoolId).readonly().describe('The pools with trades in the bar: their addresses, or ids of Uniswap v4.'),
  blocks: z
    .object({ first: BlockNumber, last: BlockNumber })
    .nullable()
    .describe('The first and the last block with a trade; null if there is none.'),
  partial: z
    .string()
    .nullable()
    .describe('Null, or why trades may be missing: the reason of a hole, or of a pool that was dropped inside.'),
}
export type BarFields = z.infer<z.ZodObject<typeof barFields>>

const Bar = updateSchema('bar', 'A minute with trades is over, or its trades changed. Sent only if types names it.', barFields)

const Session = globalSchema('session', 'The market of the underlying stocks opened or closed.', sessionFields)

export const updateRows = {
  ...factRows,
  nav: { schema: NavChange, kind: 'reading', isDefault: true, isEvictable: false },
  retract: { schema: Retract, kind: 'fate', isDefault: true, isEvictable: false },
  amend: { schema: Amend, kind: 'fate', isDefault: true, isEvictable: false },
  seal: { schema: Seal, kind: 'fate', isDefault: true, isEvictable: 'byKeys' },
  hole: { schema: Hole, kind: 'state', isDefault: true, isEvictable: false },
  finality: { schema: Finality, kind: 'reading', isDefault: true, isEvictable: false },
  status: { schema: Status, kind: 'state', isDefault: true, isEvictable: false },
  quote: { schema: Quote, kind: 'reading', isDefault: true, isEvictable: true },
  venue: { schema: VenueChange, kind: 'state', isDefault: true, isEvictable: false },
  bar: { schema: Bar, kind: 'reading', isDefault: false, isEvictable: true },
  session: { schema: Session, kind: 'state', isDefault: true, isEvictable: false },
} as const satisfies Readonly<Record<string, UpdateRow>>

export type UpdateType = keyof typeof updateRows
type UpdateSchema = (typeof updateRows)[UpdateType]['schema']

export const updateTypes = Object.keys(updateRows) as readonly UpdateType[]
export const Update = z.discriminatedUnion(
  'type',
  updateTypes.map((type): UpdateSchema => updateRows[type].schema) as [UpdateSchema, ...UpdateSchema[]],
)
export type Update = z.infer<UpdateSchema>

type WithoutTapeFields<Message> = Message extends unknown ? Omit<Message, 'id' | 'prev'> : never
/** An update before the tape numbers it. */
export type Draft = WithoutTapeFields<Update>
export type DraftOf<Type extends UpdateType> = Extract<Draft, { type: Type }>

type Kind = UpdateRow['kind']
type TypeOfKind<K extends Kind> = { [Type in UpdateType]: (typeof updateRows)[Type]['kind'] extends K ? Type : never }[UpdateType]

export const typesOfKind = <const K extends Kind>(...kinds: readonly K[]): readonly TypeOfKind<K>[] =>
  updateTypes.filter((type): type is TypeOfKind<K> => kinds.some((kind) => kind === updateRows[type].kind))

export const defaultTypes: readonly UpdateType[] = updateTypes.filter((type) => updateRows[type].isDefault)
/** Types that a selection contains only if it names them. */
export const namedTypes = updateTypes.filter((type) => !updateRows[type].isDefault)
export const followingTypes = typesOfKind('fate')
export const globalTypes = updateTypes.filter((type) => updateRows[type].schema.shape.address instanceof z.ZodNull)

export type Movement = Extract<Update, { type: TypeOfKind<'movement'> }>
export const movementTypes: ReadonlySet<UpdateType> = new Set(typesOfKind('movement'))

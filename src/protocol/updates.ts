import { z } from 'zod'
import {
  Address,
  Block,
  BlockNumber,
  DecimalText,
  Head,
  Ingest,
  Key,
  Nav,
  PositionText,
  parts,
  SourceName,
  SourceReason,
  Stage,
  Time,
  TokenRecord,
  Tx,
  Word,
} from './parts.ts'

/**
 * What is on the tape: one schema per message. Every message begins with the same six fields, and its fields stand in
 * the order in which they are written here, which is the order on the wire.
 */
const onTape = <Type extends string>(type: Type) => ({
  type: z.literal(type),
  id: PositionText,
  prev: PositionText.nullable(),
  symbol: z.string().min(1),
  address: Address,
  time: Time,
})

/** The common fields of what concerns every token at once. */
const ofAll = <Type extends string>(type: Type) => ({
  ...onTape(type),
  symbol: z.literal('*'),
  address: z.null(),
})

const fact = { key: Key, stage: Stage, late: z.boolean() }
const place = { block: Block, tx: Tx }
/** What a change carries beside its content when a log, and not the list or the clock, said so. */
const saidByLog = {
  key: Key.optional(),
  stage: Stage.optional(),
  late: z.boolean().optional(),
  block: Block.optional(),
  tx: Tx.optional(),
}

const movement = <Type extends string>(type: Type) =>
  z.object({
    ...onTape(type),
    ...fact,
    from: Address,
    to: Address,
    raw: parts.RawText,
    amount: DecimalText.nullable(),
    multiplier: DecimalText.nullable(),
    shares: DecimalText.nullable(),
    reference_value: parts.MoneyText.nullable(),
    nav: Nav,
    memo: Word.nullable(),
    ...place,
    ingest: Ingest,
  })

const Transfer = movement('transfer')
const Mint = movement('mint')
const Burn = movement('burn')
const Seize = movement('seize')

const Approval = z.object({
  ...onTape('approval'),
  ...fact,
  owner: Address,
  spender: Address,
  raw: parts.RawText,
  amount: DecimalText.nullable(),
  ...place,
  ingest: Ingest,
})

const Multiplier = z.object({
  ...onTape('multiplier'),
  phase: z.enum(['scheduled', 'effective', 'cancelled']),
  from: DecimalText.nullable(),
  to: DecimalText.nullable(),
  effective_at: Time.nullable(),
  source: z.enum(['log', 'clock', 'list']),
  ...saidByLog,
})

const Pause = z.object({
  ...onTape('pause'),
  paused: z.boolean(),
  features: z.array(z.string()),
  raw: z.array(z.int()),
  now: z.array(z.int()),
  source: z.enum(['log', 'list']),
  ...saidByLog,
})

const Action = z.object({
  ...onTape('action'),
  ...fact,
  action_id: z.string(),
  description: z.string(),
  uri: z.string(),
  keys: z.array(Key),
  ...place,
})

const Token = z.object({
  ...onTape('token'),
  change: z.enum(['listed', 'delisted', 'changed']),
  changed: z.array(z.string()),
  token: TokenRecord,
  was: TokenRecord.nullable(),
  source: z.enum(['list', 'log']),
  ...saidByLog,
})

const NavChange = z.object({
  ...onTape('nav'),
  nav: Nav,
  was: Nav.nullable(),
  source: z.enum(['list', 'log']),
})

const OtherLog = z.object({
  ...onTape('log'),
  ...fact,
  topics: z.array(Word).max(4),
  data: parts.Data,
  ...place,
})

/** What is told of one on-chain fact: all that a retraction can take back and an amendment can correct. */
const facts = [Transfer, Mint, Burn, Seize, Approval, Multiplier, Pause, Action, Token, OtherLog] as const
const FactType = z.enum(facts.map((schema) => schema.shape.type.value))

const Retract = z.object({
  ...onTape('retract'),
  key: Key,
  of: FactType,
  was: PositionText,
  reason: z.enum(['reorg', 'replaced', 'not_sealed']),
  by: Key.nullable(),
  now: z.unknown(),
  block: Block,
})

/** A whole message as an amendment carries it: without the three fields that the tape gives. */
const untaped = <Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>) => {
  const { id: _id, prev: _prev, time: _time, ...rest } = schema.shape
  return z.object(rest as Omit<Shape, 'id' | 'prev' | 'time'>)
}

const Amend = z.object({
  ...onTape('amend'),
  key: Key,
  of: FactType,
  was: PositionText,
  changed: z.array(z.string()),
  update: z.union([
    untaped(Transfer),
    untaped(Mint),
    untaped(Burn),
    untaped(Seize),
    untaped(Approval),
    untaped(Multiplier),
    untaped(Pause),
    untaped(Action),
    untaped(Token),
    untaped(OtherLog),
  ]),
})

const Seal = z.object({
  ...onTape('seal'),
  block: Block,
  keys: z.array(Key),
  types: z.array(z.enum([...FactType.options, 'part'])),
  late: z.array(Key),
  count: z.int().nonnegative(),
  digest: z.string().regex(/^[0-9a-f]{32}$/),
})

const Hole = z.object({
  ...ofAll('hole'),
  blocks: z.object({ from: BlockNumber, to: BlockNumber }),
  reason: z.string(),
})

const Finality = z.object({
  ...ofAll('finality'),
  stage: z.enum(['safe', 'finalized']),
  block: Block,
})

const Status = z.object({
  ...ofAll('status'),
  source: SourceName,
  since: Time,
  reason: SourceReason,
  head: Head,
})

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

type Untaped<Message> = Message extends unknown ? Omit<Message, 'id' | 'prev'> : never
/** An update that the tape has not numbered yet. */
export type Draft = Untaped<Update>
export type DraftOf<Type extends UpdateType> = Extract<Draft, { type: Type }>

export const updateTypes: readonly UpdateType[] = Update.options.map((schema) => schema.shape.type.value)
/** What a selection hears that names no types: all but the two that few ask for. */
export const defaultTypes: readonly UpdateType[] = updateTypes.filter((type) => type !== 'approval' && type !== 'log')

/** An ERC-20 movement, whichever of its four names it bears. */
export type Movement = UpdateOf<'transfer' | 'mint' | 'burn' | 'seize'>
export const movementTypes: ReadonlySet<UpdateType> = new Set(['transfer', 'mint', 'burn', 'seize'])

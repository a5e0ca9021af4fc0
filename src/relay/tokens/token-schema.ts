import { z } from 'zod'
import { Address, Nav, TokenRecord } from '../../protocol/fields.ts'

/** The value of a schema. It is never changed but replaced, because several parts of the relay share it. */
export type Stored<Schema extends z.ZodType> = DeepReadonly<z.infer<Schema>>
type DeepReadonly<Value> = Value extends object ? { readonly [Name in keyof Value]: DeepReadonly<Value[Name]> } : Value

/** Greatest time in ms that a `Date` can hold. */
const DATE_BOUND_MS = 8.64e15
/** Limit of a contract's decimals: it answers with one byte. */
const DECIMALS_BOUND = 255

export const Milliseconds = z.number().min(-DATE_BOUND_MS).max(DATE_BOUND_MS)
export const Decimals = z.int().min(0).max(DECIMALS_BOUND)

const Text = z.string().nullable()
const Features = z.array(z.int())
const Source = z.enum(['log', 'call', 'list'])

const chainPosition = { block: z.int(), logIndex: z.int() }
/** Only a change from a log has a key. */
const keyedPosition = { ...chainPosition, key: Text }

export const MultiplierHistorySchema = z.object({
  initial: Text,
  /** Where the initial value begins, if older changes were left out: what held before them is forgotten. */
  initialFrom: z.object(chainPosition).exactOptional(),
  /** The first block that could not be read. Changes from there to `lastUnreadBlock` may be unknown. */
  firstUnreadBlock: z.int().nullable(),
  lastUnreadBlock: z.int().nullable(),
  /** Changes after the initial value, in chain order. */
  changes: z.array(
    z.object({
      ...keyedPosition,
      source: Source,
      phase: z.enum(['scheduled', 'effective', 'cancelled']),
      /** Multiplier before this change; null if the source does not contain it. */
      from: Text,
      /** Multiplier after this change; null if none is known. */
      to: Text,
      /** Time in seconds at which the change takes effect; null if unknown. */
      effectiveAt: z.number().nullable(),
      /** Time of the change's block in seconds; null if unknown. */
      timestamp: z.number().nullable(),
      /** For a schedule: true once chain time has reached it, so that it is in effect. */
      isApplied: z.boolean(),
      /** Set if the change is derived: in unread blocks from the next log's former value, or from an answer of replaced blocks. */
      isDerived: z.literal(true).exactOptional(),
    }),
  ),
})

/** The features that were paused initially, and later changes in chain order. */
export const PauseHistorySchema = z.object({
  initial: Features,
  /** A log pauses or unpauses some features. The list and a contract call report all paused features. */
  changes: z.array(z.object({ ...keyedPosition, kind: z.enum(['paused', 'unpaused', 'all']), features: Features })),
})

/** A NAV as it was read, before `navAt` gives it a state. */
export const NavReadingSchema = z.object({
  /** Text of the number; null if it is missing. */
  price: Text,
  /** Time of its publication in ms; null if it is unknown or invalid. */
  updatedAt: Milliseconds.nullable(),
})

/** The NAVs of a token: those of the list and the rounds of its feed. The newest are last. */
export const NavHistorySchema = z.object({
  list: z.array(NavReadingSchema),
  feed: z.array(
    z.object({
      ...NavReadingSchema.shape,
      /** Number of the feed's aggregator. Each aggregator counts its rounds from the start. */
      phase: z.int(),
      /** Number of the round as decimal text, because a double cannot hold every round number. */
      round: z.string().regex(/^\d+$/),
      /** Null for a round that a call reported. */
      position: z.object(chainPosition).nullable(),
      key: Text,
      sealed: z.boolean(),
    }),
  ),
})

/** A change of one field of the record by a log. It is in effect until the list changes that field. */
export const RecordChangeSchema = z.object({
  ...keyedPosition,
  field: z.string(),
  /** Name of the entry, if the field is a table; otherwise null. */
  entry: Text,
  /** New value; null if the log removed the value. */
  value: Text,
})

/** The current state of a token. It is derived from the histories, and stored so that reads need not derive it. */
const derivedState = {
  symbol: z.string(),
  multiplier: Text,
  multiplierSource: Source.nullable(),
  /** The next multiplier, and the time at which it takes effect, in seconds. */
  scheduled: z.object({ to: z.string(), effectiveAt: z.number() }).nullable(),
  paused: Features,
  navReading: NavReadingSchema,
  record: TokenRecord,
}

/** A token as last published, with its histories. The tape stores it as a note. */
export const TokenSchema = z.object({
  ...derivedState,
  address: Address,
  /** Former symbols, by which the token can still be found. */
  formerSymbols: z.array(z.string()),
  isin: Text,
  decimals: Decimals.nullable(),
  supply: Text,
  /** Last values in the list. A value that the list repeats is no change. */
  lastListed: z.object({
    multiplier: Text,
    /** Number of refreshes since then without a multiplier, if no log or call reported one. */
    omissions: z.number().exactOptional(),
    paused: Features,
    record: TokenRecord,
  }),
  multiplierHistory: MultiplierHistorySchema,
  pauseHistory: PauseHistorySchema,
  recordChanges: z.array(RecordChangeSchema),
  navHistory: NavHistorySchema,
  publishedNav: Nav.nullable(),
  /** True if the registry of the oracle says that the feed is frozen; null if that is unknown. */
  frozen: z.boolean().nullable(),
  /** A token is `awaited` until the relay receives its logs. Then it is published as listed. */
  state: z.enum(['awaited', 'listed', 'delisted']),
})
export type DerivedName = keyof typeof derivedState

import { z } from 'zod'
import { Address, Nav, TokenRecord } from '../../protocol/fields.ts'
import type { Token } from './token.ts'

/** Greatest time in ms that a `Date` can hold. */
const DATE_BOUND_MS = 8.64e15
/** Limit of a contract's decimals: it answers with one byte. */
const DECIMALS_BOUND = 255

export const Milliseconds = z.number().min(-DATE_BOUND_MS).max(DATE_BOUND_MS)
export const Decimals = z.int().min(0).max(DECIMALS_BOUND)

const Text = z.string().nullable()
const chainPosition = { block: z.int(), logIndex: z.int() }
const keyedPosition = { ...chainPosition, key: Text }
const Features = z.array(z.int())
const Source = z.enum(['log', 'call', 'list'])

const MultiplierHistory = z.object({
  initial: Text,
  firstUnreadBlock: z.int().nullable(),
  lastUnreadBlock: z.int().nullable(),
  changes: z.array(
    z.object({
      ...keyedPosition,
      ...{ source: Source, phase: z.enum(['scheduled', 'effective', 'cancelled']), from: Text, to: Text },
      ...{ effectiveAt: z.number().nullable(), timestamp: z.number().nullable(), isApplied: z.boolean() },
      isDerived: z.literal(true).exactOptional(),
    }),
  ),
})

const PauseHistory = z.object({
  initial: Features,
  changes: z.array(z.object({ ...keyedPosition, kind: z.enum(['paused', 'unpaused', 'all']), features: Features })),
})

const reading = { price: Text, updatedAt: Milliseconds.nullable() }
const NavHistory = z.object({
  list: z.array(z.object(reading)),
  feed: z.array(
    z.object({
      ...reading,
      ...{ phase: z.int(), round: z.string().regex(/^\d+$/), key: Text, sealed: z.boolean() },
      position: z.object(chainPosition).nullable(),
    }),
  ),
})

export const TokenSchema: z.ZodType<Token> = z.object({
  ...{ address: Address, symbol: z.string(), formerSymbols: z.array(z.string()), isin: Text },
  ...{ decimals: Decimals.nullable(), supply: Text, multiplier: Text, multiplierSource: Source.nullable() },
  scheduled: z.object({ to: z.string(), effectiveAt: z.number() }).nullable(),
  ...{ paused: Features, navReading: z.object(reading), record: TokenRecord },
  lastListed: z.object({ multiplier: Text, omissions: z.number().exactOptional(), paused: Features, record: TokenRecord }),
  ...{ multiplierHistory: MultiplierHistory, pauseHistory: PauseHistory, navHistory: NavHistory },
  recordChanges: z.array(z.object({ ...keyedPosition, field: z.string(), entry: Text, value: Text })),
  ...{ publishedNav: Nav.nullable(), frozen: z.boolean().nullable(), state: z.enum(['awaited', 'listed', 'delisted']) },
})

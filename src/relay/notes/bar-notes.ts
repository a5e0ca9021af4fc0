import { z } from 'zod'
import type { Hex } from '../../lib/hex.ts'
import { Address, DecimalText, Nav, PoolId } from '../../protocol/fields.ts'
import { BarRow } from '../tape/bars/bar-row.ts'
import { defineNote, defineNotes } from '../tape/notes.ts'
import type { NotedTrade } from '../tokens/minute-bars.ts'

/** The trades of one token in one block. */
export type BlockTrades = readonly NotedTrade[]

/** Minutes whose trades may be incomplete, by their starts in seconds. */
export type BarFault = {
  readonly reason: string
  /** Null for all tokens. */
  readonly token: Hex | null
  /** The pool that is refused; the fault lasts until it is followed again. */
  readonly pool: Hex | null
  readonly from: number
  /** Null until the minute of its end is known: until all blocks before the newest one are settled. */
  readonly to: number | null
  readonly firstBlock: number
  /** The last block that is concerned; null while a pool is refused. */
  readonly lastBlock: number | null
}

const NotedTradeSchema = z.object({
  block: z.int(),
  logIndex: z.int(),
  pool: PoolId,
  side: z.enum(['buy', 'sell']).nullable(),
  amount: DecimalText,
  shares: DecimalText.nullable(),
  currencyAmount: DecimalText,
  price: DecimalText.nullable(),
  basisBps: DecimalText.nullable(),
  basis: z.enum(['premium', 'drift']).nullable(),
  nav: Nav,
  key: z.string(),
  isMain: z.boolean(),
  isSealed: z.boolean(),
  second: z.number().nullable(),
})

/** The trades of a token in a block that may change, by `tokenKeyOf` its block. */
export const blockTradesNotes = defineNotes<BlockTrades>('bar-trades/', z.array(NotedTradeSchema))
/** Makes the name of a note of a token in a block, or in a minute. */
export const tokenKeyOf = (address: Hex, number: number): string => `${address}-${number}`
export const addressOfKey = (key: string): Hex => key.slice(0, key.indexOf('-')) as Hex
export const numberOfKey = (key: string): number => Number(key.slice(key.indexOf('-') + 1))

/** The last written row of each minute that may change, by `tokenKeyOf` its start. */
export const minuteRowNotes = defineNotes<BarRow>('bar-rows/', BarRow)

/** The reason of the first fault in the time from `start` to `end`, in seconds. Null if there is none. */
export const faultIn = (faults: readonly BarFault[], address: Hex, start: number, end: number): string | null =>
  faults.find(({ token, from, to }) => (token === null || token === address) && end > from && (to === null || start <= to))
    ?.reason ?? null

export const barFaultsNote = defineNote<readonly BarFault[]>(
  'bar-faults',
  z.array(
    z.object({
      reason: z.string(),
      token: Address.nullable(),
      pool: PoolId.nullable(),
      from: z.number(),
      to: z.number().nullable(),
      firstBlock: z.number(),
      lastBlock: z.number().nullable(),
    }),
  ),
)

/** Start of the first minute that may change, in seconds, and of the first one that is not over. */
export type BarTimes = { readonly keptFrom: number; readonly openFrom: number }
export const barTimesNote = defineNote<BarTimes>('bar-times', z.object({ keptFrom: z.number(), openFrom: z.number() }))

/** Start of a minute in seconds, and the numbers of the first and the last settled block in it that are known. */
export type MinuteBlocks = readonly [start: number, first: number, last: number]
export const minuteBlocksNote = defineNote<readonly MinuteBlocks[]>(
  'bar-minutes',
  z.array(z.tuple([z.number(), z.number(), z.number()])),
)

import { z } from 'zod'
import type { Hex } from '../../../lib/hex.ts'
import { parseJson } from '../../../lib/safe-json.ts'
import type { BarPart } from '../../../protocol/bars/bar-fold.ts'
import { type Decimal, formatDecimal } from '../../../protocol/decimal.ts'
import { Address, DecimalText, Nav, PoolId } from '../../../protocol/fields.ts'

/** The trades of one pool in a minute. */
export type PoolMinute = {
  readonly pool: Hex
  /** Whether its currency is the first of QUOTE_TOKENS: only such pools count in bars without `pools`. */
  readonly isMain: boolean
  readonly part: BarPart
}

/** A minute of a token with trades, or one that had trades. A sum of minutes has the same fields. */
export type MinuteBar = {
  readonly address: Hex
  /** In seconds. */
  readonly start: number
  /** Grows with each change, of any pool. Of two copies of a minute, the one with the higher edition is the newer. */
  readonly edition: number
  /** Revision of the last `bar` message; 0 if there was none, because all trades were in other pools. */
  readonly revision: number
  readonly partial: string | null
  /** Number of the block that closed the minute, or the last of them. Once it is finalized, the bar does not change. */
  readonly closedBy: number
  readonly pools: readonly PoolMinute[]
}

/** Minutes of a token that start from `since` on and before `until`, in seconds. Default: all of them, oldest first. */
export type BarRange = {
  readonly since: number
  readonly until: number
  readonly order?: 'asc' | 'desc'
  readonly limit?: number
  /** Length of what is read: a minute (the default), or of one of the stored sums. */
  readonly seconds?: number
}

/** A minute as the tape stores it. */
export const BarRow = z.tuple([Address, z.int().nonnegative(), z.string()]).readonly()
export type BarRow = z.infer<typeof BarRow>

const Placed = z.tuple([z.int(), z.int(), DecimalText]).nullable()
const Amounts = z.tuple([DecimalText, DecimalText.nullable(), DecimalText, DecimalText, DecimalText])
const { price, updated_at, age_s, state, stale_after_s, frozen } = Nav.shape
const Last = z.tuple([
  ...[z.int(), z.int()],
  DecimalText.nullable(),
  z.enum(['premium', 'drift']).nullable(),
  z.tuple([price, updated_at, age_s, state, stale_after_s, frozen]),
] as const)
const Part = z.tuple([
  PoolId,
  z.boolean(),
  ...[Placed, Placed],
  ...[DecimalText.nullable(), DecimalText.nullable()],
  z.int().positive(),
  Amounts,
  z.int(),
  Last,
] as const)
/** A minute takes about 576 bytes as arrays, and twice as many as objects. A file holds millions. */
const StoredMinute = z.tuple([z.int(), z.int(), z.string().nullable(), z.int(), z.array(Part)])
type StoredMinute = z.infer<typeof StoredMinute>

export function barRowOf({ address, start, edition, revision, partial, closedBy, pools }: MinuteBar): BarRow {
  const stored: StoredMinute = [edition, revision, partial, closedBy, pools.map(storedPart)]
  return [address, start, JSON.stringify(stored)]
}

export function minuteBarOf([address, start, text]: BarRow): MinuteBar {
  const [edition, revision, partial, closedBy, parts] = JSON.parse(text) as StoredMinute
  return { address, start, edition, revision, partial, closedBy, pools: parts.map(poolMinuteOf) }
}

/** Reads the edition of a stored minute, which is its first number. */
export const editionOf = (text: string): number => Number.parseInt(text.slice(1), 10)

/** Whether a row of another process can be stored. */
export const isReadableRow = (row: unknown): row is BarRow => {
  const read = BarRow.safeParse(row)
  return read.success && StoredMinute.safeParse(parseJson(read.data[2])).success
}

type StoredPart = StoredMinute[4][number]

function storedPart({ pool, isMain, part }: PoolMinute): StoredPart {
  const { open, close, high, low, trades, volume, shares, currencyVolume, buyVolume, buyCurrencyVolume, firstBlock, last } = part
  const { nav } = last
  return [
    ...[pool, isMain],
    ...[open && [open.block, open.logIndex, open.price], close && [close.block, close.logIndex, close.price]],
    ...[high, low, trades],
    [formatDecimal(volume), shares && formatDecimal(shares), ...[currencyVolume, buyVolume, buyCurrencyVolume].map(formatDecimal)],
    firstBlock,
    [
      ...[last.block, last.logIndex, last.basisBps, last.basis],
      [nav.price, nav.updated_at, nav.age_s, nav.state, nav.stale_after_s, nav.frozen],
    ],
  ] as StoredPart
}

function poolMinuteOf([pool, isMain, open, close, high, low, trades, amounts, firstBlock, last]: StoredPart): PoolMinute {
  const [volume, shares, currencyVolume, buyVolume, buyCurrencyVolume] = amounts
  const [block, logIndex, basisBps, basis, [price, updated_at, age_s, state, stale_after_s, frozen]] = last
  const part: BarPart = {
    ...{ open: placedOf(open), close: placedOf(close), high, low, trades },
    volume: decimalOf(volume),
    shares: shares === null ? null : decimalOf(shares),
    ...{ currencyVolume: decimalOf(currencyVolume), buyVolume: decimalOf(buyVolume) },
    buyCurrencyVolume: decimalOf(buyCurrencyVolume),
    firstBlock,
    last: { block, logIndex, basisBps, basis, nav: { price, updated_at, age_s, state, stale_after_s, frozen } },
  }
  return { pool, isMain, part }
}

const placedOf = (placed: StoredPart[2]) => placed && { block: placed[0], logIndex: placed[1], price: placed[2] }

/** Reads a stored number, which has neither spaces nor an exponent, in half the time of `parseDecimal`: a page has thousands. */
function decimalOf(text: string): Decimal {
  const point = text.indexOf('.')
  if (point < 0) return { units: BigInt(text), scale: 0 }
  return { units: BigInt(text.slice(0, point) + text.slice(point + 1)), scale: text.length - point - 1 }
}

import type { Hex } from '../../lib/hex.ts'
import { isoFromSeconds } from '../../lib/iso-time.ts'
import { addParts, type BarPart, type BarTrade, barFieldsOf, partOfTrade } from '../../protocol/bars/bar-fold.ts'
import type { BarFields } from '../../protocol/updates.ts'
import type { MinuteBar, PoolMinute } from '../tape/bars/bar-row.ts'
import { byPoolId, MINUTE_S } from '../tape/bars/bar-sums.ts'

/** A trade of a block that may change. `second` is the time of the block in which it was published or sealed last. Only sealed trades are in bars of minutes that are over. */
export type NotedTrade = BarTrade<Hex> & {
  readonly key: string
  readonly isMain: boolean
  readonly isSealed: boolean
  readonly second: number | null
}

export const minuteOf = (seconds: number): number => seconds - (seconds % MINUTE_S)

/** Folds the trades of each pool. The pools are in the order of their ids. */
export function poolMinutesOf(trades: readonly Omit<NotedTrade, 'key' | 'isSealed' | 'second'>[]): readonly PoolMinute[] {
  const byPool = Map.groupBy(trades, ({ pool }) => pool)
  const minutes = [...byPool].map(([pool, ofPool]) => ({
    pool,
    isMain: ofPool.some(({ isMain }) => isMain),
    part: ofPool.map(partOfTrade).reduce(addParts),
  }))
  return minutes.sort(byPoolId)
}

/** Whether these minutes have a bar: trades in one of the pools, or a published bar whose trades are all gone. */
export const hasBar = ({ pools: all, revision }: Pick<MinuteBar, 'pools' | 'revision'>, pools: readonly Hex[] | null): boolean =>
  pools ? all.some(({ pool }) => pools.includes(pool)) : revision > 0

/** The bar of several minutes in a row, or of one. */
export type BarMinutes = Pick<MinuteBar, 'start' | 'revision' | 'partial' | 'pools'> & { readonly seconds: number }

/** Returns the fields of a bar: of these pools, or of those against the first of QUOTE_TOKENS. */
export function barFieldsOfMinutes(
  { start, seconds, revision, partial, pools: all }: BarMinutes,
  staleAfterS: number,
  pools: readonly Hex[] | null = null,
): BarFields {
  const parts = all.filter(({ pool, isMain }) => (pools ? pools.includes(pool) : isMain))
  const part = parts.map(({ part }) => part).reduce<BarPart | null>((sum, one) => (sum ? addParts(sum, one) : one), null)
  const ids = parts.map(({ pool }) => pool)
  return barFieldsOf(part, ids, {
    start: isoFromSeconds(start),
    end: isoFromSeconds(start + seconds),
    revision,
    partial,
    staleAfterS,
  })
}

export const barFieldsOfMinute = (bar: MinuteBar, staleAfterS: number): BarFields =>
  barFieldsOfMinutes({ ...bar, seconds: MINUTE_S }, staleAfterS)

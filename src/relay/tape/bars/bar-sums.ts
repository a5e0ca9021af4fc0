import { addParts } from '../../../protocol/bars/bar-fold.ts'
import type { MinuteBar, PoolMinute } from './bar-row.ts'

export const [MINUTE_S, DAY_S] = [60, 86_400] as const
/** Lengths of the sums of minutes that are stored too. Without them, the days of a year would be made of half a million minutes. */
const SUM_LENGTHS_S = [3_600, DAY_S] as const

/** The sums that are stored, each with the length of what it is made of. */
export const sums = SUM_LENGTHS_S.map((seconds, index) => ({ seconds, partSeconds: SUM_LENGTHS_S[index - 1] ?? MINUTE_S }))

/** Returns the lengths of the stored stretches that make up bars of this length, the longest first. */
export const lengthsWithin = (seconds: number): readonly number[] =>
  [MINUTE_S, ...SUM_LENGTHS_S].filter((length) => seconds % length === 0).toReversed()

/** Adds up two stretches of a token, the earlier one first. */
export const joined = (a: MinuteBar, b: MinuteBar): MinuteBar => ({
  address: a.address,
  start: a.start,
  edition: a.edition + b.edition,
  revision: a.revision + b.revision,
  partial: a.partial ?? b.partial,
  closedBy: Math.max(a.closedBy, b.closedBy),
  pools: addPoolMinutes(a.pools, b.pools),
})

/** Adds up the trades of each pool. */
function addPoolMinutes(a: readonly PoolMinute[], b: readonly PoolMinute[]): readonly PoolMinute[] {
  const sumOf = new Map(a.map((minute) => [minute.pool, minute]))
  for (const minute of b) {
    const sum = sumOf.get(minute.pool)
    sumOf.set(minute.pool, sum ? { ...sum, part: addParts(sum.part, minute.part) } : minute)
  }
  return [...sumOf.values()].sort(byPoolId)
}

export const byPoolId = (a: PoolMinute, b: PoolMinute): number => (a.pool < b.pool ? -1 : 1)

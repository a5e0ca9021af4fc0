import { type Interval, intervals, type StoredBar } from '../../../protocol/bars/bars-query.ts'
import { CHART_BARS_BOUND, type UdfHistory } from '../../../protocol/bars/udf.ts'
import { type BarsContext, type BarsRange, type BarToken, readBars } from './bar-reader.ts'

export type ChartRange = {
  readonly resolution: Interval
  /** In seconds. `to` is exclusive: a chart that scrolls left asks for what is before its first bar. */
  readonly from?: number | undefined
  readonly to: number
  /** Number of bars before `to`, wherever they begin. */
  readonly countback?: number | undefined
}

/**
 * Returns the bars of a chart, and those that are not over: a chart shows them as its last ones, and asks again. A client that
 * scrolls left stops at an answer without bars and without `nextTime`.
 */
export async function readChart(
  context: BarsContext,
  token: BarToken,
  { resolution, from = 0, to, countback }: ChartRange,
): Promise<UdfHistory> {
  const range = { seconds: intervals[resolution], since: Math.max(0, countback === undefined ? from : 0), until: to }
  const bars = await newestBars(context, token, { ...range, limit: countback ?? CHART_BARS_BOUND })
  if (bars.length > 0) return columnsOf(bars.toReversed())
  const [older] = await newestBars(context, token, { ...range, since: 0, until: range.since, limit: 1 })
  return { s: 'no_data', ...(older && { nextTime: startOf(older) }) }
}

/** Start of the newest bar with a price that begins before `until`, in seconds. Null if there is none. */
export async function newestStart(
  context: BarsContext,
  token: BarToken,
  range: Pick<BarsRange, 'seconds' | 'until'>,
): Promise<number | null> {
  const [newest] = await newestBars(context, token, { ...range, since: 0, limit: 1 })
  return newest ? startOf(newest) : null
}

type PricedBar = StoredBar & Readonly<Record<'open' | 'high' | 'low' | 'close', string>>

type NewestRange = Pick<BarsRange, 'seconds' | 'since' | 'until'> & { readonly limit: number }

/** Reads the newest bars of a range, newest first. A bar without a price cannot be drawn. */
async function newestBars(context: BarsContext, token: BarToken, { limit, ...times }: NewestRange): Promise<readonly PricedBar[]> {
  const bars: PricedBar[] = []
  for (const read of readBars(context, [token], { ...times, order: 'desc', pools: null, hasOpen: true, expected: limit })) {
    if (read === null) await context.pause()
    else if (hasPrices(read.bar)) bars.push(read.bar)
    if (bars.length >= limit) break
  }
  return bars
}

const hasPrices = (bar: StoredBar): bar is PricedBar => bar.close !== null

const columnsOf = (bars: readonly PricedBar[]): UdfHistory => ({
  s: 'ok',
  t: bars.map(startOf),
  o: bars.map(({ open }) => Number(open)),
  h: bars.map(({ high }) => Number(high)),
  l: bars.map(({ low }) => Number(low)),
  c: bars.map(({ close }) => Number(close)),
  v: bars.map(({ volume }) => Number(volume)),
})

const startOf = ({ start }: StoredBar): number => Date.parse(start) / 1_000

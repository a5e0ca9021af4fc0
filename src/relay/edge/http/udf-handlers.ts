import type { Context } from 'hono'
import {
  ChartQuery,
  MarksQuery,
  readUdfQuery,
  resolutionNames,
  SearchQuery,
  SymbolQuery,
  type UdfConfig,
} from '../../../protocol/bars/udf.ts'
import { barsContextOf } from '../bars/bars-request.ts'
import { readChart } from '../bars/chart-history.ts'
import { barMarksOf, readMarks, timescaleMarksOf } from '../bars/chart-marks.ts'
import { chartToken, searchSymbols, symbolOf } from '../bars/chart-symbols.ts'
import type { LongWorkQueue } from '../limits/long-work-queue.ts'
import { badParameter } from '../limits/refusals.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { type Env, type Handlers, queryOf, sendJson } from './handler-basics.ts'

type UdfRoute = 'udfConfig' | 'udfTime' | 'udfSymbols' | 'udfSearch' | 'udfHistory' | 'udfMarks' | 'udfTimescaleMarks'

const chartConfig: UdfConfig = {
  supports_search: true,
  supports_group_request: false,
  supports_marks: true,
  supports_timescale_marks: true,
  supports_time: true,
  // Without entries the library shows no filters.
  exchanges: [],
  symbols_types: [],
  supported_resolutions: resolutionNames,
}

/** The data feed for charts. */
export function udfHandlers(edge: EdgeContext, workQueue: LongWorkQueue): Handlers<UdfRoute> {
  const { current, wallTime } = edge
  const run = async <Answer>(c: Context<Env>, work: () => Promise<Answer>) =>
    sendJson(c, JSON.stringify(await workQueue.run(edge.clientAddressOf(c.env.incoming), work)))
  const barsContext = () => barsContextOf(edge, workQueue.nextSlice)
  const marksOf = async (c: Context<Env>) => {
    const { symbol, ...range } = readUdfQuery(MarksQuery, queryOf(c))
    const token = chartToken(current, symbol)
    const { tape, now } = edge
    const marks = await readMarks({ tape, now, wallTime, pause: workQueue.nextSlice }, token.address, range)
    return { token, resolution: range.resolution, marks }
  }
  return {
    udfConfig: (c) => sendJson(c, JSON.stringify(chartConfig)),
    udfTime: (c) => c.text(String(Math.floor(wallTime() / 1_000)), 200, { 'cache-control': 'no-store' }),
    udfSymbols: (c) => {
      const { symbol } = readUdfQuery(SymbolQuery, queryOf(c))
      return sendJson(c, JSON.stringify(symbolOf(chartToken(current, symbol), current)))
    },
    udfSearch: (c) => run(c, () => searchSymbols(current, readUdfQuery(SearchQuery, queryOf(c)), workQueue.nextSlice)),
    udfHistory: (c) => {
      const { symbol, ...range } = readUdfQuery(ChartQuery, queryOf(c))
      if (range.from === undefined && range.countback === undefined) throw badParameter('from', 'give it, or countback.')
      const token = chartToken(current, symbol)
      return run(c, () => readChart(barsContext(), token, range))
    },
    udfMarks: (c) =>
      run(c, async () => {
        const { token, resolution, marks } = await marksOf(c)
        return barMarksOf(barsContext(), token, marks, resolution)
      }),
    udfTimescaleMarks: (c) => run(c, async () => timescaleMarksOf((await marksOf(c)).marks)),
  }
}

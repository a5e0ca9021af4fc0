import { z } from 'zod'
import { FoundSymbols, TimescaleMarks, UdfConfig, UdfHistory, UdfMarks, UdfSymbol } from '../protocol/bars/udf.ts'
import { ORIGIN } from './snippets.ts'

/** The schemas of UDF are inside their answers: no other route and no message uses them. */
function inlineContent(schema: z.ZodType, example: unknown) {
  const { $schema: _draft, ...inline } = z.toJSONSchema(schema, { io: 'input' })
  return { 'application/json': { schema: inline, example } }
}

const MARKS =
  'Marks are announced, cancelled and effective multipliers (M), pauses (P), frozen NAVs (F) and announcements of the issuer (A). An id is the key of the fact, or the position of the message if it has no key. At most 500 are in an answer.'

const common = { tag: 'Charts', refusals: [400, 401, 403, 404, 429, 503] } as const

const range = 'symbol=AAPLc&resolution=60&from=1795132800&to=1795219200'

/** Texts of the data feed for charts. */
export const udfRouteTexts = {
  udfConfig: {
    ...common,
    summary: 'The data feed for charts: what it has',
    description:
      'UDF is the protocol with which the charting library of TradingView, and OpenBB, read bars: give them the address of the relay with /udf. Numbers are JSON numbers in these answers, and nowhere else. An error is the error record with s: "error" and errmsg. Unknown parameters are ignored.',
    answer: 'The configuration.',
    content: inlineContent(UdfConfig, {
      ...{ supports_search: true, supports_group_request: false, supports_marks: true, supports_timescale_marks: true },
      ...{ supports_time: true, exchanges: [], symbols_types: [], supported_resolutions: ['1', '5', '15', '60', '240', '1D'] },
    }),
    refusals: [401, 403],
  },
  udfTime: {
    ...common,
    summary: "The time of the relay's clock for charts",
    answer: 'Seconds since 1970.',
    content: { 'text/plain': { schema: { type: 'string' } } },
    refusals: [401, 403],
  },
  udfSymbols: {
    ...common,
    summary: 'One token as a symbol of a chart',
    answer: 'The symbol.',
    content: inlineContent(UdfSymbol, {
      ...{ name: 'AAPLc', ticker: 'AAPLc', description: 'Apple Inc.', type: 'stock', exchange: 'DEX', listed_exchange: 'DEX' },
      ...{ 'exchange-traded': 'DEX', 'exchange-listed': 'DEX', session: '24x7', timezone: 'Etc/UTC', format: 'price' },
      ...{ minmov: 1, minmov2: 0, pointvalue: 1, pricescale: 10_000 },
      ...{
        has_intraday: true,
        has_daily: true,
        has_weekly_and_monthly: false,
        intraday_multipliers: ['1', '5', '15', '60', '240'],
      },
      supported_resolutions: ['1', '5', '15', '60', '240', '1D'],
      ...{ visible_plots_set: 'ohlcv', volume_precision: 4, data_status: 'streaming' },
    }),
    curl: `curl -s '${ORIGIN}/udf/symbols?symbol=AAPLc'`,
  },
  udfSearch: {
    ...common,
    summary: 'Listed tokens whose symbol, name, ISIN or address contains a text',
    answer: 'The symbols, those that begin with the text first.',
    content: inlineContent(FoundSymbols, [
      { symbol: 'AAPLc', full_name: 'DEX:AAPLc', description: 'Apple Inc.', exchange: 'DEX', ticker: 'AAPLc', type: 'stock' },
    ]),
    curl: `curl -s '${ORIGIN}/udf/search?query=AAP&limit=5'`,
  },
  udfHistory: {
    ...common,
    summary: 'The bars of a chart',
    description:
      'The bars of /v1/bars with open=true, without those that have no price: to is exclusive, and countback has precedence over from. Without a bar in the range, s is no_data; nextTime is the start of the newest older bar, and is absent if there is none. A client that scrolls left stops then. At most 5,000 bars are in an answer, the newest of the range.',
    answer: 'The bars, oldest first.',
    content: inlineContent(UdfHistory, {
      ...{ s: 'ok', t: [1_795_183_500], o: [324.9], h: [325.12], l: [324.88], c: [325.01], v: [12.5] },
    }),
    curl: `curl -s '${ORIGIN}/udf/history?symbol=AAPLc&resolution=1&to=1795219200&countback=300'`,
  },
  udfMarks: {
    ...common,
    summary: 'Corporate actions, pauses and frozen NAVs as marks on the bars of a chart',
    description: `${MARKS} The time of a mark is that of the bar in which it happened, or of the last bar before it; a bar has at most ten, the newest.`,
    answer: 'A table: each field has one entry for each mark.',
    content: inlineContent(UdfMarks, {
      ...{ id: ['k3f9a1.18422'], time: [1_795_183_200], color: ['green'], text: ['Multiplier in effect: 2, before 1'] },
      ...{ label: ['M'], labelFontColor: ['white'], minSize: [14] },
    }),
    curl: `curl -s '${ORIGIN}/udf/marks?${range}'`,
  },
  udfTimescaleMarks: {
    ...common,
    summary: 'The same marks beside the time axis of a chart, at their own times',
    description: `${MARKS} The time of a mark is that of its block, effective_at of a multiplier, or the time of the message if neither is known.`,
    answer: 'The marks, oldest first.',
    content: inlineContent(TimescaleMarks, [
      { id: 'k3f9a1.18422', time: 1_795_183_505, color: 'green', label: 'M', tooltip: ['Multiplier in effect: 2, before 1'] },
    ]),
    curl: `curl -s '${ORIGIN}/udf/timescale_marks?${range}'`,
  },
} as const

import { z } from 'zod'
import { readParameters } from '../parameters/read-parameters.ts'
import { queryNumber } from '../parameters/selection.ts'
import type { Refusal } from '../refusal.ts'
import type { Interval } from './bars-query.ts'

// The protocol that TradingView's charting library reads bars with (UDF). Its answers have numbers where the rest of the
// contract has decimal text, because the library calculates with doubles. No message and no other route uses these schemas,
// so they have no names in the published documents.

/** Beginning of the paths whose errors have the form of UDF. */
export const UDF_PREFIX = '/udf/'

/** The resolutions of UDF are minutes, or days. */
const resolutions = { 1: '1m', 5: '5m', 15: '15m', 60: '1h', 240: '4h', '1D': '1d' } as const satisfies Record<string, Interval>
type Resolution = keyof typeof resolutions
export const resolutionNames = Object.keys(resolutions)

/** Limit of the bars of an answer. Of a longer range, the newest are in it. */
export const CHART_BARS_BOUND = 5_000
const SEARCH_LIMIT_BOUND = 100
const SEARCH_LIMIT_DEFAULT = 30
const NAME_BOUND_CHARS = 128

/** The library names a token with its exchange before a colon where it has no ticker. */
export const EXCHANGE = 'DEX'

const MISSING = 'is missing'

const SymbolName = z
  .string(MISSING)
  .min(1, 'is empty')
  .max(NAME_BOUND_CHARS, `is longer than ${NAME_BOUND_CHARS} characters`)
  .describe('The ticker of an answer of /udf/search or /udf/symbols, or any other name of the token.')

/** The library writes a day as `1D`, other clients as `D`. */
const ResolutionText = z
  .string(MISSING)
  .transform((text) => (text === 'D' ? '1D' : text))
  .refine((text) => Object.hasOwn(resolutions, text), `must be ${resolutionNames.join(', ')}`)
  .transform((text): Interval => resolutions[text as Resolution])
  .meta({ enum: resolutionNames })
  .describe('The length of a bar in minutes, or 1D for a day in UTC.')

const Seconds = z
  .string(MISSING)
  .regex(/^-?\d{1,13}(\.\d{1,9})?$/, 'must be a time in seconds since 1970')
  .meta({ type: 'integer' })
  .transform(Number)

const FROM_DESCRIPTION = 'Only what is at this time or later, in seconds since 1970.'
export const ChartQuery = z.object({
  symbol: SymbolName,
  resolution: ResolutionText,
  from: Seconds.optional().describe(`${FROM_DESCRIPTION} Without countback it is required.`),
  to: Seconds.describe('Only bars that start before this time, in seconds since 1970.'),
  countback: z
    .string()
    .regex(/^0*[1-9]\d{0,8}$/, 'must be a number of bars')
    .meta({ type: 'integer', minimum: 1 })
    .transform((text) => Math.min(Number(text), CHART_BARS_BOUND))
    .optional()
    .describe(`The number of bars before to; from is ignored then. At most ${CHART_BARS_BOUND} are in an answer.`),
})

export const MarksQuery = z.object({
  symbol: SymbolName,
  from: Seconds.describe(FROM_DESCRIPTION),
  to: Seconds.describe('Only what is in the bar of this time or before it, in seconds since 1970.'),
  resolution: ResolutionText,
})

export const SymbolQuery = z.object({ symbol: SymbolName })

export const SearchQuery = z.object({
  query: z
    .string()
    .max(NAME_BOUND_CHARS, `is longer than ${NAME_BOUND_CHARS} characters`)
    .default('')
    .describe('A part of the symbol, name, ISIN or address, in upper or lower case. Default: every token.'),
  type: z.string().default('').describe('Empty or stock; another type has no symbols.'),
  exchange: z.string().default('').describe(`Empty or ${EXCHANGE}; another exchange has no symbols.`),
  limit: queryNumber(1, SEARCH_LIMIT_BOUND, `must be a number of symbols, 1 to ${SEARCH_LIMIT_BOUND}`)
    .default(SEARCH_LIMIT_DEFAULT)
    .describe(`The most symbols to return, 1 to ${SEARCH_LIMIT_BOUND}. Default: ${SEARCH_LIMIT_DEFAULT}.`),
})

/** Reads the parameters that the relay knows. Charts send others too, such as currencyCode, and newer ones may send more. */
export function readUdfQuery<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>, query: URLSearchParams) {
  return readParameters(schema, new URLSearchParams([...query].filter(([name]) => Object.hasOwn(schema.shape, name))))
}

export const UdfConfig = z.object({
  supports_search: z.literal(true),
  supports_group_request: z.literal(false),
  supports_marks: z.boolean(),
  supports_timescale_marks: z.boolean(),
  supports_time: z.boolean(),
  exchanges: z.array(z.object({ value: z.string(), name: z.string(), desc: z.string() })),
  symbols_types: z.array(z.object({ value: z.string(), name: z.string() })),
  supported_resolutions: z.array(z.string()),
})
export type UdfConfig = z.infer<typeof UdfConfig>

export const UdfSymbol = z.object({
  name: z.string(),
  ticker: z.string().describe('The symbol; the address, if several tokens have the symbol.'),
  description: z.string(),
  type: z.literal('stock'),
  exchange: z.string(),
  listed_exchange: z.string(),
  'exchange-traded': z.string().describe('exchange, for older clients.'),
  'exchange-listed': z.string().describe('listed_exchange, for older clients.'),
  session: z.literal('24x7'),
  timezone: z.literal('Etc/UTC'),
  format: z.literal('price'),
  minmov: z.number(),
  minmov2: z.number(),
  pointvalue: z.number(),
  pricescale: z.number().describe('A price is shown in steps of minmov / pricescale. The prices of bars have more digits.'),
  has_intraday: z.boolean(),
  has_daily: z.boolean(),
  has_weekly_and_monthly: z.boolean(),
  intraday_multipliers: z.array(z.string()),
  supported_resolutions: z.array(z.string()),
  visible_plots_set: z.literal('ohlcv'),
  volume_precision: z.int(),
  data_status: z.literal('streaming'),
})
export type UdfSymbol = z.infer<typeof UdfSymbol>

const { ticker, description, exchange, type } = UdfSymbol.shape
const FoundSymbol = z.object({ symbol: z.string(), full_name: z.string(), description, exchange, ticker, type })
export type FoundSymbol = z.infer<typeof FoundSymbol>
export const FoundSymbols = z.array(FoundSymbol)

const column = z.array(z.number())
export const UdfHistory = z.discriminatedUnion('s', [
  z.object({
    s: z.literal('ok'),
    t: z.array(z.int()).describe('Starts of the bars in seconds since 1970, oldest first.'),
    ...{ o: column, h: column, l: column, c: column },
    v: column.describe('Tokens that were traded.'),
  }),
  z.object({
    s: z.literal('no_data'),
    nextTime: z.int().optional().describe('Start of the newest bar before from; absent if there is none.'),
  }),
])
export type UdfHistory = z.infer<typeof UdfHistory>

const strings = z.array(z.string())
/** A table: each field has one entry for each mark. */
export const UdfMarks = z.object({
  id: strings,
  time: z.array(z.int()),
  color: strings,
  text: strings,
  label: strings,
  labelFontColor: strings,
  minSize: z.array(z.int()),
})
export type UdfMarks = z.infer<typeof UdfMarks>

export const TimescaleMarks = z.array(
  z.object({ id: z.string(), time: z.int(), color: z.string(), label: z.string(), tooltip: strings }),
)
export type TimescaleMarks = z.infer<typeof TimescaleMarks>

/** The error record in the form of UDF. A chart reads `s` and `errmsg`, any other client the record. */
export const udfErrorOf = ({ record }: Pick<Refusal, 'record'>) => ({ s: 'error' as const, errmsg: record.message, ...record })

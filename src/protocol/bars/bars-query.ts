import { z } from 'zod'
import { PositionText, Time } from '../fields.ts'
import { readParameters } from '../parameters/read-parameters.ts'
import { oneOf, QueryBoolean, queryNumber, Symbols } from '../parameters/selection.ts'
import { StartPointText } from '../parameters/start-point.ts'
import { commaList, filterParameters } from '../parameters/value-filters.ts'
import { Refusal } from '../refusal.ts'
import { registerObject } from '../schema-registry.ts'
import { barFields } from '../updates.ts'

/** The lengths of bars, in seconds. All begin at a multiple of their length since 1970 in UTC. */
export const intervals = { '1m': 60, '5m': 300, '15m': 900, '1h': 3_600, '4h': 14_400, '1d': 86_400 } as const
export type Interval = keyof typeof intervals
const intervalNames = Object.keys(intervals) as [Interval, ...Interval[]]

const LIMIT_BOUND = 5_000
export const BARS_LIMIT_DEFAULT = 500

/** A time of the chain: the start of a bar is compared with it. */
const ChainTimeText = StartPointText.transform((point, context) => {
  if (point.from !== 'position') return point
  context.addIssue('must be start, now, a duration back from chain time such as 6h, or an RFC 3339 time')
  return z.NEVER
})

const ofOne = z.object({
  interval: oneOf(intervalNames).default('1m').describe('The length of a bar; a day is a day in UTC. Default: 1m.'),
  since: ChainTimeText.optional().describe(
    'Only bars that start at this time or later: start, a duration back from chain time (6h), or an RFC 3339 time. Default: start.',
  ),
  until: ChainTimeText.optional().describe('Only bars that start before this time, written like since, or now. Default: now.'),
  limit: queryNumber(1, LIMIT_BOUND, `must be a number of bars, 1 to ${LIMIT_BOUND}`)
    .optional()
    .describe(`The most bars to return, 1 to ${LIMIT_BOUND}. Default: ${BARS_LIMIT_DEFAULT}, with CSV and NDJSON no limit.`),
  order: oneOf(['asc', 'desc']).default('asc').describe('desc returns the newest first.'),
  pools: filterParameters.pools.describe('Bars of the trades in these pools alone, 1 to 20: addresses, or ids of Uniswap v4.'),
  open: QueryBoolean.default(false).describe(
    'true: bars that are not over yet are in the answer too, of pre-confirmed trades as well, with the state open.',
  ),
  format: oneOf(['json', 'ndjson', 'csv'])
    .default('json')
    .describe('json is one page; ndjson and csv are the whole range, one bar a line. Default: json.'),
})
export const BarsOfOneQuery = ofOne
export const BarsQuery = ofOne.extend({
  symbols: z
    .string()
    .transform(commaList)
    .pipe(Symbols)
    .optional()
    .describe('Symbols or addresses, separated by commas. Default: all.'),
})
export type BarsQuery = z.infer<typeof BarsQuery>

export function readBarsQuery(parameters: URLSearchParams): BarsQuery {
  const query = readParameters(BarsQuery, parameters)
  if (query.symbols?.length === 0)
    throw new Refusal(400, 'bad_parameter', 'symbols: names no token; leave it out for all.', { parameter: 'symbols' })
  return query
}

const BarState = z
  .enum(['open', 'closed', 'final'])
  .describe('open: not over yet; closed: over, a reorg or a late trade may still change it; final: it does not change.')
export type BarState = z.infer<typeof BarState>

export const StoredBar = registerObject('Bar', 'A bar of one token.', { symbol: z.string(), ...barFields, state: BarState })
export type StoredBar = z.infer<typeof StoredBar>

export const BarsPage = registerObject('BarsPage', 'A page of bars, in the order of their start, then of their symbol.', {
  as_of: PositionText.describe('The end of the tape when the bars were read.'),
  interval: z.enum(intervalNames),
  bars: z.array(StoredBar),
  next: Time.nullable().describe('Give it as since, or with order=desc as until, for the next page; null if there is none.'),
})

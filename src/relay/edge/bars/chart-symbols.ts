import type { z } from 'zod'
import { oneLine, printableText } from '../../../lib/text.ts'
import { chunk } from '../../../lib/turns.ts'
import { EXCHANGE, type FoundSymbol, resolutionNames, type SearchQuery, type UdfSymbol } from '../../../protocol/bars/udf.ts'
import type { Token } from '../../tokens/token.ts'
import { noList, unknownSymbol } from '../limits/refusals.ts'
import type { CurrentState } from '../select/current-state.ts'
import { resolveSymbols } from '../select/resolve-symbols.ts'

/**
 * A chart shows prices in steps of 1 / 10,000: a basis point of a stock of one dollar. With cents, the movement of a cheap stock
 * would not be seen; the eight decimals of a price would hide it among digits of the last trade's rounding.
 */
const PRICE_SCALE = 10_000
const VOLUME_DECIMALS = 4
/** Limit of a text of the issuer. */
const TEXT_BOUND_CHARS = 200
/** Number of tokens that are searched without a pause. */
const TOKENS_PER_SLICE = 2_000

/** The texts of issuers are no markup: a chart may put them into a page as they are. */
export const plainText = (text: string): string =>
  printableText(oneLine(text)).slice(0, TEXT_BOUND_CHARS).replaceAll('<', '‹').replaceAll('>', '›')

/** Finds the token of a chart. Delisted tokens keep their charts. */
export function chartToken(current: CurrentState, symbol: string): Token {
  const name = symbol.startsWith(`${EXCHANGE}:`) ? symbol.slice(EXCHANGE.length + 1) : symbol
  const { tokens, rejected } = resolveSymbols(current, [name])
  const [address] = tokens ?? []
  const token = address && current.token(address)
  // The selector `*` names no single token.
  if (!token) throw unknownSymbol([...rejected, { symbol: name, reason: 'unknown_symbol', suggest: [] }])
  return token
}

export const symbolOf = (token: Token, current: CurrentState): UdfSymbol => ({
  name: token.symbol,
  ticker: tickerOf(token, current),
  description: descriptionOf(token),
  type: 'stock',
  ...{ exchange: EXCHANGE, listed_exchange: EXCHANGE, 'exchange-traded': EXCHANGE, 'exchange-listed': EXCHANGE },
  session: '24x7',
  timezone: 'Etc/UTC',
  format: 'price',
  ...{ minmov: 1, minmov2: 0, pointvalue: 1, pricescale: PRICE_SCALE },
  // The library makes weeks and months of days.
  ...{ has_intraday: true, has_daily: true, has_weekly_and_monthly: false },
  intraday_multipliers: resolutionNames.filter((name) => !name.endsWith('D')),
  supported_resolutions: resolutionNames,
  visible_plots_set: 'ohlcv',
  volume_precision: VOLUME_DECIMALS,
  data_status: 'streaming',
})

/** Finds listed tokens: those whose symbol begins with the query first, then the others in the order of the list. */
export async function searchSymbols(
  current: CurrentState,
  { query, type, exchange, limit }: z.infer<typeof SearchQuery>,
  pause: () => Promise<unknown>,
): Promise<readonly FoundSymbol[]> {
  const { listed } = current
  if (listed === null) throw noList
  if (!['', 'stock'].includes(type.toLowerCase()) || !['', EXCHANGE].includes(exchange.toUpperCase())) return []
  const text = query.trim().toLowerCase()
  const ranked: Token[][] = [[], [], [], []]
  for (const tokens of chunk(listed, TOKENS_PER_SLICE)) {
    for (const token of tokens) {
      const rank = ranked[rankOf(token, text)]
      if (rank && rank.length < limit) rank.push(token)
    }
    await pause()
  }
  return ranked
    .flat()
    .slice(0, limit)
    .map((token) => ({
      symbol: token.symbol,
      full_name: `${EXCHANGE}:${token.symbol}`,
      description: descriptionOf(token),
      exchange: EXCHANGE,
      ticker: tickerOf(token, current),
      type: 'stock',
    }))
}

/** The place of a token among those found; -1 if it is not found. */
function rankOf({ symbol, address, isin, record }: Token, text: string): number {
  const name = symbol.toLowerCase()
  if (name === text || name === `${text}c`) return 0
  if (name.startsWith(text)) return 1
  if (name.includes(text)) return 2
  return [nameIn(record), isin, address].some((other) => other?.toLowerCase().includes(text)) ? 3 : -1
}

/** A name that several tokens have names none of them. */
function tickerOf({ symbol, address }: Token, { directory }: CurrentState): string {
  const found = directory.find(symbol)
  return found.kind === 'found' && found.token.address === address ? symbol : address
}

const descriptionOf = ({ record, symbol }: Token): string => plainText(nameIn(record) ?? symbol)

const nameIn = ({ name }: Token['record']): string | null => (typeof name === 'string' ? name : null)

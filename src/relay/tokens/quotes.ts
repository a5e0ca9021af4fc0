import type { Hex } from '../../lib/hex.ts'
import type { Decimal } from '../../protocol/decimal.ts'
import type { Block, Nav } from '../../protocol/fields.ts'
import type { DraftOf } from '../../protocol/updates.ts'
import { isToken0, type Pool } from '../chain/pools/pool.ts'
import type { PoolReading } from '../chain/pools/pool-queries.ts'
import { basisBps, judgePool } from './quote-math.ts'

export type QuoteFields = Omit<DraftOf<'quote'>, 'type' | 'symbol' | 'address' | 'time'>

/** The last published quotes of a token, in the order of its pools in the settings. */
export type TokenQuotes = readonly QuoteFields[]

const UNREADABLE = { state: 'unreadable', price: null, depth: null } as const

/** Makes the quote of a pool. Its price is in the currency, for one token. The multiplier applies neither to it nor to the NAV. */
export function quoteFrom(
  { pool, reading, block }: { readonly pool: Pool; readonly reading: PoolReading; readonly block: Block },
  { decimals, nav, poolMinDepth }: { readonly decimals: number | null; readonly nav: Nav; readonly poolMinDepth: Decimal },
): QuoteFields {
  const { currency } = pool
  const isRead = reading.kind === 'read' && decimals !== null
  const { state, price, depth } = isRead
    ? judgePool(reading, { isToken0: isToken0(pool), tokenDecimals: decimals, currencyDecimals: currency.decimals, poolMinDepth })
    : UNREADABLE
  const venue = venueOf(pool, isRead ? reading.feeBps : null)
  return { venue, price, state, depth, ...basisOf(price, nav), nav, block }
}

/** Names a pool. Only pools of Uniswap v4 have hooks. */
export const venueOf = ({ kind, id, currency: { symbol, address }, hooks }: Pool, feeBps: string | null): QuoteFields['venue'] => ({
  ...{ kind, pool: id, fee_bps: feeBps, currency: { symbol, address }, hooks: kind === 'uniswap_v4' ? (hooks ?? null) : 'none' },
})

export const withNav = (quote: QuoteFields, nav: Nav): QuoteFields => ({ ...quote, ...basisOf(quote.price, nav), nav })

/** Compares a price with the NAV. If the NAV is held, the difference is the drift of the market, and no premium. */
export const basisOf = (price: string | null, nav: Nav): Pick<QuoteFields, 'basis_bps' | 'basis'> =>
  price === null || nav.price === null
    ? { basis_bps: null, basis: null }
    : { basis_bps: basisBps(price, nav.price), basis: nav.state === 'fresh' && nav.frozen !== true ? 'premium' : 'drift' }

/** Whether a client would see no change between two quotes of a pool. */
export const isSameQuote = (a: QuoteFields, b: QuoteFields): boolean =>
  a.price === b.price && a.state === b.state && a.basis === b.basis

/** Adds a quote, or replaces the quote of that pool. */
export function withQuote(quotes: TokenQuotes, quote: QuoteFields, order: readonly Hex[]): TokenQuotes {
  const others = quotes.filter(({ venue }) => venue.pool !== quote.venue.pool)
  return [...others, quote].sort((a, b) => order.indexOf(a.venue.pool) - order.indexOf(b.venue.pool))
}

/** Returns the quote of the deepest pool with a price, or that of the first pool if none has a price. */
export function mainQuote(quotes: TokenQuotes): QuoteFields | null {
  const priced = quotes.filter(({ state }) => state === 'ok')
  const [deepest] = priced.toSorted((a, b) => Number(b.depth) - Number(a.depth))
  return deepest ?? quotes[0] ?? null
}

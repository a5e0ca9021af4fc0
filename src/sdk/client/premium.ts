import type { QuoteMessage, ReferenceValue } from '../generated/messages.ts'
import { type StockState, withQuote } from './book.ts'

/** `premium`: over a fresh NAV. `drift`: over a stale or frozen one, from which the market may have moved. */
export type Basis = { readonly bps: string; readonly kind: 'premium' | 'drift' }

/** Returns how far a price is above a NAV, in basis points; null if one of them is unknown. */
export const basisOf = (price: string | null, nav: Pick<ReferenceValue, 'price' | 'state' | 'frozen'>): Basis | null =>
  price === null || nav.price === null
    ? null
    : {
        bps: ((Number(price) / Number(nav.price) - 1) * 10_000).toFixed(2).replace('-0.00', '0.00'),
        kind: nav.state === 'fresh' && !nav.frozen ? 'premium' : 'drift',
      }

/** Returns the basis of a stock's main pool: what the relay computed with the quote, unless the NAV has changed since then. */
export function premium({ nav, quote }: Pick<StockState, 'nav' | 'quote'>): Basis | null {
  const basis = quote && basisOf(quote.price, nav)
  return basis && quote.basis_bps !== null && quote.nav.price === nav.price ? { ...basis, bps: quote.basis_bps } : basis
}

/**
 * Returns the quote of the main pool at the time of each quote of one stock, in the order of the tape. The main pool is the deepest
 * one with a price at that time.
 */
export function mainQuotes(
  quotes: readonly QuoteMessage[],
): readonly (NonNullable<StockState['quote']> & { readonly time: string })[] {
  let main = { quote: null, quotes: [] } as Pick<StockState, 'quote' | 'quotes'>
  return quotes.map((quote) => {
    main = withQuote(main.quotes, quote)
    return { ...(main.quote ?? quote), time: quote.time }
  })
}

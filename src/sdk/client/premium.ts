import type { ReferenceValue } from '../generated/messages.ts'
import type { StockState } from './book.ts'

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

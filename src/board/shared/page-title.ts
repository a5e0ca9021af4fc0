import { premium, type StockState } from '../../sdk/client/index.ts'
import { formatBps, formatPrice } from './number-text.ts'

/** Signs of the tab: a filled dot while all is well, a hollow one otherwise. */
const icons = {
  good: '<circle cx="8" cy="8" r="6" fill="#888"/>',
  bad: '<circle cx="8" cy="8" r="5" fill="none" stroke="#c33" stroke-width="3"/>',
} as const

/** The text of the tab: what is shown, and first of all whether it can be relied on. */
export function pageTitle(stock: StockState | null, isWell: boolean): string {
  const basis = stock && premium(stock)
  const price = stock?.quote?.price ?? stock?.nav.price ?? null
  const what =
    stock && [stock.symbol, price !== null && formatPrice(price), basis && `${formatBps(basis.bps)} bps`].filter(Boolean).join(' ')
  return `${isWell ? '' : '⚠ '}${what ? `${what} · ` : ''}stocktape`
}

export const pageIcon = (isWell: boolean): string =>
  `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">${icons[isWell ? 'good' : 'bad']}</svg>`)}`

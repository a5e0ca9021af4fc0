import type { StockState } from '../../sdk/client/index.ts'
import { formatBps, formatPrice } from './number-text.ts'
import { basisWords, navStateOf, navWords, quoteStateWords } from './state-words.ts'
import { formatCountdown, formatDuration } from './time-text.ts'

/** What a stock is called. Lists may lack the name. */
export const nameOf = ({ token, symbol }: StockState): string =>
  typeof token.name === 'string' && token.name !== '' ? token.name : symbol

const navAgeMs = ({ nav }: StockState, nowMs: number): number | null =>
  nav.updated_at === null ? null : Math.max(0, nowMs - Date.parse(nav.updated_at))

export const navAgeText = (stock: StockState, nowMs: number): string => {
  const age = navAgeMs(stock, nowMs)
  // Tenths of a second would only flicker.
  return age === null ? '' : formatDuration(Math.max(1_000, age))
}

/** `×1.0005`, or that it is not known. */
export const multiplierText = ({ multiplier }: StockState): string => (multiplier === null ? '× unknown' : factorText(multiplier))

/** What is left out of a long multiplier stands in its title. */
export const factorText = (multiplier: string): string => `×${multiplier.replace(/(\.\d{4})\d+$/, '$1…')}`

/** The next multiplier and the time until then. */
export function scheduledText({ scheduled }: StockState, nowMs: number): string | null {
  if (!scheduled) return null
  const left = scheduled.effective_at === null ? null : Date.parse(scheduled.effective_at) - nowMs
  return `${factorText(scheduled.multiplier)} ${left === null ? 'later' : left > 0 ? `in ${formatCountdown(left)}` : 'at the next block'}`
}

export const pausedText = ({ paused }: StockState): string | null =>
  paused.length === 0 ? null : `${paused.map((name) => name.toLowerCase().replaceAll('_', ' ')).join(', ')} paused`

/** Why the symbol or the name may be that of another stock. */
export const warningsText = ({ token_warnings }: StockState): string | null =>
  token_warnings.length === 0 ? null : `check the address: ${token_warnings.map((word) => word.replaceAll('_', ' ')).join(', ')}`

export type Basis = { readonly bps: string; readonly kind: 'premium' | 'drift' }

/**
 * The price on the chain against the NAV that is shown. The relay computes it with every quote; a NAV that changes
 * between two quotes has no quote of its own, and then the page computes it, so that what is shown fits together.
 */
export function basisOf({ nav, quote }: Pick<StockState, 'nav' | 'quote'>): Basis | null {
  if (quote?.price == null || nav.price === null) return null
  const kind = navStateOf(nav) === 'fresh' ? 'premium' : 'drift'
  if (quote.basis_bps !== null && quote.nav.price === nav.price) return { bps: quote.basis_bps, kind }
  return { bps: ((Number(quote.price) / Number(nav.price) - 1) * 10_000).toFixed(2).replace(/^-(0\.00)$/, '$1'), kind }
}

/** A row as a sentence, for those who listen to it. */
export function stockSentence(stock: StockState, nowMs: number): string {
  const { nav, quote, session } = stock
  const age = navAgeText(stock, nowMs)
  const navPart =
    nav.price === null ? `NAV ${nav.state}` : `NAV ${formatPrice(nav.price)} dollars, ${navWords(nav, session, nowMs)}, ${age} old`
  const quotePart = quote?.price ? `on chain ${formatPrice(quote.price)}` : `on chain ${quoteStateWords(quote)}`
  const basis = basisOf(stock)
  const basisPart = quote && basis ? `, ${formatBps(basis.bps)} basis points ${basisWords(basis.kind, quote.venue)}` : ''
  const others = [warningsText(stock), scheduledText(stock, nowMs), pausedText(stock)].filter((text) => text !== null)
  return `${stock.symbol} ${nameOf(stock)}, ${navPart}, ${quotePart}${basisPart}${others.map((text) => `, ${text}`).join('')}`
}

/** Whether the NAV cannot be taken as it stands. */
export const isHeld = ({ nav }: StockState): boolean => nav.price !== null && navStateOf(nav) !== 'fresh'

const total = ({ token }: StockState): number | null => (typeof token.total_supply === 'number' ? token.total_supply : null)

/** Supply in tokens and in shares, as exactly as a reader needs it. The list gives it as a floating number. */
export function supplyOf(stock: StockState): { readonly tokens: number | null; readonly shares: number | null } {
  const tokens = total(stock)
  return { tokens, shares: tokens === null || stock.multiplier === null ? null : tokens * Number(stock.multiplier) }
}

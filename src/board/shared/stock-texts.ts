import { premium, type StockState } from '../../sdk/client/index.ts'
import { formatBps, formatDecimal, formatPrice } from './number-text.ts'
import { basisWords, navStateOf, navWords, quoteStateWords } from './state-words.ts'
import { formatAge, formatCountdown } from './time-text.ts'

/** Returns the name of a stock, or its symbol if the list has no name for it. */
export const nameOf = ({ token, symbol }: StockState): string =>
  typeof token.name === 'string' && token.name !== '' ? token.name : symbol

export const navAgeText = ({ nav }: StockState, nowMs: number): string =>
  nav.updated_at === null ? '' : formatAge(nowMs - Date.parse(nav.updated_at))

export const sharesText = ({ multiplier }: Pick<StockState, 'multiplier'>): string =>
  multiplier === null ? 'shares per token unknown' : perTokenText(multiplier)

const perTokenText = (multiplier: string): string =>
  `${shortMultiplier(multiplier)} ${multiplier === '1' ? 'share' : 'shares'} per token`

export const shortMultiplier = (multiplier: string): string =>
  /\.\d{5}/.test(multiplier) ? `≈ ${formatDecimal(multiplier, 4)}` : multiplier

export function scheduledText({ scheduled }: StockState, nowMs: number): string | null {
  if (!scheduled) return null
  const left = scheduled.effective_at === null ? null : Date.parse(scheduled.effective_at) - nowMs
  return `${perTokenText(scheduled.multiplier)} ${left === null ? 'later' : left > 0 ? `in ${formatCountdown(left)}` : 'at the next block'}`
}

export const pausedText = ({ paused }: StockState): string | null =>
  paused.length === 0 ? null : `paused: ${paused.map((name) => name.toLowerCase().replaceAll('_', ' ')).join(', ')}`

/** The words of the warnings, the plainest first. */
const warningWords: Readonly<Record<StockState['token_warnings'][number], string>> = {
  looks_like_another: 'looks like another symbol',
  hidden_characters: 'hidden characters',
  direction_override: 'reversed text',
  mixed_scripts: 'mixed scripts',
}

/** Says why the token may not be the stock that its symbol or name suggests, and first what the reader should do. */
export function warningsText({ token_warnings }: StockState): string | null {
  const words = Object.entries(warningWords).flatMap(([warning, text]) =>
    token_warnings.some((one) => one === warning) ? text : [],
  )
  return words.length === 0 ? null : `check the address: ${words.join(', ')}`
}

/** Says on which side of the NAV the price is. Against a NAV that is held it only drifts. */
export function basisSide({ kind, bps }: { readonly kind: 'premium' | 'drift'; readonly bps: string }): string {
  if (kind === 'drift') return kind
  return Number(bps) > 0 ? 'over NAV' : Number(bps) < 0 ? 'under NAV' : 'at NAV'
}

/** A row of the list as a sentence, for screen readers. */
export function stockSentence(stock: StockState, nowMs: number): string {
  const { nav, quote, session } = stock
  const age = navAgeText(stock, nowMs)
  const navPart =
    nav.price === null ? `NAV ${nav.state}` : `NAV ${formatPrice(nav.price)} dollars, ${navWords(nav, session, nowMs)}, ${age} old`
  const quotePart = quote?.price ? `on chain ${formatPrice(quote.price)}` : `on chain ${quoteStateWords(quote)}`
  const basis = premium(stock)
  const basisPart = quote && basis ? `, ${formatBps(basis.bps)} basis points ${basisWords(basis.kind, quote.venue)}` : ''
  const others = [warningsText(stock), scheduledText(stock, nowMs), pausedText(stock)].filter((text) => text !== null)
  return `${stock.symbol} ${nameOf(stock)}, ${navPart}, ${quotePart}${basisPart}${others.map((text) => `, ${text}`).join('')}`
}

/** So many basis points beyond the fee of its pool, a premium is news: within the fee no trade mends it, and near it it flickers. */
const NEWS_BPS = 5

/** Basis points from which a premium is news. */
export const newsBpsOf = ({ quote }: StockState): number =>
  quote?.venue.fee_bps == null ? Number.POSITIVE_INFINITY : Number(quote.venue.fee_bps) + NEWS_BPS

/** Whether the price is no farther from the NAV than a trade in its pool costs. */
export function isWithinFee(stock: StockState): boolean {
  const basis = premium(stock)
  return basis?.kind === 'premium' && Math.abs(Number(basis.bps)) <= Number(stock.quote?.venue.fee_bps ?? 0)
}

/** While the market is open, a NAV of this age is worth a look, though its feed may publish only after a move. */
export const OLD_NAV_MS = 3_600_000

export const isNavOld = ({ nav, session }: StockState, nowMs: number): boolean =>
  session?.state === 'open' && nav.state === 'fresh' && nav.updated_at !== null && nowMs - Date.parse(nav.updated_at) >= OLD_NAV_MS

export const isHeld = ({ nav }: StockState): boolean => nav.price !== null && navStateOf(nav) !== 'fresh'

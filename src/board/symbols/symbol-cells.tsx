import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { premium, type StockState } from '../../sdk/client/index.ts'
import type { BoardFeed } from '../feed/board-feed.ts'
import type { DayFigures } from '../feed/day-bars.ts'
import { type BoardView, toggled } from '../shared/board-route.ts'
import { changeView } from '../shared/navigation.tsx'
import { formatBps, formatCount, formatMoney, formatPercent, formatPrice, formatQuantity, UNKNOWN } from '../shared/number-text.ts'
import { basisWords, navStateOf, navWords, quoteStateWords, venueWords } from '../shared/state-words.ts'
import {
  basisSide,
  isHeld,
  isNavOld,
  isWithinFee,
  nameOf,
  navAgeText,
  newsBpsOf,
  pausedText,
  scheduledText,
  sharesText,
  warningsText,
} from '../shared/stock-texts.ts'
import { formatDuration, formatMoment } from '../shared/time-text.ts'

export type StockProps = { readonly stock: StockState; readonly nowMs: number }

/** A row has no room for these words, which its title has. */
const [PER_TOKEN, SHORT_PER_TOKEN] = [' per token', ' / token']

export function NameCell({ stock, nowMs }: StockProps) {
  const scheduled = scheduledText(stock, nowMs)
  const paused = pausedText(stock)
  const warnings = warningsText(stock)
  const notices = [warnings, scheduled, paused].filter((text) => text !== null)
  return (
    <>
      <span class="title">
        <b class="ticker" dir="auto">
          {stock.symbol}
        </b>{' '}
        <span class="name" dir="auto" title={nameOf(stock)}>
          {nameOf(stock)}
        </span>
      </span>
      <span class="second" title={notices.join(', ')}>
        {notices.length === 0 && stock.multiplier !== '1' && (
          <span data-field="multiplier" title={`${stock.multiplier ?? UNKNOWN} shares per token`}>
            {sharesText(stock).replace(PER_TOKEN, SHORT_PER_TOKEN)}
          </span>
        )}
        {warnings !== null && <Attention field="warnings" words={warnings} />}
        {scheduled !== null && <Attention words={`→ ${scheduled.replace(PER_TOKEN, SHORT_PER_TOKEN)}`} />}
        {paused !== null && <Attention field="paused" words={paused} />}
      </span>
    </>
  )
}

const Attention = ({ field, words }: { readonly field?: string; readonly words: string }) => (
  <span class="attention" data-field={field}>
    <i class="separator"> · </i>
    {words}
  </span>
)

export function PinButton({ stock: { symbol }, view: { pins } }: Pick<StockProps, 'stock'> & { readonly view: BoardView }) {
  const isPinned = pins.includes(symbol)
  const toggle = () => changeView({ pins: toggled(pins, symbol) })
  return (
    <button type="button" class="pin" aria-pressed={isPinned} aria-label={`Pin ${symbol}`} onClick={toggle}>
      {isPinned ? '★' : '☆'}
    </button>
  )
}

type CellProps = {
  readonly field: string
  readonly children: ComponentChildren
  /** Second line of the cell: how far the number can be trusted, or why there is none. */
  readonly words: ComponentChildren
  readonly look?: string
  readonly title?: string
  readonly state?: string | undefined
  readonly kind?: string
}

const Cell = ({ field, children, words, look = '', title, state, kind }: CellProps) => (
  <span class="cell" data-field={field} data-state={state} data-kind={kind} title={title}>
    <span class={`figure ${look}`}>{children}</span>
    <span class="second">{words}</span>
  </span>
)

/** A cell without a number; without words it waits for one. */
const EmptyCell = ({ field, words }: { readonly field: string; readonly words: string | null }) =>
  words === null ? (
    <span class="cell awaited" data-field={field} />
  ) : (
    <Cell field={field} words={words} look="faint">
      {UNKNOWN}
    </Cell>
  )

/** While the connection is broken, a NAV is as it was when it broke. */
export function NavCell({ stock, nowMs, lostMs }: StockProps & Pick<BoardFeed, 'lostMs'>) {
  const { nav, session } = stock
  // The name of a holiday is in the title and in the strip.
  const [words, ...why] = navWords(nav, session && { ...session, reason: null }, nowMs).split(' · ')
  const isFresh = navStateOf(nav) === 'fresh'
  // In an open market a NAV should not be held.
  const isDoubtful = isNavOld(stock, nowMs) || (nav.state === 'stale' && session?.state === 'open')
  const [state = '', since] = (words ?? '').split(' since')
  const [word, frozenAt] = state.split(/(?= at )/)
  // The age of a NAV says nothing once the page no longer hears of newer ones.
  const freshWords =
    lostMs === null || nav.updated_at === null ? (
      <>
        {navAgeText(stock, nowMs)}
        <span class="old-word"> old</span>
      </>
    ) : (
      <>
        <span class="old-word">as of </span>
        {formatMoment(nav.updated_at, nowMs)}
      </>
    )
  const limit = isFresh && `up to ${formatDuration(nav.stale_after_s * 1_000)} old`
  const title = [nav.price !== null && `${nav.price} USD`, navWords(nav, session, nowMs), limit].filter(Boolean).join(', ')
  return (
    <Cell
      field="nav"
      state={navStateOf(nav)}
      title={title}
      words={
        isDoubtful && !isFresh ? (
          <>
            <span class="attention">{word}</span>
            <span class="attention held-age">
              {' '}
              <span class="old-word">· </span>
              {freshWords}
            </span>
          </>
        ) : (
          <>
            <span class={isDoubtful ? 'attention' : ''}>{isFresh ? freshWords : word}</span>
            {frozenAt && <span class="time-word">{frozenAt}</span>}
            {since && (
              <>
                <span class="wide-word"> since</span>
                {since.split(/(?<=\S) /).map((part, nth) => (
                  <span key={nth} class={nth > 0 ? 'time-word' : ''}>
                    {nth > 0 && ' '}
                    {part}
                  </span>
                ))}
              </>
            )}
            {!isFresh && <span class="why">{why.map((part) => ` · ${part}`)}</span>}
          </>
        )
      }
      look={isHeld(stock) ? 'held' : ''}
    >
      <Flash value={nav.price}>{formatPrice(nav.price)}</Flash>
    </Cell>
  )
}

export function QuoteCell({ stock: { quote } }: Pick<StockProps, 'stock'>) {
  const { price = null, venue, depth } = quote ?? {}
  const isPrice = price !== null && venue !== undefined
  // The currency is left out where it has no room.
  const [currency = '', kind = ''] = isPrice ? venueWords(venue).split(' · ') : []
  const words = isPrice ? [<span class="venue-currency">{currency} · </span>, kind] : quoteStateWords(quote)
  const title = isPrice
    ? `${price} ${venue.currency.symbol}, ${venue.kind}, fee ${venue.fee_bps ?? UNKNOWN} bps, depth ${depth ?? UNKNOWN}`
    : quoteStateWords(quote)
  return (
    <Cell field="quote" title={title} words={words} state={isPrice ? 'ok' : 'none'}>
      <Flash value={price}>{formatPrice(price)}</Flash>
    </Cell>
  )
}

/** A phone has room for a sign alone. */
const feeWords = (
  <>
    <span class="fee-word">within</span>
    <span class="fee-sign">≤</span> fee
  </>
)

/** Shows the direction by a sign and an arrow, for readers who do not see colours. */
export function BasisCell({ stock, nowMs }: StockProps) {
  const basis = premium(stock)
  if (!stock.quote || !basis) return <EmptyCell field="basis" words={stock.nav.price === null ? 'no NAV' : 'no price'} />
  const isOld = isNavOld(stock, nowMs)
  const isNews =
    basis.kind === 'premium' && stock.session?.state !== 'closed' && !isOld && Math.abs(Number(basis.bps)) >= newsBpsOf(stock)
  const size = isNews ? Number(basis.bps) : 0
  const [side, arrow] = size > 0 ? ['up', '▲'] : size < 0 ? ['down', '▼'] : ['', '']
  const title = basisWords(basis.kind, stock.quote.venue)
  return (
    <Cell
      field="basis"
      kind={basis.kind}
      title={title}
      state={isWithinFee(stock) ? 'within-fee' : undefined}
      words={isWithinFee(stock) ? feeWords : isOld ? 'NAV is old' : basisSide(basis)}
      look={basis.kind === 'drift' || isOld || isWithinFee(stock) ? 'held' : side}
    >
      {arrow && (
        <i class="arrow" aria-hidden="true">
          {arrow}
        </i>
      )}
      {formatBps(basis.bps)}
    </Cell>
  )
}

type DayProps = StockProps & { readonly day: DayFigures }

/** `baseMs` is the base that a head above the cell names. */
export function ChangeCell({ day: { change, isRead, priceFrom }, nowMs, baseMs }: DayProps & { readonly baseMs?: number | null }) {
  // The volume beside it says that there are no trades.
  if (change === null) return <EmptyCell field="change" words={isRead ? '' : null} />
  const text = formatPercent(change.percent)
  const since = formatMoment(new Date(change.sinceMs).toISOString(), nowMs)
  const sinceWords = (
    <>
      <span class={since.includes(' ') ? 'since-word' : ''}>since </span>
      {since}
    </>
  )
  const isOld = priceFrom !== 'now'
  const look = isOld ? 'held' : text.startsWith('+') ? 'up' : text.startsWith('−') ? 'down' : ''
  const words = isOld ? `at ${priceFrom}` : change.sinceMs === baseMs ? '' : sinceWords
  return (
    <Cell field="change" words={words} title={`since ${since}`} look={look}>
      {text}
      {words !== '' && <span class="other-base">*</span>}
    </Cell>
  )
}

export function VolumeCell({ day: { volume, trades, isRead } }: DayProps) {
  if (trades === 0) return <EmptyCell field="volume" words={isRead ? 'no trades' : null} />
  return (
    <Cell field="volume" words={trades === 1 ? '1 trade' : `${formatCount(trades)} trades`} title={`$${formatCount(volume)}`}>
      {formatMoney(volume)}
    </Cell>
  )
}

/** Shows the supply, which the list gives as a floating-point number. */
export function SupplyCell({ stock: { token, multiplier } }: Pick<StockProps, 'stock'>) {
  const tokens = token.total_supply
  if (typeof tokens !== 'number') return <EmptyCell field="supply" words="unknown" />
  const shares =
    multiplier === null ? 'shares unknown' : multiplier === '1' ? 'tokens' : `${formatQuantity(tokens * Number(multiplier))} shares`
  return (
    <Cell field="supply" title={`${tokens} tokens`} words={shares}>
      {formatQuantity(tokens)}
    </Cell>
  )
}

/** Makes a changed number flash once: with another key it is another element, whose animation begins. */
function Flash({ value, children }: { readonly value: string | null; readonly children: string }) {
  const first = useRef<string | null | undefined>(value)
  if (first.current !== value) first.current = undefined
  return (
    <span key={value ?? ''} class={first.current === undefined ? 'flash' : ''}>
      {children}
    </span>
  )
}

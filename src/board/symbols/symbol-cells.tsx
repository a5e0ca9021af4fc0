import { useRef } from 'preact/hooks'
import type { StockState } from '../../sdk/client/index.ts'
import { type Flow, netOf } from '../chart/flow.ts'
import {
  formatAmount,
  formatBps,
  formatCount,
  formatMoney,
  formatPrice,
  formatSignedMoney,
  UNKNOWN,
} from '../shared/number-text.ts'
import { basisWords, navStateOf, navWords, quoteStateWords, venueWords } from '../shared/state-words.ts'
import {
  basisOf,
  isHeld,
  multiplierText,
  nameOf,
  navAgeText,
  pausedText,
  scheduledText,
  supplyOf,
  warningsText,
} from '../shared/stock-texts.ts'

type CellProps = { readonly stock: StockState; readonly nowMs: number }

/** Two lines: what it is, and how far it can be trusted. */
export function NameCell({ stock, nowMs }: CellProps) {
  const scheduled = scheduledText(stock, nowMs)
  const paused = pausedText(stock)
  const warnings = warningsText(stock)
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
      <span class="second" title={[warnings, scheduled, paused].filter((text) => text !== null).join(', ')}>
        <span data-field="multiplier" title={stock.multiplier ?? undefined}>
          {multiplierText(stock)}
        </span>
        {warnings !== null && (
          <span class="attention" data-field="warnings">
            {' '}
            {warnings}
          </span>
        )}
        {scheduled !== null && <span class="attention"> → {scheduled}</span>}
        {paused !== null && (
          <span class="attention" data-field="paused">
            {' '}
            {paused}
          </span>
        )}
      </span>
    </>
  )
}

export function NavCell({ stock, nowMs }: CellProps) {
  const { nav, session } = stock
  const words = navWords(nav, session, nowMs)
  return (
    <span
      class="cell"
      data-field="nav"
      data-state={navStateOf(nav)}
      title={nav.price === null ? words : `${nav.price} USD, ${words}`}
    >
      <span class={`figure ${isHeld(stock) ? 'held' : ''}`}>
        <Flash value={nav.price}>{formatPrice(nav.price)}</Flash>
        <small class="age">{nav.price !== null && navAgeText(stock, nowMs)}</small>
      </span>
      <span class="second">{words}</span>
    </span>
  )
}

export function QuoteCell({ stock: { quote } }: Pick<CellProps, 'stock'>) {
  const words = quoteStateWords(quote)
  const isPrice = quote?.price != null
  return (
    <span
      class="cell"
      data-field="quote"
      title={
        isPrice
          ? `${quote.price} ${quote.venue.currency.symbol}, ${quote.venue.kind}, fee ${quote.venue.fee_bps ?? UNKNOWN} bps, depth ${quote.depth ?? UNKNOWN}`
          : words
      }
    >
      <span class="figure">
        <Flash value={quote?.price ?? null}>{formatPrice(quote?.price ?? null)}</Flash>
      </span>
      <span class="second">{quote && isPrice ? venueWords(quote.venue) : words}</span>
    </span>
  )
}

/** Up and down are told by sign and arrow first, by colour second. */
export function BasisCell({ stock }: Pick<CellProps, 'stock'>) {
  const basis = basisOf(stock)
  const { quote } = stock
  if (!quote || !basis)
    return (
      <span class="cell" data-field="basis">
        <span class="figure faint">{UNKNOWN}</span>
        <span class="second">no basis</span>
      </span>
    )
  const size = Number(basis.bps)
  const side = size > 0 ? 'up' : size < 0 ? 'down' : ''
  return (
    <span class="cell" data-field="basis" title={basisWords(basis.kind, quote.venue)}>
      <span class={`figure ${basis.kind === 'drift' ? 'held' : side}`}>
        {formatBps(basis.bps)}
        <i class="arrow" aria-hidden="true">
          {size > 0 ? '▲' : size < 0 ? '▼' : ''}
        </i>
      </span>
      <span class="second">{basis.kind}</span>
    </span>
  )
}

type FlowCellProps = { readonly flow: Flow | undefined; readonly isListed: boolean; readonly isPartial: boolean }

export function FlowCell({ flow, isListed, isPartial }: FlowCellProps) {
  if (!isListed) return <Missing field="flow" words="not selected" />
  if (!flow) return <Missing field="flow" words={isPartial ? 'none selected' : 'no movement'} />
  const isValued = flow.in + flow.out + flow.minted + flow.burnt + flow.moved > 0
  if (!isValued && flow.unvalued > 0) return <Missing field="flow" words={`${flow.unvalued} unvalued`} />
  const net = formatSignedMoney(netOf(flow))
  const title = `${isPartial ? 'of what is selected: ' : ''}in ${formatMoney(flow.in)}, out ${formatMoney(flow.out)}, minted ${formatMoney(flow.minted)}, burnt ${formatMoney(flow.burnt)}, moved ${formatMoney(flow.moved)}${flow.unvalued > 0 ? `, ${flow.unvalued} movements without a value` : ''}`
  return (
    <span class="cell" data-field="flow" title={title}>
      <span class={`figure ${net.startsWith('+') ? 'up' : net.startsWith('−') ? 'down' : ''}`}>{net}</span>
      <span class="second">{flow.unvalued > 0 ? `${flow.unvalued} unvalued` : `${formatMoney(flow.moved)} moved`}</span>
    </span>
  )
}

export function SupplyCell({ stock }: Pick<CellProps, 'stock'>) {
  const { tokens, shares } = supplyOf(stock)
  if (tokens === null) return <Missing field="supply" words="unknown" />
  return (
    <span class="cell" data-field="supply" title={`${formatAmount(String(tokens))} tokens`}>
      <span class="figure">{formatCount(tokens)}</span>
      <span class="second">{shares === null ? 'shares unknown' : `${formatCount(shares)} shares`}</span>
    </span>
  )
}

const Missing = ({ field, words }: { readonly field: string; readonly words: string }) => (
  <span class="cell" data-field={field}>
    <span class="figure faint">{UNKNOWN}</span>
    <span class="second">{words}</span>
  </span>
)

/** A changed number flashes once: another key is another element, whose animation begins. */
function Flash({ value, children }: { readonly value: string | null; readonly children: string }) {
  const first = useRef<string | null | undefined>(value)
  if (first.current !== value) first.current = undefined
  return (
    <span key={value ?? ''} class={first.current === undefined ? 'flash' : ''}>
      {children}
    </span>
  )
}

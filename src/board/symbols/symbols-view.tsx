import type { RefObject } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { StockState } from '../../sdk/client/index.ts'
import type { Flow, FlowSpan } from '../chart/flow.ts'
import type { Prices } from '../chart/price-series.ts'
import { Sparkline } from '../chart/sparkline.tsx'
import type { BoardFeed } from '../feed/board-feed.ts'
import { memo } from '../feed/board-hooks.ts'
import type { BoardView, SortKey } from '../shared/board-route.ts'
import { UNKNOWN } from '../shared/number-text.ts'
import { PageLink } from '../shared/page-link.tsx'
import { stockSentence } from '../shared/stock-texts.ts'
import { formatDuration } from '../shared/time-text.ts'
import { BasisCell, FlowCell, NameCell, NavCell, QuoteCell, SupplyCell } from './symbol-cells.tsx'
import { orderSymbols, wallPageOf } from './symbol-order.ts'

/** Symbols that are drawn; a search finds the others. */
const SHOWN_BOUND = 300
/** How often a chart in a row moves on when nothing new came. */
const TREND_STEP_MS = 10_000

export type SymbolsProps = {
  readonly feed: BoardFeed
  readonly view: BoardView
  readonly flows: ReadonlyMap<string, Flow>
  readonly flowSpan: FlowSpan
  readonly nowMs: number
  readonly selected: string | null
  readonly onView: (change: Partial<BoardView>) => void
  readonly onOpen: (symbol: string) => void
}

const columns: readonly { readonly title: string; readonly sort: SortKey | null; readonly name: string }[] = [
  { title: 'Symbol', sort: 'symbol', name: 'symbol' },
  { title: 'NAV', sort: 'nav', name: 'nav' },
  { title: 'On chain', sort: 'quote', name: 'quote' },
  { title: 'Basis bps', sort: 'basis', name: 'basis' },
  { title: 'Trend', sort: null, name: 'trend' },
  { title: 'Flow', sort: 'flow', name: 'flow' },
  { title: 'Supply', sort: null, name: 'supply' },
  { title: 'Updated', sort: 'updated', name: 'updated' },
]

export function SymbolsView(props: SymbolsProps) {
  const { feed, view, flows, nowMs } = props
  const all = feed.book.all()
  // Rows change places once a second at most: a reader can follow, and a long list is not sorted with every message.
  const order = useMemo(
    () => orderSymbols(all, view, { flows, lastUpdates: feed.lastUpdates }).map(({ address }) => address),
    [feed, view, nowMs, all.length],
  )
  const list = useRef<HTMLDivElement>(null)
  const page = useWallPage(list, view.isWall, order.length, nowMs)
  const shownAddresses = new Set(order.slice(page?.from ?? 0, page?.until ?? SHOWN_BOUND))
  const states = new Map(all.flatMap((stock) => (shownAddresses.has(stock.address) ? [[stock.address, stock]] : [])))
  const shown = order.flatMap((address) => states.get(address) ?? [])
  if (shown.length === 0) return <EmptySymbols {...props} />
  const rows = shown.map((stock) => <SymbolEntry key={stock.address} {...entryOf(stock, props)} />)
  const rest = page ? 0 : order.length - shown.length
  return (
    <div class={`symbols ${view.layout}`} ref={list}>
      {view.layout === 'table' ? (
        <table>
          <SymbolHeads {...props} />
          <tbody>{rows}</tbody>
        </table>
      ) : (
        <ul class="tile-list">{rows}</ul>
      )}
      {page && page.until - page.from < order.length && (
        <p class="note">
          {page.from + 1}–{page.until} of {order.length}
        </p>
      )}
      {rest > 0 && <p class="note">{rest} more: search for a symbol, a name, an ISIN or an address.</p>}
    </div>
  )
}

/** The symbols that the wall shows now; null where a reader scrolls. */
function useWallPage(list: RefObject<HTMLDivElement | null>, isWall: boolean, count: number, nowMs: number) {
  const [height, setHeight] = useState(0)
  useEffect(() => {
    const area = list.current?.parentElement
    if (!isWall || !area) return
    const observer = new ResizeObserver(() => setHeight(area.clientHeight))
    observer.observe(area)
    return () => observer.disconnect()
  }, [isWall, count > 0])
  return isWall ? wallPageOf(count, height, nowMs) : null
}

/** Rows that are drawn until the first snapshot. */
const SKELETON_ROWS = 6

function EmptySymbols(props: SymbolsProps) {
  const { feed, view } = props
  if (view.search !== '' && feed.book.all().length > 0) return <p class="empty">Nothing matches “{view.search}”.</p>
  if (feed.status?.reason === 'no_list')
    return <p class="empty">The token list has not been read yet. The symbols appear when it is.</p>
  if (feed.state?.phase === 'live') return <p class="empty">The token list has no symbols.</p>
  // The strip says why.
  if (feed.failure !== null) return null
  return (
    <div class="symbols table skeleton" aria-busy="true">
      <table>
        <SymbolHeads {...props} />
        <tbody>
          {Array.from({ length: SKELETON_ROWS }, (_, row) => (
            <tr key={row}>
              <th />
              {columns.slice(1).map(({ name }) => (
                <td key={name} class={`column-${name}`} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function SymbolHeads({ view, onView, flowSpan }: SymbolsProps) {
  return (
    <thead>
      <tr>
        {columns.map(({ title, sort, name }) => {
          const isSorted = sort !== null && view.sort === sort
          const order = isSorted ? (view.isDescending ? 'descending' : 'ascending') : undefined
          return (
            <th key={name} scope="col" class={`column-${name}`} aria-sort={order}>
              {sort === null ? (
                title
              ) : (
                <button
                  type="button"
                  onClick={() => onView({ sort, isDescending: isSorted ? !view.isDescending : sort !== 'symbol' })}
                >
                  {title}
                  {name === 'flow' && <small> {flowSpan.words}</small>}
                  <i aria-hidden="true">{isSorted ? (view.isDescending ? ' ↓' : ' ↑') : ''}</i>
                </button>
              )}
            </th>
          )
        })}
      </tr>
    </thead>
  )
}

type EntryProps = {
  readonly stock: StockState
  readonly flow: Flow | undefined
  readonly isFlowListed: boolean
  /** Whether the filter leaves out some movements. */
  readonly isFlowPartial: boolean
  readonly nav: Prices['nav']
  readonly quote: Prices['quote']
  /** The lines of a series are the same arrays while they grow. */
  readonly pointCount: number
  readonly trendEndMs: number
  readonly updated: string | undefined
  readonly nowMs: number
  readonly isPinned: boolean
  readonly isSelected: boolean
  readonly layout: BoardView['layout']
  readonly view: BoardView
  readonly onView: SymbolsProps['onView']
  readonly onOpen: SymbolsProps['onOpen']
}

function entryOf(stock: StockState, { feed, flows, view, nowMs, selected, onView, onOpen }: SymbolsProps): EntryProps {
  const { nav, quote } = feed.prices.of(stock)
  return {
    stock,
    flow: flows.get(stock.address),
    isFlowListed: feed.lists('transfer') || feed.lists('mint') || feed.lists('burn'),
    isFlowPartial: feed.filter.minValue !== '' || feed.filter.account.length > 0 || feed.filter.types.length > 0,
    nav,
    quote,
    pointCount: nav.length + quote.length,
    trendEndMs: Math.floor(nowMs / TREND_STEP_MS) * TREND_STEP_MS,
    updated: feed.lastUpdates.get(stock.address),
    nowMs,
    isPinned: view.pins.includes(stock.symbol),
    isSelected: selected === stock.symbol,
    layout: view.layout,
    view,
    onView,
    onOpen,
  }
}

const SymbolEntry = memo((props: EntryProps) => (props.layout === 'table' ? <SymbolRow {...props} /> : <SymbolTile {...props} />))

function SymbolRow(props: EntryProps) {
  const { stock, nowMs, isSelected, onOpen, updated } = props
  return (
    // The link in the row is what a keyboard reaches; the rest of the row is a larger target for it.
    <tr data-symbol={stock.symbol} class={isSelected ? 'selected' : ''} onClick={() => onOpen(stock.symbol)}>
      <th scope="row">
        <PinButton {...props} />
        <SymbolLink {...props} />
      </th>
      <td>
        <NavCell stock={stock} nowMs={nowMs} />
      </td>
      <td>
        <QuoteCell stock={stock} />
      </td>
      <td>
        <BasisCell stock={stock} />
      </td>
      <td class="column-trend">
        <Sparkline nav={props.nav} quote={props.quote} pointCount={props.pointCount} untilMs={props.trendEndMs} />
      </td>
      <td>
        <FlowCell flow={props.flow} isListed={props.isFlowListed} isPartial={props.isFlowPartial} />
      </td>
      <td class="column-supply">
        <SupplyCell stock={stock} />
      </td>
      <td class="column-updated">
        <span class="cell">
          <span class="figure faint">{updated === undefined ? UNKNOWN : agoText(nowMs - Date.parse(updated))}</span>
          <span class="second">{updated === undefined ? 'none read' : 'ago'}</span>
        </span>
      </td>
    </tr>
  )
}

/** Tenths of a second would only flicker. */
const agoText = (ms: number): string => formatDuration(Math.max(1_000, ms))

function SymbolTile(props: EntryProps) {
  const { stock, nowMs, isSelected, onOpen } = props
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the link in the tile takes the keys
    <li data-symbol={stock.symbol} class={`tile ${isSelected ? 'selected' : ''}`} onClick={() => onOpen(stock.symbol)}>
      <div class="tile-head">
        <SymbolLink {...props} />
        <PinButton {...props} />
      </div>
      <div class="tile-figures">
        <NavCell stock={stock} nowMs={nowMs} />
        <QuoteCell stock={stock} />
        <BasisCell stock={stock} />
        <Sparkline nav={props.nav} quote={props.quote} pointCount={props.pointCount} untilMs={props.trendEndMs} />
      </div>
    </li>
  )
}

/** A screen reader hears a sentence in place of the figures. */
const SymbolLink = ({ stock, nowMs }: EntryProps) => (
  <PageLink page={{ name: 'symbol', symbol: stock.symbol }} class="symbol-link">
    <span aria-hidden="true">
      <NameCell stock={stock} nowMs={nowMs} />
    </span>
    <span class="unseen">{stockSentence(stock, nowMs)}</span>
  </PageLink>
)

function PinButton({ stock, isPinned, view, onView }: EntryProps) {
  const toggle = (event: Event) => {
    event.stopPropagation()
    onView({ pins: isPinned ? view.pins.filter((pin) => pin !== stock.symbol) : [...view.pins, stock.symbol] })
  }
  return (
    <button type="button" class="pin" aria-pressed={isPinned} aria-label={`Pin ${stock.symbol}`} onClick={toggle}>
      {isPinned ? '★' : '☆'}
    </button>
  )
}

import type { ComponentType } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import type { StockState } from '../../sdk/client/index.ts'
import { Sparkline, type SparkScale, scaleOf } from '../chart/sparkline.tsx'
import type { BoardFeed } from '../feed/board-feed.ts'
import { memo } from '../feed/board-hooks.ts'
import { commonChange, type DayChange, type DayFigures } from '../feed/day-bars.ts'
import { type BoardView, emptyFilter, filterParameters, sortKeys } from '../shared/board-route.ts'
import { CsvButton } from '../shared/csv-button.tsx'
import { changeFilter, changeView, openPage, opensHere, PageLink } from '../shared/navigation.tsx'
import { keepPageKey } from '../shared/page-key.ts'
import { isPhone } from '../shared/page-settings.ts'
import { stockSentence } from '../shared/stock-texts.ts'
import { formatMoment } from '../shared/time-text.ts'
import { orderSymbols, wallPageOf } from './shown-symbols.ts'
import { BasisCell, ChangeCell, NameCell, NavCell, PinButton, QuoteCell, type StockProps, VolumeCell } from './symbol-cells.tsx'
import { symbolsCsv } from './symbols-csv.ts'

/** Time for which the list waits for the bars of the day. */
const DAY_PATIENCE_MS = 2_000
/** Limit on the symbols drawn; a search finds the others. */
const SHOWN_BOUND = 300

export type SymbolsProps = {
  readonly feed: BoardFeed
  readonly view: BoardView
  readonly nowMs: number
  readonly selected: string | null
}

type EntryProps = StockProps &
  SparkScale &
  Pick<BoardFeed, 'lostMs'> & {
    readonly feed: BoardFeed
    readonly view: BoardView
    readonly layout: BoardView['layout']
    readonly day: DayFigures
    readonly baseMs: number | null
    readonly isSelected: boolean
  }

const DAY = '24 h'
/** A day without its first hour counts as a whole one. */
const WHOLE_DAY_MS = 23 * 3_600_000

type Column = {
  readonly title: string
  /** Second line of the head, as in the page that is served. */
  readonly unit: string
  readonly name: string
  readonly View: ComponentType<EntryProps>
}

/** The columns after the symbol. A column whose name is a sort key can be sorted. */
const columns: readonly Column[] = [
  { title: 'Price', unit: '$', name: 'quote', View: QuoteCell },
  { title: 'NAV', unit: '$', name: 'nav', View: NavCell },
  { title: 'Premium', unit: 'bps', name: 'basis', View: BasisCell },
  { title: 'Change', unit: '', name: 'change', View: ChangeCell },
  { title: 'Trend', unit: '', name: 'trend', View: TrendCell },
  { title: 'Volume', unit: DAY, name: 'volume', View: VolumeCell },
]

export function SymbolsView(props: SymbolsProps) {
  const { feed, view, nowMs, selected } = props
  const all = feed.book.all()
  // Rows change places at most once a second, so that a reader can follow and a long list is rarely sorted.
  const sorted = useMemo(
    () => orderSymbols(all, view, feed.day, nowMs).map(({ address }) => address),
    [feed, view, nowMs, all.length, feed.isDayAsked],
  )
  const { order, ...pointer } = useStill(sorted, view)
  const list = useRef<HTMLDivElement>(null)
  // The list has a height only from the second drawing on.
  const page = view.isWall ? wallPageOf(order.length, list.current?.parentElement?.clientHeight ?? 0, nowMs) : null
  // A phone has no room for tiles: its rows have all that a tile has.
  const layout = view.isWall || !isPhone() ? view.layout : 'table'
  const states = new Map(all.map((stock) => [stock.address, stock]))
  const shown = order.slice(page?.from ?? 0, page?.until ?? SHOWN_BOUND).flatMap((address) => states.get(address) ?? [])
  // Until the day is read, rows would change places at once.
  const isSorted = feed.isDayAsked || Date.now() - feed.openedMs > DAY_PATIENCE_MS
  if (shown.length === 0) return <EmptySymbols {...props} />
  if (!isSorted) return <ListSkeleton {...props} />
  const days = shown.map((stock) => ({ stock, day: feed.day.of(stock, nowMs) }))
  // All of them, so that no other page or search changes the scale or the head.
  const allDays = all.map((stock) => feed.day.of(stock, nowMs))
  const scale = scaleOf(allDays)
  const base = commonChange(allDays)
  const rows = days.map(({ stock, day }) => (
    <SymbolEntry
      key={stock.address}
      {...{ stock, day, feed, view, layout, nowMs, ...scale }}
      lostMs={feed.lostMs}
      baseMs={view.isWall || base === null ? null : base.sinceMs}
      isSelected={selected === stock.symbol}
    />
  ))
  const rest = page ? 0 : order.length - shown.length
  return (
    <div class={`symbols ${layout}`} ref={list} {...pointer}>
      {base && !view.isWall && (
        <p class="base-note">
          Change {baseWords(base, nowMs)}
          <span class="other-base">, * other base</span> · volume of {DAY}
        </p>
      )}
      {layout === 'table' ? (
        <table>
          <SymbolHeads {...props} base={base} trend={trendWords(scale, nowMs)} />
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
      {!view.isWall && (
        <p class="note">
          {rest > 0 && `${rest} more: search for a symbol, a name, an ISIN or an address. `}
          <CsvButton label="Save this list as CSV" name="stocktape-symbols" text={() => symbolsCsv(days)} />
        </p>
      )}
    </div>
  )
}

/** Keeps the order of rows of the same view while the pointer is over them: a click must not hit another row. */
function useStill(sorted: readonly string[], view: BoardView) {
  const isOver = useRef(false)
  const kept = useRef({ sorted, view })
  const isSame = kept.current.view === view && kept.current.sorted.length === sorted.length
  if (!isOver.current || !isSame) kept.current = { sorted, view }
  const onPointerEnter = ({ pointerType }: PointerEvent) => {
    isOver.current = pointerType === 'mouse'
  }
  const onPointerLeave = () => {
    isOver.current = false
  }
  return { order: kept.current.sorted, onPointerEnter, onPointerLeave }
}

const SKELETON_ROWS = 14

function EmptySymbols(props: SymbolsProps) {
  const { feed, view } = props
  if (view.search !== '' && feed.book.all().length > 0)
    return (
      <p class="empty">
        Nothing matches “{view.search}”.{' '}
        <button type="button" onClick={() => changeView({ search: '' })}>
          Clear the search
        </button>
      </p>
    )
  const words =
    feed.status?.reason === 'no_list'
      ? 'The relay has not read its token list yet. It tries again by itself, usually every 15 s, and the symbols appear then.'
      : feed.state?.phase === 'live'
        ? 'The token list of this relay is empty now. Tokens appear here when it has some; the tape still has the lines of those that it had.'
        : null
  if (words !== null)
    return (
      <div class="symbols table">
        <table>
          <SymbolHeads {...props} />
        </table>
        <p class="empty">{words}</p>
      </div>
    )
  return feed.failure === null ? <ListSkeleton {...props} /> : <RefusedCard feed={feed} />
}

function ListSkeleton(props: SymbolsProps) {
  return (
    <div class="symbols table skeleton" aria-busy="true">
      <table>
        <SymbolHeads {...props} />
        <tbody>
          {Array.from({ length: SKELETON_ROWS }, (_, row) => (
            <tr key={row}>
              <th />
              {columns.map(({ name }) => (
                <td key={name} class={`column-${name}`} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** Says why there is nothing to see, and what the reader can do. */
export function RefusedCard({ feed: { filter, failure, needsKey } }: Pick<SymbolsProps, 'feed'>) {
  const [isForgotten, setForgotten] = useState(false)
  const useKey = (event: Event & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    const typed = new FormData(event.currentTarget).get('key')
    if (typeof typed === 'string' && keepPageKey(typed.trim())) location.reload()
    else setForgotten(true)
  }
  return (
    <section class="card" aria-label="Refused">
      <h2>{needsKey ? 'This relay asks for a key' : 'The relay refuses this selection'}</h2>
      <p>{needsKey ? 'Paste the key that you have from the operator of this relay.' : failure}</p>
      {needsKey ? (
        <form onSubmit={useKey}>
          <label>
            API key <input name="key" type="password" autocomplete="off" required />
          </label>
          <button type="submit" class="primary">
            Use this key
          </button>
        </form>
      ) : (
        filterParameters(filter).length > 0 && (
          <button type="button" class="primary" onClick={() => changeFilter(emptyFilter)}>
            Clear the filter
          </button>
        )
      )}
      {needsKey && (
        <p class="faint">
          Programs send it as <code>Authorization: Bearer …</code>, or as <code>key=</code> in the URL.
        </p>
      )}
      {isForgotten && <p class="attention">The browser keeps nothing for this page: open it with #key= and the key instead.</p>}
    </section>
  )
}

const sinceWords = (sinceMs: number, nowMs: number): string => `since ${formatMoment(new Date(sinceMs).toISOString(), nowMs)}`

const baseWords = ({ sinceMs, isClose }: DayChange, nowMs: number): string => (isClose ? 'since close' : sinceWords(sinceMs, nowMs))

/** The time that the small charts show. The relay may know less than the whole day. */
function trendWords({ fromMs }: SparkScale, nowMs: number): string {
  if (!Number.isFinite(fromMs)) return ''
  return nowMs - fromMs > WHOLE_DAY_MS ? DAY : sinceWords(fromMs, nowMs)
}

type SymbolHeadsProps = SymbolsProps & { readonly base?: DayChange | null; readonly trend?: string }

function SymbolHeads({ view, nowMs, base = null, trend = '' }: SymbolHeadsProps) {
  const units: Readonly<Record<string, string>> = { change: base ? baseWords(base, nowMs) : '', trend }
  return (
    <thead>
      <tr>
        {[{ title: 'Symbol', unit: '', name: 'symbol' }, ...columns].map(({ title, unit, name }) => {
          const sort = sortKeys.find((key) => key === name)
          const isSorted = view.sort === sort
          const order = isSorted ? (view.isDescending ? 'descending' : 'ascending') : undefined
          const second = <small>{units[name] ?? unit}</small>
          return (
            <th
              key={name}
              scope="col"
              class={`column-${name}`}
              aria-sort={order}
              title={name === 'change' && base ? sinceWords(base.sinceMs, nowMs) : undefined}
            >
              {sort === undefined ? (
                <>
                  {title} {second}
                </>
              ) : (
                <button
                  type="button"
                  onClick={() => changeView({ sort, isDescending: isSorted ? !view.isDescending : sort !== 'symbol' })}
                >
                  {title}
                  <i aria-hidden="true">{isSorted ? (view.isDescending ? ' ↓' : ' ↑') : ' ↕'}</i> {second}
                </button>
              )}
            </th>
          )
        })}
      </tr>
    </thead>
  )
}

const SymbolEntry = memo((props: EntryProps) => (props.layout === 'table' ? <SymbolRow {...props} /> : <SymbolTile {...props} />))

const openSymbol = (event: MouseEvent, { symbol }: StockState): void => {
  if (opensHere(event)) openPage({ name: 'symbol', symbol })
}

function SymbolRow(props: EntryProps) {
  const { stock, isSelected } = props
  return (
    // A keyboard reaches the link in the row. For a mouse the whole row opens the symbol.
    <tr data-symbol={stock.symbol} class={isSelected ? 'selected' : ''} onClick={(event) => openSymbol(event, stock)}>
      <th scope="row">
        <PinButton {...props} />
        <SymbolLink {...props} />
      </th>
      {columns.map(({ name, View }) => (
        <td key={name} class={`column-${name}`}>
          <View {...props} />
        </td>
      ))}
    </tr>
  )
}

function TrendCell({ day: { closes, change }, maxChange, fromMs }: EntryProps) {
  return <Sparkline {...{ closes, change, maxChange, fromMs }} />
}

function SymbolTile(props: EntryProps) {
  const { stock, isSelected } = props
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the link in the tile takes the keys
    <li data-symbol={stock.symbol} class={`tile ${isSelected ? 'selected' : ''}`} onClick={(event) => openSymbol(event, stock)}>
      <div class="tile-head">
        <SymbolLink {...props} />
        <PinButton {...props} />
      </div>
      <div class="tile-figures">
        <QuoteCell {...props} />
        <ChangeCell {...props} />
        <NavCell {...props} />
        <BasisCell {...props} />
        <TrendCell {...props} />
        <VolumeCell {...props} />
      </div>
    </li>
  )
}

/** Links to the page of a symbol. Screen readers read a sentence instead of the numbers. */
const SymbolLink = ({ stock, nowMs }: EntryProps) => (
  <PageLink page={{ name: 'symbol', symbol: stock.symbol }} class="symbol-link">
    <span aria-hidden="true">
      <NameCell stock={stock} nowMs={nowMs} />
    </span>
    <span class="unseen">{stockSentence(stock, nowMs)}</span>
  </PageLink>
)

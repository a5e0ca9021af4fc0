import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { StockState } from '../../sdk/client/index.ts'
import type { BoardFeed } from '../feed/board-feed.ts'
import { type BoardRoute, type SortKey, sortKeys } from '../shared/board-route.ts'
import { changeView, openPage, PageLink } from '../shared/navigation.tsx'
import { formatPrice } from '../shared/number-text.ts'
import { pageSetting, toggleTheme } from '../shared/page-settings.ts'
import { quoteStateWords } from '../shared/state-words.ts'
import { nameOf } from '../shared/stock-texts.ts'
import { searchSymbols } from '../symbols/shown-symbols.ts'

/** The served page contains the setting `demo`, so that no part of the page moves when the stream begins. */
export const DemoMark = ({ feed }: { readonly feed: BoardFeed }) =>
  pageSetting('demo') === 'true' || feed.state?.demo ? (
    <p class="demo" title="Nothing here is real: the source is the built-in chain">
      Demo<span class="wide-word"> data</span>
    </p>
  ) : null

type SearchProps = {
  readonly feed: BoardFeed
  readonly route: BoardRoute
  readonly search: RefObject<HTMLInputElement | null>
  /** The stocks of the list, in its order. */
  readonly order: () => readonly StockState[]
}

const RESULTS_BOUND = 8

/** The list is beside the tape, or one of two tabs. */
const isListShown = ({ page, view }: BoardRoute): boolean =>
  page.name === 'symbols' && (view.tab === 'symbols' || matchMedia('(min-width: 1020px)').matches)

/** Shows the symbols that match below the field. On the list, they are its rows: the text filters them, and is in the URL. */
function Search({ feed, route, search, order }: SearchProps) {
  const { page, view } = route
  const [draft, setDraft] = useState('')
  const isInList = isListShown(route)
  useEffect(() => setDraft(''), [page])
  const text = isInList ? view.search : draft
  const set = (next: string) => {
    setDraft(next)
    if (isInList || next === '') changeView({ search: next })
  }
  const found = text.trim() === '' ? [] : isInList ? order() : searchSymbols(feed.book.all(), text)
  const results = found.slice(0, RESULTS_BOUND)
  const showAll = () => {
    openPage({ name: 'symbols' })
    changeView({ search: text, tab: 'symbols' })
  }
  const press = (event: KeyboardEvent & { readonly currentTarget: HTMLElement }) => {
    // Enter may also end the choice of a letter.
    if (event.isComposing) return
    const [first] = results
    const distance = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (distance !== undefined && results.length > 0) {
      const places = [search.current, ...event.currentTarget.querySelectorAll<HTMLElement>('.results :is(a, button)')]
      const next = places.findIndex((place) => place?.matches(':focus')) + distance
      places[Math.max(0, Math.min(places.length - 1, next))]?.focus()
    } else if (event.key === 'Escape' && text !== '') set('')
    else if (event.key === 'Enter' && first && event.target === search.current) {
      set('')
      search.current?.blur()
      openPage({ name: 'symbol', symbol: first.symbol })
    } else return
    // The key is not one of the page then.
    event.stopPropagation()
    event.preventDefault()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the field and the links in it have the focus
    <div class="search" onKeyDown={press}>
      <input
        type="search"
        ref={search}
        placeholder={matchMedia('(hover: none), (max-width: 1019px)').matches ? 'Search' : 'Search  /'}
        aria-label="Search symbols"
        autocomplete="off"
        value={text}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
      {text.trim() !== '' && !isInList && (
        // A browser that gives the focus to no link would hide the list before the click.
        <ul class="results" aria-label="Symbols found" onMouseDown={(event) => event.preventDefault()}>
          {results.map((stock) => (
            <li key={stock.address}>
              <PageLink page={{ name: 'symbol', symbol: stock.symbol }}>
                <b dir="auto">{stock.symbol}</b> <span dir="auto">{nameOf(stock)}</span>
                <ResultPrice stock={stock} />
              </PageLink>
            </li>
          ))}
          {found.length > results.length && (
            <li>
              <button type="button" onClick={showAll}>
                All {found.length} in the list
              </button>
            </li>
          )}
          {results.length === 0 && (
            <li class="faint" role="status">
              Nothing matches.
            </li>
          )}
        </ul>
      )}
    </div>
  )
}

/** The price in a pool. A NAV is none, and says so. */
const ResultPrice = ({ stock: { quote, nav } }: { readonly stock: StockState }) => (
  <span class={`figure ${quote?.price ? '' : 'faint'}`}>
    {quote?.price ? formatPrice(quote.price) : nav.price ? `NAV ${formatPrice(nav.price)}` : quoteStateWords(quote)}
  </span>
)

type ToolsProps = SearchProps & { readonly onHelp: () => void }

export function Tools({ onHelp, ...props }: ToolsProps) {
  const { view } = props.route
  return (
    <div class="tools">
      <Search {...props} />
      <SortSelect view={view} />
      <button
        type="button"
        class={`wide-only ${view.layout}`}
        onClick={() => changeView({ layout: view.layout === 'tiles' ? 'table' : 'tiles' })}
      >
        {view.layout === 'tiles' ? 'Table' : 'Tiles'}
      </button>
      <button type="button" aria-label="Light or dark" onClick={toggleTheme}>
        ◐
      </button>
      <button type="button" aria-label="Help" onClick={onHelp}>
        ?
      </button>
      <PageLink page={{ name: 'play' }} class="button primary wide-only" title="Programs that read what this page shows">
        Connect a bot
      </PageLink>
    </div>
  )
}

const sortNames: Readonly<Record<SortKey, string>> = {
  symbol: 'by symbol',
  nav: 'by NAV',
  quote: 'by price',
  basis: 'by premium',
  change: 'by change',
  volume: 'by volume',
}

/** Sorts tiles, and the list of a narrow screen, which have no column heads. */
const SortSelect = ({ view }: Pick<BoardRoute, 'view'>) => (
  <select
    class={`sort-select ${view.layout}`}
    aria-label="Sort"
    value={view.sort}
    onChange={({ currentTarget }) => {
      const sort = sortKeys.find((key) => key === currentTarget.value) ?? 'symbol'
      changeView({ sort, isDescending: sort !== 'symbol' })
    }}
  >
    {sortKeys.map((key) => (
      <option key={key} value={key}>
        {sortNames[key]}
      </option>
    ))}
  </select>
)

export const Notes = () => (
  <footer class="notes">
    <p>Trades and transfers of tokenized stocks, often before their block, each marked with how certain it is.</p>
    <p>
      Premium: the price on the chain against the NAV, with the currency of the pool taken as 1 USD. It is a drift while the NAV is
      held.
    </p>
    <p>
      A symbol in this list does not imply that it can be traded, or that you may trade it. NAV is a reference value, not a price.
    </p>
    <p>
      <PageLink page={{ name: 'health' }}>Health</PageLink> · <PageLink page={{ name: 'play' }}>Connect a bot</PageLink> ·{' '}
      <a href="/docs">Documentation</a>
    </p>
  </footer>
)

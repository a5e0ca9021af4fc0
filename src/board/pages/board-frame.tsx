import type { RefObject } from 'preact'
import type { BoardFeed } from '../feed/board-feed.ts'
import { type BoardView, type SortKey, sortKeys } from '../shared/board-route.ts'
import { changeView, PageLink } from '../shared/navigation.tsx'
import { pageSetting, toggleTheme } from '../shared/page-settings.ts'

/** The served page contains the setting `demo`, so that no part of the page moves when the stream begins. */
export const DemoBanner = ({ feed }: { readonly feed: BoardFeed }) =>
  pageSetting('demo') === 'true' || feed.state?.demo ? (
    <p class="demo" role="note">
      <b>Nothing here is real:</b> the source is the built-in chain.
    </p>
  ) : null

type ToolsProps = { readonly view: BoardView; readonly onHelp: () => void; readonly search: RefObject<HTMLInputElement | null> }

export function Tools({ view, onHelp, search }: ToolsProps) {
  return (
    <div class="tools">
      <input
        type="search"
        ref={search}
        placeholder="Search  /"
        aria-label="Search symbols"
        value={view.search}
        onInput={({ currentTarget }) => changeView({ search: currentTarget.value })}
      />
      <SortSelect view={view} />
      <button type="button" class="wide-only" onClick={() => changeView({ layout: view.layout === 'tiles' ? 'table' : 'tiles' })}>
        {view.layout === 'tiles' ? 'Table' : 'Tiles'}
      </button>
      <PageLink page={{ name: 'play' }} class="button wide-only">
        Try
      </PageLink>
      <button type="button" aria-label="Light or dark" onClick={toggleTheme}>
        ◐
      </button>
      <button type="button" aria-label="Help" onClick={onHelp}>
        ?
      </button>
    </div>
  )
}

const sortNames: Readonly<Record<SortKey, string>> = {
  symbol: 'by symbol',
  nav: 'by NAV',
  quote: 'by price on chain',
  basis: 'by basis',
  flow: 'by flow',
  updated: 'by update',
}

/** Sorts tiles, and the list of a narrow screen, which have no column heads. */
const SortSelect = ({ view }: Pick<ToolsProps, 'view'>) => (
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
    <p>
      stocktape shows how tokenized stocks move on the chain, often before a block contains the movement, and how far each number
      can be trusted.
    </p>
    <p>
      Basis: the price on the chain against the NAV, with the currency of the pool taken as 1 USD. premium: against a fresh NAV;
      drift: against a held one.
    </p>
    <p>
      A symbol in this list does not imply that it can be traded, or that you may trade it. NAV is a reference value, not a price.{' '}
      <PageLink page={{ name: 'source' }}>Source</PageLink> · <PageLink page={{ name: 'play' }}>Try the feed</PageLink> ·{' '}
      <a href="/docs">Documentation</a>
    </p>
  </footer>
)

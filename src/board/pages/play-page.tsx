import type { BoardFeed } from '../feed/board-feed.ts'
import type { BoardFilter } from '../shared/board-route.ts'
import { BackLink } from '../shared/page-link.tsx'
import { shownJson } from '../shared/shown-text.ts'
import { FilterForm } from '../tape/filter-bar.tsx'
import { CopyPanel } from './copy-panel.tsx'

const SHOWN = 30
/** A snapshot of a token is longer than a screen. */
const SHOWN_CHARACTERS = 1_200

/** Pick a selection, see its messages as they come, and take it away as a program. */
export function PlayPage({
  feed,
  filter,
  onFilter,
}: {
  readonly feed: BoardFeed
  readonly filter: BoardFilter
  readonly onFilter: (filter: BoardFilter) => void
}) {
  const shown = feed.raw.slice(-SHOWN).reverse()
  return (
    <article class="play-page">
      <header>
        <BackLink />
        <h1>Try the feed</h1>
        <p class="note">
          Each message is one JSON object. It comes alike over WebSocket, server-sent events and NDJSON.{' '}
          <a href="/docs">All types and parameters</a>
        </p>
      </header>
      <FilterForm key={JSON.stringify(filter)} filter={filter} onChange={onFilter} />
      <CopyPanel filter={filter} />
      <section aria-label="Messages">
        <h2>
          Messages as they come <small>newest first; the page also asks for what its table shows</small>
        </h2>
        {shown.length === 0 && <p class="faint">None yet.</p>}
        <ol class="raw">
          {shown.map((item) => (
            <li key={`${item.type}${item.id}${'symbol' in item ? item.symbol : ''}`}>
              <code>{shownJson(item).slice(0, SHOWN_CHARACTERS)}</code>
            </li>
          ))}
        </ol>
      </section>
    </article>
  )
}

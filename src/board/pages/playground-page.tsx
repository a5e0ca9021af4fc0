import { useState } from 'preact/hooks'
import type { StreamItem } from '../../sdk/client/index.ts'
import type { BoardFeed } from '../feed/board-feed.ts'
import type { BoardFilter } from '../shared/board-route.ts'
import { BackLink, changeFilter } from '../shared/navigation.tsx'
import { pageKey } from '../shared/page-key.ts'
import { relayUrl } from '../shared/page-settings.ts'
import { formatClock } from '../shared/time-text.ts'
import { CodeBlock, visibleJson } from '../shared/visible-text.tsx'
import { FilterForm } from '../tape/filter-bar.tsx'
import { type ProgramKind, programFor, programKinds } from './program-for-filter.ts'

const SHOWN = 30
/** Limit of the characters shown for one message, since a snapshot is longer than a screen. */
const SHOWN_CHARACTERS = 1_200
const COPIED_MS = 1_500

export function PlaygroundPage({ feed: { filter, raw } }: { readonly feed: BoardFeed }) {
  const shown = raw.slice(-SHOWN).reverse()
  return (
    <article class="play-page">
      <header>
        <BackLink />
        <h1>Connect a bot</h1>
        <p class="note">
          Each message is one JSON object, the same over WebSocket, server-sent events and NDJSON.{' '}
          <a href="/docs">All types and parameters</a>
        </p>
      </header>
      <FilterForm key={JSON.stringify(filter)} filter={filter} onChange={changeFilter} />
      <CopyPanel filter={filter} />
      <section aria-label="Messages">
        <h2>
          Messages <small>newest first; includes what this page itself uses</small>
        </h2>
        {shown.length === 0 && <p class="faint">None yet.</p>}
        <ol class="raw">
          {shown.map((item) => (
            <li key={`${item.type}${item.id}${'symbol' in item ? item.symbol : ''}`}>
              <details>
                <summary>{titleOf(item)}</summary>
                <code>{visibleJson(item).slice(0, SHOWN_CHARACTERS)}</code>
              </details>
            </li>
          ))}
        </ol>
      </section>
    </article>
  )
}

/** One line about a message, so that many of them can be read at a glance. */
const titleOf = (item: StreamItem): string =>
  ['time' in item && formatClock(item.time), item.type, 'symbol' in item && item.symbol].filter(Boolean).join(' · ')

function CopyPanel({ filter }: { readonly filter: BoardFilter }) {
  const [kind, setKind] = useState<ProgramKind>('curl')
  const [isCopied, setCopied] = useState(false)
  const text = programFor(kind, filter, relayUrl(), pageKey() !== null)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      setTimeout(() => setCopied(false), COPIED_MS)
    } catch {
      // A page over plain HTTP has no clipboard: it selects the text, so that the reader can copy it.
      getSelection()?.selectAllChildren(document.querySelector('.copy-panel pre') ?? document.body)
    }
  }
  return (
    <section class="copy-panel" aria-label="Copy as">
      <fieldset class="tabs" aria-label="Copy as">
        {programKinds.map((name) => (
          <button type="button" key={name} aria-pressed={name === kind} onClick={() => setKind(name)}>
            {name}
          </button>
        ))}
      </fieldset>
      <div class="code">
        <CodeBlock text={text} />
        <button type="button" class="primary" onClick={copy}>
          {isCopied ? 'Copied' : 'Copy'}
        </button>
      </div>
    </section>
  )
}

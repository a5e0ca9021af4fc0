import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { BoardFeed } from './feed/board-feed.ts'
import { useConnectionMark, useFeed, useNow, useRoute } from './feed/board-hooks.ts'
import { type AlertState, useAlerts } from './feed/use-alerts.ts'
import { DemoMark, Notes, Tools } from './pages/board-frame.tsx'
import { HealthPage } from './pages/health-page.tsx'
import { HelpSheet } from './pages/help-sheet.tsx'
import { PlaygroundPage } from './pages/playground-page.tsx'
import { type BoardRoute, type BoardView, emptyFilter, pathOf, toggled } from './shared/board-route.ts'
import {
  BackLink,
  changeFilter,
  changeView,
  closePage,
  leaveWall,
  openPage,
  readRoute,
  replacePage,
  wasReturnedTo,
} from './shared/navigation.tsx'
import { toggleTheme } from './shared/page-settings.ts'
import { pageIcon, pageTitle } from './shared/page-title.ts'
import { findStock, orderSymbols } from './symbols/shown-symbols.ts'
import { SymbolPage } from './symbols/symbol-page.tsx'
import { RefusedCard, type SymbolsProps, SymbolsView } from './symbols/symbols-view.tsx'
import { FactSheet } from './tape/fact-sheet.tsx'
import { Strip, troubleOf } from './tape/pulse-strip.tsx'
import { TapePanel } from './tape/tape-panel.tsx'
import { linesOf } from './tape/tape-tabs.ts'
import { lineSentence } from './tape/tape-texts.ts'

/** Interval between announcements, in which a screen reader can finish a sentence. */
const ANNOUNCEMENT_INTERVAL_MS = 5_000
/** Limit of the pages whose scroll position is kept. */
const KEPT_SCROLLS_BOUND = 100

export function Board() {
  const { page, filter, view } = useRoute()
  const feed = useFeed(filter)
  const nowMs = useNow(feed)
  const [isPaused, setPaused] = useState(false)
  const [isHelpOpen, setHelpOpen] = useState(false)
  const search = useRef<HTMLInputElement>(null)
  // The sheet of a fact opens over the page that was shown before.
  const base = useRef<BoardRoute['page']>({ name: 'symbols' })
  if (page.name !== 'fact') base.current = page
  const stocks = () => orderSymbols(feed.book.all(), view, feed.day, nowMs)
  const symbols = () => stocks().map(({ symbol }) => symbol)
  const keys = { p: () => setPaused(!isPaused), t: toggleTheme, '?': () => setHelpOpen(true) }
  const selected = useShortcuts(feed, base.current, view, symbols, search, keys)
  const main = useScroll(pathOf(base.current))
  useConnectionMark(feed)
  const only = (base.current.name === 'symbol' && findStock(feed.book, base.current.symbol)) || null
  const alertState = useAlerts(feed, nowMs)
  const isWell = feed.interruptions.at(-1)?.untilMs !== null && troubleOf(feed, nowMs, alertState) === null
  useTab(pageTitle(only, isWell), pageIcon(isWell))
  return (
    <div class={`app ${view.isWall ? 'wall' : ''} tab-${view.tab}`}>
      <header class="strip">
        <h1 class="brand">stocktape</h1>
        <DemoMark feed={feed} />
        <Strip feed={feed} nowMs={nowMs} alertState={alertState} />
        <Tools route={{ page: base.current, filter, view }} {...{ feed, search }} order={stocks} onHelp={() => setHelpOpen(true)} />
      </header>
      <TabBar tab={view.tab} page={base.current} />
      <main class="state" {...main}>
        <MainPage page={base.current} order={symbols} {...{ feed, nowMs, view, selected, alertState }} />
        <Notes />
      </main>
      <TapePanel {...{ feed, nowMs, isPaused, filter, only }} show={view.show} isWall={view.isWall} onPause={setPaused} />
      {page.name === 'fact' && (
        <FactSheet
          id={page.key}
          feed={feed}
          lines={linesOf(feed.lines.all, view.show, only?.address ?? null)}
          onClose={() => closePage(base.current)}
        />
      )}
      {isHelpOpen && <HelpSheet onClose={() => setHelpOpen(false)} />}
      <LiveRegion feed={feed} />
    </div>
  )
}

type KeyActions = Readonly<Record<string, () => void>>

/** Keeps how far each page is scrolled: a page that is opened begins at its top, and one that is returned to is where it was. */
function useScroll(page: string) {
  const tops = useRef(new Map<string, number>())
  const main = useRef<HTMLElement>(null)
  const shown = useRef(page)
  useLayoutEffect(() => {
    shown.current = page
    main.current?.scrollTo(0, wasReturnedTo() ? (tops.current.get(page) ?? 0) : 0)
  }, [page])
  const onScroll = () => {
    tops.current.delete(shown.current)
    tops.current.set(shown.current, main.current?.scrollTop ?? 0)
    const [oldest] = tops.current.keys()
    if (tops.current.size > KEPT_SCROLLS_BOUND && oldest !== undefined) tops.current.delete(oldest)
  }
  return { ref: main, onScroll }
}

/**
 * Binds the keys of the page. Returns the symbol that they have reached in the list. On the page of a symbol, the same keys lead to
 * the next and to the one before.
 */
function useShortcuts(
  feed: BoardFeed,
  page: BoardRoute['page'],
  view: BoardView,
  symbols: () => readonly string[],
  search: RefObject<HTMLInputElement | null>,
  others: KeyActions,
): string | null {
  // Several keys may be pressed between two drawings, so the newest selection is kept beside the drawn one.
  const reached = useRef<string | null>(null)
  const [selected, setSelected] = useState<string | null>(null)
  const step = (distance: number) => {
    const all = symbols()
    // The page may have changed since it was drawn, and its name need not be that of the list.
    const shown = readRoute().page
    const from = shown.name === 'symbol' ? findStock(feed.book, shown.symbol)?.symbol : reached.current
    const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(from ?? '') + distance))] ?? null
    reached.current = next
    setSelected(next)
    if (shown.name === 'symbol' && next !== null) replacePage({ name: 'symbol', symbol: next })
  }
  const inList = (act: (symbol: string) => void) => () => {
    if (page.name === 'symbols' && !view.isWall && reached.current !== null) act(reached.current)
  }
  useKeyboard({
    '/': () => search.current?.focus(),
    j: () => step(1),
    k: () => step(-1),
    Enter: inList((symbol) => openPage({ name: 'symbol', symbol })),
    Escape: () => (view.isWall ? leaveWall() : page.name !== 'symbols' && closePage({ name: 'symbols' })),
    f: () => {
      const symbol = page.name === 'symbol' ? findStock(feed.book, page.symbol)?.symbol : reached.current
      if (symbol != null && !view.isWall && page.name !== 'health' && page.name !== 'play')
        changeView({ pins: toggled(view.pins, symbol) })
    },
    ...others,
  })
  const isPinned = selected !== null && view.pins.includes(selected)
  // A symbol that is pinned or no longer pinned moves to another row.
  useEffect(() => {
    document.querySelector('.symbols .selected')?.scrollIntoView({ block: 'nearest' })
  }, [selected, isPinned])
  return page.name === 'symbols' ? selected : null
}

/** Acts on single keys, unless the reader types into a field or holds a modifier. */
function useKeyboard(actions: KeyActions): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { target, key } = event
      const isTyping = target instanceof HTMLElement && target.matches('input, textarea, select')
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return
      if (isTyping && key === 'Escape') return target.blur()
      // A focused link or button handles Enter itself.
      if (isTyping || (key === 'Enter' && target instanceof HTMLElement && target.matches('a, button, summary'))) return
      const action = actions[key]
      if (!action) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
}

/** The buttons that select the part of the page that a narrow screen shows. */
function TabBar({ tab, page }: Pick<BoardView, 'tab'> & Pick<BoardRoute, 'page'>) {
  const isOther = page.name === 'health' || page.name === 'play'
  const open = (name: BoardView['tab']) =>
    isOther && name === 'symbols' ? openPage({ name: 'symbols' }) : changeView({ tab: name })
  return (
    <nav class="tab-bar" aria-label="Parts of the page">
      {(['symbols', 'tape'] as const).map((name) => (
        <button type="button" key={name} aria-pressed={tab === name && !(isOther && name === 'symbols')} onClick={() => open(name)}>
          {name === 'symbols' ? 'Symbols' : 'Tape'}
        </button>
      ))}
    </nav>
  )
}

/** Keeps the text and the sign of the tab, which a reader sees beside other tabs. */
function useTab(title: string, icon: string): void {
  useEffect(() => {
    document.title = title
  }, [title])
  useEffect(() => {
    document.querySelector('link[rel="icon"]')?.setAttribute('href', icon)
  }, [icon])
}

type MainProps = SymbolsProps & {
  readonly page: BoardRoute['page']
  readonly order: () => readonly string[]
  readonly alertState: AlertState
}

function MainPage({ page, order, alertState, ...symbols }: MainProps) {
  const { feed, nowMs } = symbols
  // Keeps the address of each shown symbol, because a symbol may be renamed while its page is open.
  const shown = useRef(new Map<string, string>())
  if (page.name === 'health') return <HealthPage feed={feed} nowMs={nowMs} />
  if (page.name === 'play') return <PlaygroundPage feed={feed} />
  if (page.name !== 'symbol') return <SymbolsView {...symbols} />
  const stock = findStock(feed.book, page.symbol) ?? feed.book.get(shown.current.get(page.symbol) ?? '')
  if (stock) shown.current.set(page.symbol, stock.address)
  if (stock) return <SymbolPage {...{ stock, feed, nowMs, alertState, view: symbols.view }} order={order()} key={stock.address} />
  if (feed.failure !== null) return <RefusedCard feed={feed} />
  if (feed.state?.phase !== 'live') return <p class="empty">Loading …</p>
  const isSelection = feed.filter.symbols.length > 0
  return (
    <section class="card" aria-label="Unknown symbol">
      <h2>
        There is no symbol “{page.symbol}”{isSelection ? ' in this selection' : ''}.
      </h2>
      <p class="faint">The list has {feed.book.all().length} symbols. A symbol may have been delisted or renamed.</p>
      {isSelection && (
        <button type="button" onClick={() => changeFilter({ ...feed.filter, symbols: emptyFilter.symbols })}>
          Clear the filter
        </button>
      )}
      <BackLink />
    </section>
  )
}

/** Announces the newest line to screen readers, or the one that was retracted, and the number of the other new lines. */
function LiveRegion({ feed }: { readonly feed: BoardFeed }) {
  const [text, setText] = useState('')
  useEffect(() => {
    let announced = feed.lines.newest
    let struck = feed.lines.lastRetracted
    const timer = setInterval(() => {
      const { newest, lastRetracted } = feed.lines
      // A retraction has precedence, because an earlier sentence is wrong by it.
      const line = lastRetracted !== struck ? lastRetracted : newest === announced ? null : feed.lines.at(newest)
      // A reader who looks at other lines is not told of those that wait.
      if (!line || feed.isSilent) return
      const others = newest - announced - (line.nth === newest ? 1 : 0)
      announced = newest
      struck = lastRetracted
      setText(`${lineSentence(line, feed.head)}${others > 0 ? `, and ${others} more` : ''}`)
    }, ANNOUNCEMENT_INTERVAL_MS)
    return () => clearInterval(timer)
  }, [feed])
  return (
    <p class="unseen" aria-live="polite">
      {text}
    </p>
  )
}

import { Component, type ComponentType, h } from 'preact'
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import { FLOW_MINUTES, type Flow, type FlowSpan, flowOf } from '../chart/flow.ts'
import { type BoardFilter, type BoardRoute, type BoardView, formatRoute, parseRoute } from '../shared/board-route.ts'
import { formatDuration } from '../shared/time-text.ts'
import { BoardFeed } from './board-feed.ts'

/** Draws a component again only when one of its properties is another one. */
export function memo<Props extends object>(View: ComponentType<Props>): ComponentType<Props> {
  return class extends Component<Props> {
    override shouldComponentUpdate(next: Props): boolean {
      return (Object.keys(next) as (keyof Props)[]).some((name) => next[name] !== this.props[name])
    }
    render() {
      return h(View, this.props)
    }
  }
}

/** The part of the URL that the page shows, and what changes some of it; these functions stay the same. */
export function useRoute() {
  const [route, setRoute] = useState(readRoute)
  useEffect(() => {
    const read = () => setRoute(readRoute())
    addEventListener('hashchange', read)
    return () => removeEventListener('hashchange', read)
  }, [])
  const change = useCallback((part: Partial<BoardRoute>) => {
    const next = { ...readRoute(), ...part }
    // Another page is a step to go back from; a search or a sort order is not.
    if (part.page) location.hash = formatRoute(next)
    else history.replaceState(null, '', formatRoute(next))
    setRoute(next)
  }, [])
  const changeView = useCallback((part: Partial<BoardView>) => change({ view: { ...readRoute().view, ...part } }), [change])
  return { route, change, changeView } as const
}

function readRoute(): BoardRoute {
  const route = parseRoute(location.hash)
  const isWall = route.view.isWall || new URLSearchParams(location.search).has('wall')
  return isWall ? { ...route, view: { ...route.view, isWall, layout: 'tiles' } } : route
}

/** The feed of a filter. Another filter is another stream; the page draws again with every change. */
export function useFeed(filter: BoardFilter): BoardFeed {
  const [feed, setFeed] = useState(() => new BoardFeed(new URL(location.href), filter, null))
  const [, draw] = useState(0)
  const wanted = JSON.stringify(filter)
  useEffect(() => {
    if (JSON.stringify(feed.filter) === wanted) return
    feed.close()
    setFeed(new BoardFeed(new URL(location.href), JSON.parse(wanted), feed))
  }, [feed, wanted])
  useEffect(() => feed.subscribe(() => draw((count) => count + 1)), [feed])
  return feed
}

const SECOND_MS = 1_000

/** The time of the relay, once a second. */
export function useNow(feed: BoardFeed): number {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), SECOND_MS)
    return () => clearInterval(timer)
  }, [])
  return Math.floor(feed.clock.nowMs() / SECOND_MS) * SECOND_MS
}

/** The flow of the lines that were read. Once a second is often enough. */
export function useFlows(
  feed: BoardFeed,
  nowMs: number,
): { readonly flows: ReadonlyMap<string, Flow>; readonly flowSpan: FlowSpan } {
  return useMemo(() => {
    const venueOf = new Map(feed.book.all().map(({ address, quote }) => [address, quote?.venue.pool ?? null]))
    const flows = flowOf(feed.lines.all, nowMs, (address) => venueOf.get(address) ?? null, feed.filter.account)
    const oldest = feed.lines.all.find(({ content }) => content.type !== 'gap')?.content
    const coveredMs = oldest && 'time' in oldest ? nowMs - Date.parse(oldest.time) : 0
    const minutes = Math.min(FLOW_MINUTES, Math.ceil(coveredMs / 60_000))
    return { flows, flowSpan: { words: coveredMs >= FLOW_MINUTES * 60_000 ? '1 h' : formatDuration(coveredMs), minutes } }
  }, [feed, nowMs])
}

type ThemeName = 'light' | 'dark'

/** The theme that was chosen, or else that of the system. Returns what takes the other one. */
export function useTheme(): () => void {
  const [chosen, choose] = useState(readTheme)
  const theme = useMemo(() => chosen ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'), [chosen])
  useEffect(() => {
    if (chosen === null) return
    document.documentElement.dataset.theme = chosen
    keepTheme(chosen)
  }, [chosen])
  return useCallback(() => choose(theme === 'dark' ? 'light' : 'dark'), [theme])
}

/** A browser may refuse the storage: then a choice lasts as long as the page. */
function readTheme(): ThemeName | null {
  try {
    const kept = localStorage.getItem('theme')
    return kept === 'light' || kept === 'dark' ? kept : null
  } catch {
    return null
  }
}

function keepTheme(theme: ThemeName): void {
  try {
    localStorage.setItem('theme', theme)
  } catch {
    // It is chosen again next time.
  }
}

/** What the server wrote into the page. */
export const pageSetting = (name: string): string => document.querySelector(`meta[name="${name}"]`)?.getAttribute('content') ?? ''

const explorer = pageSetting('explorer-url')
/** A link to an explorer; null where none is set. */
export const explorerLink = (kind: 'address' | 'tx', hex: string): string | null =>
  /^https?:\/\//.test(explorer) ? `${explorer}/${kind}/${encodeURIComponent(hex)}` : null

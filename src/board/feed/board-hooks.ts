import { Component, type ComponentType, h } from 'preact'
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import { FLOW_MINUTES, type FlowSpan, flowOf } from '../chart/flow.ts'
import { type BoardFilter, type BoardRoute, type BoardView, formatRoute, parseRoute } from '../shared/board-route.ts'
import { formatDuration } from '../shared/time-text.ts'
import { BoardFeed } from './board-feed.ts'

/** Draws a component again only if one of its properties has changed. */
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

/** Returns the state in the URL, and functions that change a part of it and are the same at each drawing. */
export function useRoute() {
  const [route, setRoute] = useState(readRoute)
  useEffect(() => {
    const read = () => setRoute(readRoute())
    addEventListener('hashchange', read)
    return () => removeEventListener('hashchange', read)
  }, [])
  const change = useCallback((part: Partial<BoardRoute>) => {
    const next = { ...readRoute(), ...part }
    // The browser's Back returns from a page, but not from a search or a sort order.
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

/** Returns the feed of a filter, and draws again after its changes. Another filter opens another stream. */
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

/** Returns the time of the relay, in whole seconds. */
export function useNow(feed: BoardFeed): number {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), SECOND_MS)
    return () => clearInterval(timer)
  }, [])
  return Math.floor(feed.clock.nowMs() / SECOND_MS) * SECOND_MS
}

/** Computes the flow of the lines that were read, once a second. */
export function useFlows(feed: BoardFeed, nowMs: number) {
  return useMemo(() => {
    const venueOf = new Map(feed.book.all().map(({ address, quote }) => [address, quote?.venue.pool ?? null]))
    const flows = flowOf(feed.lines.all, nowMs, (address) => venueOf.get(address) ?? null, feed.filter.account)
    const oldest = feed.lines.all.find(({ content }) => content.type !== 'gap')?.content
    const coveredMs = oldest && 'time' in oldest ? nowMs - Date.parse(oldest.time) : 0
    const minutes = Math.min(FLOW_MINUTES, Math.ceil(coveredMs / 60_000))
    const flowSpan: FlowSpan = { words: coveredMs >= FLOW_MINUTES * 60_000 ? '1 h' : formatDuration(coveredMs), minutes }
    return { flows, flowSpan }
  }, [feed, nowMs])
}

type ThemeName = 'light' | 'dark'

/** Applies the chosen theme, if any. Returns a function that chooses the other one. */
export function useTheme(): () => void {
  const [chosen, choose] = useState(readTheme)
  useEffect(() => {
    if (chosen === null) return
    document.documentElement.dataset.theme = chosen
    keepTheme(chosen)
  }, [chosen])
  return useCallback(() => {
    const systemTheme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
    choose((now) => ((now ?? systemTheme) === 'dark' ? 'light' : 'dark'))
  }, [])
}

/** A browser may refuse the storage. Then a choice lasts until the page is closed. */
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
    // The reader chooses again next time.
  }
}

/** Returns a setting that the server wrote into the page. */
export const pageSetting = (name: string): string => document.querySelector(`meta[name="${name}"]`)?.getAttribute('content') ?? ''

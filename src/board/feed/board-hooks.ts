import { Component, type ComponentType, h, type RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { BoardFilter, BoardRoute } from '../shared/board-route.ts'
import { readRoute } from '../shared/navigation.tsx'
import { pageKey } from '../shared/page-key.ts'
import { relayUrl } from '../shared/page-settings.ts'
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

/** Calls `leave` when the reader presses beside an element. */
export function useOutside<Part extends HTMLElement>(leave: () => void): RefObject<Part | null> {
  const part = useRef<Part>(null)
  useEffect(() => {
    const press = ({ target }: PointerEvent) => {
      if (target instanceof Node && !part.current?.contains(target)) leave()
    }
    addEventListener('pointerdown', press)
    return () => removeEventListener('pointerdown', press)
  })
  return part
}

export function useRoute(): BoardRoute {
  const [route, setRoute] = useState(readRoute)
  useEffect(() => {
    const read = () => setRoute(readRoute())
    addEventListener('hashchange', read)
    return () => removeEventListener('hashchange', read)
  }, [])
  return route
}

/** Returns the feed of a filter, and draws again after its changes. Another filter opens another stream. */
export function useFeed(filter: BoardFilter): BoardFeed {
  const [feed, setFeed] = useState(() => new BoardFeed(relayUrl(), pageKey(), filter, null))
  const [, draw] = useState(0)
  const wanted = JSON.stringify(filter)
  useEffect(() => {
    if (JSON.stringify(feed.filter) === wanted) return
    feed.close()
    setFeed(new BoardFeed(relayUrl(), pageKey(), JSON.parse(wanted), feed))
  }, [feed, wanted])
  useEffect(() => feed.subscribe(() => draw((count) => count + 1)), [feed])
  return feed
}

/** Sets the attribute by which the style dims a page that is not live. */
export function useConnectionMark({ failure, interruptions, state }: BoardFeed): void {
  const isLost = failure !== null || interruptions.at(-1)?.untilMs === null
  const mark = isLost ? 'lost' : state?.phase === 'live' ? 'live' : 'opening'
  useEffect(() => {
    document.documentElement.dataset.connection = mark
  }, [mark])
}

const SECOND_MS = 1_000

export function useNow(feed: BoardFeed): number {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), SECOND_MS)
    return () => clearInterval(timer)
  }, [])
  return Math.floor(feed.clock.nowMs() / SECOND_MS) * SECOND_MS
}

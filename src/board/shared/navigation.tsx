import type { ComponentChildren } from 'preact'
import { type BoardFilter, type BoardRoute, type BoardView, formatRoute, parseRoute } from './board-route.ts'

export function readRoute(): BoardRoute {
  const route = parseRoute(location.hash)
  const isWall = route.view.isWall || new URLSearchParams(location.search).has('wall')
  return isWall ? { ...route, view: { ...route.view, isWall, layout: 'tiles' } } : route
}

/** Changes a part of the route, and draws the page again. */
function changeRoute(part: Partial<BoardRoute>): void {
  const hash = formatRoute({ ...readRoute(), ...part })
  // Only a page is added to the history: the browser's Back does not return from a search or a sort order.
  if (part.page) location.hash = hash
  else history.replaceState(null, '', hash)
  dispatchEvent(new Event('hashchange'))
}

export const changeView = (part: Partial<BoardView>): void => changeRoute({ view: { ...readRoute().view, ...part } })

export const changeFilter = (filter: BoardFilter): void => changeRoute({ filter })

export const openPage = (page: BoardRoute['page']): void => changeRoute({ page })

type LinkProps = {
  readonly page: BoardRoute['page']
  readonly children: ComponentChildren
  readonly class?: string
  readonly title?: string | undefined
}

export const PageLink = ({ page, children, class: name, title }: LinkProps) => (
  <a href={formatRoute({ ...parseRoute(location.hash), page })} class={name} title={title}>
    {children}
  </a>
)

export const BackLink = () => (
  <PageLink page={{ name: 'symbols' }} class="back">
    ← All symbols
  </PageLink>
)

import type { ComponentChildren } from 'preact'
import { type BoardFilter, type BoardRoute, type BoardView, formatRoute, parseRoute } from './board-route.ts'
import { keep, kept } from './page-settings.ts'

/** Number of pages that were opened before this entry of the history, so that Back stays on the board. */
let depth = 0
/** Whether the shown page was returned to, and not opened. */
let isReturn = false
/** Whether the page before is about to be shown: the browser does that later. */
let isLeaving = false

/** Notes which entry of the history is shown. An entry that has no number yet is a page that was just opened. */
function noteEntry(): void {
  const known: unknown = history.state?.depth
  isReturn = typeof known === 'number' && known < depth
  depth = typeof known === 'number' ? known : depth + 1
  if (typeof known !== 'number') history.replaceState({ depth }, '')
}

/** Called once, before anything is drawn. */
export function beginNavigation(): void {
  restoreView()
  const known: unknown = history.state?.depth
  depth = typeof known === 'number' ? known : 0
  history.replaceState({ depth }, '')
  // Not `hashchange`: that is a task later, and a key between the two would leave the board.
  addEventListener('popstate', () => {
    isLeaving = false
    noteEntry()
  })
}

export const wasReturnedTo = (): boolean => isReturn

export function readRoute(): BoardRoute {
  const route = parseRoute(location.hash)
  const isWall = route.view.isWall || new URLSearchParams(location.search).has('wall')
  return isWall ? { ...route, view: { ...route.view, isWall, layout: 'tiles' } } : route
}

/** Changes a part of the route in place, and draws the page again: Back does not return from a search or a sort order. */
function changeRoute(part: Partial<BoardRoute>, search = location.search): void {
  const hash = formatRoute({ ...readRoute(), ...part })
  history.replaceState({ depth }, '', `${location.pathname}${search}${hash}`)
  isReturn = false
  dispatchEvent(new Event('hashchange'))
}

export function changeView(part: Partial<BoardView>): void {
  const view = { ...readRoute().view, ...part }
  changeRoute({ view })
  // The layout of a wall is not a choice of the reader.
  if (!view.isWall && ('pins' in part || 'layout' in part))
    keep(KEPT_VIEW, new URLSearchParams({ pins: view.pins.join(), layout: view.layout }).toString())
}

const KEPT_VIEW = 'view'

/** A visit without a selection has the pins and the layout of the visit before. */
function restoreView(): void {
  const chosen = new URLSearchParams(kept(KEPT_VIEW) ?? '')
  if (!['', '#/'].includes(location.hash) || chosen.size === 0) return
  const { view } = parseRoute(`#/?${chosen}`)
  history.replaceState(history.state, '', `${location.pathname}${location.search}${formatRoute({ ...readRoute(), view })}`)
}

export const changeFilter = (filter: BoardFilter): void => changeRoute({ filter })

/** Opens a page, to which Back returns. */
export function openPage(page: BoardRoute['page']): void {
  const hash = pageHash(page)
  if (hash !== location.hash) location.hash = hash
}

/** Shows a page in place of this one. */
export const replacePage = (page: BoardRoute['page']): void => changeRoute({ page })

/** Returns to the page before this one. A page that was opened by a link from elsewhere has none: then this one is shown. */
export function closePage(otherwise: BoardRoute['page']): void {
  if (isLeaving) return
  isLeaving = depth > 0
  if (isLeaving) history.back()
  else replacePage(otherwise)
}

export function leaveWall(): void {
  const search = new URLSearchParams(location.search)
  search.delete('wall')
  changeRoute({ view: { ...readRoute().view, isWall: false, layout: 'table' } }, search.size > 0 ? `?${search}` : '')
}

/** A page is shown beside the tape; on a narrow screen, in place of it. The sheet of a fact is over both. Only the list is searched. */
function pageHash(page: BoardRoute['page']): string {
  const { filter, view } = parseRoute(location.hash)
  return formatRoute({ filter, page, view: page.name === 'fact' ? view : { ...view, tab: 'symbols', search: '' } })
}

/** Whether a click on a row opens its page here. With a modifier or another button it does not, nor does the end of a selection. */
export const opensHere = (event: MouseEvent): boolean =>
  !(event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button !== 0) &&
  !(event.target instanceof Element && event.target.closest('a, button')) &&
  getSelection()?.toString() === ''

type LinkProps = {
  readonly page: BoardRoute['page']
  readonly children: ComponentChildren
  readonly class?: string
  readonly title?: string | undefined
  readonly source?: string | null
}

export const PageLink = ({ page, children, class: name, title, source }: LinkProps) => (
  <a href={pageHash(page)} class={name} title={title} data-source={source ?? undefined}>
    {children}
  </a>
)

export const BackLink = () => (
  <PageLink page={{ name: 'symbols' }} class="back">
    ← All symbols
  </PageLink>
)

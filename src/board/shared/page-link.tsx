import type { ComponentChildren } from 'preact'
import { type BoardRoute, formatRoute, parseRoute } from './board-route.ts'

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

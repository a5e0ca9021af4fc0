import { type ComponentChildren, render } from 'preact'
import { Board } from './board.tsx'
import { EmbedPage } from './embed/embed-page.tsx'
import { beginNavigation } from './shared/navigation.tsx'
import { takePageKey } from './shared/page-key.ts'
import { embeddedSymbol } from './shared/page-settings.ts'
import { makeTextsVisible } from './shared/visible-text.tsx'

/** Draws a page in its element, in place of the skeleton, which is there until this script runs. */
function show(id: 'board' | 'card', page: () => ComponentChildren): void {
  const root = document.getElementById(id)
  if (!root) return
  root.textContent = ''
  render(page(), root)
}

makeTextsVisible()
takePageKey()
show('board', () => {
  beginNavigation()
  return <Board />
})
show('card', () => <EmbedPage symbol={embeddedSymbol() ?? ''} />)

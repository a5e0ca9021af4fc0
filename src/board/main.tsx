import { render } from 'preact'
import { Board } from './board.tsx'
import { beginNavigation } from './shared/navigation.tsx'
import { takePageKey } from './shared/page-key.ts'
import { makeTextsVisible } from './shared/visible-text.tsx'

makeTextsVisible()
const root = document.getElementById('board')
if (root) {
  // Removes the skeleton, which the page shows until this script runs.
  root.textContent = ''
  takePageKey()
  beginNavigation()
  render(<Board />, root)
}

import { render } from 'preact'
import { Board } from './board.tsx'
import { restoreTheme } from './shared/page-settings.ts'
import { makeTextsVisible } from './shared/visible-text.tsx'

makeTextsVisible()
restoreTheme()
const root = document.getElementById('board')
if (root) {
  // Removes the skeleton, which the page shows until this script runs.
  root.textContent = ''
  render(<Board />, root)
}

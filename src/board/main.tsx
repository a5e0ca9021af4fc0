import { render } from 'preact'
import { Board } from './board.tsx'
import { restoreTheme } from './feed/board-hooks.ts'
import { cleanShownTexts } from './shared/shown-text.ts'

cleanShownTexts()
restoreTheme()
const root = document.getElementById('board')
if (root) {
  // Removes the skeleton, which the page shows until this script runs.
  root.textContent = ''
  render(<Board />, root)
}

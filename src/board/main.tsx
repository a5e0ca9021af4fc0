import { render } from 'preact'
import { Board } from './board.tsx'
import { restoreTheme } from './feed/board-hooks.ts'
import { cleanShownTexts } from './shared/shown-text.ts'

cleanShownTexts()
restoreTheme()
const root = document.getElementById('board')
if (root) {
  // Remove the skeleton of the first paint.
  root.textContent = ''
  render(<Board />, root)
}

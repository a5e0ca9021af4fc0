import { render } from 'preact'
import { Board } from './board.tsx'
import { restoreTheme } from './shared/page-settings.ts'
import { makeTextsVisible } from './shared/visible-text.ts'

makeTextsVisible()
restoreTheme()
const root = document.getElementById('board')
if (root) {
  // Remove the skeleton of the first paint.
  root.textContent = ''
  render(<Board />, root)
}

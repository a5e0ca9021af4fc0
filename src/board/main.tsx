import { render } from 'preact'
import { Board } from './board.tsx'
import { cleanShownTexts } from './shared/shown-text.ts'

cleanShownTexts()
const root = document.getElementById('board')
if (root) {
  // Remove the skeleton of the first paint.
  root.textContent = ''
  render(<Board />, root)
}

import { render } from 'preact'
import { Board } from './board.tsx'
import { cleanShownTexts } from './shared/shown-text.ts'

cleanShownTexts()
const root = document.getElementById('board')
if (root) {
  // What was there stood for the first paint.
  root.textContent = ''
  render(<Board />, root)
}

import { html } from 'hono/html'
import type { House } from './welcome.ts'

/** Symbols named on the page; the list itself may be long. */
const SYMBOLS_SHOWN = 20

/** The three lines that everybody needs first: text, WebSocket, browser. */
export const linesToPaste = (host: string, symbol: string): readonly string[] => [
  `curl -N http://${host}/v1/tail/${symbol}`,
  `npx wscat -c 'ws://${host}/v1/ws?symbols=${symbol}'`,
  `new EventSource('http://${host}/v1/stream/${symbol}').onmessage = (message) => console.log(JSON.parse(message.data))`,
]

/** The plain page at `/`: what this is, three lines to paste, and some symbols. Text from outside is escaped. */
export function page(host: string, { view, demo }: House) {
  const listed = view.tokens.filter((token) => token.state !== 'delisted')
  const lines = linesToPaste(host, listed[0]?.symbol ?? '*')
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>stocktape</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:3rem auto;padding:0 1rem}pre{background:#f4f4f4;padding:.7rem 1rem;overflow-x:auto}</style>
<h1>stocktape</h1>
<p>The tape of tokenized stocks: what happens to them on chain, the moment it is pre-confirmed.</p>
${demo ? html`<p><strong>This server runs on its built-in chain: nothing on it is real.</strong></p>` : ''}
${lines.map((line) => html`<pre>${line}</pre>`)}
<p>${listed.length} symbols: ${listed
    .slice(0, SYMBOLS_SHOWN)
    .map((token) => token.symbol)
    .join(', ')}${listed.length > SYMBOLS_SHOWN ? ', …' : ''}</p>
<p>Presence of a symbol does not imply that it can be traded, or by whom.</p>
</html>
`
}

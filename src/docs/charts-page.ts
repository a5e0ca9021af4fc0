import { readFileSync } from 'node:fs'
import { html, raw } from 'hono/html'
import { cspHashOf, headOf, policyFor } from './page-assets.ts'
import { ORIGIN, program } from './snippets.ts'

const LIBRARY_PATH = '/docs/lightweight-charts.js'
const installedPath = 'lightweight-charts/dist/lightweight-charts.standalone.production.mjs'

/** The library that draws the chart, for browsers. */
export const chartLibrary = readFileSync(new URL(installedPath.replace('lightweight-charts', '.'), packageRoot()), 'utf8')

function packageRoot(): URL {
  return new URL('.', import.meta.resolve('lightweight-charts/package.json'))
}

const recipe = program('candles.html')
const scriptsOf = (text: string): readonly string[] =>
  [...text.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map(([, script = '']) => script)
/** The recipe as this page runs it: from its own origin. */
const [importMap = '', chart = ''] = scriptsOf(
  recipe.replace(`./node_modules/${installedPath}`, LIBRARY_PATH).replaceAll(ORIGIN, ''),
)

const body = html`${headOf('charts')}
<script type="importmap">${raw(importMap)}</script>
</head>
<body>
<main class="alone">
<h1>Charts</h1>
<p id="legend">AAPLc</p>
<div id="chart"></div>
<p>Charts by <a href="https://www.tradingview.com/">TradingView</a>. Another symbol and interval: <a href="?symbol=TSLAc&amp;interval=1m">?symbol=TSLAc&amp;interval=1m</a>.</p>
<h2>With lightweight-charts</h2>
<p>This page runs the code below: it reads <a href="/docs/contract">/v1/bars</a>, and reads again when a bar or a trade changes. Prices are exact decimals until the chart needs numbers.</p>
<pre>${recipe.trimEnd()}</pre>
<h2>With TradingView’s charting library</h2>
<p>Its client of the UDF protocol needs only this address:</p>
<pre>new TradingView.widget({
  container: 'chart', library_path: '/charting_library/', symbol: 'AAPLc', interval: '5', timezone: 'Etc/UTC',
  datafeed: new Datafeeds.UDFCompatibleDatafeed('${ORIGIN}/udf', 10_000, { maxResponseLength: 5_000, expectedOrder: 'latestFirst' }),
})</pre>
<h2>With OpenBB</h2>
<p>Add ${ORIGIN}/udf as the datafeed of an advanced chart widget: OpenBB reads the same protocol.</p>
</main>
<script type="module">${raw(chart)}</script>
</body>
</html>
`

const policy = policyFor("'self'", cspHashOf(importMap), cspHashOf(chart))

/** The page at `/docs/charts`: candles of a symbol, the code that draws them, and how other libraries read the bars. */
export const chartsPage = { body: String(body), policy } as const

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { TestContext } from 'vitest'
import type { Devnet, DevnetOptions } from '../../src/devnet/devnet.ts'
import { openChromium } from '../e2e/slow/chromium-readers.ts'
import { apiKey } from '../support/api-keys.ts'
import { buildBoard, openBoard, waitForLive, waitForPendingLogs } from '../support/board-page.ts'
import { freePort, spawnRelay } from '../support/child-program.ts'
import { openRelayBeforeList } from '../support/in-process-relay.ts'
import { openDevnet, type TestLifecycle } from '../support/test-stack.ts'

/** Takes a picture of each view and state of the board, light and dark, at several widths: `state-width-look.png`. */

/** A Sunday, when a NAV of Friday is held. */
const CLOSED_MARKET = '2026-11-22T16:00:00Z'
const PAST_MS = 6 * 3_600_000
/** A relay that is behind its chain by less has read the past. */
const READ_LAG_MS = 10_000
/** A page mostly waits, so several states are taken at the same time. */
const AT_ONCE = 2
/** Limit of a state with all its pictures, and of each wait in it. */
const [STATE_LIMIT_MS, WAIT_LIMIT_MS] = [60_000, 30_000]
/** Time in which a page draws what it has, and time between two looks at the relay. */
const [SETTLE_MS, CHECK_MS] = [1_500, 200]

const looks = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  forced: { colorScheme: 'light', forcedColors: 'active' },
} as const satisfies Readonly<Record<string, BrowserContextOptions>>
type Look = keyof typeof looks
/** The height of a screen by its width. A screen of 1,440 pixels has 720 at a zoom of 200 %. */
const heights: Readonly<Record<number, number>> = {
  1920: 1080,
  1440: 900,
  1100: 800,
  900: 800,
  768: 1024,
  720: 450,
  390: 844,
  320: 568,
}

/** The chain and the relay of a state. `renew` puts a relay with an empty tape in the place of the first. */
type Stack = {
  readonly url: string
  readonly devnet: Devnet
  readonly stop: () => Promise<void>
  readonly renew: () => Promise<void>
}
type Follow = (test: TestLifecycle) => Promise<Stack>
type Act = (stack: Stack, pages: readonly Page[]) => unknown

/** A state: its name, what its pages follow, the part of their address after the `/`, and what they show once they are in the state. */
type State = readonly [name: string, follow: Follow, path: string, shows: string, others?: Others]
type Others = {
  /** The width of the picture in each look. */
  readonly sizes?: Readonly<Partial<Record<Look, number>>>
  /** The height of the picture, if it is not that of a screen. */
  readonly height?: number
  /** Prepares the page before it is loaded. */
  readonly before?: (page: Page) => Promise<unknown>
  /** Acts on the chain or the relay once all pages are live; `null` where they never are. */
  readonly act?: Act | null
  /** Acts on each page as a reader. */
  readonly reader?: (page: Page) => Promise<unknown>
}

/** Resolves once the relay has read the past. */
async function untilRead(url: string): Promise<void> {
  const startedAt = performance.now()
  const lagMs = async () => Number(/"lag_ms":(\d+)/.exec(await (await fetch(`${url}/v1/status`)).text())?.[1] ?? Number.NaN)
  while (!((await lagMs()) < READ_LAG_MS)) {
    if (performance.now() - startedAt > WAIT_LIMIT_MS) throw new Error('the relay does not read the past')
    await delay(CHECK_MS)
  }
}

/** The program as `npm start` has it, which several states share. `aheadMs` is how far its clock is ahead of this one. */
function followProgram(session: TestLifecycle, aheadMs = 0): Follow {
  const { NODE_OPTIONS = '', CLOCK_OFFSET_MS } = process.env
  const relay = spawnRelay(session, { PORT: '0', NODE_OPTIONS, CLOCK_OFFSET_MS: String(Number(CLOCK_OFFSET_MS) + aheadMs) })
  const stack = relay.listeningUrl().then(async (url) => {
    await untilRead(url)
    return { url } as Stack
  })
  return () => stack
}

/** A chain with a past, and a relay on it, for one state. */
const followChain =
  (options: DevnetOptions = {}, settings: Record<string, string> = {}, prepare: (devnet: Devnet) => void = () => {}): Follow =>
  async (test) => {
    const { pastMs = PAST_MS } = options
    const devnet = await openDevnet({ calls: true, ...options, pastMs }, test)
    prepare(devnet)
    const { poolsText: POOLS, quoteTokens: QUOTE_TOKENS, oracleRegistry: ORACLE_REGISTRY } = devnet
    const market = { POOLS, QUOTE_TOKENS, ORACLE_REGISTRY, PORT: String(await freePort()), ...settings }
    let relay = await openRelayBeforeList(devnet, { BACKFILL_FIRST: `${pastMs}ms`, ...market })
    const stop = () => relay.stop()
    test.onTestFinished(stop)
    const renew = async () => {
      await stop()
      relay = await openRelayBeforeList(devnet, market)
    }
    if (pastMs > 0) await untilRead(relay.url)
    return { url: relay.url, devnet, stop, renew }
  }

/** At this rate the lines of a state stay on the screen. */
const calm: DevnetOptions = { transactionsPerFlashblock: 0.05 }
/** Nothing happens, and nothing has happened. */
const still: DevnetOptions = { pace: 'manual', pastMs: 0 }
const faulty: DevnetOptions = { requestedFaults: { drop: { share: 0.3, depth: 1 }, late: { share: 0.2, depth: 1 } } }
const quiet = followChain(calm)
const impatient = followChain(calm, { SILENCE: '1s' })

const row = 'tr[data-symbol="AAPLc"]'
const priced = `${row} .spark path`
const chart = '.cursor-text >> text=NAV'
const lines = '[data-line] >> nth=3'
const symbol = 'AAPLc'

const hostileText = `<img src=x onerror="globalThis.ran=1"><b>\u202e${'long '.repeat(40)}`
const hostile = followChain(calm, {}, ({ list }) => {
  list.change('AAPLc', { name: hostileText, isin: hostileText, icon_url: 'javascript:globalThis.ran=1' })
  list.change('COINc', { symbol: 'AAPL\u0441', name: '\u202eesabnioC' })
  list.change('AMZNc', { symbol: `${'W'.repeat(40)}c` })
})
const held = followChain(calm, {}, ({ list }) => {
  list.change('AAPLc', { nav_price_updated_at: new Date(Date.now() - 30 * 3_600_000).toISOString() })
  list.change('TSLAc', { nav_price: undefined, nav_price_updated_at: undefined })
})
const unread = followChain(still, {}, ({ faults }) => Object.assign(faults, { list: { status: 503 } }))

/** Acts once the relay follows what is pre-confirmed. */
const whenFollowed =
  (act: Act): Act =>
  async (stack, pages) => {
    await Promise.all(pages.map(waitForPendingLogs))
    await act(stack, pages)
  }
const retractOne = whenFollowed(({ devnet }) => {
  devnet.transfer({ symbol, raw: 4_250_000_000n })
  devnet.transfer({ symbol: 'TSLAc', raw: 1_830_255_118n })
  devnet.faults.drop(devnet.transfer({ symbol, raw: 31_241_900_000n }))
})
const refusePushes = whenFollowed(({ devnet: { faults } }) => {
  faults.refused = ['pendingLogs']
  faults.cutSockets()
})
const stopChain = whenFollowed(({ devnet }) => devnet.stop())
const split =
  (inSeconds?: number): Act =>
  ({ devnet: { issuer } }) =>
    issuer.split({ symbol, to: '3', ...(inSeconds && { effectiveAt: Math.floor(Date.now() / 1_000) + inSeconds }) })
/** Stops the relay once each page has read what it shows. */
const stopAfter =
  (selector: string): Act =>
  async ({ stop }, pages) => {
    await Promise.all(pages.map((page) => page.locator(selector).first().waitFor({ state: 'attached' })))
    await stop()
  }

const click = (selector: string) => (page: Page) => page.locator(selector).first().click()
const search = (text: string) => (page: Page) => page.getByLabel('Search symbols').fill(text)
const unscripted: Others = { before: (page) => page.route('**/assets/main-*.js', () => {}), act: null }
const unanswered: Others = {
  before: async (page) => {
    await page.route('**/v1/**', () => {})
    await page.routeWebSocket('**/v1/ws**', () => {})
  },
  act: null,
}
const whole: Others = { height: 2_400 }
const forced: Others = { sizes: { forced: 1440 } }
const atEveryWidth = (...[name, follow, path, shows]: State): State[] =>
  Object.keys(heights).map((width) => [name, follow, path, shows, { sizes: { light: Number(width), dark: Number(width) } }])

/** The table of all pictures. */
const tableOf = (demo: Follow, weekend: Follow): readonly State[] => [
  // Pages with nothing to show.
  ['search-nothing', demo, '', '.empty >> text=Nothing matches', { reader: search('zzz') }],
  ['symbol-unknown', demo, '#/NOSUCH', '.card >> text=There is no symbol'],
  ['filter-refused', demo, '#/?symbols=NOPE', '.card[aria-label=Refused]', { act: null }],
  ['loading', demo, '', '.skeleton td >> nth=3', unscripted],
  ['connecting', demo, '', '.skeleton[aria-busy]', unanswered],
  ['relay-silent', demo, '', '.trouble >> text=not answer', unanswered],
  ['key-asked', followChain(still, { API_KEYS: apiKey }), '', 'text=This relay asks for a key', { act: null }],
  ['list-unread', unread, '', '.empty >> text=has not read its token list', { act: null }],
  ['list-empty', quiet, '', '.empty >> text=relay is empty', { act: ({ devnet }) => devnet.list.corrupt('{"tokens":[]}') }],
  ['tape-empty', followChain(still), '#/?tab=tape&show=trades', '.tape .empty >> text=No trades yet'],
  // The market and the issuer.
  ['live', followChain(), '', priced],
  ['closed', weekend, '', priced],
  ['closed-symbol', weekend, '#/AMZNc', chart],
  ['nav-held', held, '', `${row} [data-state=stale]`],
  ['nav-frozen', quiet, '', `${row} [data-state=frozen]`, { act: ({ devnet }) => devnet.issuer.freezeFeed({ symbol }) }],
  ['split-scheduled', quiet, '', `${row} .attention >> text=3 shares`, { act: split(7_200) }],
  ['split-effective', quiet, '#/AAPLc', '.facts >> text=3 shares', { act: split() }],
  [
    'paused',
    quiet,
    '',
    `${row} [data-field=paused]`,
    { act: ({ devnet }) => devnet.issuer.pause({ symbol, features: [0, 1, 2] }) },
  ],
  ['hostile', hostile, '', `${row} [data-field=warnings]`],
  ['hostile-symbol', hostile, '#/AAPLc', chart],
  // The source and the connection.
  ['retraction', quiet, '#/?tab=tape', '[data-tint=bad]', { act: retractOne }],
  ['retraction', quiet, '#/?tab=tape', '[data-tint=bad]', { act: retractOne, ...forced }],
  [
    'retraction-symbol',
    quiet,
    '#/AAPLc',
    '.movements [data-stage=retracted]',
    { act: retractOne, reader: click('[aria-label=Movements] >> text=last'), ...whole },
  ],
  ['source-unreliable', followChain(faulty), '#/?tab=tape&show=retracted', '.trouble >> text=Unreliable source'],
  ['source-polling', impatient, '', '.trouble >> text=Slower than usual', { act: refusePushes }],
  ['source-down', impatient, '', '.trouble >> text=Source down', { act: stopChain }],
  ['disconnected', quiet, '', '.trouble >> text=Connection lost', { act: stopAfter(priced) }],
  ['disconnected-symbol', quiet, '#/AAPLc', '.trouble >> text=Connection lost', { act: stopAfter(chart) }],
  ['gap', quiet, '#/?tab=tape&types=transfer,trade', '.line[data-tint=attention]', { act: ({ renew }) => renew() }],
  // The views, on the built-in chain, which has had some time to trade by now.
  ...atEveryWidth('list', demo, '', priced),
  ...atEveryWidth('symbol', demo, '#/AAPLc', chart),
  ...atEveryWidth('tape', demo, '#/?tab=tape', lines),
  ['list', demo, '', priced, forced],
  ['list', demo, '', priced, { sizes: { light: 320 } }],
  ['symbol', demo, '#/AAPLc', chart, forced],
  ['symbol-whole', demo, '#/AAPLc', chart, whole],
  ['tape-trades', demo, '#/?tab=tape&show=trades', lines],
  ['tape-moves', demo, '#/?tab=tape&show=moves', lines],
  ['tape-events', demo, '#/?tab=tape&show=events', lines],
  ['tape-filter', demo, '#/?tab=tape', 'form.filter', { reader: click('.tape-head >> text=Filter') }],
  ['tiles', demo, '#/?layout=tiles', '.tile .spark path', { sizes: { light: 1440, dark: 768 } }],
  ['wall', demo, '?wall', '.wall .tile .spark path', { sizes: { light: 1920, dark: 1440 } }],
  ['fact', demo, '#/?tab=tape', '.sheet .life li', { reader: click('[data-stage=sealed] button') }],
  ['help', demo, '', '.sheet', { reader: (page) => page.keyboard.press('?') }],
  ['health', demo, '#/health', '.hour-bars li .sealed'],
  ['health-whole', demo, '#/health', '.score td', whole],
  ['connect', demo, '#/play?symbols=AAPLc', '.raw li'],
  ['search', demo, '#/AAPLc', '.results li >> nth=7', { reader: search('a'), sizes: { light: 1440, dark: 768 } }],
]

/** Gives a page the time of this process. Playwright would reckon its own clock from the time of the machine. */
const clockScript = `{
  const RealDate = Date
  globalThis.Date = class extends RealDate {
    constructor(...args) { super(...(args.length > 0 ? args : [Date.now()])) }
    static now() { return RealDate.now() + ${process.env.CLOCK_OFFSET_MS ?? 0} }
  }
}`

/** Takes the pictures of a state. */
async function take([name, follow, path, shows, others = {}]: State, browser: Browser, test: TestLifecycle): Promise<void> {
  const { sizes = { light: 1440, dark: 390 }, height, before, act, reader } = others
  const stack = await follow(test)
  const open = async ([look, width]: [Look, number]) => {
    const viewport = { width, height: height ?? heights[width] ?? width }
    const options = { ...looks[look], viewport, deviceScaleFactor: 1, timezoneId: 'UTC', reducedMotion: 'reduce' } as const
    const { page } = await openBoard(test, browser, 'about:blank', options)
    page.setDefaultTimeout(WAIT_LIMIT_MS)
    await page.addInitScript(clockScript)
    await before?.(page)
    await page.goto(`${stack.url}/${path}`, { waitUntil: 'commit' })
    if (act !== null) await waitForLive(page)
    return { page, file: `${name}-${width}-${look}.png` }
  }
  const opened = await Promise.all((Object.entries(sizes) as [Look, number][]).map(open))
  const pages = opened.map(({ page }) => page)
  await act?.(stack, pages)
  const shoot = async ({ page, file }: (typeof opened)[number]) => {
    await reader?.(page)
    await page.locator(shows).first().waitFor({ state: 'attached' })
    await delay(SETTLE_MS)
    await page.screenshot({ path: join(folder, file) })
    taken.push(file)
    process.stdout.write(`${file}\n`)
  }
  await Promise.all(opened.map(shoot))
}

/** Runs the cleanups that were asked for, the newest first. */
function openScope(): TestLifecycle & { readonly close: () => Promise<void> } {
  const cleanups: Parameters<TestLifecycle['onTestFinished']>[0][] = []
  const close = async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup({ task: {} } as TestContext)
  }
  return { onTestFinished: (cleanup) => void cleanups.unshift(cleanup), close }
}

/** With names, only the states whose name begins with one of them. */
const [folder = '', ...names] = process.argv.slice(2)
const [taken, failures]: [string[], string[]] = [[], []]
mkdirSync(folder, { recursive: true })
buildBoard()
const session = openScope()
const browser = await openChromium()
const ahead = Date.parse(CLOSED_MARKET) - Date.now()
const states = tableOf(followProgram(session), followProgram(session, ahead))
  .filter(([state]) => names.length === 0 || names.some((name) => state.startsWith(name)))
  .values()

async function takeThoseLeft(): Promise<void> {
  for (const state of states) {
    const scope = openScope()
    const limit = delay(STATE_LIMIT_MS, `not within ${STATE_LIMIT_MS / 1_000} s`, { ref: false })
    const failure = await Promise.race([take(state, browser, scope), limit]).catch(String)
    if (failure) failures.push(`${state[0]}: ${failure}`)
    await scope.close()
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, takeThoseLeft))
await browser.close()
await session.close()
process.stdout.write(`${taken.length} pictures\n`)
for (const failure of failures) process.stderr.write(`no picture of ${failure}\n`)
process.exitCode = failures.length > 0 ? 1 : 0

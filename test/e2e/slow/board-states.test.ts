import type { Browser, BrowserContextOptions, Page, Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { buildBoard, openBoard, openBoardStack, waitForLive, waitForPendingLogs } from '../../support/board-page.ts'
import { spawnRelay } from '../../support/child-program.ts'
import { openDevnet, openRelayFor, openTestStack, type TestLifecycle, transfer } from '../../support/test-stack.ts'
import { openChromium } from './chromium-readers.ts'
import { DeployedRelay, TEST_TIMEOUT_MS } from './deployed-relay.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** What the board says when something is missing, wrong, small or long. */

let browser: Browser

beforeAll(async () => {
  buildBoard()
  browser = await openChromium()
})
afterAll(() => browser?.close())

const chips = (page: Page): Promise<readonly string[]> => page.locator('.chip').allTextContents()
const hashOf = (page: Page): string => new URL(page.url()).hash

describe('without a connection', () => {
  it('the page says after four seconds that the relay has not answered, and is live when it does, however late', async (test) => {
    const stack = await openTestStack()
    const { page } = await openBoard(test, browser, 'about:blank')
    let isSilent = true
    await page.route('**/v1/**', (route) => !isSilent && route.continue())
    await page.routeWebSocket('**/v1/ws**', (socket) => void (isSilent || socket.connectToServer()))
    await page.goto(stack.relay.url)
    for (const seconds of [/for [4-6] s: the page tries again/, /for 1\d s: the page tries again/]) {
      await page.getByText(seconds).waitFor()
      expect(await page.getByText('Refused').count()).toBe(0)
    }
    isSilent = false
    await waitForLive(page)
  })

  it('a symbol and a fact show what the page has, and the chart is drawn once the relay answers', async (test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    const relay = await DeployedRelay.open(test, devnet)
    const { page } = await openBoard(test, browser, relay.url)
    await waitForPendingLogs(page)
    transfer({ devnet })
    await page.locator('[data-stage]').first().waitFor()
    relay.signal('SIGKILL')
    await relay.waitForExit()
    await page.getByText(/^Connection lost: .*what is missed will be marked/).waitFor()
    expect(await page.locator('[data-symbol="AAPLc"] [data-field="nav"] .second').textContent()).toMatch(/^as of (\w+ )?\d\d:\d\d$/)
    await page.locator('[data-stage] button').first().click()
    const sheet = page.getByRole('dialog', { name: 'AAPLc transfer' })
    await sheet.getByText('The relay cannot be reached: this is what the page has.').waitFor()
    await sheet.getByRole('button', { name: 'Close' }).click()
    await page.locator('[data-symbol="TSLAc"] [data-field="nav"]').click()
    await page.getByText('The chart is drawn once the relay answers.').waitFor()
    await relay.start()
    await page.locator('.chart canvas').first().waitFor()
    expect(await page.getByText('The chart is drawn once the relay answers.').count()).toBe(0)
  })

  it('of the relay to the chain, the page says that there is no source', async (test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    const relay = await openRelayFor(devnet, { SILENCE: '1s' }, test)
    const { page } = await openBoard(test, browser, relay.url)
    await waitForPendingLogs(page)
    await devnet.stop()
    await page.locator('.pulse', { hasText: 'No source' }).waitFor()
    expect(await page.locator('.pulse').textContent()).not.toContain('Live')
  })
})

describe('the filter', () => {
  it('by value leaves out what has no value', async (test) => {
    const { page, devnet } = await openBoardStack(test, browser, { path: '/#/?min_value=1000' })
    devnet.issuer.pause({ symbol: 'AAPLc', features: [1] })
    devnet.transfer({ symbol: 'AAPLc', raw: 1_000n })
    devnet.transfer({ symbol: 'TSLAc', raw: 100_000_000_000n })
    devnet.makeFlashblock()
    await page.locator('[data-line]', { hasText: 'TSLAc' }).waitFor()
    await page.locator('[data-symbol="AAPLc"] [data-field="paused"]').waitFor()
    expect(await page.locator('[data-line]').count()).toBe(1)
  })

  it('takes an amount as people write it, and shows two of its parts and the number of the others', async (test) => {
    const { page } = await openBoardStack(test, browser, { path: '/#/?symbols=AAPLc,TSLAc,NVDAc' })
    expect(await chips(page)).toEqual(['AAPLc ×', 'TSLAc ×', '+1'])
    await page.getByRole('button', { name: '1 more parts of the filter' }).click()
    await page.getByLabel('Symbols', { exact: true }).fill('')
    await page.getByLabel('Minimum value (USD)').fill('$1,250.5k')
    await page.getByRole('button', { name: 'Apply' }).click()
    await expect.poll(() => hashOf(page)).toBe('#/?min_value=1250500')
    expect(await chips(page)).toEqual(['≥ $1,250,500 ×'])
  })
})

describe('the page of a symbol', () => {
  it('lists pauses and splits as its corporate actions, and neither a seal nor the multiplier of its listing', async (test) => {
    const stack = await openBoardStack(test, browser)
    const { page, devnet } = stack
    transfer(stack)
    devnet.issuer.pause({ symbol: 'AAPLc', features: [1] })
    devnet.issuer.split({ symbol: 'AAPLc', to: '2' })
    devnet.makeFlashblock()
    devnet.seal()
    await page.locator('[data-stage="sealed"]').first().waitFor()
    await page.goto(`${stack.relay.url}/#/AAPLc`)
    const events = page.getByRole('region', { name: 'Corporate actions' }).locator('li b')
    await events.first().waitFor()
    expect(await events.allTextContents()).toEqual(['split', 'pause'])
  })

  it('keeps a long name in its place, and says that its chart has no readings yet', async (test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    devnet.list.change('TSLAc', { name: 'l'.repeat(200), nav_price: undefined, nav_price_updated_at: undefined })
    const relay = await openRelayFor(devnet, { FEEDS: '', POOLS: '', ORACLE_REGISTRY: '' }, test)
    const { page } = await openBoard(test, browser, `${relay.url}/#/TSLAc`)
    await page.getByText('No readings yet: the line begins with the next one.').waitFor()
    const widths = await page.evaluate(
      "[document.querySelector('h1').scrollWidth, document.querySelector('h1').clientWidth].join()",
    )
    expect(new Set(String(widths).split(',')).size).toBe(1)
    await waitForLive(page)
  })

  it('strikes a retracted movement through at the height of its text', async (test) => {
    const stack = await openBoardStack(test, browser, { path: '/#/AAPLc' })
    const { page, devnet } = stack
    devnet.faults.drop(devnet.transfer({ symbol: 'AAPLc', raw: 7n }))
    devnet.makeFlashblock()
    await page.locator('.movements [data-stage="preconfirmed"]').waitFor()
    devnet.seal()
    await page.locator('.movements [data-stage="retracted"]').waitFor()
    const [dot, time] = await Promise.all(
      ['.line-dot', 'td:nth-child(2)'].map((part) => page.locator(`.movements [data-stage="retracted"] ${part}`).boundingBox()),
    )
    const middleOf = (box: typeof dot) => (box ? box.y + box.height / 2 : Number.NaN)
    expect(Math.abs(middleOf(dot ?? null) - middleOf(time ?? null))).toBeLessThan(2)
  })
})

it('a supply below a thousand keeps what is after its point', async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  devnet.list.change('AAPLc', { total_supply: 0.5 })
  const relay = await openRelayFor(devnet, {}, test)
  const { page } = await openBoard(test, browser, `${relay.url}/#/AAPLc`)
  const supply = page.locator('.numbers [data-field="supply"] .figure')
  await supply.waitFor()
  expect(await supply.textContent()).toBe('0.5')
})

describe('before the script runs', () => {
  /** Opens a page whose script waits until it is let go. */
  async function openHeld(test: TestLifecycle, url: string, options: BrowserContextOptions = {}) {
    const { page } = await openBoard(test, browser, url, options)
    const held: Route[] = []
    await page.route('**/assets/main-*.js', (route) => void held.push(route))
    await page.reload({ waitUntil: 'commit' })
    await expect.poll(() => held.length).toBeGreaterThan(0)
    await page.locator('.strip').waitFor()
    return { page, letGo: () => held[0]?.continue() }
  }
  const topOf = async (page: Page, selector: string) => (await page.locator(selector).first().boundingBox())?.y

  it('the page has the theme that the reader chose', async (test) => {
    const stack = await openTestStack()
    const { page } = await openBoard(test, browser, stack.relay.url, { colorScheme: 'light' })
    await waitForLive(page)
    await page.keyboard.press('t')
    await page.waitForSelector('html[data-theme="dark"]')
    await page.route('**/assets/main-*.js', () => {})
    await page.reload({ waitUntil: 'commit' })
    await page.locator('.brand').waitFor()
    expect(await page.locator('html').getAttribute('data-theme')).toBe('dark')
  })

  it('the page says what it is and that nothing is real, where it says so afterwards', async (test) => {
    const relay = spawnRelay(test, { PORT: '0' })
    const { page, letGo } = await openHeld(test, await relay.listeningUrl())
    const places = async () => [await topOf(page, '.demo'), await topOf(page, '.tagline'), await topOf(page, 'thead')]
    const before = await places()
    await letGo()
    await waitForLive(page)
    await page.locator('[data-symbol]').first().waitFor()
    expect(await places()).toEqual(before)
    expect(before).not.toContain(undefined)
  })

  it('a phone shows nothing that the list will push away', async (test) => {
    const stack = await openTestStack()
    const { page, letGo } = await openHeld(test, stack.relay.url, { viewport: { width: 390, height: 800 } })
    await page.evaluate(`globalThis.shifts = 0
      new PerformanceObserver((list) => { for (const { value } of list.getEntries()) shifts += value }).observe({ type: 'layout-shift', buffered: true })`)
    await letGo()
    await waitForLive(page)
    await page.locator('tr[data-symbol="TSLAc"]').waitFor()
    expect(await page.evaluate('shifts')).toBeLessThan(0.02)
  })
})

it.each([320, 720, 768, 870, 900, 1_100])('a screen of %d pixels has no sideways scrolling and all tools', async (width) => {
  const { page } = await openBoardStack({ onTestFinished }, browser, { viewport: { width, height: 800 } })
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
  const help = (await page.getByRole('button', { name: 'Help' }).boundingBox()) ?? expect.unreachable()
  expect(help.x + help.width).toBeLessThanOrEqual(width)
})

it('a list that waits for the bars of the day does not say that nothing matches', async (test) => {
  const { page, relay } = await openBoardStack(test, browser)
  await page.route('**/v1/bars?**', () => {})
  await page.goto(`${relay.url}/#/?search=AAPLc`)
  await page.reload()
  await page.locator('main').locator('[data-symbol="AAPLc"], .empty').first().waitFor()
  expect(await page.locator('main .empty').count()).toBe(0)
})

it('a wall is filled by its tiles, on its last page too', async (test) => {
  const { page } = await openBoardStack(test, browser, { viewport: { width: 1_920, height: 1_080 }, path: '/?wall' })
  const main = (await page.locator('main.state').boundingBox()) ?? expect.unreachable()
  const tiles = await Promise.all((await page.locator('.tile').all()).map((tile) => tile.boundingBox()))
  const end = Math.max(...tiles.map((tile) => (tile ? tile.y + tile.height : 0)))
  expect(main.y + main.height - end).toBeLessThan(0.1 * main.height)
})

it('a line shortens its amount, and its sheet and its sentence have it whole', async (test) => {
  const { page, devnet } = await openBoardStack(test, browser)
  devnet.transfer({ symbol: 'AAPLc', raw: 1_234_567_800_000n })
  devnet.makeFlashblock()
  const line = page.locator('[data-stage="preconfirmed"]')
  await line.waitFor()
  expect(await line.locator('.line-figure').textContent()).toBe('12,345.6780 AAPLc')
  expect(await line.locator('.unseen').textContent()).toContain('12,345.678')
  await line.locator('button').click()
  expect(await page.getByRole('dialog').locator('.summary').textContent()).toContain('12,345.678 AAPLc')
})

describe('the tab of the browser', () => {
  it('has the price of the symbol, and a warning while the page is not live', async (test) => {
    const stack = await openBoardStack(test, browser, { path: '/#/AAPLc' })
    const { page, relay } = stack
    await expect.poll(() => page.title()).toMatch(/^AAPLc \d+\.\d\d.* · stocktape$/)
    const icon = () => page.locator('link[rel="icon"]').getAttribute('href')
    const good = await icon()
    expect(good).toMatch(/^data:image\/svg\+xml,/)
    await page.locator('.back').click()
    await expect.poll(() => page.title()).toBe('stocktape')
    await relay.stop()
    await expect.poll(() => page.title()).toBe('⚠ stocktape')
    expect(await icon()).not.toBe(good)
  })
})

it('a visit without a selection has the pins and the layout of the visit before, and a link has its own', async (test) => {
  const { page, relay } = await openBoardStack(test, browser)
  await page.getByRole('button', { name: 'Pin TSLAc' }).click()
  await page.getByRole('button', { name: 'Tiles' }).click()
  const shown = () => page.locator('[data-symbol]').first().getAttribute('data-symbol')
  await page.goto('about:blank')
  await page.goto(relay.url)
  await page.locator('.tile').first().waitFor()
  expect([await shown(), new URL(page.url()).hash]).toEqual(['TSLAc', '#/?layout=tiles&pins=TSLAc'])
  await page.goto('about:blank')
  await page.goto(`${relay.url}/#/?sort=symbol`)
  await page.locator('tr[data-symbol]').first().waitFor()
  expect(await shown()).toBe('AAPLc')
})

it('a phone has the list in place of tiles, with its volume, and cuts nothing of a row but a name', async (test) => {
  // The built-in chain has traded, and has a pause.
  const url = await spawnRelay(test, { PORT: '0' }).listeningUrl()
  for (const width of [320, 390]) {
    const { page } = await openBoard(test, browser, `${url}/#/?layout=tiles`, { viewport: { width, height: 800 } })
    await page.locator('tr[data-symbol] [data-field="volume"] .figure', { hasText: '$' }).first().waitFor()
    expect(await page.locator('.tile').count()).toBe(0)
    const cut = await page.evaluate(`[...document.querySelectorAll('tr[data-symbol] :is(td, .cell, .figure, .second)')]
      .filter((part) => part.clientWidth > 0 && part.scrollWidth > part.clientWidth + 1).map((part) => part.outerHTML)`)
    expect(cut).toEqual([])
  }
})

it('the health page says in a sentence how well the feed does, and has a bar for each hour', async (test) => {
  const stack = await openBoardStack(test, browser)
  const { page, devnet, relay } = stack
  await waitForPendingLogs(page)
  transfer(stack, 'AAPLc', 3)
  devnet.seal()
  await page.goto(`${relay.url}/#/health`)
  await page.getByText(/^Healthy now\. .*3 of 3 pre-confirmations came true, with a median lead of/).waitFor()
  const hour = page.locator('.hour-bars li').last()
  expect(await hour.getAttribute('title')).toMatch(/^\d\d:00: 3 sealed, 0 late, 0 retracted$/)
  expect((await hour.locator('.sealed').boundingBox())?.height).toBeGreaterThan(80)
  // An old link leads to it too.
  await page.goto(`${relay.url}/#/source`)
  await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor()
})

it('the page of a symbol leads to the one before and the one after, in the order of the list', async (test) => {
  const { page } = await openBoardStack(test, browser, { path: '/#/AMZNc?sort=-symbol' })
  const before = page.locator('.page-head a').nth(1)
  await expect.poll(() => before.textContent()).toContain('COINc')
  await page.locator('.page-head a').nth(2).click()
  await page.getByRole('heading', { level: 1, name: 'AAPLc' }).waitFor()
  expect(await page.locator('.page-head a').count()).toBe(2)
})

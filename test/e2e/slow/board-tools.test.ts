import { readFile } from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { buildBoard, openBoard, openBoardStack, waitForLive } from '../../support/board-page.ts'
import { serve } from '../../support/loopback-server.ts'
import { openDevnet, openRelayFor, type TestLifecycle } from '../../support/test-stack.ts'
import { openChromium } from './chromium-readers.ts'
import { TEST_TIMEOUT_MS } from './deployed-relay.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** Alerts, files, the card for another page, and the words of a screen reader. */

let browser: Browser

beforeAll(async () => {
  buildBoard()
  browser = await openChromium()
})
afterAll(() => browser?.close())

/** The board on a chain whose pools have prices. */
async function openMarket(test: TestLifecycle, path = '/') {
  const devnet = await openDevnet({ pace: 'manual', calls: true }, test)
  const { poolsText: POOLS, quoteTokens: QUOTE_TOKENS, oracleRegistry: ORACLE_REGISTRY } = devnet
  const relay = await openRelayFor(devnet, { POOLS, QUOTE_TOKENS, ORACLE_REGISTRY }, test)
  const board = await openBoard(test, browser, relay.url + path)
  await waitForLive(board.page)
  // The trades of a pool are published from then on.
  await expect.poll(() => venueCount(relay.url)).toBe(devnet.pools.filter(({ symbol }) => symbol === 'AAPLc').length)
  return { devnet, relay, ...board }
}

/** Number of the pools of AAPLc that the relay follows. */
async function venueCount(relayUrl: string): Promise<number> {
  const text = await (await fetch(`${relayUrl}/v1/snapshot?symbols=AAPLc`)).text()
  const { snapshots }: { snapshots: readonly { venues: readonly unknown[] }[] } = JSON.parse(text)
  return snapshots[0]?.venues.length ?? 0
}

/** Moves the price of AAPLc in its deepest pool. */
function swapTo(devnet: Awaited<ReturnType<typeof openDevnet>>, price: string): void {
  devnet.swap('AAPLc', { kind: 'uniswap_v4', price })
  devnet.makeFlashblock()
}

/** Saves a file of the page, and returns its name and its lines. */
async function save(page: Page, label: string): Promise<{ readonly name: string; readonly lines: readonly string[] }> {
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: label }).click()])
  const text = await readFile(await download.path(), 'utf8')
  return { name: download.suggestedFilename(), lines: text.trimEnd().split('\r\n') }
}

describe('an alert', () => {
  it('is a notification, a line of the strip and a sign of the tab, and is kept for the next visit', async (test) => {
    const { page, devnet, relay } = await openMarket(test, '/#/AAPLc')
    await page.context().grantPermissions(['notifications'], { origin: relay.url })
    // A browser without a screen shows no notification: this one keeps what it was given.
    await page.evaluate(`{
      globalThis.told = []
      globalThis.Notification = class { static permission = 'granted'; constructor(title, { body }) { told.push(title + ': ' + body) } }
    }`)
    const alerts = page.locator('details.alerts')
    await alerts.locator('summary').click()
    const premium = page.getByRole('checkbox', { name: 'Premium beyond' })
    await page.getByRole('spinbutton', { name: 'Basis points' }).fill('5000')
    await premium.check()
    await alerts.getByText('also in another tab').waitFor()
    await page.locator('.number [data-field="basis"][data-kind="premium"]').waitFor()
    swapTo(devnet, '900')
    const strip = page.locator('.trouble', { hasText: /AAPLc: premium \+[\d,.]+ bps, beyond 5000/ })
    await strip.waitFor()
    expect(await page.evaluate('told')).toEqual([`stocktape: ${await strip.locator('span').textContent()}`])
    await expect.poll(() => page.title()).toMatch(/^⚠ AAPLc/)
    await strip.getByRole('button', { name: 'Dismiss' }).click()
    await expect.poll(() => page.title()).toMatch(/^AAPLc/)
    await page.reload()
    await waitForLive(page)
    await page.getByText('Alerts · 1 set').click()
    expect([await premium.isChecked(), await page.getByRole('spinbutton').inputValue()]).toEqual([true, '5000'])
  })
})

describe('a file of what is shown', () => {
  it('has the list, the tape and the candles', async (test) => {
    const { page, devnet } = await openMarket(test)
    devnet.list.change('TSLAc', { name: '=Tesla, "Inc."' })
    swapTo(devnet, '330')
    devnet.seal()
    await page.locator('[data-symbol="AAPLc"] [data-kind="premium"]').waitFor()
    await page.locator('[data-stage="sealed"] .line-type:is(.up, .down)').first().waitFor()
    const list = await save(page, 'Save this list as CSV')
    expect(list.name).toBe('stocktape-symbols.csv')
    expect(list.lines[0]).toMatch(/^symbol,name,address,price,currency,nav,/)
    expect(list.lines).toHaveLength(1 + (await page.locator('.symbols tbody tr').count()))
    expect(list.lines.find((line) => line.startsWith('AAPLc'))).toMatch(
      /^AAPLc,[^,]+,0x[\da-f]{40},3\d\d(\.\d+)?,USDC,[\d.]+,fresh,/,
    )
    await page.getByRole('button', { name: 'Trades' }).click()
    const tape = await save(page, 'Save these lines as CSV')
    expect(tape.lines).toHaveLength(2)
    expect(tape.lines[1]).toMatch(/,AAPLc,trade,sealed,(buy|sell),-?\d+,[\d.]+,/)
  })
})

describe('the page of a symbol', () => {
  it('lists its pools with their depth, and its candles as a file', async (test) => {
    const { page, devnet, relay } = await openMarket(test, '/#/AAPLc')
    for (const kind of ['uniswap_v3', 'uniswap_v4'] as const) devnet.swap('AAPLc', { kind, price: '330' })
    devnet.makeFlashblock()
    devnet.seal()
    const rows = page.getByRole('region', { name: 'Pools' }).locator('tbody tr')
    await rows.filter({ hasText: 'v4' }).filter({ hasText: '330.00' }).first().waitFor()
    expect(await rows.count()).toBe(await venueCount(relay.url))
    await page.getByRole('button', { name: '1m', exact: true }).click()
    const button = page.getByRole('button', { name: 'Save these candles as CSV' })
    await button.waitFor()
    const read = async () => (await save(page, 'Save these candles as CSV')).lines
    await expect.poll(async () => (await read()).length).toBe(2)
    const csv = await (await fetch(`${relay.url}/v1/bars/AAPLc?open=true&format=csv`)).text()
    expect((await read())[0]).toBe(csv.split('\r\n')[0]?.split('\n')[0])
  })
})

describe('the sheet of a fact', () => {
  it('has its value first, its life, whole addresses that filter, and the way to its symbol', async (test) => {
    const { page, devnet } = await openBoardStack(test, browser)
    const to = `0x${'ab'.repeat(20)}` as const
    devnet.transfer({ symbol: 'AAPLc', raw: 1_234_567_800_000n, to })
    devnet.makeFlashblock()
    await page.locator('[data-stage="preconfirmed"] button').click()
    const sheet = page.getByRole('dialog')
    await sheet.locator('.life').waitFor()
    const text = (await sheet.textContent()) ?? ''
    const places = ['12,345.678 AAPLc', 'pre-confirmed', to, 'Open AAPLc'].map((part) => text.indexOf(part, 20))
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(places[0]).toBeGreaterThan(0)
    await sheet.getByRole('button', { name: 'filter' }).last().click()
    await expect.poll(() => new URL(page.url()).hash).toContain(`account=${to}`)
    await sheet.getByRole('link', { name: 'Open AAPLc' }).click()
    await page.getByRole('heading', { name: 'AAPLc' }).first().waitFor()
  })
})

it('a screen reader is told of a retraction, though no line is new', async (test) => {
  const { page, devnet } = await openBoardStack(test, browser)
  const dropped = devnet.transfer({ symbol: 'AAPLc', raw: 700_000_000n })
  devnet.makeFlashblock()
  const spoken = page.locator('[aria-live="polite"]')
  await spoken.filter({ hasText: 'AAPLc transfer of 7 tokens' }).filter({ hasText: 'pre-confirmed' }).waitFor()
  devnet.faults.drop(dropped)
  devnet.seal()
  await spoken.filter({ hasText: 'AAPLc transfer of 7 tokens' }).filter({ hasText: 'retracted, not in the sealed block' }).waitFor()
})

describe('the card of a symbol', () => {
  it('is in the page of another origin, live, without a script or a style of that page, and the board is not', async (test) => {
    const { devnet, relay, page } = await openMarket(test)
    const frames = ['embed/aapl?theme=dark', 'embed/NOPE', '']
      .map((path) => `<iframe src="${relay.url}/${path}" width="360" height="190"></iframe>`)
      .join('')
    const url = await serve(test.onTestFinished, (_, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(frames)
    })
    await page.goto(url)
    const [card, unknown, board] = [0, 1, 2].map((nth) => page.frameLocator('iframe').nth(nth))
    await card?.locator('html[data-connection="live"][data-theme="dark"]').waitFor()
    await card?.getByText('Apple', { exact: true }).waitFor()
    swapTo(devnet, '345.67')
    await card?.locator('[data-field="quote"]', { hasText: '345.67' }).waitFor()
    expect(await card?.getByRole('link').getAttribute('href')).toBe(`${relay.url}/#/AAPLc`)
    await unknown?.getByText(/NOPE/).last().waitFor()
    expect(await board?.locator('.brand').count()).toBe(0)
  })

  it('is offered by the page of its symbol', async (test) => {
    const { page, relay } = await openBoardStack(test, browser, {
      path: '/#/AAPLc',
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    await page.getByRole('button', { name: 'Embed: copy an iframe for a page of your own' }).click()
    await page.getByText('copied').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain(`<iframe src="${relay.url}/embed/AAPLc"`)
  })
})

import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { apiKey } from '../../support/api-keys.ts'
import { buildBoard, openBoard, openBoardStack, shownLines, waitForLive, waitForPendingLogs } from '../../support/board-page.ts'
import { openDevnet, openRelayFor, openTestStack, transfer } from '../../support/test-stack.ts'
import { openChromium } from './chromium-readers.ts'
import { TEST_TIMEOUT_MS } from './deployed-relay.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

let browser: Browser

beforeAll(async () => {
  buildBoard()
  browser = await openChromium()
})
afterAll(() => browser?.close())

const wide = { width: 1_440, height: 900 }
const hashOf = (page: Page): string => new URL(page.url()).hash
const boxOf = async (locator: Locator) => (await locator.boundingBox()) ?? expect.unreachable()
const scrolled = (page: Page): Promise<number> => page.evaluate("document.querySelector('.state').scrollTop")
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
/** Returns after the page has drawn what came until now. */
const drawn = (page: Page): Promise<unknown> =>
  page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')

describe('a page', () => {
  it('begins at its top, and Back returns to where the list was', async (test) => {
    const { page } = await openBoardStack(test, browser, { viewport: { width: 1_440, height: 400 } })
    const nav = page.locator('[data-symbol="TSLAc"] [data-field="nav"]')
    await nav.scrollIntoViewIfNeeded()
    const top = await scrolled(page)
    expect(top).toBeGreaterThan(0)
    await nav.click()
    await heading(page, 'TSLAc')
    expect(await scrolled(page)).toBe(0)
    await page.goBack()
    await page.locator('tr[data-symbol="TSLAc"]').waitFor()
    expect(await scrolled(page)).toBe(top)
  })

  it('is opened neither by a click with a key, nor by the marking of a number', async (test) => {
    const { page } = await openBoardStack(test, browser)
    const nav = page.locator('[data-symbol="AAPLc"] [data-field="nav"]')
    await nav.click({ modifiers: ['Control'] })
    await nav.click({ button: 'middle' })
    const box = await boxOf(nav.locator('.figure'))
    await page.mouse.move(box.x + 1, box.y + 5)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width - 1, box.y + 5, { steps: 5 })
    await page.mouse.up()
    expect(await page.evaluate('getSelection().toString()')).toMatch(/\d/)
    const other = page.context().waitForEvent('page')
    await page.locator('[data-symbol="AAPLc"] a').click({ modifiers: ['Control'] })
    expect((await other).url()).toMatch(/#\/AAPLc$/)
    await drawn(page)
    expect(hashOf(page)).toBe('')
  })

  it('that is closed is no step of the history: Forward leads to it', async (test) => {
    const stack = await openBoardStack(test, browser)
    const { page } = stack
    await page.locator('[data-symbol="AAPLc"] [data-field="nav"]').click()
    await heading(page, 'AAPLc')
    await page.keyboard.press('Escape')
    await page.locator('tr[data-symbol="AAPLc"]').waitFor()
    await page.goForward()
    await heading(page, 'AAPLc')
    await page.keyboard.press('Escape')
    await page.locator('tr[data-symbol="AAPLc"]').waitFor()
    transfer(stack)
    await page.locator('[data-line] button').first().click()
    const sheet = page.getByRole('dialog')
    await sheet.getByRole('button', { name: 'Close' }).click()
    await sheet.waitFor({ state: 'detached' })
    await page.goForward()
    await sheet.waitFor()
    const link = page.url()
    // From a link, what is closed leaves the list, and not the board.
    const reader = await openBoard(test, browser, link)
    await reader.page.getByRole('dialog').waitFor()
    await reader.page.keyboard.press('Escape')
    await reader.page.locator('tr[data-symbol="AAPLc"]').waitFor()
  })

  it.each(['aaplc', 'AAPL', 'aapl'])('of the symbol %s is that of AAPLc', async (name) => {
    const { page } = await openBoardStack({ onTestFinished }, browser, { path: `/#/${name}` })
    await heading(page, 'AAPLc')
  })

  it('of a symbol that the filter leaves out offers to clear the filter', async (test) => {
    const { page } = await openBoardStack(test, browser, { path: '/#/AAPLc?symbols=TSLAc' })
    await page.getByRole('button', { name: 'Clear the filter' }).click()
    await heading(page, 'AAPLc')
    expect(hashOf(page)).toBe('#/AAPLc')
  })

  it('takes the place of the tape on a narrow screen, and the shown part is in the URL', async (test) => {
    const { page } = await openBoardStack(test, browser, { viewport: { width: 390, height: 800 } })
    await page.getByRole('button', { name: 'Tape', exact: true }).click()
    await page.locator('[data-tape]').waitFor()
    expect(hashOf(page)).toBe('#/?tab=tape')
    await page.keyboard.press('?')
    await page.getByRole('link', { name: 'Connect a bot' }).first().click()
    await page.keyboard.press('Escape')
    await heading(page, 'Connect a bot')
    expect(await page.locator('[data-tape]').isVisible()).toBe(false)
  })
})

it('a sheet that is closed twice at once leaves the board open', async (test) => {
  const { page, relay } = await openBoardStack(test, browser)
  const link = `${relay.url}/#/fact/x`
  await page.goto('about:blank')
  await page.goto(link)
  await page.reload()
  const sheet = page.getByRole('dialog')
  await sheet.waitFor()
  await page.evaluate("location.hash = '#/AAPLc'")
  await heading(page, 'AAPLc')
  await page.evaluate(`const close = () => {
      for (let time = 0; time < 2; time += 1)
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }))
    }
    addEventListener('popstate', close)
    close()`)
  await expect.poll(() => hashOf(page)).toBe('#/')
  await drawn(page)
  expect(page.url()).toContain(relay.url)
})

describe('the keys', () => {
  it('j and k lead from symbol to symbol, and Enter opens only what the list shows as selected', async (test) => {
    const { page } = await openBoardStack(test, browser, { path: '/#/AAPLc' })
    await heading(page, 'AAPLc')
    await page.keyboard.press('j')
    await heading(page, 'AMZNc')
    await page.keyboard.press('Enter')
    await page.keyboard.press('k')
    await heading(page, 'AAPLc')
    await page.keyboard.press('k')
    await drawn(page)
    expect(hashOf(page)).toBe('#/AAPLc')
  })

  it('lead from line to line of the tape while the sheet of one is open', async (test) => {
    const stack = await openBoardStack(test, browser)
    const { page } = stack
    transfer(stack, 'AAPLc', 2)
    await page.locator('[data-stage]').nth(1).waitFor()
    const [newer = '', older = ''] = (await shownLines(page)).map(({ id }) => id)
    await page.locator(`[data-line="${newer}"] button`).click()
    const sheet = page.getByRole('dialog')
    await sheet.getByText(newer, { exact: false }).first().waitFor()
    await page.keyboard.press('j')
    await sheet.getByText(older, { exact: false }).first().waitFor()
    await sheet.getByRole('button', { name: 'Newer line' }).click()
    await sheet.getByText(newer, { exact: false }).first().waitFor()
    expect(await sheet.getByRole('button', { name: 'Newer line' }).isDisabled()).toBe(true)
    await page.keyboard.press('Escape')
    await expect.poll(() => hashOf(page)).toBe('')
  })

  it('lead on from a page by whatever name it was opened, and none that is pressed quickly is lost', async (test) => {
    const { page } = await openBoardStack(test, browser, { path: '/#/amzn' })
    await heading(page, 'AMZNc')
    await page.evaluate(`for (let nth = 0; nth < 2; nth += 1)
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'j', bubbles: true }))`)
    await heading(page, 'CRCLc')
  })

  it('never select a row under the head of the table, and a pinned one stays in view', async (test) => {
    const { page } = await openBoardStack(test, browser, { viewport: { width: 1_440, height: 420 } })
    const press = async (key: string, times: number) => {
      for (let nth = 0; nth < times; nth += 1) await page.keyboard.press(key)
      await drawn(page)
    }
    await press('j', 12)
    await press('k', 9)
    const head = await boxOf(page.locator('thead th').first())
    const selectedTop = async () => (await boxOf(page.locator('tr.selected'))).y
    expect(await selectedTop()).toBeGreaterThanOrEqual(head.y + head.height - 1)
    await press('j', 9)
    await press('f', 1)
    expect(await selectedTop()).toBeGreaterThanOrEqual(head.y + head.height - 1)
    expect(await selectedTop()).toBeLessThan(420 - 44)
  })

  it('leave a wall by Esc, and open nothing there', async (test) => {
    const { page } = await openBoardStack(test, browser, { path: '/?wall' })
    await page.locator('.app.wall .tile').first().waitFor()
    for (const key of ['j', 'Enter']) await page.keyboard.press(key)
    await drawn(page)
    expect(await page.locator('.app.wall .tile').count()).toBeGreaterThan(0)
    await page.keyboard.press('Escape')
    await page.locator('.app:not(.wall) tr[data-symbol]').first().waitFor()
    expect(page.url()).not.toContain('wall')
  })
})

it.for([
  ['the filter', '/', 'Filter', '.filter-panel'],
  ['the alerts', '/#/AAPLc', 'Alerts', '.alerts fieldset'],
] as const)('a press beside %s closes them, and one inside does not', async ([, path, opener, panel], test) => {
  const { page } = await openBoardStack(test, browser, { path })
  await page.getByText(opener, { exact: true }).click()
  await page.locator(panel).getByRole('checkbox').first().click()
  await drawn(page)
  expect(await page.locator(panel).isVisible()).toBe(true)
  await page.locator('.tagline').click()
  await page.locator(panel).waitFor({ state: 'hidden' })
})

describe('the search', () => {
  it('lists what matches on every page, and Enter opens the first', async (test) => {
    const { page } = await openBoardStack(test, browser, { path: '/#/AAPLc' })
    await heading(page, 'AAPLc')
    await page.keyboard.press('/')
    await page.keyboard.type('tesla')
    const results = page.getByRole('list', { name: 'Symbols found' })
    expect(await results.getByRole('link').allTextContents()).toEqual([expect.stringMatching(/^TSLAc Tesla.*\d+\.\d\d$/)])
    await page.keyboard.press('Enter')
    await heading(page, 'TSLAc')
    expect(hashOf(page)).toBe('#/TSLAc')
    await page.keyboard.press('/')
    await page.keyboard.type('a')
    expect(await results.getByRole('link').count()).toBe(8)
    await page.keyboard.press('Escape')
    expect(await page.getByLabel('Search symbols').inputValue()).toBe('')
    await page.keyboard.press('Escape')
    expect(await page.evaluate('document.activeElement.tagName')).toBe('BODY')
    await heading(page, 'TSLAc')
  })

  it('filters the list, and leads to the list from another page', async (test) => {
    const { page } = await openBoardStack(test, browser, { path: '/#/?sort=-symbol' })
    await page.getByLabel('Search symbols').fill('nvid')
    await expect.poll(() => page.locator('tr[data-symbol]').count()).toBe(1)
    expect(await page.locator('.results').count()).toBe(0)
    await page.keyboard.press('Enter')
    await heading(page, 'NVDAc')
    expect(await page.getByLabel('Search symbols').inputValue()).toBe('')
    expect(hashOf(page)).toBe('#/NVDAc?sort=-symbol')
    await page.getByLabel('Search symbols').fill('a')
    const all = await page.getByRole('button', { name: /^All \d+ in the list$/ }).textContent()
    await page.keyboard.press('ArrowUp')
    for (const _ of Array.from({ length: 9 })) await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    expect(hashOf(page)).toBe('#/?sort=-symbol&search=a')
    await expect.poll(() => page.locator('tr[data-symbol]').count()).toBe(Number(all?.match(/\d+/)?.[0]))
  })

  it('opens a result that is clicked where a browser takes the focus from the field', async (test) => {
    const { page } = await openBoardStack(test, browser, { path: '/#/AAPLc' })
    await page.getByLabel('Search symbols').fill('nvid')
    const box = await boxOf(page.getByRole('list', { name: 'Symbols found' }).getByRole('link'))
    await page.mouse.move(box.x + 20, box.y + 10)
    // Safari gives the focus to no link.
    await page.evaluate("addEventListener('mousedown', (event) => event.defaultPrevented || document.activeElement.blur())")
    await page.mouse.down()
    await drawn(page)
    await page.mouse.up()
    await heading(page, 'NVDAc')
  })

  it('leaves Enter and Esc to the choice of letters, and to a result with the focus', async (test) => {
    const { page } = await openBoardStack(test, browser, { path: '/#/AAPLc' })
    await page.getByLabel('Search symbols').fill('nvid')
    await page.evaluate(`document.activeElement.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true }))`)
    await drawn(page)
    expect(hashOf(page)).toBe('#/AAPLc')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Escape')
    await drawn(page)
    expect(hashOf(page)).toBe('#/AAPLc')
    expect(await page.getByLabel('Search symbols').inputValue()).toBe('')
  })
})

describe('the tape', () => {
  it('holds still under the pointer, says how many lines wait, and continues when the pointer leaves', async (test) => {
    const stack = await openBoardStack(test, browser)
    const { page } = stack
    transfer(stack, 'AAPLc', 3)
    await page.locator('[data-stage]').nth(2).waitFor()
    const before = (await shownLines(page)).map(({ id }) => id)
    const row = page.locator(`[data-line="${before[1]}"]`)
    await row.hover()
    transfer(stack, 'TSLAc', 3)
    await page.getByRole('button', { name: '3 new' }).waitFor()
    expect((await shownLines(page)).map(({ id }) => id)).toEqual(before)
    await page.mouse.move(10, 10)
    await expect.poll(async () => (await shownLines(page)).findIndex(({ id }) => id === before[0])).toBe(3)
    expect(await page.getByRole('button', { name: 'new' }).count()).toBe(0)
  })

  it('keeps the focus in the line that has it, and announces no line while it holds', async (test) => {
    const stack = await openBoardStack(test, browser)
    const { page } = stack
    transfer(stack)
    await page.locator('[data-stage]').first().waitFor()
    await page.locator('[data-tape]').focus()
    await page.keyboard.press('Tab')
    const focused = () => page.evaluate("document.activeElement.closest('[data-line]')?.dataset.line ?? null")
    const line = await focused()
    expect(line).not.toBeNull()
    await page.clock.install()
    transfer(stack, 'TSLAc', 3)
    await page.getByRole('button', { name: '3 new' }).waitFor()
    await page.clock.runFor(12_000)
    expect(await focused()).toBe(line)
    expect(await page.locator('[aria-live]').textContent()).not.toContain('TSLAc')
  })

  it('stays held while the focus moves from line to line', async (test) => {
    const stack = await openBoardStack(test, browser)
    const { page } = stack
    transfer(stack, 'AAPLc', 3)
    await page.locator('[data-stage]').nth(2).waitFor()
    const before = (await shownLines(page)).map(({ id }) => id)
    await page.locator('[data-tape]').focus()
    await page.keyboard.press('Tab')
    // More lines than the window shows.
    transfer(stack, 'TSLAc', 60)
    await page.getByRole('button', { name: '60 new' }).waitFor()
    await page.keyboard.press('Tab')
    await drawn(page)
    expect(await page.evaluate("document.activeElement.closest('[data-line]')?.dataset.line ?? null")).toBe(before[1])
    expect((await shownLines(page)).map(({ id }) => id)).toEqual(before)
  })

  it('goes on under the pointer on a wall, which has no button to continue', async (test) => {
    const stack = await openBoardStack(test, browser, { path: '/?wall', viewport: { width: 1_920, height: 1_080 } })
    const box = await boxOf(stack.page.locator('[data-tape]'))
    await stack.page.mouse.move(box.x + 50, box.y + 100)
    transfer(stack)
    await stack.page.locator('[data-stage]').first().waitFor()
    transfer(stack, 'TSLAc')
    await expect.poll(async () => (await shownLines(stack.page))[0]?.text).toContain('TSLAc')
  })

  it('of a symbol has its lines alone, and of all symbols on demand', async (test) => {
    const stack = await openBoardStack(test, browser, { path: '/#/AAPLc?types=transfer' })
    const { page } = stack
    for (const symbol of ['TSLAc', 'AAPLc', 'NVDAc']) transfer(stack, symbol)
    const symbols = () => page.locator('.line-symbol').allTextContents()
    await expect.poll(symbols).toEqual(['AAPLc'])
    await page.getByRole('button', { name: 'AAPLc: of all symbols' }).waitFor()
    await page.getByRole('button', { name: 'Of all symbols' }).click()
    await expect.poll(async () => (await symbols()).toSorted()).toEqual(['AAPLc', 'NVDAc', 'TSLAc'])
  })

  it('has a part for trades, moves, events and what was retracted, and the part is in the URL', async (test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    const settings = { POOLS: devnet.poolsText, QUOTE_TOKENS: devnet.quoteTokens }
    const relay = await openRelayFor(devnet, settings, test)
    const { page } = await openBoard(test, browser, relay.url)
    await waitForPendingLogs(page)
    devnet.swap('AAPLc', { price: '400' })
    devnet.issuer.pause({ symbol: 'NVDAc', features: [1] })
    // The last one: it moves no other log.
    const retracted = devnet.transfer({ symbol: 'TSLAc', raw: 7n })
    devnet.makeFlashblock()
    devnet.faults.drop(retracted)
    devnet.seal()
    await page.locator('[data-stage="retracted"]').waitFor()
    const part = async (name: string) => {
      await page.getByRole('navigation', { name: 'Parts of the tape' }).getByRole('button', { name }).click()
      await drawn(page)
      return (await page.locator('[data-line]').evaluateAll((lines) => lines.map((line) => line.textContent ?? ''))).join('\n')
    }
    expect(await part('Trades')).toMatch(/^AAPLc (buy|sell).*far from the NAV.*off NAV/)
    expect(hashOf(page)).toBe('#/?show=trades')
    expect(await part('Moves')).toMatch(/TSLAc transfer/)
    expect(await part('Events')).toMatch(/NVDAc pause/)
    const last = await part('Retracted')
    expect(last).toMatch(/^TSLAc transfer.*not in the sealed block/)
    expect(last).toMatch(/0x[\da-f]{4}…[\da-f]{4} → 0x/)
    await page.getByRole('button', { name: 'Retracted 1' }).waitFor()
    expect(await page.locator('[data-line]').count()).toBe(1)
    expect(await page.locator('[data-line]').getAttribute('data-tint')).toBe('bad')
  })

  it('shows the first line also where the pointer waits for it', async (test) => {
    const stack = await openBoardStack(test, browser, { path: '/#/?types=transfer' })
    await stack.page.locator('[data-tape]').hover()
    transfer(stack)
    await stack.page.locator('[data-line]').first().waitFor()
  })
})

describe('what the relay refuses', () => {
  it.each([
    ['symbols=NOPE', /NOPE/],
    ['types=foo', /foo/],
  ])('%s is said in the place of the list, and can be cleared', async (filter, words) => {
    const stack = await openTestStack()
    const { page } = await openBoard({ onTestFinished }, browser, `${stack.relay.url}/#/AAPLc?${filter}`)
    const card = page.getByRole('region', { name: 'Refused' })
    await card.getByText(words).waitFor()
    await page.evaluate(`location.hash = '#/?${filter}'`)
    await page.waitForURL(/#\/\?/)
    await card.getByText(words).waitFor()
    expect(await page.locator('.pulse').textContent()).toContain('Refused')
    expect(await page.locator('.tape .empty').textContent()).not.toContain('Connecting')
    await card.getByRole('button', { name: 'Clear the filter' }).click()
    await waitForLive(page)
    await page.locator('tr[data-symbol="AAPLc"]').waitFor()
  })

  it('a reader without a key is asked for it', async (test) => {
    const stack = await openTestStack({ API_KEYS: apiKey }, test)
    const { page } = await openBoard(test, browser, stack.relay.url)
    await page.getByRole('heading', { name: 'This relay asks for a key' }).waitFor()
    await page.getByLabel('API key').fill(apiKey)
    await page.getByRole('button', { name: 'Use this key' }).click()
    await waitForLive(page)
    expect(page.url()).not.toContain(apiKey)
  })
})

it('a screen of 2,400 pixels: the crosshair is under the pointer', async (test) => {
  const { page, relay } = await openBoardStack(test, browser, { viewport: { ...wide, width: 2_400 } })
  const [count, step] = [200, 300]
  const first = Math.floor(Date.now() / 1_000 / step - count) * step
  const nav = { price: '10', updated_at: null, age_s: 0, state: 'missing', stale_after_s: 1, frozen: null }
  const time = (nth: number) => new Date((first + nth * step) * 1_000).toISOString()
  const bars = Array.from({ length: count }, (_, nth) => ({
    ...{
      symbol: 'AAPLc',
      start: time(nth),
      end: time(nth + 1),
      revision: 1,
      open: '9',
      high: '11',
      low: '8',
      close: String(10 + nth / 100),
    },
    ...{ vwap: '10', trades: 1, volume: '1', shares: '1', currency_volume: '10', buy_volume: '0', buy_currency_volume: '0' },
    ...{ basis_bps: null, basis: null, nav, venues: [], blocks: null, partial: null, state: 'final' },
  }))
  await page.route('**/v1/bars/**', async (route) => {
    const answer = await route.fetch()
    await route.fulfill({ response: answer, json: { ...(await answer.json()), bars: bars.toReversed(), next: null } })
  })
  await page.goto(`${relay.url}/#/AAPLc`)
  await page.getByRole('group', { name: 'Range' }).getByRole('button', { name: 'All' }).click()
  await page.getByRole('button', { name: '5m', exact: true }).click()
  const plot = page.locator('.chart canvas').first()
  await page.getByText('C 11.99').waitFor()
  const box = await boxOf(plot)
  for (const share of [0.3, 0.97]) {
    await page.mouse.move(box.x + share * box.width, box.y + 100)
    const shown = page.locator('.cursor-text', { hasText: /C \d/ })
    await expect
      .poll(async () => Math.abs((Number(/C ([\d.]+)/.exec((await shown.textContent()) ?? '')?.[1]) - 10) * 100 - share * count))
      .toBeLessThan(4)
  }
})

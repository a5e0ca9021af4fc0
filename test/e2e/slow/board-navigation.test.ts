import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { apiKey } from '../../support/api-keys.ts'
import { buildBoard, openBoard, openBoardStack, shownLines, waitForLive } from '../../support/board-page.ts'
import { openTestStack, transfer } from '../../support/test-stack.ts'
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
    await page.getByRole('link', { name: 'Try the feed' }).first().click()
    await page.keyboard.press('Escape')
    await heading(page, 'Try the feed')
    expect(await page.locator('[data-tape]').isVisible()).toBe(false)
  })
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
    for (const key of ['j', 'Enter']) await page.keyboard.press(key)
    await drawn(page)
    expect(await page.locator('.app.wall .tile').count()).toBeGreaterThan(0)
    await page.keyboard.press('Escape')
    await page.locator('.app:not(.wall) tr[data-symbol]').first().waitFor()
    expect(page.url()).not.toContain('wall')
  })
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

  it('also filters the list, and a result that is clicked opens', async (test) => {
    const { page } = await openBoardStack(test, browser)
    await page.getByLabel('Search symbols').fill('nvid')
    await expect.poll(() => page.locator('tr[data-symbol]').count()).toBe(1)
    await page.getByRole('list', { name: 'Symbols found' }).getByRole('link').click()
    await heading(page, 'NVDAc')
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
    const { page } = await openBoard({ onTestFinished }, browser, `${stack.relay.url}/#/?${filter}`)
    const card = page.getByRole('region', { name: 'Refused' })
    await card.getByText(words).waitFor()
    expect(await page.locator('.pulse').textContent()).toContain('refused')
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

it('a screen of 1,920 pixels: the crosshair is under the pointer', async (test) => {
  const stack = await openBoardStack(test, browser, { viewport: { ...wide, width: 1_920 }, path: '/#/AAPLc' })
  const { page } = stack
  const over = page.locator('.chart .u-over')
  await over.waitFor()
  const box = await boxOf(over)
  for (const share of [0.3, 0.97]) {
    const x = box.x + share * box.width
    await page.mouse.move(x, box.y + 100)
    await expect.poll(async () => Math.abs((await boxOf(page.locator('.u-cursor-x'))).x - x)).toBeLessThan(2)
  }
})

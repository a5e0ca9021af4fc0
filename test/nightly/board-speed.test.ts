import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { openChromium } from '../e2e/slow/chromium-readers.ts'
import { buildBoard, openBoard } from '../support/board-page.ts'
import { createTempFolder, spawnRelay } from '../support/child-program.ts'
import { openTestStack, transfer } from '../support/test-stack.ts'

vi.setConfig({ testTimeout: 60_000 })

const FIRST_VISIT_BYTES = 150 * 1_024

let browser: Browser

beforeAll(async () => {
  buildBoard()
  browser = await openChromium()
})
afterAll(() => browser?.close())

it('the board shows the first update within two seconds of opening', async (test) => {
  const stack = await openTestStack({}, test)
  transfer(stack, 'AAPLc', 3)
  const { page, errors } = await openBoard(test, browser, stack.relay.url)
  await page.locator('[data-line][data-stage="preconfirmed"]').first().waitFor()
  // Since the navigation began, by the clock of the page.
  expect(await page.evaluate('performance.now()')).toBeLessThan(2_000)
  expect(await page.locator('[data-symbol="AAPLc"] [data-field="nav"]').textContent()).toMatch(/\d+\.\d\d/)
  expect(errors).toEqual([])
})

it('a first visit reads at most 150 KB, besides its stream', async (test) => {
  const relay = spawnRelay(test, { PORT: '0', DATA_DIR: await createTempFolder(test) })
  const { page } = await openBoard(test, browser, await relay.listeningUrl())
  await page.locator('[data-symbol="AAPLc"] [data-field="volume"]', { hasText: '$' }).waitFor()
  const sizes: readonly number[] = await page.evaluate(
    'performance.getEntries().filter(({ transferSize }) => transferSize > 0).map(({ transferSize }) => transferSize)',
  )
  const sum = sizes.reduce((total, size) => total + size, 0)
  expect(sizes.length).toBeGreaterThan(6)
  expect(sum).toBeLessThan(FIRST_VISIT_BYTES)
})

it('the board has its own fonts, and reads nothing from another host', async (test) => {
  const { relay } = await openTestStack({}, test)
  const { page, errors, requestedUrls } = await openBoard(test, browser, `${relay.url}/#/AAPLc`)
  await page.locator('.hex code').first().waitFor()
  await page.waitForFunction('[...document.fonts].every(({ status }) => status === "loaded")')
  expect(await page.evaluate('[...document.fonts].map(({ family }) => family)')).toEqual(['Inter', 'JetBrains Mono'])
  expect(requestedUrls.filter((url) => url.endsWith('.woff2'))).toHaveLength(2)
  expect(requestedUrls.filter((url) => new URL(url).origin !== new URL(relay.url).origin)).toEqual([])
  expect(errors).toEqual([])
})

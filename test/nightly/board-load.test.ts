import { setPriority } from 'node:os'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { median } from '../bench/percentiles.ts'
import { openChromium } from '../e2e/slow/chromium-readers.ts'
import { DeployedRelay } from '../e2e/slow/deployed-relay.ts'
import { buildBoard, openBoard, shownLines, waitForLive } from '../support/board-page.ts'
import { isNightly } from '../support/test-length.ts'
import { openDevnet, type TestLifecycle } from '../support/test-stack.ts'

vi.setConfig({ testTimeout: 120_000 })

const BUSY_MS = 30_000
const CALM_MS = 3_000
const VISITS = 5
const UPDATES_PER_SECOND = 1_000
const FLASHBLOCK_MS = 200
const INPUT_DELAY_BOUND_MS = 100
const LONG_TASK_BOUND_MS = 100
const FIRST_PAINT_BOUND_MS = 500
const LAYOUT_SHIFT_BOUND = 0.01
const KEY_INTERVAL_MS = 100
/** That of the relay and the chain; the browser's is 0, and more is less. */
const BESIDE_PRIORITY = 10

/** Collects what the browser measures of itself. */
const observers = `
  globalThis.measured = { longTasks: [], inputDelays: [], shift: 0 }
  const observe = (type, take, options) =>
    new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true, ...options })
  observe('longtask', ({ duration }) => measured.longTasks.push(duration))
  observe('event', ({ name, processingStart, startTime }) => name === 'keydown' && measured.inputDelays.push(processingStart - startTime), { durationThreshold: 16 })
  observe('layout-shift', ({ value, hadRecentInput }) => (measured.shift += hadRecentInput ? 0 : value))
`
const read = (page: Page): Promise<{ longTasks: number[]; inputDelays: number[]; shift: number }> => page.evaluate('measured')
const reset = (page: Page): Promise<unknown> =>
  page.evaluate('Object.assign(measured, { longTasks: [], inputDelays: [], shift: 0 })')

let browser: Browser

beforeAll(async () => {
  buildBoard()
  browser = await openChromium()
  // A reader's browser shares no processor with the relay and the chain, so these two give way to it.
  setPriority(BESIDE_PRIORITY)
})
afterAll(() => browser?.close())

/** A relay in a process of its own, on a chain with this many transactions per flashblock. */
async function openRelayOnBusyChain(test: TestLifecycle, transactionsPerFlashblock: number): Promise<DeployedRelay> {
  const pace = { pace: 'clock', blockMs: 2_000, flashblockMs: FLASHBLOCK_MS } as const
  const settings = { ...pace, transactionsPerFlashblock, calendar: false }
  return DeployedRelay.open(test, await openDevnet(settings, test), { DATA_DIR: ':memory:' })
}

async function openMeasuredBoard(test: TestLifecycle, url: string): Promise<Page> {
  const { page, errors } = await openBoard(test, browser, 'about:blank')
  await page.addInitScript(observers)
  // Chromium begins a new process for a page with this header. That is not the page's own time.
  const headers = { 'cross-origin-opener-policy': 'same-origin' }
  const empty = { headers, contentType: 'text/html', body: '<link rel="icon" href="data:,">' }
  await page.route(url, (route) => route.fulfill(empty), { times: 1 })
  await page.goto(url)
  await page.goto(url)
  await waitForLive(page)
  await page.locator('[data-line]').first().waitFor()
  expect(errors).toEqual([])
  return page
}

const publishedBy = async (relay: DeployedRelay): Promise<number> => {
  const text = await (await fetch(`${relay.url}/metrics`)).text()
  return [...text.matchAll(/^stocktape_updates_total\{.*?type="(?:transfer|mint|burn)".*?\} (\d+)/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  )
}

it(`${UPDATES_PER_SECOND} updates a second for ${BUSY_MS / 1_000} s keep the page quick and complete`, async (test) => {
  const relay = await openRelayOnBusyChain(test, (1.1 * UPDATES_PER_SECOND * FLASHBLOCK_MS) / 1_000)
  const page = await openMeasuredBoard(test, relay.url)
  await reset(page)
  const before = await publishedBy(relay)
  const startedMs = performance.now()
  while (performance.now() - startedMs < BUSY_MS) {
    await page.keyboard.press('j')
    await page.waitForTimeout(KEY_INTERVAL_MS)
  }
  const seconds = (performance.now() - startedMs) / 1_000
  const { inputDelays } = await read(page)
  const rate = ((await publishedBy(relay)) - before) / seconds
  const newest = (await shownLines(page))[0]
  process.stdout.write(
    `${Math.round(rate)} updates a second: input delay ${Math.max(0, ...inputDelays).toFixed(0)} ms at most, of ${inputDelays.length} keys\n`,
  )
  if (isNightly) {
    expect(rate).toBeGreaterThan(UPDATES_PER_SECOND)
    expect(Math.max(0, ...inputDelays)).toBeLessThan(INPUT_DELAY_BOUND_MS)
  }
  // The page did not fall behind: its newest line is among the newest of the relay.
  await relay.waitForResponse('/v1/events?order=desc&limit=1000&types=transfer,mint,burn', (text) =>
    text.includes(newest?.id ?? 'none'),
  )
})

it('paints at once, moves nothing after that, and does no long work at rest', async (test) => {
  const relay = await openRelayOnBusyChain(test, 2)
  const [paints, longest]: [number[], number[]] = [[], []]
  for (let visit = 0; visit < VISITS; visit += 1) {
    const page = await openMeasuredBoard(test, relay.url)
    paints.push(await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    await page.waitForLoadState('networkidle')
    expect((await read(page)).shift).toBeLessThan(LAYOUT_SHIFT_BOUND)
    await reset(page)
    await page.waitForTimeout(CALM_MS)
    const { shift, longTasks } = await read(page)
    longest.push(Math.max(0, ...longTasks))
    expect(shift).toBeLessThan(LAYOUT_SHIFT_BOUND)
    if (isNightly) expect(longTasks.filter((ms) => ms > LONG_TASK_BOUND_MS)).toEqual([])
    await page.close()
  }
  process.stdout.write(`first paint ${paints.map(Math.round)} ms; longest task at rest ${longest} ms (0: none over 50)\n`)
  if (isNightly) expect(median(paints)).toBeLessThan(FIRST_PAINT_BOUND_MS)
})

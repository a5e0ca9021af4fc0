import type { Page } from 'playwright-core'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  closeMinute,
  fetchBars,
  makeBlock,
  openTradedMinutes,
  type TradedMinutes,
  trade,
  waitForBar,
} from '../bars/traded-minutes.ts'
import { openChromium } from './chromium-readers.ts'
import { TEST_TIMEOUT_MS } from './deployed-relay.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

type Candle = {
  readonly time: number
  readonly open?: number
  readonly high?: number
  readonly low?: number
  readonly close?: number
}

/** The candles that the library draws on the page. */
const drawn = (page: Page): Promise<readonly Candle[]> =>
  page.evaluate(() => {
    const { candles } = globalThis as unknown as { candles: { data: () => readonly Candle[] } }
    return candles
      .data()
      .map(({ time, open, high, low, close }) => (open === undefined ? { time } : { time, open, high, low, close }))
  })

/** The bars of `/v1/bars` at this moment as candles, with those that are not over. */
async function answered({ relay }: TradedMinutes, interval: string): Promise<readonly Candle[]> {
  const { bars } = await fetchBars(relay.url, `/AAPLc?interval=${interval}&open=true`)
  return bars.map(({ start, open, high, low, close }) => {
    const time = Date.parse(start) / 1_000
    return open === null ? { time } : { time, open: Number(open), high: Number(high), low: Number(low), close: Number(close) }
  })
}

/** A page of the relay that draws candles, in Chromium. */
async function openCharts(
  { relay }: TradedMinutes,
  interval: string,
): Promise<{ readonly page: Page; readonly mistakes: string[] }> {
  const browser = await openChromium()
  onTestFinished(() => browser.close())
  const page = await browser.newPage()
  const mistakes: string[] = []
  page.on('pageerror', (failure) => mistakes.push(String(failure)))
  page.on('console', (message) => {
    if (message.type() === 'error') mistakes.push(message.text())
  })
  await page.goto(`${relay.url}/docs/charts?symbol=AAPLc&interval=${interval}`)
  await page.waitForFunction(() => 'candles' in globalThis)
  return { page, mistakes }
}

describe('the page of charts', () => {
  it.each(['1m', '5m'])('draws in lightweight-charts what /v1/bars has of %s, after each revision', async (interval) => {
    const opened = await openTradedMinutes()
    const { devnet, listener } = opened
    const { page, mistakes } = await openCharts(opened, interval)
    const states = new Set<string>()
    const expectDrawn = async () => {
      const bars = await answered(opened, interval)
      states.add(JSON.stringify(bars))
      await vi.waitFor(async () => expect(await drawn(page)).toEqual(bars), { timeout: 10_000, interval: 100 })
    }
    const start = devnet.chain.pending.timestamp
    const first = await trade(opened, '320')
    await expectDrawn()
    await trade(opened, '324')
    await expectDrawn()
    closeMinute(devnet)
    await waitForBar(listener, start)
    await expectDrawn()
    const last = await trade(opened, '300')
    makeBlock(devnet)
    await listener.waitFor('seal', ({ keys }) => keys.includes(last.key))
    await expectDrawn()
    // Both minutes lose a trade, and the second one its only one.
    devnet.reorg(6, [first.tx.hash, last.tx.hash])
    makeBlock(devnet)
    await waitForBar(listener, start, 2)
    await expectDrawn()
    closeMinute(devnet)
    await expectDrawn()
    expect(states.size).toBe(4)
    // The rules of the page for its own tables leave those of the library alone.
    const boxes = await Promise.all((await page.locator('#chart td').all()).map((cell) => cell.boundingBox()))
    expect(Math.max(...boxes.map((box) => box?.width ?? 0))).toBeGreaterThan(700)
    expect(mistakes).toEqual([])
  })
})

import { source as axe } from 'axe-core'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { buildBoard, openBoard, waitForLive, waitForPendingLogs } from '../../support/board-page.ts'
import { openDevnet, openRelayFor, transfer } from '../../support/test-stack.ts'
import { openChromium } from './chromium-readers.ts'
import { TEST_TIMEOUT_MS } from './deployed-relay.ts'

vi.setConfig({ testTimeout: 2 * TEST_TIMEOUT_MS })

type Finding = {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

let browser: Browser

beforeAll(async () => {
  buildBoard()
  browser = await openChromium()
})
afterAll(() => browser?.close())

const phone = { width: 390, height: 844 }
const desk = { width: 1_440, height: 900 }

it.for([
  ['light', 'a desk', desk],
  ['dark', 'a desk', desk],
  ['light', 'a phone', phone],
  ['dark', 'a phone', phone],
] as const)('axe finds nothing serious on any page, in %s on %s', async ([colorScheme, , viewport], test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  devnet.list.change('TSLAc', { nav_price: undefined })
  devnet.list.change('NVDAc', { nav_price_updated_at: '2026-11-01T00:00:00Z' })
  const relay = await openRelayFor(devnet, {}, test)
  const { page } = await openBoard(test, browser, relay.url, { colorScheme, viewport, reducedMotion: 'reduce' })
  await waitForLive(page)
  await waitForPendingLogs(page)
  const dropped = devnet.transfer({ symbol: 'AAPLc', raw: 5n })
  devnet.issuer.pause({ symbol: 'AAPLc', features: [1] })
  transfer({ devnet }, 'TSLAc', 3)
  devnet.faults.drop(dropped)
  devnet.seal()
  transfer({ devnet })
  const findings: string[] = []
  const check = async (name: string) => {
    await page.evaluate(axe)
    const { violations }: { violations: readonly Finding[] } = await page.evaluate('axe.run()')
    for (const { id, impact, nodes } of violations)
      if (impact === 'serious' || impact === 'critical')
        findings.push(
          ...nodes.map(({ html, failureSummary }) => `${name}: ${id}: ${html.slice(0, 120)}: ${failureSummary.slice(0, 300)}`),
        )
  }
  const first = page.locator('[data-stage="sealed"]').first()
  if (viewport === phone) await page.getByRole('button', { name: 'Tape' }).click()
  await first.waitFor()
  const key = await first.getAttribute('data-line')
  await check('tape')
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.getByRole('form', { name: 'Filter' }).waitFor()
  await check('filter')
  if (viewport === phone) await page.getByRole('button', { name: 'Symbols' }).click()
  for (const path of ['#/', '#/?layout=tiles', '#/AAPLc', `#/fact/${key}`, '#/source', '#/play']) {
    await page.goto(`${relay.url}/${path}`)
    await waitForLive(page)
    await page
      .locator(path.includes('fact') ? '.life li' : path.includes('AAPLc') ? '.chart canvas' : 'main')
      .first()
      .waitFor()
    await check(path)
  }
  await page.goto(`${relay.url}/#/`)
  await waitForLive(page)
  await relay.stop()
  await page.waitForSelector('html[data-connection="lost"]')
  await check('without a connection')
  expect(findings).toEqual([])
})

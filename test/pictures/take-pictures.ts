import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium, type Page } from 'playwright-core'
import { type Devnet, startDevnet } from '../../src/devnet/devnet.ts'
import { buildBoard, openBoard, waitForLive, waitForPendingLogs } from '../support/board-page.ts'
import { needPrograms, pathOf } from '../support/debian-programs.ts'
import { openRelay } from '../support/in-process-relay.ts'

/**
 * Writes the pictures of the README: rows of the board when they were published, and the same rows two seconds later. With `--all` and
 * a folder, it writes pictures of every view and state into the folder instead; with the beginnings of names, of those states.
 */

const NOBODY = `0x${'0'.repeat(40)}`
const [pool, exchange, ada, ben, cleo] = [
  '0x2bd806c97f0e00af1a1fc3328fa763a9269723c8',
  '0x81b637d8fcd2c6da6359e6963113a1170de795e4',
  '0x535c6f8eb511f5d966a1b0725df92ebf27514fab',
  '0xf447b12ad0c9e6b8a5a1b5c4d3e2f1a09b8c27d8',
  '0x4ea7d1c3b5f79a8e6c4b2d0f1e3a5c7b9d8fcfed',
] as const

/** One in each flashblock, oldest first. */
const movements = [
  { symbol: 'NVDAc', from: pool, to: ada, raw: 4_250_000_000n },
  { symbol: 'AAPLc', from: NOBODY, to: exchange, raw: 120_000_000_000n },
  { symbol: 'TSLAc', from: ben, to: pool, raw: 1_830_255_118n },
  { symbol: 'MSFTc', from: exchange, to: cleo, raw: 36_700_000_000n },
  { symbol: 'COINc', from: cleo, to: pool, raw: 905_412_067n },
  { symbol: 'AAPLc', from: pool, to: ben, raw: 31_241_900_000n },
]

/** With this seed and this start, the chain drops the movement of MSFTc and no other. */
const chain = {
  pace: 'manual',
  seed: '22',
  now: () => Date.parse('2026-11-18T16:00:00Z'),
  requestedFaults: { drop: { share: 0.2, depth: 1 } },
} as const

/** With `--all`, the market is open, and two minutes later the built-in chain has a frozen NAV and a pause. */
const STATES_BEGIN = '2026-11-18T15:58:00Z'

const FLASHBLOCK_MS = 200
const FLASHBLOCKS = 10
const LATER_MS = 2_000
const ROW_PX = 44
const PANEL_PX = 398
const font = new URL('../../src/board/fonts/inter.woff2', import.meta.url)

const waitUntil = (ms: number): Promise<void> => delay(Math.max(0, ms - performance.now()))

/** Makes one block at the pace of a chain, and calls `whenPublished` when the last movement was pushed. */
async function makeBlock(devnet: Devnet, whenPublished: () => Promise<void>): Promise<void> {
  const startedAt = performance.now()
  for (let made = 0; made < FLASHBLOCKS; made += 1) {
    const movement = movements[made]
    if (movement) devnet.transfer(movement)
    devnet.makeFlashblock()
    if (made === movements.length - 1) await whenPublished()
    await waitUntil(startedAt + (made + 1) * FLASHBLOCK_MS)
  }
  devnet.seal()
}

/** The rows, once the board shows this number of them in each stage. */
async function takeRows(page: Page, stages: Readonly<Record<string, number>>): Promise<Buffer> {
  for (const [stage, count] of Object.entries(stages))
    await page
      .locator(`[data-stage="${stage}"]`)
      .nth(count - 1)
      .waitFor()
  const box = await page.locator('[data-tape]').boundingBox()
  if (!box) throw new Error('the board shows no tape')
  return await page.screenshot({ clip: { ...box, height: movements.length * ROW_PX - 1 } })
}

const captions = [
  ['As first published', '<i>○</i> pre-confirmed: not in a block yet'],
  ['Two seconds later', '<i>●</i> sealed in its block &emsp; <u>– retracted: it did not happen</u>'],
] as const

/** Puts a caption above each picture of the rows, in the colours of the board. */
async function compose(board: Page, rows: readonly Buffer[]): Promise<Buffer> {
  const colours = await board.evaluate<string>(`['paper', 'ink', 'soft', 'line', 'bad']
    .map((name) => '--' + name + ':' + getComputedStyle(document.documentElement).getPropertyValue('--' + name)).join(';')`)
  const page = await board.context().newPage()
  const figures = captions.map(
    ([title, signs], index) => `<figure><figcaption><b>${title}</b>${signs}</figcaption>
      <img src="data:image/png;base64,${rows[index]?.toString('base64')}"></figure>`,
  )
  await page.setContent(`<!doctype html><style>
    @font-face { font-family: Inter; font-weight: 400 600; src: url(data:font/woff2;base64,${readFileSync(font).toString('base64')}) }
    :root { color-scheme: light dark; ${colours} }
    body { margin: 0; padding: 10px; width: max-content; display: flex; gap: 10px; background: var(--paper); color: var(--soft); font: 13px/20px Inter, sans-serif }
    figure { margin: 0; border: 1px solid var(--line); border-radius: 8px; overflow: hidden }
    figcaption { padding: 8px 16px; border-bottom: 1px solid var(--line); background: color-mix(in oklch, var(--ink) 5%, transparent) }
    b { display: block; font-size: 16px; line-height: 24px; color: var(--ink) }
    i { font-style: normal; color: var(--ink) }
    u { text-decoration: none; color: var(--bad) }
    img { display: block; width: ${PANEL_PX}px }
  </style>${figures.join('')}`)
  await page.evaluate('document.fonts.ready')
  return await page.locator('body').screenshot()
}

/** Runs the script that takes all pictures. It and what it starts have another time from their first line on. */
function takeStates(given: readonly string[]): void {
  const clock = new URL('../e2e/slow/settable-date.ts', import.meta.url).href
  const env = { ...process.env, CLOCK_OFFSET_MS: String(Date.parse(STATES_BEGIN) - Date.now()), NODE_OPTIONS: `--import=${clock}` }
  process.exitCode =
    spawnSync(process.execPath, [join(import.meta.dirname, 'take-states.ts'), ...given], { env, stdio: 'inherit' }).status ?? 1
}

async function takeReadmePictures(): Promise<void> {
  needPrograms('chromium')
  buildBoard()
  const devnet = await startDevnet(chain)
  const relay = await openRelay(devnet)
  const browser = await chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox', '--disable-gpu'] })

  const boards = await Promise.all(
    (['light', 'dark'] as const).map(async (colorScheme) => {
      const viewport = { width: PANEL_PX, height: 844 }
      const options = { colorScheme, viewport, deviceScaleFactor: 2, timezoneId: 'UTC', reducedMotion: 'reduce' } as const
      const { page } = await openBoard({ onTestFinished: () => {} }, browser, relay.url, options)
      await page.getByRole('button', { name: 'Tape' }).click()
      await waitForLive(page)
      await waitForPendingLogs(page)
      return { colorScheme, page, rows: [] as Buffer[] }
    }),
  )
  let takenAt = 0
  await makeBlock(devnet, async () => {
    for (const { page, rows } of boards) rows.push(await takeRows(page, { preconfirmed: movements.length }))
    takenAt = performance.now()
  })
  await waitUntil(takenAt + LATER_MS)
  for (const { colorScheme, page, rows } of boards) {
    rows.push(await takeRows(page, { sealed: movements.length - 1, retracted: 1 }))
    const path = fileURLToPath(new URL(`../../docs/pictures/two-seconds-${colorScheme}.png`, import.meta.url))
    writeFileSync(path, await compose(page, rows))
  }
  await browser.close()
  await relay.stop()
  await devnet.stop()
}

const { values: given, positionals: names } = parseArgs({ options: { all: { type: 'string' } }, allowPositionals: true })
if (given.all === undefined) await takeReadmePictures()
else takeStates([given.all, ...names])

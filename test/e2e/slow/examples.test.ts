import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { startDevnet } from '../../../src/devnet/devnet.ts'
import { recipes } from '../../../src/docs/recipes.ts'
import { ORIGIN, snippets } from '../../../src/docs/snippets.ts'
import { ChildProgram } from '../../support/child-program.ts'
import { openChromium } from './chromium-readers.ts'
import { DeployedRelay, TEST_TIMEOUT_MS } from './deployed-relay.ts'
import { ExampleSite } from './example-site.ts'

vi.setConfig({ testTimeout: 2 * TEST_TIMEOUT_MS })

/** The pages and programs that users copy, run unchanged but for the address of the relay. */

const POLLING_MS = 50

let browser: Browser

beforeAll(async () => {
  browser = await openChromium()
})

afterAll(() => browser?.close())

async function openStack() {
  const devnet = await startDevnet({ blockMs: 400, flashblockMs: 40, transactionsPerFlashblock: 1, calendar: true })
  onTestFinished(() => devnet.stop())
  const relay = await DeployedRelay.open({ onTestFinished }, devnet, {
    POOLS: devnet.poolsText,
    QUOTE_TOKENS: devnet.quoteTokens,
    ORACLE_REGISTRY: devnet.oracleRegistry,
  })
  const site = await ExampleSite.open({ onTestFinished })
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  return { devnet, relay, site, context }
}

/** The code of a recipe, for this relay. */
const codeOf = (id: string, { url, wsUrl }: DeployedRelay): string =>
  (recipes.find((recipe) => recipe.id === id)?.source ?? '').replaceAll(ORIGIN, url).replaceAll(ORIGIN.replace('http', 'ws'), wsUrl)

/** A page with its errors, except for failed requests. */
type OpenedPage = { readonly page: Page; readonly errors: readonly string[]; readonly sockets: readonly string[] }

async function openPage(context: BrowserContext, url: string): Promise<OpenedPage> {
  const page = await context.newPage()
  const errors: string[] = []
  const sockets: string[] = []
  page.on('pageerror', (failure) => errors.push(failure.message))
  page.on('websocket', (socket) => sockets.push(socket.url()))
  await page.goto(url)
  return { page, errors, sockets }
}

/** Resolves when a page shows something that happened after this time. A page in the background is never painted. */
async function showsNews({ page, errors }: OpenedPage, after: string): Promise<void> {
  const isNewer = `(document.body.textContent.match(/\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z/g) ?? []).some((time) => time > '${after}')`
  await page.waitForFunction(isNewer, null, { polling: POLLING_MS }).catch(async (failure) => {
    throw new Error(`${page.url()} shows ${await page.textContent('body')} ${errors}: ${failure}`)
  })
}

const mountSvelte = `
  import { mount } from 'svelte'
  import Tape from './Tape.svelte'
  mount(Tape, { target: document.getElementById('root') })`

it('the pages show live data, and go on after a restart of the relay', async () => {
  const { devnet, relay, site, context } = await openStack()
  await writeFile(join(site.folder, 'Tape.svelte'), codeOf('svelte', relay))
  const urls = {
    ...Object.fromEntries(
      await Promise.all(
        ['page-library', 'vue', 'chart', 'event-source'].map(async (id) => [id, await site.addPage(id, codeOf(id, relay))]),
      ),
    ),
    react: await site.addBundle('tape.jsx', codeOf('react', relay)),
    svelte: await site.addBundle('tape.js', mountSvelte),
  }
  const pages = await Promise.all(
    Object.entries<string>(urls).map(async ([id, url]) => ({ id, ...(await openPage(context, url)) })),
  )
  devnet.swap('AAPLc', { price: '301' })
  await Promise.all(pages.map((page) => showsNews(page, '')))
  for (const { id, page } of pages)
    expect(await page.textContent('body'), id).toMatch(id === 'chart' ? /AAPLc (nav|quote) [\d.]+/ : /TSLAc [\d.]+ fresh/)
  const chart = pages.find(({ id }) => id === 'chart')?.page
  expect(await chart?.locator('canvas').count()).toBeGreaterThan(0)
  expect(await chart?.locator('a[href^="https://www.tradingview.com/"]').count()).toBeGreaterThan(0)
  expect(await relay.restart('SIGTERM')).toBe(0)
  const restarted = new Date().toISOString()
  devnet.swap('AAPLc', { price: '302' })
  await Promise.all(pages.map((page) => showsNews(page, restarted)))
  for (const { id, errors } of pages) expect(errors, id).toEqual([])
})

it('the program with viem prints logs, and goes on after a restart of the relay', async () => {
  const { relay, site } = await openStack()
  await writeFile(join(site.folder, 'viem.mjs'), codeOf('viem', relay))
  const program = new ChildProgram(['node', 'viem.mjs'], { cwd: site.folder, env: { PATH: process.env.PATH } })
  onTestFinished(() => program.kill())
  await program.waitForOutput('stdout', /log: \d+ 0x\w{40} 0x\w{64}\n/)
  expect(await relay.restart('SIGTERM')).toBe(0)
  await program.waitForOutput('stdout', new RegExp(`^[^]{${program.stdout.length}}.*\\n.*log: \\d+`))
})

/** A page that collects the ids of all transfers, in the strictest mode of React. */
const collector = ({ url }: DeployedRelay) => `
  import { StrictMode, useEffect } from 'react'
  import { createRoot } from 'react-dom/client'
  import { StocktapeProvider, useFeed, useStock, useTape } from 'stocktape/react'
  globalThis.ids = []
  function Stock() {
    return <p>{useStock('TSLAc')?.nav.price} {useFeed().phase}</p>
  }
  function Tape() {
    const { updates, feed } = useTape({ symbols: '*', types: ['transfer'], limit: 1000 })
    useEffect(() => {
      globalThis.ids.push(...updates.map(({ id }) => id).filter((id) => !globalThis.ids.includes(id)).reverse())
    }, [updates])
    return <p>{feed.gaps} gaps</p>
  }
  const page = <StocktapeProvider url="${url}"><Stock /><Tape /><Stock /></StocktapeProvider>
  createRoot(document.getElementById('root')).render(<StrictMode>{page}</StrictMode>)`

it('the tabs of a browser share one connection, and lose nothing when the one that holds it is closed', async () => {
  const { relay, site, context } = await openStack()
  const url = await site.addBundle('collector.jsx', collector(relay))
  const webSockets = async () => JSON.parse(await (await fetch(`${relay.url}/v1/status`)).text()).clients.ws
  const idsIn = ({ page }: OpenedPage): Promise<string[]> => page.evaluate('globalThis.ids')
  const hasNew = ({ page }: OpenedPage, count: number) =>
    page.waitForFunction(`globalThis.ids.length > ${count}`, null, { polling: POLLING_MS })
  const first = await openPage(context, url)
  await hasNew(first, 0)
  const [second, third] = [await openPage(context, url), await openPage(context, url)]
  await Promise.all([hasNew(second, 0), hasNew(third, 0)])
  // A component that mounts twice, and three of them, open one.
  expect([first, second, third].map(({ sockets }) => sockets.length)).toEqual([1, 0, 0])
  expect(await webSockets()).toBe(1)
  await first.page.close({ runBeforeUnload: false })
  const before = Math.max((await idsIn(second)).length, (await idsIn(third)).length)
  await Promise.all([hasNew(second, before + 20), hasNew(third, before + 20)])
  expect(second.sockets.length + third.sockets.length).toBe(1)
  expect(await webSockets()).toBe(1)
  for (const tab of [second, third]) {
    const ids = await idsIn(tab)
    const all = await transferIdsOf(relay, ids)
    expect(ids).toEqual(all)
    expect(await tab.page.textContent('body')).toContain('0 gaps')
    expect(tab.errors).toEqual([])
  }
})

/** The transfers on the tape between the first and the last of these. */
async function transferIdsOf({ url }: DeployedRelay, ids: readonly string[]): Promise<string[]> {
  const through = ids.at(-1)
  const query = `symbols=*&types=transfer&format=ndjson&limit=1000&through=${through}&order=desc`
  const lines = (await (await fetch(`${url}/v1/events?${query}`)).text()).trimEnd().split('\n')
  const all = lines
    .map((line) => JSON.parse(line))
    .filter(({ type }) => type === 'transfer')
    .map(({ id }) => id)
    .reverse()
  return all.slice(all.indexOf(ids[0]))
}

it.each([
  ['typescript', 20],
  ['python', 90],
  ['go', 150],
])('the program in %s has at most %i lines', (id, bound) => {
  const { source = '' } = snippets.find((snippet) => snippet.id === id) ?? {}
  expect(source.split('\n').length).toBeGreaterThan(1)
  expect(source.trimEnd().split('\n').length).toBeLessThanOrEqual(bound)
})

it.each([
  ['page-library', 15],
  ['react', 30],
  ['event-source', 30],
  ['chart', 30],
])('the example %s has at most %i lines', (id, bound) => {
  const { source = '' } = recipes.find((recipe) => recipe.id === id) ?? {}
  expect(source.split('\n').length).toBeGreaterThan(1)
  expect(source.split('\n').length).toBeLessThanOrEqual(bound)
})

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { messageTypes } from '../../../src/docs/json-schemas.ts'
import { recipes } from '../../../src/docs/recipes.ts'
import { snippets } from '../../../src/docs/snippets.ts'
import { Update } from '../../../src/protocol/updates.ts'
import { apiKey } from '../../support/api-keys.ts'
import { ChildProgram, createTempFolder, freePort } from '../../support/child-program.ts'
import { needPrograms } from '../../support/debian-programs.ts'
import { assertValidMessage } from '../../support/message-validator.ts'
import { openDevnet, type TestLifecycle, transfer } from '../../support/test-stack.ts'
import { openChromium } from './chromium-readers.ts'
import { DeployedRelay, TEST_TIMEOUT_MS } from './deployed-relay.ts'
import { ExampleSite } from './example-site.ts'

needPrograms('curl', 'jq', 'python', 'go')

vi.setConfig({ testTimeout: 2 * TEST_TIMEOUT_MS })

/** The docs page in a browser, and every snippet, program and page on it, run as pasted. */

const project = fileURLToPath(new URL('../../..', import.meta.url))
/** Programs from npm. */
const bin = ['test/node_modules/.bin', 'node_modules/.bin'].map((folder) => join(project, folder)).join(':')
const POLLING_MS = 50

let browser: Browser

beforeAll(async () => {
  browser = await openChromium()
})

afterAll(() => browser?.close())

/** A page with all its requests, sockets and errors. */
async function openPage(context: BrowserContext, url: string) {
  const page = await context.newPage()
  const [requestedUrls, sockets, errors]: [string[], string[], string[]] = [[], [], []]
  page.on('request', (request) => requestedUrls.push(request.url()))
  page.on('websocket', (socket) => sockets.push(socket.url()))
  page.on('pageerror', (failure) => errors.push(failure.message))
  await page.goto(url)
  return { page, requestedUrls, sockets, errors }
}
type OpenedPage = Awaited<ReturnType<typeof openPage>>

/** A busy devnet with a relay, and a context of the browser. */
async function openStack(test: TestLifecycle) {
  const devnet = await openDevnet({ blockMs: 400, flashblockMs: 40, transactionsPerFlashblock: 1, calendar: true }, test)
  const settings = { POOLS: devnet.poolsText, QUOTE_TOKENS: devnet.quoteTokens, ORACLE_REGISTRY: devnet.oracleRegistry }
  const relay = await DeployedRelay.open(test, devnet, settings)
  await relay.waitForResponse('/v1/events?symbols=AAPLc&types=transfer', (text) => text.includes('"transfer"'))
  const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] })
  test.onTestFinished(() => context.close())
  return { devnet, relay, context }
}

/** The same, with the docs page and what is to be copied from it. */
async function openDocs(test: TestLifecycle) {
  const stack = await openStack(test)
  const docs = await openPage(stack.context, `${stack.relay.url}/docs`)
  return { ...stack, ...docs, copied: await snippetsOn(docs.page) }
}

/** The snippets by their names. */
const snippetsOn = async (page: Page): Promise<ReadonlyMap<string, string>> =>
  new Map(
    await page
      .locator('pre[data-line]')
      .evaluateAll((lines) => lines.map((line) => [line.getAttribute('data-line') ?? '', line.textContent ?? ''] as const)),
  )

/** A program with a minimal environment; it ends with the test. */
function startProgram(
  test: TestLifecycle,
  command: readonly [string, ...string[]],
  cwd: string,
  more: NodeJS.ProcessEnv = {},
): ChildProgram {
  const { PATH, HOME } = process.env
  const program = new ChildProgram(command, { cwd, env: { PATH: `${bin}:${PATH}`, HOME, ...more } })
  test.onTestFinished(() => program.kill())
  return program
}

it('the page has both documents, requests nothing from elsewhere, and its policy forbids everything else', async (test) => {
  const { relay, page, requestedUrls, errors } = await openDocs(test)
  page.on('console', (message) => message.type() === 'error' && refusals.push(message.text()))
  const refusals: string[] = []
  for (const type of Object.values(messageTypes).flat()) {
    expect(await page.locator(`#message-${type} table`).count(), type).toBe(1)
  }
  const served = JSON.parse(await (await fetch(`${relay.url}/openapi.json`)).text())
  const paths = await page.locator('section > h3 > code').allTextContents()
  for (const path of Object.keys(served.paths)) expect(paths).toContain(path)
  // No link is broken.
  const links = await page.locator('a').evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''))
  for (const link of new Set(links)) {
    if (link.startsWith('#')) expect(await page.locator(`[id="${link.slice(1)}"]`).count(), link).toBe(1)
    else expect((await fetch(new URL(link, relay.url))).status, link).toBe(200)
  }
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  expect(requestedUrls.map((url) => new URL(url).origin)).toEqual(requestedUrls.map(() => relay.url))
  const [line] = await page.locator('pre').allTextContents()
  await page.locator('.line button').first().click()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(line)
  expect([errors, refusals]).toEqual([[], []])
  // The policy forbids requests and scripts.
  await expect(page.evaluate("fetch('http://127.0.0.2:1/')")).rejects.toThrow()
  await page.evaluate("document.body.append(Object.assign(document.createElement('script'), { text: 'globalThis.ran = 1' }))")
  expect(await page.evaluate('globalThis.ran')).toBeUndefined()
  expect(refusals.filter((text) => text.includes('Content Security Policy'))).toHaveLength(refusals.length)
  expect(refusals.length).toBeGreaterThan(1)
})

/** What a shell snippet prints: while it runs, or until it ends. */
const shellSnippets: readonly { readonly name: string; readonly prints?: RegExp; readonly ends?: (text: string) => void }[] = [
  { name: 'listen-curl', prints: /AAPLc +transfer +[\d.]+ = / },
  { name: 'listen-wscat', prints: /\{"type":"transfer","id":/ },
  { name: 'tail', prints: /AAPLc +transfer +[\d.]+ = / },
  {
    name: 'recipe-hummingbot',
    ends: (text) => {
      const [header = '', ...candles] = text.trimEnd().split('\n')
      expect(header.split(',')).toHaveLength(10)
      for (const candle of candles) expect(candle).toMatch(/^\d{10}(,\d+(\.\d+)?){9}$/)
    },
  },
  { name: 'recipe-jq', prints: /^\S+\t\w+\t[\d.]+\t[\d.]+$/m },
  { name: 'streamOne', prints: /^\{"type":"transfer","id":/m },
  { name: 'stream', prints: /^data: \{"type":"transfer","id":/m },
  { name: 'socket', prints: /\{"type":"transfer","id":/ },
  { name: 'events', ends: (text) => expect(JSON.parse(text).events).toHaveLength(10) },
  { name: 'fact', ends: (text) => expect(JSON.parse(text).events.length).toBeGreaterThan(0) },
  { name: 'barsOfOne', ends: (text) => expect(JSON.parse(text)).toMatchObject({ interval: '5m', bars: expect.any(Array) }) },
  { name: 'bars', ends: (text) => expect(JSON.parse(text)).toMatchObject({ interval: '1h', bars: expect.any(Array) }) },
  { name: 'udfConfig', ends: (text) => expect(JSON.parse(text).supported_resolutions).toContain('1D') },
  { name: 'udfTime', ends: (text) => expect(text).toMatch(/^\d+$/) },
  { name: 'udfSymbols', ends: (text) => expect(JSON.parse(text).ticker).toBe('AAPLc') },
  { name: 'udfSearch', ends: (text) => expect(JSON.parse(text).length).toBeGreaterThan(0) },
  { name: 'udfHistory', ends: (text) => expect(JSON.parse(text).s).toMatch(/^(ok|no_data)$/) },
  { name: 'udfMarks', ends: (text) => expect(JSON.parse(text)).toHaveProperty('id') },
  { name: 'udfTimescaleMarks', ends: (text) => expect(JSON.parse(text)).toBeInstanceOf(Array) },
  { name: 'snapshot', ends: (text) => expect(JSON.parse(text).snapshots).toHaveLength(2) },
  { name: 'tokens', ends: (text) => expect(JSON.parse(text).tokens.length).toBeGreaterThan(0) },
  { name: 'token', ends: (text) => expect(JSON.parse(text).symbol).toBe('AAPLc') },
  // This relay requires no key.
  { name: 'accessToken', ends: (text) => expect(JSON.parse(text).details[0]['@type']).toBe('stocktape/no_keys') },
  { name: 'rpc', ends: (text) => expect(JSON.parse(text).result).toMatch(/^0x/) },
  { name: 'status', ends: (text) => expect(JSON.parse(text).source).toBe('pendingLogs') },
  { name: 'health', ends: (text) => expect(JSON.parse(text)).toEqual({ status: 'ok' }) },
  { name: 'ready', ends: (text) => expect(JSON.parse(text)).toEqual({ status: 'ready', reasons: [], demo: false }) },
  { name: 'metrics', ends: (text) => expect(text).toContain('stocktape_updates_total') },
  { name: 'home', ends: (text) => expect(text).toContain('<title>stocktape') },
  { name: 'embed', ends: (text) => expect(text).toContain('id="card"') },
  { name: 'schema', ends: (text) => expect(JSON.parse(text).title).toBe('transfer') },
  { name: 'openapi', ends: (text) => expect(JSON.parse(text).openapi).toBe('3.1.0') },
  { name: 'asyncapi', ends: (text) => expect(JSON.parse(text).asyncapi).toBe('3.0.0') },
  { name: 'docs', ends: (text) => expect(text).toContain('<title>stocktape') },
  { name: 'llms', ends: (text) => expect(text).toMatch(/^# stocktape\n/) },
  { name: 'types', ends: (text) => expect(text).toContain('export type Message = Update | Notice') },
  { name: 'charts', ends: (text) => expect(text).toContain('<title>stocktape: charts') },
  { name: 'chartLibrary', ends: (text) => expect(text).toContain('TradingView Lightweight Charts') },
  { name: 'contract', ends: (text) => expect(text).toMatch(/^# The client contract/) },
]
/** Snippets that run in a browser or as programs. */
const otherSnippets = [
  ...['listen-browser', 'listen-typescript', 'listen-python', 'listen-go', 'recipe-page', 'recipe-retract', 'recipe-spreadsheet'],
  ...['page-library', 'react', 'watch', 'vue', 'svelte', 'chart', 'candles', 'event-source', 'viem', 'ledger', 'duckdb'].map(
    (id) => `recipe-${id}`,
  ),
]

it('each shell snippet works as pasted', async (test) => {
  const { relay, copied } = await openDocs(test)
  await relay.waitForResponse('/v1/events?symbols=AAPLc&limit=10', (text) => JSON.parse(text).events.length === 10)
  const names = [...copied.keys()].filter((name) => !name.startsWith('example-'))
  expect(names.toSorted()).toEqual([...shellSnippets.map(({ name }) => name), ...otherSnippets].toSorted())
  for (const { name, prints, ends } of shellSnippets) {
    const folder = await createTempFolder(test)
    const line = copied.get(name) ?? ''
    // wscat exits without a terminal, so it gets one. It is a package of the tests, so nothing is downloaded.
    const program = line.startsWith('npx')
      ? startProgram(test, ['script', '-qec', line, '/dev/null'], join(project, 'test'))
      : startProgram(test, ['bash', '-c', line], folder)
    if (prints) await program.waitForOutput('stdout', prints)
    else {
      expect([await program.waitForExit(), program.stderr], name).toEqual([0, ''])
      ends?.(program.stdout)
    }
    if (name === 'events') {
      const saved = (await readFile(join(folder, 'AAPLc.ndjson'), 'utf8')).trimEnd().split('\n')
      expect(saved.map((line) => Update.parse(assertValidMessage(JSON.parse(line)))).length).toBeGreaterThan(5)
    }
    await program.kill()
  }
})

it('the snippet for a console and the recipe for a page print in the console, and go on with the stream', async (test) => {
  const { page, copied } = await openDocs(test)
  const printed: string[] = []
  page.on('console', (message) => printed.push(message.text()))
  const next = (type: string) =>
    page.waitForEvent('console', async (message) => (await message.args()[0]?.jsonValue())?.type === type)
  await Promise.all([next('transfer'), page.evaluate(`(async () => { ${copied.get('recipe-page')} })()`)])
  expect(printed[0]).toMatch(/^AAPLc [\d.]+ fresh [\d.]+$/)
  expect(printed[1]).toMatch(/^TSLAc [\d.]+ fresh [\d.]+$/)
  await page.reload()
  await Promise.all([next('hello'), page.evaluate(copied.get('listen-browser') ?? '')])
})

it('the recipe for a retract provokes one', async (test) => {
  const { relay, copied } = await openDocs(test)
  const port = await freePort()
  const [start = '', curl = ''] = (copied.get('recipe-retract') ?? '').split('\n')
  await startProgram(test, ['bash', '-c', `${start} --port ${port}`], project).listeningUrl()
  const lines = startProgram(test, ['bash', '-c', curl.replace(relay.url, `http://127.0.0.1:${port}`)], project)
  await lines.waitForOutput('stdout', /retract +transfer .* retracted: its block was sealed without it/)
})

/** Builds the program `listen`. Go needs the setting where there is no C compiler. */
async function buildGo(test: TestLifecycle, folder: string, file: string): Promise<void> {
  const built = startProgram(test, ['go', 'build', '-o', 'listen', file], folder, { CGO_ENABLED: '0' })
  expect([await built.waitForExit(), built.stderr]).toEqual([0, ''])
}

/** The conformance kit judges the programs in Python and Go, and the SDK that the others use. */
const programs = [
  ['typescript', 'listen.mjs', 'AAPLc.position', ['node', 'listen.mjs']],
  ['python', 'listen.py', 'stocktape.position', ['python3', 'listen.py']],
  ['go', 'listen.go', 'stocktape.position', ['./listen']],
] as const

it('each program continues at the position in its file, comes back after a restart, and ends at a lasting refusal', async (test) => {
  const { relay, copied } = await openDocs(test)
  const started = await Promise.all(
    programs.map(async ([id, file, position, command]) => {
      const { folder } = await ExampleSite.open(test)
      await writeFile(join(folder, file), copied.get(`listen-${id}`) ?? '')
      await writeFile(join(folder, position), 'othertape.1')
      if (id === 'go') await buildGo(test, folder, file)
      return { id, position: join(folder, position), program: startProgram(test, command, folder) }
    }),
  )
  for (const { id, program } of started) {
    if (id === 'typescript') await program.waitForOutput('stderr', /gap: epoch after othertape\.1 through \w+\.\d+/)
    else await program.waitForOutput('stdout', /"type":"gap".*"reason":"epoch","after":"othertape\.1"/)
    await program.waitForOutput('stdout', /\S+ AAPLc [\d.]+ [\d.]+\n|"type":"transfer".*\n/)
  }
  expect(await relay.restart('SIGTERM')).toBe(0)
  const before = started.map(({ program }) => program.stdout.length)
  for (const [at, { program }] of started.entries())
    await program.waitForOutput('stdout', new RegExp(`^[^]{${before[at]}}.*\\n.*\\n`))
  await relay.restart('SIGTERM', { API_KEYS: apiKey })
  for (const { id, program, position } of started) {
    expect(await program.waitForExit(), id).toBe(1)
    expect(program.stderr, id).toMatch(/"code":401|code: 401/)
    expect(await readFile(position, 'utf8'), id).toMatch(/^(?!othertape)\w+\.\d+/)
  }
})

it.for([
  ['python', ['python3', join(project, 'src/docs/programs/follow.py')]],
  ['go', ['./listen']],
] as const)(
  'with stage=sealed the program in %s prints what the history has, from the middle of a seal',
  async ([id, command], test) => {
    const { relay } = await openStack(test)
    const idOf = (line: string): string => JSON.parse(line).id
    let lines: readonly string[] = []
    let first = -1
    await relay.waitForResponse('/v1/events?symbols=AAPLc&stage=sealed&format=ndjson', (text) => {
      lines = text.trimEnd().split('\n')
      first = lines.findIndex((line) => /\.\d+\.1"/.test(line))
      return lines.slice(first + 2).filter((line) => /\.\d+\.2"/.test(line)).length > 2
    })
    const folder = await createTempFolder(test)
    if (id === 'go') await buildGo(test, folder, join(project, 'src/docs/programs/follow.go'))
    await writeFile(join(folder, 'stocktape.position'), idOf(lines[first] ?? ''))
    const program = startProgram(test, command, folder, { STOCKTAPE_URL: relay.url, STOCKTAPE_STAGE: 'sealed' })
    await program.waitForOutput('stdout', new RegExp(`"id":"${idOf(lines.at(-1) ?? '')}".*\n`))
    const wanted = lines.slice(first + 1)
    expect(program.stdout.split('\n').slice(0, wanted.length)).toEqual(wanted)
  },
)

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

it('the pages and the program with viem show live data, and go on after a restart of the relay', async (test) => {
  const { devnet, relay, context, copied } = await openDocs(test)
  const site = await ExampleSite.open(test)
  const codeOf = (id: string) => copied.get(`recipe-${id}`) ?? ''
  await writeFile(join(site.folder, 'Tape.svelte'), codeOf('svelte'))
  await writeFile(join(site.folder, 'viem.mjs'), codeOf('viem'))
  const urls: [string, string][] = []
  for (const id of ['page-library', 'vue', 'chart', 'event-source']) urls.push([id, await site.addPage(id, codeOf(id))])
  urls.push(['react', await site.addBundle('tape.jsx', codeOf('react'))], ['svelte', await site.addBundle('tape.js', mountSvelte)])
  const viem = startProgram(test, ['node', 'viem.mjs'], site.folder)
  const pages = await Promise.all(urls.map(async ([id, url]) => ({ id, ...(await openPage(context, url)) })))
  devnet.swap('AAPLc', { price: '301' })
  await Promise.all(pages.map((page) => showsNews(page, '')))
  for (const { id, page } of pages)
    expect(await page.textContent('body'), id).toMatch(id === 'chart' ? /AAPLc (nav|quote) [\d.]+/ : /TSLAc [\d.]+ fresh/)
  const chart = pages.find(({ id }) => id === 'chart')?.page
  expect(await chart?.locator('canvas').count()).toBeGreaterThan(0)
  expect(await chart?.locator('a[href^="https://www.tradingview.com/"]').count()).toBeGreaterThan(0)
  await viem.waitForOutput('stdout', /log: \d+ 0x\w{40} 0x\w{64}\n/)
  expect(await relay.restart('SIGTERM')).toBe(0)
  const [restarted, printed] = [new Date().toISOString(), viem.stdout.length]
  devnet.swap('AAPLc', { price: '302' })
  await Promise.all(pages.map((page) => showsNews(page, restarted)))
  for (const { id, errors } of pages) expect(errors, id).toEqual([])
  await viem.waitForOutput('stdout', new RegExp(`^[^]{${printed}}.*\\n.*log: \\d+`))
})

/** A page that collects the ids of all transfers, in the strictest mode of React. */
const collector = ({ url }: DeployedRelay) => `
  import { StrictMode, useEffect } from 'react'
  import { createRoot } from 'react-dom/client'
  import { StocktapeProvider, useFeed, useStock, useTape } from 'stocktape/react'
  globalThis.ids = []
  function Stock() {
    return <p>{useStock('TSLAc').data?.nav.price} {useFeed().phase}</p>
  }
  function Tape() {
    const feed = useFeed()
    const { data: { updates } } = useTape({ symbols: '*', types: ['transfer'], limit: 1000 })
    useEffect(() => {
      globalThis.ids.push(...updates.map(({ id }) => id).filter((id) => !globalThis.ids.includes(id)).reverse())
    }, [updates])
    return <p>{feed.gaps} gaps</p>
  }
  const page = <StocktapeProvider url="${url}"><Stock /><Tape /><Stock /></StocktapeProvider>
  createRoot(document.getElementById('root')).render(<StrictMode>{page}</StrictMode>)`

it('the tabs of a browser share one connection, and lose nothing when the one that holds it is closed', async (test) => {
  const { relay, context } = await openStack(test)
  const url = await (await ExampleSite.open(test)).addBundle('collector.jsx', collector(relay))
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
    expect(ids).toEqual(await transferIdsOf(relay, ids))
    expect(await tab.page.textContent('body')).toContain('0 gaps')
    expect(tab.errors).toEqual([])
  }
})

/** A page that counts how often each component renders. A function of the book is given to React as it is. */
const counter = ({ url }: DeployedRelay) => `
  import { useSyncExternalStore } from 'react'
  import { createRoot } from 'react-dom/client'
  import { book, connect } from 'stocktape/client'
  import { StocktapeProvider, useFeed, useStock, useTape } from 'stocktape/react'
  globalThis.renders = {}
  const stocks = book(connect('${url}').updates('*'))
  const components = {
    apple: () => useTape({ symbols: 'AAPLc', since: '1h', limit: 20 }).data.movements.length + ' movements',
    appleStock: () => useStock('AAPLc').status,
    tesla: () => (useTape('TSLAc').data.movements[0]?.raw ?? 'none'),
    feed: () => (useFeed().position ?? 'none'),
    unknown: () => useStock('NOPE').status,
    disabled: () => useTape({ symbols: 'AAPLc', enabled: false }).status,
    date: () => useTape({ symbols: 'AAPLc', since: new Date(Date.now() - 3_600_000) }).status,
    elsewhere: () => Object.values(useStock('AAPLc').error ?? {}).join(),
    book: () => useSyncExternalStore(stocks.subscribe, stocks.all).map(({ symbol }) => symbol).join(),
  }
  const Counted = ({ name }) => {
    globalThis.renders[name] = (globalThis.renders[name] ?? 0) + 1
    return <p id={name}>{components[name]()}</p>
  }
  createRoot(document.getElementById('root')).render(
    Object.keys(components).map((name) => (
      <StocktapeProvider key={name} url={name === 'elsewhere' ? 'ftp://elsewhere' : '${url}'}>
        <Counted name={name} />
      </StocktapeProvider>
    )),
  )`

it('a page paints its past first, and a message of one stock renders nothing of another', async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await DeployedRelay.open(test, devnet)
  await relay.waitForPendingLogs()
  transfer({ devnet }, 'AAPLc', 3)
  await relay.waitForResponse('/v1/events?symbols=AAPLc&types=transfer', (text) => text.split('"type":"transfer"').length === 4)
  const context = await browser.newContext()
  test.onTestFinished(() => context.close())
  const url = await (await ExampleSite.open(test)).addBundle('counter.jsx', counter(relay))
  const { page, errors } = await openPage(context, url)
  const shows = (id: string, text: string | RegExp) => page.locator(`#${id}`).filter({ hasText: text }).waitFor()
  await Promise.all([
    shows('apple', '3 movements'),
    shows('appleStock', 'ready'),
    shows('unknown', 'unknown'),
    shows('disabled', 'disabled'),
    shows('date', 'ready'),
    shows('elsewhere', 'bad_url,bad_url,ftp://elsewhere/ must begin with http:// or https://'),
    shows('book', /AAPLc.*TSLAc|TSLAc.*AAPLc/),
  ])
  const rendersOf = (): Promise<Record<string, number>> => page.evaluate('({ ...globalThis.renders })')
  const before = await rendersOf()
  for (let raw = 1; raw <= 100; raw += 1) {
    transfer({ devnet }, 'TSLAc', 1, BigInt(raw))
    await shows('tesla', new RegExp(`^${raw}$`))
  }
  const after = await rendersOf()
  const grown = Object.keys(after).filter((name) => (after[name] ?? 0) > (before[name] ?? 0))
  expect(grown.sort()).toEqual(['book', 'feed', 'tesla'])
  expect(after.tesla).toBeGreaterThanOrEqual((before.tesla ?? 0) + 100)
  expect(errors).toEqual([])
})

it('the watch list paints its movements first, alerts at a premium, and draws a line for each pool', async (test) => {
  const { devnet, relay, copied, context } = await openDocs(test)
  const site = await ExampleSite.open(test)
  const url = await site.addBundle('watch.jsx', copied.get('recipe-watch') ?? '')
  const { page, errors } = await openPage(context, url)
  const row = (symbol: string) => page.locator('tr', { hasText: symbol })
  for (const symbol of ['AAPLc', 'TSLAc', 'NVDAc', 'MSFTc', 'GOOGLc'])
    await row(symbol)
      .getByText(/^NAV [\d.]+ /)
      .waitFor()
  // The list appears with what was before it, and not line by line.
  await page.locator('li').first().waitFor()
  expect(await page.locator('li').count()).toBeGreaterThan(1)
  devnet.swap('AAPLc', { price: '1000' })
  await row('AAPLc')
    .getByText(/^ALERT \d+\.\d\d bps premium$/)
    .waitFor()
  devnet.swap('TSLAc', { price: '301' })
  await page.getByRole('button', { name: 'TSLAc' }).click()
  await page.locator('h2', { hasText: 'TSLAc' }).waitFor()
  expect(await page.locator('canvas').count()).toBeGreaterThan(0)
  expect(await relay.restart('SIGTERM')).toBe(0)
  await page.getByText(/^live, source pendingLogs, 0 gaps$/).waitFor()
  expect(errors).toEqual([])
})

/** The transfers on the tape between the first and the last of these. */
async function transferIdsOf({ url }: DeployedRelay, ids: readonly string[]): Promise<string[]> {
  const query = `symbols=*&types=transfer&format=ndjson&limit=1000&through=${ids.at(-1)}&order=desc`
  const lines = (await (await fetch(`${url}/v1/events?${query}`)).text()).trimEnd().split('\n')
  const updates = lines.map((line) => Update.parse(JSON.parse(line))).filter(({ type }) => type === 'transfer')
  const all = updates.map(({ id }) => id).reverse()
  return all.slice(all.indexOf(ids[0] ?? ''))
}

it.each([
  ['typescript', 20],
  ['python', 90],
  ['go', 165],
  ['ledger', 165],
  ['page-library', 15],
  ['react', 30],
  ['watch', 110],
  ['event-source', 30],
  ['chart', 30],
  ['candles', 50],
])('the code for %s has at most %i lines', (id, bound) => {
  const { source = '' } = [...snippets, ...recipes].find((documented) => documented.id === id) ?? {}
  const lines = source.trimEnd().split('\n').length
  expect(lines).toBeGreaterThan(1)
  expect(lines).toBeLessThanOrEqual(bound)
})

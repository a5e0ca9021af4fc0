import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type Devnet, startDevnet } from '../../../src/devnet/devnet.ts'
import { messageTypes } from '../../../src/docs/json-schemas.ts'
import { Update } from '../../../src/protocol/updates.ts'
import { ChildProgram, createTempFolder, freePort } from '../../support/child-program.ts'
import { needPrograms } from '../../support/debian-programs.ts'
import { assertValidMessage } from '../../support/message-validator.ts'
import { openChromium } from './chromium-readers.ts'
import { DeployedRelay, TEST_TIMEOUT_MS, type TestLifecycle } from './deployed-relay.ts'
import { installLibrary } from './example-site.ts'

needPrograms('curl', 'jq', 'python', 'go')

vi.setConfig({ testTimeout: 2 * TEST_TIMEOUT_MS })

/** The docs page in a browser, and every snippet on it, run as pasted. */

const project = fileURLToPath(new URL('../../..', import.meta.url))
/** Programs from npm. */
const bin = join(project, 'node_modules/.bin')

let browser: Browser

beforeAll(async () => {
  browser = await openChromium()
})

afterAll(() => browser?.close())

/** A busy devnet with a relay. */
async function openDeployedRelay(test: TestLifecycle): Promise<{ devnet: Devnet; relay: DeployedRelay }> {
  const devnet = await startDevnet({ blockMs: 400, flashblockMs: 40, transactionsPerFlashblock: 1 })
  test.onTestFinished(() => devnet.stop())
  const relay = await DeployedRelay.open(test, devnet)
  await relay.waitForResponse('/v1/events?symbols=AAPLc&types=transfer', (text) => text.includes('"transfer"'))
  return { devnet, relay }
}

/** A page with all its requests and errors. */
async function openPage(test: TestLifecycle, url: string) {
  const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] })
  test.onTestFinished(() => context.close())
  const page = await context.newPage()
  const requestedUrls: string[] = []
  const pageErrors: string[] = []
  page.on('request', (request) => requestedUrls.push(request.url()))
  page.on('console', (message) => message.type() === 'error' && pageErrors.push(message.text()))
  page.on('pageerror', (failure) => pageErrors.push(failure.message))
  await page.goto(url)
  return { page, requestedUrls, pageErrors }
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
  const { relay } = await openDeployedRelay(test)
  const { page, requestedUrls, pageErrors } = await openPage(test, `${relay.url}/docs`)
  expect(page.url()).toBe(`${relay.url}/docs`)
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
  expect(pageErrors).toEqual([])
  const [line] = await page.locator('pre').allTextContents()
  await page.locator('.line button').first().click()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(line)
  // The policy forbids requests and scripts.
  await expect(page.evaluate("fetch('http://127.0.0.2:1/')")).rejects.toThrow()
  await page.evaluate("document.body.append(Object.assign(document.createElement('script'), { text: 'globalThis.ran = 1' }))")
  expect(await page.evaluate('globalThis.ran')).toBeUndefined()
  expect(pageErrors.filter((text) => text.includes('Content Security Policy'))).toHaveLength(pageErrors.length)
  expect(pageErrors.length).toBeGreaterThan(1)
})

it('the snippet for a console works in the console of the page', async (test) => {
  const { relay } = await openDeployedRelay(test)
  const { page } = await openPage(test, `${relay.url}/docs`)
  const message = page.waitForEvent('console')
  await page.evaluate((await snippetsOn(page)).get('listen-browser') ?? '')
  expect(await (await message).args()[0]?.jsonValue()).toMatchObject({ type: 'hello' })
})

/** What a shell snippet prints: while it runs, or until it ends. */
const shellSnippets: readonly { readonly name: string; readonly prints?: RegExp; readonly ends?: (text: string) => void }[] = [
  { name: 'listen-curl', prints: /AAPLc +transfer +[\d.]+ = / },
  { name: 'listen-wscat', prints: /\{"type":"transfer","id":/ },
  { name: 'tail', prints: /AAPLc +transfer +[\d.]+ = / },
  { name: 'recipe-jq', prints: /^\S+\t\w+\t[\d.]+\t[\d.]+$/m },
  { name: 'streamOne', prints: /^\{"type":"transfer","id":/m },
  { name: 'stream', prints: /^data: \{"type":"transfer","id":/m },
  { name: 'socket', prints: /\{"type":"transfer","id":/ },
  { name: 'events', ends: (text) => expect(JSON.parse(text).events).toHaveLength(10) },
  { name: 'fact', ends: (text) => expect(JSON.parse(text).events.length).toBeGreaterThan(0) },
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
  { name: 'schema', ends: (text) => expect(JSON.parse(text).title).toBe('transfer') },
  { name: 'openapi', ends: (text) => expect(JSON.parse(text).openapi).toBe('3.1.0') },
  { name: 'asyncapi', ends: (text) => expect(JSON.parse(text).asyncapi).toBe('3.0.0') },
  { name: 'docs', ends: (text) => expect(text).toContain('<title>stocktape') },
  { name: 'llms', ends: (text) => expect(text).toMatch(/^# stocktape\n/) },
  { name: 'types', ends: (text) => expect(text).toContain('export type Message = Update | Notice') },
  { name: 'contract', ends: (text) => expect(text).toMatch(/^# The client contract/) },
]
/** Snippets that run in a browser or as programs. */
const otherSnippets = [
  ...['listen-browser', 'listen-typescript', 'listen-python', 'listen-go', 'recipe-page', 'recipe-retract'],
  ...['page-library', 'react', 'vue', 'svelte', 'chart', 'event-source', 'viem'].map((id) => `recipe-${id}`),
]

it('each shell snippet works as pasted', async (test) => {
  const { relay } = await openDeployedRelay(test)
  await relay.waitForResponse('/v1/events?symbols=AAPLc&limit=10', (text) => JSON.parse(text).events.length === 10)
  const { page } = await openPage(test, `${relay.url}/docs`)
  const lines = await snippetsOn(page)
  const names = [...lines.keys()].filter((name) => !name.startsWith('example-'))
  expect(names.toSorted()).toEqual([...shellSnippets.map(({ name }) => name), ...otherSnippets].toSorted())
  for (const { name, prints, ends } of shellSnippets) {
    const folder = await createTempFolder(test)
    const line = lines.get(name) ?? ''
    // wscat exits without a terminal, so it gets one. It is the project's own, so nothing is downloaded.
    const program = line.startsWith('npx')
      ? startProgram(test, ['script', '-qec', line, '/dev/null'], project)
      : startProgram(test, ['bash', '-c', line], folder)
    if (prints) await program.waitForOutput('stdout', prints)
    else {
      expect([await program.waitForExit(), program.stderr], name).toEqual([0, ''])
      ends?.(program.stdout)
    }
    if (name === 'events') {
      const saved = startProgram(test, ['cat', 'AAPLc.ndjson'], folder)
      await saved.waitForExit()
      const updates = saved.stdout
        .trimEnd()
        .split('\n')
        .map((line) => Update.parse(assertValidMessage(JSON.parse(line))))
      expect(updates.length).toBeGreaterThan(5)
    }
    await program.kill()
  }
})

it('the recipe for a page draws it and goes on with the stream', async (test) => {
  const { relay } = await openDeployedRelay(test)
  const { page } = await openPage(test, `${relay.url}/docs`)
  const printed: string[] = []
  page.on('console', (message) => printed.push(message.text()))
  const transfer = page.waitForEvent('console', async (message) => (await message.args()[0]?.jsonValue())?.type === 'transfer')
  const source = (await snippetsOn(page)).get('recipe-page')
  await Promise.all([transfer, page.evaluate(`(async () => { ${source} })()`)])
  expect(printed[0]).toMatch(/^AAPLc [\d.]+ fresh [\d.]+$/)
  expect(printed[1]).toMatch(/^TSLAc [\d.]+ fresh [\d.]+$/)
})

it('the recipe for a retract provokes one', async (test) => {
  const { relay } = await openDeployedRelay(test)
  const { page } = await openPage(test, `${relay.url}/docs`)
  const port = await freePort()
  const source = (await snippetsOn(page)).get('recipe-retract') ?? ''
  const [start = '', curl = ''] = source.split('\n')
  await startProgram(test, ['bash', '-c', `${start} --port ${port}`], project).listeningUrl()
  const lines = startProgram(test, ['bash', '-c', curl.replace(relay.url, `http://127.0.0.1:${port}`)], project)
  await lines.waitForOutput('stdout', /retract +transfer .* retracted: its block was sealed without it/)
})

const transferLine = /\S+ AAPLc [\d.]+ [\d.]+\n|"type":"transfer".*\n/
const files = { typescript: 'listen.ts', python: 'listen.py', go: 'listen.go' } as const
const commands = { TypeScript: ['node', files.typescript], Python: ['python3', files.python], Go: ['./listen'] } as const

/** The programs of the page, each in a folder of its own, and a way to start them. */
async function openPrograms(test: TestLifecycle, page: Page) {
  const lines = await snippetsOn(page)
  const folders = await Promise.all(
    Object.entries(files).map(async ([id, file]) => {
      const folder = await createTempFolder(test)
      await writeFile(join(folder, file), lines.get(`listen-${id}`) ?? '')
      return folder
    }),
  )
  await installLibrary(folders[0] ?? '')
  // Go needs this setting where there is no C compiler.
  const built = startProgram(test, ['go', 'build', '-o', 'listen', files.go], folders[2] ?? '', { CGO_ENABLED: '0' })
  expect([await built.waitForExit(), built.stderr]).toEqual([0, ''])
  const start = () =>
    Object.entries(commands).map(([name, command], index) => ({ name, program: startProgram(test, command, folders[index] ?? '') }))
  const writePositions = (position: string) =>
    Promise.all(
      folders.flatMap((folder) => ['AAPLc.position', 'stocktape.position'].map((file) => writeFile(join(folder, file), position))),
    )
  return { start, writePositions }
}

it('each program continues after a restart of the relay and of its own, and ends at a lasting refusal', async (test) => {
  const { relay } = await openDeployedRelay(test)
  const { page } = await openPage(test, `${relay.url}/docs`)
  const { start, writePositions } = await openPrograms(test, page)
  const first = start()
  for (const { program } of first) await program.waitForOutput('stdout', transferLine)
  expect(await relay.restart('SIGTERM')).toBe(0)
  const before = first.map(({ program }) => program.stdout.length)
  for (const [at, { program }] of first.entries()) {
    await program.waitForOutput('stdout', new RegExp(`^[^]{${before[at]}}.*\\n.*\\n`))
    program.signal('SIGTERM')
    await program.waitForExit()
  }
  const second = start()
  for (const { program } of second) await program.waitForOutput('stdout', transferLine)
  const exported = await (await fetch(`${relay.url}/v1/events?symbols=AAPLc&types=transfer&format=ndjson`)).text()
  const published = exported
    .trimEnd()
    .split('\n')
    .map((line) => Update.parse(JSON.parse(line)))
    .flatMap((update) => (update.type === 'transfer' ? [`${update.time} AAPLc ${update.amount} ${update.reference_value}`] : []))
  // Two of the programs print the messages themselves.
  const linesOf = (text: string) =>
    text
      .slice(0, text.lastIndexOf('\n'))
      .split('\n')
      .filter((line) => !line.startsWith('{') || line.startsWith('{"type":"transfer"'))
      .map((line) => {
        if (!line.startsWith('{')) return line
        const { time, amount, reference_value } = JSON.parse(line)
        return `${time} AAPLc ${amount} ${reference_value}`
      })
  for (const [at, { name, program }] of first.entries()) {
    const received = linesOf(program.stdout)
    const from = published.indexOf(received[0] ?? '')
    expect(from, name).toBeGreaterThanOrEqual(0)
    expect(received, name).toEqual(published.slice(from, from + received.length))
    // A program that ends between a message and its position repeats that message.
    const next = published.indexOf(linesOf(second[at]?.program.stdout ?? '')[0] ?? '') - from - received.length
    expect(next === 0 || (next < 0 && next > -10), `${name} continues ${next} after its end`).toBe(true)
  }
  await relay.restart('SIGTERM', { API_KEYS: 'one' })
  for (const { name, program } of second) {
    expect(await program.waitForExit(), name).toBe(1)
    expect(program.stderr, name).toMatch(/"code":401|code: 401/)
  }
  await relay.restart('SIGTERM', { API_KEYS: '' })
  await writePositions('othertape.1')
  for (const { name, program } of start()) {
    if (name === 'TypeScript') await program.waitForOutput('stderr', /gap: epoch after othertape\.1 through \w+\.\d+/)
    else await program.waitForOutput('stdout', /"type":"gap".*"reason":"epoch","after":"othertape\.1"/)
  }
  process.stdout.write('TypeScript, Python, Go received every transfer once over a restart\n')
})

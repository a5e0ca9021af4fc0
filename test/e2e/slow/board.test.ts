import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { connect } from '../../../src/sdk/client/index.ts'
import { apiKey } from '../../support/api-keys.ts'
import {
  buildBoard,
  openBoard,
  openBoardStack,
  type ShownLine,
  shownLines,
  waitForLive,
  waitForPendingLogs,
} from '../../support/board-page.ts'
import { ChildProgram, createTempFolder } from '../../support/child-program.ts'
import { needPrograms } from '../../support/debian-programs.ts'
import { repositoryRoot } from '../../support/packed-package.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import { listenNdjson } from '../../support/test-listener.ts'
import { openDevnet, openRelayFor, openTestStack, type TestLifecycle, type TestStack, transfer } from '../../support/test-stack.ts'
import { openChromium } from './chromium-readers.ts'
import { DeployedRelay, TEST_TIMEOUT_MS } from './deployed-relay.ts'
import { installLibrary } from './example-site.ts'

needPrograms('curl', 'python')

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** The board in Chromium, on a relay and a chain that do what each test asks for. */

let browser: Browser

beforeAll(async () => {
  buildBoard()
  browser = await openChromium()
})
afterAll(() => browser?.close())

const styleOf = (page: Page, selector: string, property: string): Promise<string> =>
  page.evaluate(`getComputedStyle(document.querySelector(${JSON.stringify(selector)})).${property}`)

const lineOf = (key: string): string => `[data-line="${key}"]`

const openStackWithBoard = (test: TestLifecycle, path = '/', settings: Record<string, string> = {}) =>
  openBoardStack(test, browser, { path, settings })

/** The keys of all transfers on the tape, oldest first. */
async function transferKeys(relayUrl: string): Promise<readonly string[]> {
  const text = await (await fetch(`${relayUrl}/v1/events?symbols=*&types=transfer&limit=1000`)).text()
  const { events }: { events: readonly { type: string; key: string }[] } = JSON.parse(text)
  return events.flatMap(({ type, key }) => (type === 'transfer' ? [key] : []))
}

/** Makes one transfer and returns its key when the page shows it. */
async function showTransfer(page: Page, stack: TestStack, symbol = 'AAPLc', raw = 100_000_000n): Promise<string> {
  const before = new Set((await shownLines(page)).map(({ id }) => id))
  const isNew = ({ id, stage }: ShownLine) => stage !== '' && !before.has(id)
  transfer(stack, symbol, 1, raw)
  await expect.poll(async () => (await shownLines(page)).some(isNew)).toBe(true)
  return (await shownLines(page)).find(isNew)?.id ?? expect.fail('no line')
}

describe('the tape', () => {
  it('turns a line sealed, strikes it through or marks it as late, each where it stands, and says why', async (test) => {
    const stack = await openStackWithBoard(test)
    const { devnet, page } = stack
    const newestStages = async (count: number) => (await shownLines(page)).slice(0, count).map(({ id, stage }) => [id, stage])
    const key = await showTransfer(page, stack)
    const newer = await showTransfer(page, stack, 'TSLAc')
    expect(await newestStages(2)).toEqual([
      [newer, 'preconfirmed'],
      [key, 'preconfirmed'],
    ])
    devnet.seal()
    await page.waitForSelector(`${lineOf(newer)}[data-stage="sealed"]`)
    expect(await newestStages(2)).toEqual([
      [newer, 'sealed'],
      [key, 'sealed'],
    ])
    devnet.transfer({ symbol: 'TSLAc', raw: 8n })
    const dropped = devnet.transfer({ symbol: 'AAPLc', raw: 7n })
    devnet.makeFlashblock()
    await page.locator('[data-stage="preconfirmed"]').nth(1).waitFor()
    devnet.faults.drop(dropped)
    devnet.seal()
    const struck = page.locator('[data-stage="retracted"]')
    await struck.waitFor()
    expect(await struck.getAttribute('data-line')).toContain(dropped)
    expect(await struck.textContent()).toContain('not in the sealed block')
    expect(await styleOf(page, '[data-stage="retracted"] .line-figure', 'textDecorationLine')).toBe('line-through')
    expect((await newestStages(2)).map(([, stage]) => stage)).toEqual(['retracted', 'sealed'])
    devnet.faults.lostFlashes = 1
    transfer(stack, 'TSLAc')
    devnet.seal()
    const late = page.locator('[data-late]')
    await late.waitFor()
    expect(await late.locator('.unseen').textContent()).toContain('first published when its block was already sealed')
  })

  it('collects while it is paused, and then has every line once', async (test) => {
    const stack = await openStackWithBoard(test)
    const { page, relay } = stack
    const first = await showTransfer(page, stack)
    await page.keyboard.press('p')
    const shown = (await shownLines(page)).map(({ id }) => id)
    for (let nth = 0; nth < 30; nth += 1) transfer(stack, 'TSLAc', 1, BigInt(200 + nth))
    await page.getByRole('button', { name: '30 new' }).waitFor()
    expect((await shownLines(page)).map(({ id }) => id)).toEqual(shown)
    await page.getByRole('button', { name: '30 new' }).click()
    const keys = await transferKeys(relay.url)
    await page.waitForSelector(lineOf(keys.at(-1) ?? ''))
    const seen = new Set<string>()
    for (let top = 0; !seen.has(first); top += 200) {
      await page.evaluate(`new Promise((resolve) => {
        document.querySelector('[data-tape]').scrollTop = ${top}
        requestAnimationFrame(() => requestAnimationFrame(resolve))
      })`)
      for (const { id } of await shownLines(page)) seen.add(id)
    }
    expect(keys.filter((key) => !seen.has(key))).toEqual([])
    expect(keys).toHaveLength(31)
  })
})

it('a restart of the relay leaves no hole, and the page says that it reconnects', async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await DeployedRelay.open(test, devnet)
  const stack = { devnet }
  const { page, errors } = await openBoard(test, browser, relay.url)
  await waitForLive(page)
  const listener = await listenNdjson(`${relay.url}/v1/stream?symbols=*&since=start&snapshot=false`)
  await listener.waitFor('status', ({ source }) => source === 'pendingLogs')
  transfer(stack, 'AAPLc', 2)
  await page.locator('[data-stage="preconfirmed"]').nth(1).waitFor()
  // A request that is on its way at the kill is an error for the browser: the page reads its history after it is live.
  await page.waitForLoadState('networkidle')
  relay.signal('SIGKILL')
  await relay.waitForExit()
  await page.getByText(/^Connection lost: all you see is from/).waitFor()
  transfer({ devnet }, 'TSLAc', 2)
  devnet.seal()
  transfer({ devnet }, 'NVDAc', 2)
  await relay.start()
  await waitForLive(page)
  // What was sealed meanwhile is read after what is pending.
  await expect.poll(() => transferKeys(relay.url), { timeout: TEST_TIMEOUT_MS }).toHaveLength(6)
  await page.locator('[data-stage]').nth(5).waitFor()
  const lines = (await shownLines(page)).filter(({ stage }) => stage !== '')
  expect(lines.map(({ id }) => id).toSorted()).toEqual([...(await transferKeys(relay.url))].toSorted())
  expect(lines.filter(({ text }) => text.includes('AAPLc')).map(({ stage }) => stage)).toEqual(['sealed', 'sealed'])
  await page.goto(`${relay.url}/#/source`)
  await page.getByText(/resumed after/).waitFor()
  expect(errors).toEqual([])
})

it('a gap is a line that says what is missing, and the page goes on with new snapshots', async (test) => {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await DeployedRelay.open(test, devnet)
  const { page, requestedUrls } = await openBoard(test, browser, 'about:blank')
  // The page has read no history yet when the tape is lost.
  await page.route('**/v1/events?**', (route) => route.abort())
  await page.goto(`${relay.url}/#/?types=transfer`)
  await waitForLive(page)
  const gapLine = page.locator('.line[data-tint="attention"]')
  expect(await gapLine.count()).toBe(0)
  await relay.restart('SIGKILL', { DATA_DIR: await createTempFolder(test) })
  await gapLine.waitFor()
  const refused = page.waitForResponse((response) => response.status() === 410)
  await page.unroute('**/v1/events?**')
  await waitForPendingLogs(page)
  // With each line the page asks again for older ones.
  transfer({ devnet })
  await refused
  const historyRequests = () => requestedUrls.filter((url) => url.includes('/v1/events?')).length
  const before = historyRequests()
  for (let nth = 2; nth <= 6; nth += 1) {
    transfer({ devnet })
    await page
      .locator('[data-stage="preconfirmed"]')
      .nth(nth - 1)
      .waitFor()
  }
  // What was before the gap is on no tape any more, and is not asked for again.
  expect(historyRequests() - before).toBeLessThan(3)
  expect(await page.locator('[data-symbol="AAPLc"] [data-field="nav"]').textContent()).toMatch(/\d+\.\d\d/)
  // It stays in the strip until a reader has seen it.
  await page.locator('.trouble', { hasText: 'Messages may be missing at' }).waitFor()
  await page.getByRole('button', { name: 'Dismiss' }).click()
  await page.locator('.trouble', { hasText: 'Messages may be missing at' }).waitFor({ state: 'detached' })
  await gapLine.locator('button').click()
  await page
    .getByRole('dialog', { name: 'Messages may be missing' })
    .getByText('the relay lost its tape and began a new one')
    .waitFor()
  await page.keyboard.press('Escape')
  await page.waitForURL(/#\/\?types=transfer$/)
  await page.goto(`${relay.url}/#/source?types=transfer`)
  await page.locator('dd', { hasText: 'marked in the tape' }).waitFor()
})

it('reads older lines for a button, where the first answer failed', async (test) => {
  const stack = await openTestStack({}, test)
  transfer(stack)
  await expect.poll(() => transferKeys(stack.relay.url)).toHaveLength(1)
  const { page } = await openBoard(test, browser, 'about:blank')
  await page.route('**/v1/events?**', (route) => route.abort())
  await page.goto(stack.relay.url)
  await waitForLive(page)
  const older = page.getByRole('button', { name: 'Older lines' })
  await older.waitFor()
  expect((await shownLines(page)).filter(({ stage }) => stage !== '')).toEqual([])
  await page.unroute('**/v1/events?**')
  await older.click()
  await page.locator('[data-stage="preconfirmed"]').waitFor()
  await older.waitFor({ state: 'detached' })
})

it('with an API key shows everything, and neither its requests nor those of the library have the key in a URL', async (test) => {
  const stack = await openTestStack({ API_KEYS: apiKey }, test)
  const proxy = await TcpProxy.open(Number(new URL(stack.relay.url).port))
  test.onTestFinished(() => proxy.close())
  const url = `http://127.0.0.1:${proxy.port}`
  const { page, errors } = await openBoard(test, browser, `${url}/#key=${apiKey}`)
  await waitForLive(page)
  const key = await showTransfer(page, stack)
  // A page that is loaded again still has the key. The address has none.
  for (const path of ['#/AAPLc', `#/fact/${key}`, '#/source', '#/play']) {
    await page.goto(`${url}/${path}`)
    await page.reload()
    await waitForLive(page)
  }
  expect(page.url()).not.toContain(apiKey)
  for (const transport of ['websocket', 'sse'] as const) {
    const relay = connect(url, { key: async () => apiKey, transport })
    expect(await relay.status()).toMatchObject({ source: 'pendingLogs' })
    expect(await Array.fromAsync(relay.history('AAPLc', { types: ['transfer'] }))).toMatchObject([{ key }])
    for await (const { type } of relay.updates('AAPLc', { since: 'start', snapshot: 'always' })) if (type === 'transfer') break
  }
  const paths = new Set(proxy.requestedUrls.map((requested) => requested.split('?')[0]))
  for (const path of ['/v1/ws', '/v1/stream', '/v1/events', '/v1/status']) expect(paths).toContain(path)
  expect(proxy.requestedUrls.filter((requested) => decodeURIComponent(requested).includes(apiKey))).toEqual([])
  expect(errors).toEqual([])
})

describe('a number', () => {
  it('that is stale looks stale and says why; one that is missing is a dash, never 0', async (test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    devnet.list.change('AAPLc', { nav_price_updated_at: new Date(Date.now() - 30 * 3_600_000).toISOString() })
    devnet.list.change('TSLAc', { nav_price: undefined, nav_price_updated_at: undefined })
    const relay = await openRelayFor(devnet, {}, test)
    const { page } = await openBoard(test, browser, relay.url)
    const nav = page.locator('[data-symbol="AAPLc"] [data-field="nav"]')
    await nav.waitFor()
    expect(await nav.getAttribute('data-state')).toBe('stale')
    expect(await nav.textContent()).toMatch(
      /held · 30 h old|held since .+ · (before the open|after the close|overnight|market closed)/,
    )
    const colorOf = (symbol: string) => styleOf(page, `[data-symbol="${symbol}"] [data-field="nav"] .figure`, 'color')
    expect(await colorOf('AAPLc')).not.toBe(await colorOf('NVDAc'))
    expect(await page.locator('[data-symbol="TSLAc"] [data-field="nav"]').textContent()).toBe('–missing')
  })
})

describe('the filter', () => {
  it('narrows the stream of the relay, and is in the URL', async (test) => {
    const stack = await openStackWithBoard(test)
    const { page, sockets, devnet } = stack
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByLabel('Symbols', { exact: true }).fill('AAPLc')
    await page.getByLabel('Minimum value (USD)').fill('1000')
    await page.getByLabel('transfer').check()
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.waitForFunction("location.hash === '#/?symbols=AAPLc&types=transfer&min_value=1000'")
    await expect.poll(() => sockets.length).toBe(2)
    const narrowed = sockets[1]
    await expect.poll(() => narrowed?.received.some(({ type }) => type === 'live')).toBe(true)
    expect(narrowed?.url.searchParams.get('symbols')).toBe('AAPLc')
    expect(narrowed?.url.searchParams.get('min_value')).toBe('1000')
    expect(narrowed?.url.searchParams.get('types')).toContain('transfer')
    devnet.transfer({ symbol: 'TSLAc', raw: 100_000_000_000n })
    devnet.transfer({ symbol: 'AAPLc', raw: 1_000n })
    devnet.transfer({ symbol: 'AAPLc', raw: 100_000_000_000n })
    devnet.makeFlashblock()
    await page.locator('[data-line]').first().waitFor()
    expect(narrowed?.received.filter(({ type }) => type === 'transfer')).toMatchObject([{ symbol: 'AAPLc', raw: '100000000000' }])
    expect(await shownLines(page)).toHaveLength(1)
  })

  it('that the relay refuses is explained', async (test) => {
    const { page } = await openStackWithBoard(test)
    await page.goto(`${page.url()}#/?symbols=APPL`)
    await page.getByText('Did you mean AAPLc?').waitFor()
  })
})

describe('outside text', () => {
  /** Neither in a text of the page nor in a title is a character that changes the direction. */
  const expectNoDirection = async (page: Page) => {
    const titles = await page
      .locator('[title], [aria-label]')
      .evaluateAll((all) => all.flatMap((element) => [element.getAttribute('title'), element.getAttribute('aria-label')]))
    expect([await page.locator('body').textContent(), ...titles].join()).not.toMatch(/\p{Bidi_Control}/u)
  }
  const hostile = `<img src=x onerror="globalThis.ran=1"><script>globalThis.ran=1</script>\u202e${'long '.repeat(40)}`

  it('is never markup, a link or a request', async (test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    devnet.list.change('AAPLc', { name: hostile, isin: hostile, icon_url: 'javascript:globalThis.ran=1' })
    devnet.list.change('TSLAc', { symbol: '<b>TSLA</b>', icon_url: 'http://127.0.0.2:1/icon.svg' })
    const relay = await openRelayFor(devnet, { EXPLORER_URL: 'http://127.0.0.1:1/"><script>globalThis.ran=1</script>' }, test)
    const { page, errors, requestedUrls } = await openBoard(test, browser, relay.url)
    await waitForLive(page)
    await waitForPendingLogs(page)
    devnet.issuer.announce({ symbol: 'AAPLc', id: hostile.slice(0, 60), description: hostile, uri: 'javascript:globalThis.ran=1' })
    devnet.makeFlashblock()
    const line = page.locator('[data-line]', { hasText: 'announcement' })
    await line.locator('button').click()
    await page.getByRole('dialog').locator('li').first().waitFor()
    for (const path of ['#/AAPLc', '#/source', `#/play?symbols=AAPLc`, '#/?layout=tiles', `#/${encodeURIComponent(hostile)}`]) {
      await page.goto(`${relay.url}/${path}`)
      await waitForLive(page)
    }
    expect(await page.evaluate('globalThis.ran')).toBeUndefined()
    expect(await page.locator('[data-symbol] img, [data-line] script, [data-symbol] b b').count()).toBe(0)
    const links = await page.locator('a').evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''))
    expect(links.filter((link) => /^(javascript|data):/i.test(link))).toEqual([])
    expect(requestedUrls.filter((url) => new URL(url).origin !== new URL(relay.url).origin)).toEqual([])
    expect(errors).toEqual([])
  })

  it('never changes its direction, and a name that misleads is marked', async (test) => {
    const devnet = await openDevnet({ pace: 'manual' }, test)
    devnet.list.change('COINc', { symbol: 'AAPL\u0441', name: '\u202eesabnioC' })
    const relay = await openRelayFor(devnet, {}, test)
    const { page } = await openBoard(test, browser, relay.url)
    await waitForLive(page)
    await waitForPendingLogs(page)
    const copy = page.locator('[data-symbol="AAPL\u0441"]')
    expect(await copy.locator('[data-field="warnings"]').textContent()).toContain(
      'check the address: looks like another symbol, reversed text, mixed scripts',
    )
    expect(await page.locator('[data-symbol="AAPLc"] [data-field="warnings"]').textContent()).toContain('looks like another')
    expect(await page.locator('[data-symbol="TSLAc"] [data-field="warnings"]').count()).toBe(0)
    devnet.issuer.announce({ symbol: 'AAPLc', id: 'one', description: 'split \u202e2:1\u202c', uri: '' })
    devnet.makeFlashblock()
    await page.locator('[data-line]', { hasText: 'announcement' }).locator('button').click()
    await page.getByText('Raw action message').click()
    await page.getByRole('dialog').locator('pre', { hasText: 'split \\u202e2:1' }).waitFor()
    await expectNoDirection(page)
    for (const [path, text] of [
      ['#/AAPL%D1%81', '\ufffdesabnioC'],
      ['#/play?symbols=AAPL%D1%81', '\\u202eesabnioC'],
      ['#/a%E2%80%AEb', 'a\ufffdb'],
    ]) {
      await page.goto(`${relay.url}/${path}`)
      if (path?.startsWith('#/play')) await page.locator('.raw summary', { hasText: 'AAPL\u0441' }).first().click()
      await page
        .getByText(text ?? '')
        .first()
        .waitFor()
      await expectNoDirection(page)
    }
  })

  it('cannot become a script, because the policy of the page forbids it', async (test) => {
    const { page } = await openStackWithBoard(test)
    const inject = (statement: string) =>
      page.evaluate(statement).then(
        () => 'done',
        () => 'refused',
      )
    expect(
      await inject("document.body.append(Object.assign(document.createElement('script'), { text: 'globalThis.ran = 1' }))"),
    ).toBe('refused')
    expect(await inject("document.body.innerHTML = '<img src=x>'")).toBe('refused')
    expect(await inject("fetch('http://127.0.0.2:1/')")).toBe('refused')
    expect(await page.evaluate('globalThis.ran')).toBeUndefined()
  })
})

describe('the pages', () => {
  it('lead from a symbol to its facts, and every key of the help does what it says', async (test) => {
    const stack = await openStackWithBoard(test)
    const { page, devnet } = stack
    const key = await showTransfer(page, stack)
    devnet.seal()
    await page.keyboard.press('/')
    await page.keyboard.type('apple')
    await expect.poll(() => page.locator('[data-symbol]').count()).toBe(1)
    expect(page.url()).toContain('search=apple')
    await page.evaluate('document.activeElement.blur()')
    for (const pressed of ['j', 'f', 'Enter']) await page.keyboard.press(pressed)
    await page.getByRole('heading', { name: 'AAPLc Apple' }).waitFor()
    expect(page.url()).toMatch(/#\/AAPLc\?pins=AAPLc$/)
    await page.locator('.chart canvas').first().waitFor()
    await page.keyboard.press('Escape')
    await page.locator(`${lineOf(key)}[data-stage="sealed"] button`).click()
    const sheet = page.getByRole('dialog')
    await sheet.locator('.life li', { hasText: 'sealed' }).waitFor()
    expect(await sheet.locator('.life li b').allTextContents()).toEqual(['pre-confirmed', 'sealed'])
    expect(page.url()).toContain(`#/fact/${key}`)
    await page.keyboard.press('Escape')
    await sheet.waitFor({ state: 'detached' })
    // What has no key has a sheet too, also from a link.
    const status = await page.locator('[data-line]', { hasText: 'the node pushes each line' }).first().getAttribute('data-line')
    await page.goto(`${stack.relay.url}/#/fact/${status}`)
    await page.reload()
    await sheet.getByText('"source": "pendingLogs"').waitFor()
    await page.keyboard.press('Escape')
    // While a sheet is open, the keys of the page do nothing.
    await sheet.waitFor({ state: 'detached' })
    for (const theme of ['dark', 'light']) {
      await page.keyboard.press('t')
      await page.waitForSelector(`html[data-theme="${theme}"]`)
    }
    await page.keyboard.press('?')
    await page.getByRole('heading', { name: 'What you see' }).waitFor()
  })

  it('show a scheduled multiplier with its countdown, and a pause, where the symbol is', async (test) => {
    const { page, devnet } = await openStackWithBoard(test)
    devnet.issuer.pause({ symbol: 'AAPLc', features: [1] })
    devnet.issuer.split({ symbol: 'TSLAc', to: '3', effectiveAt: Math.floor(Date.now() / 1_000) + 7_200 })
    devnet.makeFlashblock()
    await page.locator('[data-symbol="AAPLc"] [data-field="paused"]', { hasText: 'paused: mint' }).waitFor()
    await page.locator('[data-symbol="TSLAc"]', { hasText: /→ 3 shares \/ token in/ }).waitFor()
  })

  it('copy the selection as programs that run as pasted, and show the messages as they come', async (test) => {
    const stack = await openStackWithBoard(test, '/#/play?symbols=AAPLc&types=transfer&min_value=5')
    const { page } = stack
    const folder = await createTempFolder(test)
    await installLibrary(folder)
    const terminal = (command: string) => ['script', '-qec', command, '/dev/null'] as const
    const programs = [
      ['curl', (text: string) => ['sh', '-c', text] as const],
      ['wscat', (text: string) => terminal(text.replace('npx wscat', join(repositoryRoot, 'test/node_modules/.bin/wscat')))],
      ['TypeScript', () => [process.execPath, 'program.mts'] as const],
      ['Python', () => ['python3', '-u', 'program.py'] as const],
    ] as const
    for (const [kind, commandFor] of programs) {
      await page.locator('.copy-panel').getByRole('button', { name: kind, exact: true }).click()
      const text = (await page.locator('.copy-panel pre').textContent()) ?? ''
      expect(text).toContain('AAPLc')
      await writeFile(join(folder, kind === 'Python' ? 'program.py' : 'program.mts'), text)
      const program = new ChildProgram(commandFor(text), { cwd: folder, env: { PATH: process.env.PATH, HOME: process.env.HOME } })
      test.onTestFinished(() => program.kill())
      // It is subscribed when its snapshot has come.
      await program.waitForOutput('stdout', /snapshot/)
      transfer(stack, 'TSLAc')
      transfer(stack)
      await program.waitForOutput('stdout', /['"]?type['"]?: ?['"]transfer['"]/)
      expect(program.stdout).not.toContain('TSLAc')
      await program.kill()
    }
    await page.locator('.raw li', { hasText: '"type":"transfer"' }).first().waitFor()
  })
})

it('is less than 60 KB of script, compressed, and loads the chart with a symbol', async (test) => {
  const { page, requestedUrls } = await openStackWithBoard(test)
  await page.locator('[data-symbol="AAPLc"]').waitFor()
  const names = () => requestedUrls.filter((url) => url.endsWith('.js')).map((url) => /[a-z-]+(?=-[\w-]{8}\.js$)/.exec(url)?.[0])
  const scripts = requestedUrls.filter((url) => url.endsWith('.js'))
  expect(names().toSorted()).toEqual(['main', 'theme'])
  await page.locator('[data-symbol="AAPLc"] .ticker').click()
  await page.locator('.chart canvas').first().waitFor()
  expect(names().slice(2).toSorted()).toEqual(['bar-intervals', 'bars', 'candle-chart'])
  const sizes = await Promise.all(scripts.map(async (url) => gzipSync(await (await fetch(url)).text(), { level: 9 }).length))
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(60 * 1_024)
})

it('links to an explorer where one is set, and says that nothing is real on the built-in chain', async (test) => {
  const stack = await openStackWithBoard(test, '/', { EXPLORER_URL: 'https://explorer.example/base/' })
  const { page, devnet, relay } = stack
  await page.goto(`${relay.url}/#/AAPLc`)
  const address = devnet.list.addressOf('AAPLc')
  await page.locator(`a[href="https://explorer.example/base/address/${address}"]`).waitFor()
  expect(await page.getByRole('note').count()).toBe(0)
})

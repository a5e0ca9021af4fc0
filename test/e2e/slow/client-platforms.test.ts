import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { connect } from '../../../src/sdk/client/connect.ts'
import { comparePositions, isNotAfter } from '../../../src/sdk/client/position-order.ts'
import { apiKey, otherApiKey } from '../../support/api-keys.ts'
import { ChildProgram, createTempFolder } from '../../support/child-program.ts'
import { bundleClient } from '../../support/client-bundle.ts'
import { openRelay } from '../../support/in-process-relay.ts'
import { LossyProxy } from '../../support/lossy-proxy.ts'
import { openDevnet } from '../../support/test-stack.ts'
import { openChromium } from './chromium-readers.ts'
import { TEST_TIMEOUT_MS, type TestLifecycle } from './deployed-relay.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** The SDK as it is downloaded, where it runs: it fills what a proxy loses, comes back after a cut, and says what is wrong. */

/** The oldest Node that is supported. */
const OLDEST_NODE = '22.18.0'
const BUN = '1.4.5'
/** A mistake is an error within this time. */
const MISTAKE_BOUND_MS = 5_000
const SEED = 1
const WAIT = { timeout: 30_000 }

/** Prints the id of each message that it handles. */
const reader = (url: string, transport: string) => `
  const stream = connect('${url}', { transport: '${transport}', heartbeatInterval: 1000 })
    .updates('*', { since: 'start', snapshot: false, minValue: 1, gaps: 'fill' })
  for await (const item of stream) print(item.type === 'gap' ? JSON.stringify(item) : item.id)
`

/** Prints the error of each stream: a wrong URL, a wrong key, or another mistake. */
const mistaken = (relays: readonly (readonly [string, object])[]) => `
  for (const [url, options] of ${JSON.stringify(relays)}) {
    const began = performance.now()
    const { name, code, message, cause } = await connect(url, options).updates('*').next().catch((error) => error)
    const isInTime = performance.now() - began < ${MISTAKE_BOUND_MS}
    print(JSON.stringify([name, code, message.includes(' '), cause !== undefined, isInTime]))
  }
  print('end')
`

/** Starts the program. Returns what it has printed so far. */
type Start = (test: TestLifecycle, bundle: string, program: string, otherOrigin: string) => Promise<() => string>

const inNode =
  (...command: readonly [string, ...string[]]): Start =>
  async (test, bundle, program) => {
    const cwd = await createTempFolder(test)
    writeFileSync(join(cwd, 'client.mjs'), bundle)
    writeFileSync(join(cwd, 'program.mjs'), `import { connect } from './client.mjs'\nconst print = console.log\n${program}`)
    const child = new ChildProgram([...command, 'program.mjs'], { cwd, env: process.env })
    test.onTestFinished(() => child.kill())
    return () => child.stdout
  }

const inChromium: Start = async (test, bundle, program, otherOrigin) => {
  const browser = await openChromium()
  test.onTestFinished(() => browser.close())
  const page = await browser.newPage()
  let printed = ''
  await page.exposeFunction('print', (line: string) => {
    printed += `${line}\n`
  })
  // A page of another origin, without a policy about what it may import.
  await page.goto(otherOrigin)
  const module = `data:text/javascript;base64,${Buffer.from(bundle).toString('base64')}`
  await page.evaluate(`void import('${module}').then(async ({ connect }) => {${program}})`)
  return () => printed
}

const platforms: readonly (readonly [string, Start, string])[] = [
  ['this Node', inNode(process.execPath), 'websocket'],
  [`Node ${OLDEST_NODE}`, inNode('npm', 'exec', '--yes', `--package=node@${OLDEST_NODE}`, '--', 'node'), 'websocket'],
  [`Bun ${BUN}`, inNode('npm', 'exec', '--yes', `--package=bun@${BUN}`, '--', 'bun'), 'websocket'],
  ['Chromium', inChromium, 'sse'],
]

it.each(platforms)('misses nothing in %s', async (_, start, transport) => {
  const test = { onTestFinished }
  const devnet = await openDevnet(
    { pace: 'clock', flashblockMs: 50, blockMs: 400, transactionsPerFlashblock: 6 },
    { onTestFinished },
  )
  const relay = await openRelay(devnet)
  onTestFinished(() => relay.stop())
  const proxy = await LossyProxy.open(test, relay.url, SEED)
  const printed = await start(test, (await bundleClient('client/index.ts')).first, reader(proxy.url, transport), devnet.stocksUrl)
  const ids = () => printed().split('\n').slice(0, -1)
  /** Everything up to the newest message has been proven, and printed. */
  const isWhole = async () => {
    const { tape } = await connect(relay.url).status()
    await vi.waitFor(() => expect(isNotAfter(tape.end, proxy.heartbeat)).toBe(true), WAIT)
    await vi.waitFor(() => expect(ids().some((id) => isNotAfter(tape.end, id))).toBe(true), WAIT)
    return tape.end
  }

  await vi.waitFor(() => expect(proxy.lost.length).toBeGreaterThan(0), WAIT)
  await isWhole()
  proxy.cut()
  const end = await isWhole()
  await isWhole()
  const sent: string[] = []
  for await (const { id } of connect(relay.url).history('*', { minValue: 1, through: end })) sent.push(id)
  expect(sent.length).toBeGreaterThan(0)
  // What was lost is read from the history while later messages are printed.
  await vi.waitFor(() => {
    const received = ids().filter((id) => isNotAfter(id, end))
    expect(received.sort((a, b) => comparePositions(a, b) ?? 0)).toEqual(sent)
  }, WAIT)
})

it.each(platforms)('is told each mistake in %s', async (_, start) => {
  const test = { onTestFinished }
  const devnet = await openDevnet({ pace: 'clock' }, test)
  const relay = await openRelay(devnet, { API_KEYS: apiKey })
  onTestFinished(() => relay.stop())
  const closed = await openRelay(devnet)
  await closed.stop()
  const mistakes: readonly (readonly [url: string, options: object, error: readonly [name: string, code: number | string]])[] = [
    [closed.url, {}, ['ConnectionError', 'unreachable']],
    [closed.url.replace('http', 'ws'), { transport: 'websocket' }, ['ConnectionError', 'unreachable']],
    [relay.url.replace('http', 'https'), { key: apiKey }, ['ConnectionError', 'unreachable']],
    [relay.url.replace('http://', ''), { key: apiKey }, ['ConnectionError', 'bad_url']],
    [`${relay.url}/nowhere`, { key: apiKey }, ['RelayError', 404]],
    [devnet.stocksUrl, {}, ['ConnectionError', 'not_a_relay']],
    [relay.url, {}, ['RelayError', 401]],
    [relay.url, { key: otherApiKey }, ['RelayError', 401]],
    [relay.url, { key: otherApiKey, transport: 'sse' }, ['RelayError', 401]],
  ]
  const program = mistaken(mistakes.map(([url, options]) => [url, options] as const))
  const printed = await start(test, (await bundleClient('client/index.ts')).first, program, devnet.stocksUrl)
  await vi.waitFor(() => expect(printed()).toContain('end\n'), WAIT)
  const lines = printed().trim().split('\n').slice(0, -1)
  expect(lines.map((line) => JSON.parse(line))).toEqual(mistakes.map(([, , error]) => [...error, true, true, true]))
})

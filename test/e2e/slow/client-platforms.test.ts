import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { connect } from '../../../src/sdk/client/connect.ts'
import { comparePositions, isNotAfter } from '../../../src/sdk/client/position-order.ts'
import { ChildProgram, createTempFolder } from '../../support/child-program.ts'
import { bundleClient } from '../../support/client-bundle.ts'
import { openRelay } from '../../support/in-process-relay.ts'
import { LossyProxy } from '../../support/lossy-proxy.ts'
import { openChromium } from './chromium-readers.ts'
import { TEST_TIMEOUT_MS, type TestLifecycle } from './deployed-relay.ts'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** The SDK as it is downloaded, where it runs: it fills what a proxy loses, and comes back after a cut. */

/** The oldest Node that is supported. */
const OLDEST_NODE = '22.18.0'
const SEED = 1
const WAIT = { timeout: 30_000 }

/** Prints the id of each message that it handles. */
const program = (url: string, transport: string) => `
  const stream = connect('${url}', { transport: '${transport}', heartbeatInterval: 1000 })
    .updates('*', { since: 'start', snapshot: false, minValue: 1, gaps: 'fill' })
  for await (const item of stream) print(item.type === 'gap' ? JSON.stringify(item) : item.id)
`

/** Starts the program. Returns what it has printed so far. */
type Start = (test: TestLifecycle, bundle: string, url: string, otherOrigin: string) => Promise<() => string>

const inNode =
  (...command: readonly [string, ...string[]]): Start =>
  async (test, bundle, url) => {
    const cwd = await createTempFolder(test)
    writeFileSync(join(cwd, 'client.mjs'), bundle)
    writeFileSync(
      join(cwd, 'program.mjs'),
      `import { connect } from './client.mjs'\nconst print = console.log\n${program(url, 'websocket')}`,
    )
    const child = new ChildProgram([...command, 'program.mjs'], { cwd, env: process.env })
    test.onTestFinished(() => child.kill())
    return () => child.stdout
  }

import { openDevnet } from '../../support/test-stack.ts'

const inChromium: Start = async (test, bundle, url, otherOrigin) => {
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
  await page.evaluate(`void import('${module}').then(async ({ connect }) => {${program(url, 'sse')}})`)
  return () => printed
}

it.each<[string, Start]>([
  ['this Node', inNode(process.execPath)],
  [`Node ${OLDEST_NODE}`, inNode('npm', 'exec', '--yes', `--package=node@${OLDEST_NODE}`, '--', 'node')],
  ['Chromium', inChromium],
])('misses nothing in %s', async (_, start) => {
  const test = { onTestFinished }
  const devnet = await openDevnet(
    { pace: 'clock', flashblockMs: 50, blockMs: 400, transactionsPerFlashblock: 6 },
    { onTestFinished },
  )
  const relay = await openRelay(devnet)
  onTestFinished(() => relay.stop())
  const proxy = await LossyProxy.open(test, relay.url, SEED)
  const printed = await start(test, await bundleClient('client/index.ts'), proxy.url, devnet.stocksUrl)
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

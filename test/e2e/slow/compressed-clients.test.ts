import { expect, it, onTestFinished } from 'vitest'
import { ChildProgram } from '../../support/child-program.ts'
import { needPrograms, pathOf } from '../../support/debian-programs.ts'
import { openLargeAudience } from '../../support/large-audience.ts'
import { listenNdjson, type TestListener } from '../../support/test-listener.ts'
import { openTestStack, type TestLifecycle, type TestStack, transfer } from '../../support/test-stack.ts'
import { openChromium } from './chromium-readers.ts'

needPrograms('websockets')

/** Clients of others negotiate permessage-deflate and read what the relay compresses. */

const PYTHON = pathOf('python')
const BURSTS = 5
const BURST = 20
const QUERY = 'symbols=AAPLc&types=transfer&snapshot=false'
const MESSAGE_TYPE = /"type":"(\w+)"/

/** What a client has received so far: the negotiated extensions, then each message in its text. */
type Reader = { readonly lines: () => readonly string[] }

async function readInChromium(test: TestLifecycle, url: string): Promise<Reader> {
  const browser = await openChromium()
  test.onTestFinished(() => browser.close())
  const page = await browser.newPage()
  const lines: string[] = []
  await page.exposeFunction('take', (line: string) => void lines.push(line))
  await page.evaluate(`
    const socket = new WebSocket(${JSON.stringify(url)})
    socket.onopen = () => {
      take(socket.extensions)
      // Chromium compresses this message.
      socket.send(JSON.stringify({ type: 'subscribe', symbols: ['AAPLc'], types: ['transfer'], snapshot: false }))
    }
    socket.onmessage = ({ data }) => take(data)
  `)
  return { lines: () => lines }
}

const pythonProgram = `
import asyncio, json, sys, websockets

async def read():
    async with websockets.connect(sys.argv[1]) as socket:
        print(*(extension.name for extension in socket.extensions), flush=True)
        await socket.send(json.dumps({"type": "subscribe", "symbols": ["AAPLc"], "types": ["transfer"], "snapshot": False}))
        async for message in socket:
            print(message, flush=True)

asyncio.run(read())
`

async function readInPython(test: TestLifecycle, url: string): Promise<Reader> {
  const program = new ChildProgram([PYTHON, '-c', pythonProgram, url], { env: {} })
  test.onTestFinished(() => program.kill())
  await program.waitForOutput('stdout', /\n/)
  return { lines: () => program.stdout.split('\n').slice(0, -1) }
}

it.each([
  ['Chromium', readInChromium],
  ['Python’s websockets', readInPython],
])('%s reads compressed bursts', async (_, open) => {
  const stack = await openTestStack()
  onTestFinished(await openLargeAudience(stack.relay.wsUrl, QUERY))
  const reader = await open({ onTestFinished }, stack.relay.wsUrl)
  const textsOf = (type: string) => reader.lines().filter((line) => MESSAGE_TYPE.exec(line)?.[1] === type)
  await expect.poll(() => textsOf('live').length).toBe(1)
  expect(reader.lines()[0]).toMatch(/^permessage-deflate/)
  const plain = await sendBursts(stack)
  await expect.poll(() => textsOf('transfer').length).toBe(BURSTS * BURST)
  expect(textsOf('transfer')).toEqual(plain.received.flatMap(({ message, text }) => (message.type === 'transfer' ? [text] : [])))
  plain.close()
})

/** Sends bursts one after the other. Returns a listener that received them uncompressed. */
async function sendBursts(stack: TestStack): Promise<TestListener> {
  const plain = await listenNdjson(`${stack.relay.url}/v1/stream?${QUERY}`)
  await plain.waitFor('live')
  for (let burst = 1; burst <= BURSTS; burst += 1) {
    transfer(stack, 'AAPLc', BURST)
    await plain.until(() => plain.messagesOf('transfer').length === burst * BURST)
  }
  return plain
}

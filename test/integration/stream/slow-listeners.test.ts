import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { TestListener } from '../../support/test-listener.ts'
import { fetchDocumented, openTestStack, type TestStack } from '../../support/test-stack.ts'
import { listenLive, tapeTextsOf } from './stream-listeners.ts'

const TOPIC = `0x${'77'.repeat(32)}` as const
/** Bytes of one log; some hundreds of them exceed all socket buffers. */
const LOG_BYTES = 16_000
const query = 'symbols=AAPLc&types=log'

/** Emits logs of one size, `together` in each flashblock; resolves when the listener received them all. */
async function emitLogs({ devnet }: TestStack, times: number, listener: TestListener, together = 20): Promise<void> {
  const before = listener.messagesOf('log').length
  const address = devnet.list.addressOf('AAPLc')
  for (let emitted = 0; emitted < times; emitted += together) {
    for (let log = 0; log < together; log += 1) {
      devnet.emit({ address, topics: [TOPIC], data: `0x${'5a'.repeat(LOG_BYTES)}` })
    }
    devnet.makeFlashblock()
    await listener.until(() => listener.messagesOf('log').length === before + emitted + together, 'the logs')
  }
}

/** Sends an HTTP request over a raw socket and does not read the response. */
async function requestWithoutReading({ relay }: TestStack, path: string): Promise<Socket> {
  const socket = connect(Number(new URL(relay.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.write(`GET ${path} HTTP/1.0\r\nhost: localhost\r\n\r\n`)
  await once(socket, 'readable')
  return socket
}

/** Reads the NDJSON lines of a raw socket from now on. */
function resumeReading(socket: Socket): TestListener {
  const listener = new TestListener({ close: () => socket.destroy() })
  let rest = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('{')) listener.receive(line)
  })
  socket.on('close', () => listener.markClosed({ code: 0, reason: 'ended' }))
  return listener
}

describe('a replay to a slow reader', () => {
  it('is complete when nothing is evicted', async () => {
    const stack = await openTestStack({ MAX_BACKLOG: '16KiB' })
    const steady = await listenLive(stack, 'ndjson', query)
    await emitLogs(stack, 500, steady)
    const slow = await requestWithoutReading(stack, `/v1/stream?${query}&since=start&format=ndjson`)
    await emitLogs(stack, 300, steady)
    const listener = resumeReading(slow)
    await listener.waitFor('live')
    expect(tapeTextsOf(listener)).toEqual(tapeTextsOf(steady))
    expect(listener.messagesOf('gap')).toEqual([])
    expect(listener.messagesOf('bye')).toEqual([])
    await emitLogs(stack, 20, steady)
    await listener.until(() => tapeTextsOf(listener).length === tapeTextsOf(steady).length, 'the live updates')
  })
})

/** The value of a metric without labels. */
async function metricOf({ relay }: TestStack, name: string): Promise<number> {
  const { text } = await fetchDocumented(`${relay.url}/metrics`)
  return Number(new RegExp(`^stocktape_${name} (\\d+)$`, 'm').exec(text)?.[1])
}

describe('a burst of 5 MB', () => {
  it('disconnects no reader that is busy for a moment, and is held once for all of them', async () => {
    const stack = await openTestStack({ MAX_BACKLOG: '1MiB' })
    const steady = await listenLive(stack, 'ndjson', query)
    const busy = await Promise.all(
      Array.from({ length: 20 }, () => requestWithoutReading(stack, `/v1/stream?${query}&format=ndjson`)),
    )
    // By then all of them are live.
    await fetchDocumented(`${stack.relay.url}/healthz`)
    await emitLogs(stack, 320, steady, 160)
    expect((await fetchDocumented(`${stack.relay.url}/metrics`)).text).not.toContain('reason="too_slow"')
    const heldBytes = await metricOf(stack, 'backlog_held_bytes')
    expect(heldBytes).toBeGreaterThan(2 ** 20)
    expect(heldBytes).toBeLessThan(24 * 2 ** 20)
    const readers = busy.map(resumeReading)
    for (const reader of readers) {
      await reader.until(() => reader.messagesOf('log').length === 320, 'the logs')
      expect(tapeTextsOf(reader)).toEqual(tapeTextsOf(steady))
      expect(reader.messagesOf('bye')).toEqual([])
    }
    while ((await metricOf(stack, 'backlog_held_bytes')) > 0) await fetchDocumented(`${stack.relay.url}/healthz`)
  })
})

describe('a listener whose backlog is over the bound', () => {
  it.each(['ws', 'ndjson'])('is disconnected with 4202 after a bye whose position loses nothing: %s', async (transport) => {
    const stack = await openTestStack({ MAX_BACKLOG: '16KiB' })
    const steady = await listenLive(stack, 'ndjson', query)
    const resumeReadingLater = transport === 'ws' ? await pausedWebSocket(stack) : await pausedStream(stack)
    const disconnectedAsSlow = async () =>
      /stocktape_disconnects_total\{[^}]*reason="too_slow"[^}]*\} 1\b/.test(
        (await fetchDocumented(`${stack.relay.url}/metrics`)).text,
      )
    while (!(await disconnectedAsSlow())) await emitLogs(stack, 20, steady)
    const listener = resumeReadingLater()
    const end = await listener.closed
    const [bye] = listener.messagesOf('bye')
    if (transport === 'ws') expect(end).toEqual({ code: 4202, reason: `too_slow ${bye?.id}` })
    expect(listener.messages.at(-1)).toBe(bye)
    expect(bye).toMatchObject({ reason: 'too_slow', retry_ms: expect.any(Number) })
    const resumed = await listenLive(stack, 'ws', query, bye?.id ?? '')
    expect([...tapeTextsOf(listener), ...tapeTextsOf(resumed)]).toEqual(tapeTextsOf(steady))
    expect(tapeTextsOf(resumed).length).toBeGreaterThan(0)
    expect(steady.messagesOf('bye')).toEqual([])
  })
})

/** A live WebSocket that does not read until the result is called. */
async function pausedWebSocket({ relay }: TestStack): Promise<() => TestListener> {
  // These logs compress to almost nothing, which would fill no buffer.
  const socket = new WebSocket(`${relay.wsUrl}?${query}`, { perMessageDeflate: false })
  onTestFinished(() => socket.terminate())
  const listener = new TestListener({ close: () => socket.terminate() })
  socket.on('message', (data) => listener.receive(String(data)))
  socket.on('close', (code, reason) => listener.markClosed({ code, reason: String(reason) }))
  await listener.waitFor('live')
  socket.pause()
  return () => {
    socket.resume()
    return listener
  }
}

async function pausedStream(stack: TestStack): Promise<() => TestListener> {
  const socket = await requestWithoutReading(stack, `/v1/stream?${query}&format=ndjson`)
  // By then it is live.
  await fetchDocumented(`${stack.relay.url}/healthz`)
  return () => resumeReading(socket)
}

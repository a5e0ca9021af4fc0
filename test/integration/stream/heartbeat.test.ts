import { Socket } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { TestListener } from '../../support/test-listener.ts'
import { openTestStack, sequenceOf, transfer } from '../../support/test-stack.ts'
import { openRawConnection } from '../http/raw-connection.ts'
import { listen, listenLive, positionOrder, transports, waitForAnswers } from './stream-listeners.ts'

/** Checks every heartbeat against the updates around it; returns their number. */
function checkHeartbeats(listener: TestListener): number {
  let sent = 0
  let last = 0
  let heartbeats = 0
  for (const [at, { message, id, event }] of listener.received.entries()) {
    if ('prev' in message) {
      sent += 1
      expect(positionOrder(message.id)).toBeGreaterThan(last)
      last = positionOrder(message.id)
    }
    if (message.type !== 'heartbeat') continue
    heartbeats += 1
    expect(message.sent, `sent of heartbeat ${at}`).toBe(sent)
    // It lies between the updates before it and those after it.
    expect(positionOrder(message.id)).toBeGreaterThanOrEqual(last)
    last = positionOrder(message.id)
    expect(sequenceOf(message.end)).toBeGreaterThanOrEqual(sequenceOf(message.id))
    expect(message.backlog).toBeGreaterThanOrEqual(0)
    if (id !== undefined) expect({ id, event }).toEqual({ id: message.id, event: 'heartbeat' })
  }
  return heartbeats
}

describe('a heartbeat', () => {
  it('reports the position and count of a listener during its replay', async () => {
    const stack = await openTestStack({ HEARTBEAT: '100ms' })
    const first = await listenLive(stack, 'ws', 'symbols=AAPLc&types=transfer')
    for (let flash = 0; flash < 10; flash += 1) transfer(stack, 'AAPLc', 200)
    await first.until(() => first.messagesOf('transfer').length === 2_000)
    const later = await Promise.all(
      transports.flatMap((transport) =>
        [0, 1_990].map((index) =>
          listen(stack, transport, 'symbols=AAPLc&types=transfer&heartbeat=1', first.messagesOf('transfer')[index]?.id),
        ),
      ),
    )
    for (const [at, listener] of later.entries()) {
      // Some heartbeats come during the replay.
      await listener.waitFor('heartbeat', ({ sent }) => sent === [1_999, 9][at % 2])
      expect(checkHeartbeats(listener)).toBeGreaterThan(0)
    }
    expect(checkHeartbeats(first)).toBeGreaterThan(0)
  })

  it('advances past updates that do not match', async () => {
    const stack = await openTestStack({ HEARTBEAT: '100ms' })
    const quiet = await listenLive(stack, 'ws', 'symbols=TSLAc&types=burn')
    const busy = await listenLive(stack, 'ws', 'symbols=AAPLc&types=transfer')
    transfer(stack, 'AAPLc', 5)
    await busy.until(() => busy.messagesOf('transfer').length === 5)
    const last = busy.messagesOf('transfer')[4]?.id ?? ''
    const heartbeat = await quiet.waitFor('heartbeat', ({ id }) => sequenceOf(id) >= sequenceOf(last))
    expect(heartbeat).toMatchObject({ id: heartbeat.end, sent: 0 })
    expect(heartbeat.head).toMatchObject({ sealed: stack.devnet.chain.head.number })
    expect(new Date(heartbeat.time).toISOString()).toBe(heartbeat.time)
  })

  it.each([
    ['a stream without them', '&heartbeat=0', 1],
    ['a stream with them', '', 0],
  ])('lets the kernel ask whether the client is there: %s', async (_, query, times) => {
    const { relay } = await openTestStack()
    const setKeepAlive = vi.spyOn(Socket.prototype, 'setKeepAlive')
    onTestFinished(() => setKeepAlive.mockRestore())
    const raw = await openRawConnection(relay.url)
    onTestFinished(() => void raw.socket.destroy())
    raw.send(`GET /v1/stream/AAPLc?format=ndjson${query} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
    await raw.streamedText(/"type":"live"/)
    expect(setKeepAlive.mock.calls).toEqual(Array.from({ length: times }, () => [true, 60_000]))
  })

  it('is off on HTTP with heartbeat=0, which a WebSocket refuses', async () => {
    const stack = await openTestStack({ HEARTBEAT: '100ms' })
    const silent = await Promise.all(
      (['sse', 'ndjson'] as const).map((name) => listenLive(stack, name, 'symbols=AAPLc&heartbeat=0')),
    )
    const usual = await listenLive(stack, 'ndjson', 'symbols=AAPLc')
    const socket = await listenLive(stack, 'ws', 'symbols=AAPLc')
    await usual.waitFor('heartbeat')
    await socket.waitFor('heartbeat')
    await waitForAnswers(socket)
    for (const listener of silent) {
      expect(listener.messagesOf('hello')).toMatchObject([{ heartbeat_s: null }])
      expect(listener.messagesOf('heartbeat')).toEqual([])
    }
    const refused = await listen(stack, 'ws', 'symbols=AAPLc&heartbeat=0')
    expect(await refused.waitFor('error')).toMatchObject({ reason: 'bad_parameter', details: [{ parameter: 'heartbeat' }] })
  })
})

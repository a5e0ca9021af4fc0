import { describe, expect, it, onTestFinished } from 'vitest'
import { documents } from '../../../src/docs/documents.ts'
import { openApp } from '../../../src/relay/edge/http/http-app.ts'
import { listen } from '../../../src/relay/edge/http/http-server.ts'
import { formatRequest, openRawConnection, type RawConnection } from './raw-connection.ts'

const shortDeadlines = { headers: 100, request: 200, keepAlive: 1, answer: 300, idle: 150, check: 10 }

/** A server without a tape behind it, and a connection to it. */
async function openConnection(boundsMs = shortDeadlines): Promise<RawConnection> {
  const ports = { authorize: () => null, clientAddressOf: () => 'here', countRefusal() {} }
  const context = { clients: { isDraining: false }, ...ports } as never
  const app = openApp({
    ...{ context, nodeRoutes: [], loadDocuments: async () => documents, listCacheControl: '' },
    metrics: async () => '',
    metricsToken: undefined,
    unreadyReasons: () => [],
    status: () => null as never,
  })
  const server = await listen(app, { context, webSocketRoutes: [] }, { host: '127.0.0.1', port: 0, maxClients: 1 }, boundsMs)
  onTestFinished(() => server.close(0))
  const raw = await openRawConnection(`http://127.0.0.1:${server.port}`)
  onTestFinished(() => void raw.socket.destroy())
  return raw
}

/** Sends a small piece again and again until the server answers or closes. */
async function sendForever(raw: RawConnection, piece: string): Promise<void> {
  for (let sent = 0; sent < 3_000 && raw.closeState === 'no' && raw.bytes.length === 0; sent += 1) await raw.sendSlowly([piece])
}

describe('a connection', () => {
  it('that sends nothing is closed', async () => {
    const raw = await openConnection()
    await raw.ended()
    expect(raw.bytes.toString()).toMatch(/^(HTTP\/1\.1 408 |$)/)
  })

  it.each([
    ['sends its headers one by one', 'GET /healthz HTTP/1.1\r\nhost: relay\r\n', 'x'],
    ['sends only line breaks', '', '\r\n'],
  ])('that %s without an end is answered with 408 and closed', async (_, first, piece) => {
    const raw = await openConnection({ ...shortDeadlines, idle: 60_000 })
    raw.send(first)
    const dripping = sendForever(raw, piece)
    expect((await raw.response()).status).toBe(408)
    await raw.ended()
    await dripping
  })

  it('that stops within its headers is closed', async () => {
    const raw = await openConnection()
    raw.send('GET /healthz HTTP/1.1\r\nhost: relay\r\n')
    await raw.ended()
  })

  it('that never reads its answers is closed', async () => {
    const raw = await openConnection()
    raw.socket.pause()
    raw.send('GET /openapi.json HTTP/1.1\r\nhost: relay\r\n\r\n'.repeat(60))
    // The client sees the end only when it writes.
    const stateAfterWrite = () => {
      raw.send('\r\n')
      return raw.closeState
    }
    await expect.poll(stateAfterWrite).not.toBe('no')
  })

  it('that never ends its body is closed', async () => {
    const raw = await openConnection()
    raw.send(formatRequest('GET /nothing', ['content-length: 100000']), 'x')
    await raw.ended()
    expect(raw.bytes.toString()).toMatch(/^HTTP\/1\.1 404 /)
  })

  it('without a further request is closed', async () => {
    const raw = await openConnection({ ...shortDeadlines, idle: 60_000 })
    raw.send(formatRequest('GET /healthz'))
    expect((await raw.response()).status).toBe(200)
    expect(await raw.ended()).toBe('ended')
  })
})

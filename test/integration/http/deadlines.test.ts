import { describe, expect, it, onTestFinished } from 'vitest'
import { openApp } from '../../../src/edge/http/routes.ts'
import { listen } from '../../../src/edge/http/server.ts'
import { connectRaw, type Raw, request } from './raw-connection.ts'

const quick = { headers: 100, request: 200, keepAlive: 1, silence: 150, look: 10 }

/** A server without a tape behind it, and a connection to it. */
async function connected(boundsMs = quick): Promise<Raw> {
  const streams = { house: { hub: { draining: false } }, admit: () => null } as never
  const [posts, lines] = [null as never, null as never]
  const app = openApp({
    ...{ streams, posts, listCaching: '' },
    metrics: async () => '',
    metricsToken: undefined,
    unready: () => [],
    status: () => null as never,
  })
  const server = await listen(app, { streams, lines }, { host: '127.0.0.1', port: 0, clientsBound: 1 }, boundsMs)
  onTestFinished(() => server.close(0))
  const raw = await connectRaw(`http://127.0.0.1:${server.port}`)
  onTestFinished(() => void raw.socket.destroy())
  return raw
}

/** Goes on saying something for as long as the other side listens, and never so much that it is too much. */
async function drip(raw: Raw, piece: string): Promise<void> {
  for (let said = 0; said < 3_000 && raw.over === 'no' && raw.bytes.length === 0; said += 1) await raw.trickle([piece])
}

describe('a connection', () => {
  it('that says nothing is closed', async () => {
    const raw = await connected()
    await raw.ended()
    expect(raw.bytes.toString()).toMatch(/^(HTTP\/1\.1 408 |$)/)
  })

  it.each([
    ['says its headers one by one', 'GET /healthz HTTP/1.1\r\nhost: relay\r\n', 'x'],
    ['says only line breaks', '', '\r\n'],
  ])('that %s for ever is answered with 408 and closed', async (_, first, piece) => {
    const raw = await connected({ ...quick, silence: 60_000 })
    raw.send(first)
    const dripping = drip(raw, piece)
    expect((await raw.answer()).status).toBe(408)
    await raw.ended()
    await dripping
  })

  it('that stops within its headers is closed', async () => {
    const raw = await connected()
    raw.send('GET /healthz HTTP/1.1\r\nhost: relay\r\n')
    await raw.ended()
  })

  it('that never ends its body is closed', async () => {
    const raw = await connected()
    raw.send(request('GET /nothing', ['content-length: 100000']), 'x')
    await raw.ended()
    expect(raw.bytes.toString()).toMatch(/^HTTP\/1\.1 404 /)
  })

  it('that asks for nothing more is closed', async () => {
    const raw = await connected({ ...quick, silence: 60_000 })
    raw.send(request('GET /healthz'))
    expect((await raw.answer()).status).toBe(200)
    expect(await raw.ended()).toBe('ended')
  })
})

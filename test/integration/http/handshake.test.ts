import { describe, expect, it } from 'vitest'
import type { ResponseHead } from './http-response-parser.ts'
import { formatRequest } from './raw-connection.ts'
import { handshakeRequest } from './raw-websocket-client.ts'
import { sharedRelayForFile } from './shared-relay.ts'

const sharedRelay = sharedRelayForFile()

const RESETS = 1_000
const HEALTHZ = formatRequest('GET /healthz')

/** Sends a handshake; returns the head of the response. */
async function sendHandshake(...how: Parameters<typeof handshakeRequest>): Promise<ResponseHead> {
  const raw = await sharedRelay.connect()
  raw.send(handshakeRequest(...how))
  return raw.responseHead()
}

describe('a refused handshake', () => {
  it.each([
    ['without a key', 400, '/v1/ws', { 'sec-websocket-key': null }],
    ['with a key of 15 bytes', 400, '/v1/ws', { 'sec-websocket-key': Buffer.alloc(15).toString('base64') }],
    ['without a version', 400, '/v1/ws', { 'sec-websocket-version': null }],
    ['of version 7', 400, '/v1/ws', { 'sec-websocket-version': '7' }],
    ['by POST', 400, '/v1/ws', { start: 'POST' }],
    ['with a subprotocol that is not a token', 400, '/v1/ws', { 'sec-websocket-protocol': 'stocktape v1' }],
    ['at another path', 404, '/v1/stream', {}],
    ['at the root', 404, '/', {}],
    ['at the path with a trailing slash', 404, '/v1/ws/', {}],
    ['at *', 404, '*', {}],
  ])('%s is answered with %i, and the connection ends', async (_, status, path, headers) => {
    const raw = await sharedRelay.connect()
    // What follows is not read.
    raw.send(handshakeRequest(path, headers), HEALTHZ)
    const answer = await raw.response()
    expect(answer.status).toBe(status)
    expect(answer.headers.get('connection')).toBe('close')
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    const details = [status === 400 ? { '@type': 'stocktape/bad_handshake' } : {}]
    expect(JSON.parse(answer.body)).toMatchObject({ code: status, message: expect.any(String), details })
    await raw.ended()
    expect(raw.bytes.length).toBe(0)
  })

  it('names the supported versions', async () => {
    const { headers } = await sendHandshake('/v1/ws', { 'sec-websocket-version': '7' })
    expect(headers.get('sec-websocket-version')).toMatch(/\b13\b/)
  })

  it('includes one over HTTP/1.0', async () => {
    const raw = await sharedRelay.connect()
    raw.send(handshakeRequest().replace('HTTP/1.1', 'HTTP/1.0'))
    expect((await raw.responseHead()).status).toBe(400)
  })
})

describe('an upgrade to another protocol', () => {
  it.each([
    ['h2c', 426, '/v1/ws', { connection: 'Upgrade, HTTP2-Settings', 'http2-settings': 'AAMAAABkAARAAAAAAAIAAAAA' }],
    ['h2c', 200, '/healthz', {}],
    ['websocket, h2c', 426, '/v1/ws', {}],
    ['', 426, '/v1/ws', { connection: 'keep-alive' }],
  ])('%s is ignored: the answer is %i over HTTP/1.1, at %s', async (upgrade, status, path, headers) => {
    const { raw, ...answer } = await sharedRelay.exchange(handshakeRequest(path, { upgrade, ...headers }))
    expect(answer.status).toBe(status)
    if (status === 426) expect(answer.headers.get('upgrade')).toBe('websocket')
    // The connection goes on as HTTP/1.1.
    raw.send(HEALTHZ)
    expect((await raw.response()).status).toBe(200)
  })
})

describe('a handshake', () => {
  it.each([
    ['among others', 'graphql-ws,stocktape.v1 , other', 'stocktape.v1'],
    ['not', 'stocktape.v2, stocktape', undefined],
  ])('that offers the subprotocol %s gets it or none', async (_, offered, selected) => {
    const { status, headers } = await sendHandshake('/v1/ws', { 'sec-websocket-protocol': offered })
    expect([status, headers.get('sec-websocket-protocol')]).toEqual([101, selected])
  })

  it('may come one byte at a time', async () => {
    const raw = await sharedRelay.connect()
    await raw.sendSlowly(handshakeRequest())
    expect((await raw.responseHead()).status).toBe(101)
  })

  it('may come after another request on the same connection', async () => {
    const { raw, status } = await sharedRelay.exchange(HEALTHZ)
    expect(status).toBe(200)
    raw.send(handshakeRequest())
    expect((await raw.responseHead()).status).toBe(101)
  })

  it('with a body is refused or closed; the body is never read as a request', async () => {
    const raw = await sharedRelay.connect()
    raw.send(handshakeRequest('/v1/ws', { 'content-length': `${HEALTHZ.length}` }), HEALTHZ)
    const { status } = await raw.responseHead()
    expect([101, 400]).toContain(status)
    await raw.ended()
    expect(raw.bytes.toString('latin1')).not.toContain('HTTP/1.1')
  })

  it('leaves nothing behind after a thousand resets', async () => {
    const whole = handshakeRequest('/v1/ws?symbols=AAPLc')
    await sharedRelay.waitForNoListeners()
    await sharedRelay.expectNothingLeftAfter(async () => {
      for (let round = 0; round < RESETS; round += 1) {
        const raw = await sharedRelay.connect()
        // Cut at every byte in turn, and every fourth time complete.
        raw.send(round % 4 ? whole.slice(0, round % whole.length) : whole)
        if (round % 8) await new Promise(setImmediate)
        raw.reset()
      }
    })
  }, 60_000)

  it('frees its socket when it is refused, though the client never closes its half', async () => {
    const before = sharedRelay.openDescriptorCount()
    const raws = await Promise.all(Array.from({ length: 20 }, () => sharedRelay.connect()))
    for (const raw of raws) raw.send(handshakeRequest('/v1/ws', { 'sec-websocket-version': '7' }))
    await Promise.all(raws.map((raw) => raw.ended()))
    await sharedRelay.until(() => sharedRelay.openDescriptorCount() <= before + raws.length, 'only the clients’ descriptors')
  })
})

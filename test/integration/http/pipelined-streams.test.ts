import { describe, expect, it } from 'vitest'
import { transfer } from '../../support/test-stack.ts'
import { request } from './raw-connection.ts'
import { houseOfFile } from './shared-relay.ts'

const house = houseOfFile()

const HEALTHZ = request('GET /healthz')
const STREAM = request('GET /v1/stream?symbols=AAPLc&format=ndjson')

describe('a stream that is asked for behind another request in the same packet', () => {
  it.each(['/healthz', '/metrics', '/nothing', '/v1/events?limit=1'])(
    'of %s is served after its answer or refused, and never fails',
    async (path) => {
      const raw = await house.connect()
      raw.send(request(`GET ${path}`) + STREAM)
      await raw.answer()
      expect([200, 400]).toContain((await raw.head()).status)
    },
  )

  it.each([HEALTHZ, STREAM, 'nonsense\r\n\r\n'])('and before another ends nobody else', async (behind) => {
    const other = await house.upgrade('?symbols=AAPLc&types=transfer')
    await other.ear.hear('live')
    const raw = await house.connect()
    raw.send(request('GET /metrics') + STREAM + behind)
    raw.finish()
    await raw.ended()
    transfer(house.world)
    await other.ear.hear('transfer')
  })
})

describe('a stream', () => {
  it.each([
    ['cannot be read', 'nonsense\r\n\r\n'],
    ['is too large', request('GET /healthz', [`x-long: ${'x'.repeat(9_000)}`])],
    [
      'has too many headers',
      request(
        'GET /healthz',
        Array.from({ length: 300 }, (_, at) => `x-${at}: 1`),
      ),
    ],
    ['is another request', HEALTHZ],
    ['is another stream', STREAM],
    ['is a handshake', request('GET /v1/ws', ['connection: upgrade', 'upgrade: websocket'])],
    ['is h2c', request('GET /v1/ws', ['connection: upgrade', 'upgrade: h2c'])],
    ['is CONNECT', 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n'],
    ['is half a request', 'GET /healthz HTTP/1.1\r\n'],
  ])('has nothing in it but its own where what comes behind it %s', async (_, behind) => {
    for (const later of [false, true]) {
      const raw = await house.connect()
      raw.send(later ? STREAM : STREAM + behind)
      if (later) {
        await raw.until(() => raw.bytes.includes('"type":"live"'), 'live')
        raw.send(behind)
      }
      await raw.until(() => raw.over !== 'no' || raw.bytes.includes('"type":"live"'), 'live or the end')
      transfer(house.world)
      await raw.until(() => raw.over !== 'no' || raw.bytes.includes('"type":"transfer"'), 'a transfer or the end')
      const heads = raw.bytes.toString().match(/HTTP\/1\.1 \d{3}/g) ?? []
      expect(heads.filter((head) => head !== 'HTTP/1.1 200')).toEqual([])
      expect(heads.length).toBeLessThanOrEqual(1)
      raw.reset()
    }
  })
})

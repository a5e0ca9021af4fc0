import { describe, expect, it } from 'vitest'
import { transfer } from '../../support/test-stack.ts'
import { formatRequest } from './raw-connection.ts'
import { sharedRelayForFile } from './shared-relay.ts'

const sharedRelay = sharedRelayForFile()

const HEALTHZ = formatRequest('GET /healthz')
const STREAM = formatRequest('GET /v1/stream?symbols=AAPLc&format=ndjson')

describe('a stream request behind another request in the same packet', () => {
  it.each(['/healthz', '/metrics', '/nothing', '/v1/events?limit=1'])(
    'to %s is served after its answer or refused, and never fails',
    async (path) => {
      const raw = await sharedRelay.connect()
      raw.send(formatRequest(`GET ${path}`) + STREAM)
      await raw.response()
      expect([200, 400]).toContain((await raw.responseHead()).status)
    },
  )

  it.each([HEALTHZ, STREAM, 'nonsense\r\n\r\n'])('and before a third one does not disconnect other clients: %j', async (behind) => {
    const other = await sharedRelay.openWebSocket('?symbols=AAPLc&types=transfer')
    await other.listener.waitFor('live')
    const raw = await sharedRelay.connect()
    raw.send(formatRequest('GET /metrics') + STREAM + behind)
    raw.finish()
    await raw.ended()
    transfer(sharedRelay.stack)
    await other.listener.waitFor('transfer')
  })
})

describe('a stream', () => {
  it.each([
    ['cannot be read', 'nonsense\r\n\r\n'],
    ['is too large', formatRequest('GET /healthz', [`x-long: ${'x'.repeat(9_000)}`])],
    [
      'has too many headers',
      formatRequest(
        'GET /healthz',
        Array.from({ length: 300 }, (_, at) => `x-${at}: 1`),
      ),
    ],
    ['is another request', HEALTHZ],
    ['is another stream', STREAM],
    ['is a handshake', formatRequest('GET /v1/ws', ['connection: upgrade', 'upgrade: websocket'])],
    ['is h2c', formatRequest('GET /v1/ws', ['connection: upgrade', 'upgrade: h2c'])],
    ['is CONNECT', 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n'],
    ['is half a request', 'GET /healthz HTTP/1.1\r\n'],
  ])('contains nothing else when what follows its request %s', async (_, behind) => {
    for (const isSentLater of [false, true]) {
      const raw = await sharedRelay.connect()
      raw.send(isSentLater ? STREAM : STREAM + behind)
      if (isSentLater) {
        await raw.until(() => raw.bytes.includes('"type":"live"'), 'live')
        raw.send(behind)
      }
      await raw.until(() => raw.closeState !== 'no' || raw.bytes.includes('"type":"live"'), 'live or the end')
      transfer(sharedRelay.stack)
      await raw.until(() => raw.closeState !== 'no' || raw.bytes.includes('"type":"transfer"'), 'a transfer or the end')
      const heads = raw.bytes.toString().match(/HTTP\/1\.1 \d{3}/g) ?? []
      expect(heads.filter((head) => head !== 'HTTP/1.1 200')).toEqual([])
      expect(heads.length).toBeLessThanOrEqual(1)
      raw.reset()
    }
  })
})

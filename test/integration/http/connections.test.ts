import { describe, expect, it } from 'vitest'
import { transfer } from '../../support/test-stack.ts'
import { formatRequest } from './raw-connection.ts'
import { sharedRelayForFile } from './shared-relay.ts'

const sharedRelay = sharedRelayForFile()

const HEALTHZ = formatRequest('GET /healthz')
const OK = '{"status":"ok"}'
/** Requests that a connection serves. */
const REQUESTS_BOUND = 1_000
const MANY_HEADERS = formatRequest(
  'GET /healthz',
  Array.from({ length: 300 }, (_, at) => `x-${at}: 1`),
)
const stream = (query = 'symbols=AAPLc&format=ndjson', lines: readonly string[] = []): string =>
  formatRequest(`GET /v1/stream?${query}`, lines)

describe('a kept-alive connection', () => {
  it('serves two hundred pipelined requests in order', async () => {
    const raw = await sharedRelay.connect()
    const paths = Array.from({ length: 200 }, (_, at) => (at % 3 === 0 ? '/healthz' : at % 3 === 1 ? `/nothing${at}` : '/v1/ws'))
    raw.send(paths.map((path) => formatRequest(`GET ${path}`)).join(''))
    for (const path of paths) {
      const { status } = await raw.response()
      expect([path, status]).toEqual([path, path === '/healthz' ? 200 : path === '/v1/ws' ? 426 : 404])
    }
    expect(raw.bytes.length).toBe(0)
  })

  it('ends after its thousandth request', async () => {
    const raw = await sharedRelay.connect()
    raw.send(HEALTHZ.repeat(REQUESTS_BOUND))
    for (let count = 1; count <= REQUESTS_BOUND; count += 1) {
      const { headers, body } = await raw.response()
      expect([count, headers.get('connection'), body]).toEqual([count, count < REQUESTS_BOUND ? 'keep-alive' : 'close', OK])
    }
    await raw.ended()
  })

  it.each(['/healthz', '/metrics', '/nothing'])(
    'never answers an earlier request with the error of a later one, for %s',
    async (path) => {
      for (const behind of ['nonsense\r\n\r\n', MANY_HEADERS]) {
        const raw = await sharedRelay.connect()
        raw.send(formatRequest(`GET ${path}`) + behind)
        raw.finish()
        await raw.ended()
        const [first = 'nothing'] = raw.bytes.toString().split('\r\n')
        expect([path, first.slice(0, 12)]).not.toEqual([path, expect.stringMatching(/ 4(00|31)$/)])
      }
    },
  )

  it('ends when the client sends connection: close', async () => {
    const { raw, headers, body } = await sharedRelay.exchange(formatRequest('GET /healthz', ['connection: close']))
    expect([headers.get('connection'), body]).toEqual(['close', OK])
    await raw.ended()
  })

  it('serves more requests after an unused body', async () => {
    const { raw, status } = await sharedRelay.exchange(
      formatRequest('POST /healthz', ['content-length: 100000']),
      'x'.repeat(100_000),
      HEALTHZ,
    )
    expect(status).toBe(405)
    expect((await raw.response()).body).toBe(OK)
    raw.send(formatRequest('POST /healthz', ['transfer-encoding: chunked']), '5\r\nabcde\r\n0\r\nx-trailer: 1\r\n\r\n', HEALTHZ)
    expect((await raw.response()).status).toBe(405)
    expect((await raw.response()).body).toBe(OK)
  })

  it('serves a stream to a request with a body, which is not read as a request', async () => {
    const raw = await sharedRelay.connect()
    raw.send(formatRequest('GET /v1/stream?symbols=AAPLc&format=ndjson', [`content-length: ${HEALTHZ.length}`], HEALTHZ))
    expect((await raw.responseHead()).status).toBe(200)
    await raw.streamedText(/"type":"live"/)
    expect(raw.bytes.toString()).not.toContain(OK)
  })
})

describe('a stream', () => {
  it('may follow another answer on the same connection, and be requested one byte at a time', async () => {
    const raw = await sharedRelay.connect()
    raw.send(HEALTHZ)
    expect((await raw.response()).body).toBe(OK)
    await raw.sendSlowly(stream())
    expect((await raw.responseHead()).status).toBe(200)
    await raw.streamedText(/"type":"live"/)
  })

  it('that was pipelined behind another ends with it', async () => {
    const raw = await sharedRelay.connect()
    raw.send(stream().repeat(20))
    await raw.responseHead()
    await raw.streamedText(/"type":"live"/)
    transfer(sharedRelay.stack)
    await raw.streamedText(/"type":"transfer"/)
    raw.reset()
    await sharedRelay.waitForNoListeners()
  })

  it('that is reset leaves no listener and no descriptor, also during a write', async () => {
    await sharedRelay.expectNothingLeftAfter(async () => {
      for (let round = 0; round < 10; round += 1) {
        const raws = await Promise.all(Array.from({ length: 20 }, () => sharedRelay.connect()))
        for (const raw of raws) raw.send(stream('symbols=*&types=*&snapshot=false&format=ndjson'))
        await Promise.all(
          raws.map(async (raw) => {
            await raw.responseHead()
            await raw.streamedText(/"type":"live"/)
          }),
        )
        for (const raw of raws) raw.socket.pause()
        transfer(sharedRelay.stack, 'AAPLc', 100)
        for (const raw of raws) setImmediate(() => raw.reset())
        transfer(sharedRelay.stack, 'TSLAc', 100)
        await sharedRelay.waitForNoListeners()
      }
    })
  })

  it('ends when its client closes its half', async () => {
    const raw = await sharedRelay.connect()
    raw.send(stream())
    await raw.responseHead()
    await raw.streamedText(/"type":"live"/)
    raw.finish()
    await raw.ended()
    await sharedRelay.waitForNoListeners()
  })
})

describe('a client of HTTP/1.0', () => {
  const http10Request = (path: string, lines: readonly string[] = ['host: relay']) =>
    `${[`GET ${path} HTTP/1.0`, ...lines].join('\r\n')}\r\n\r\n`

  it.each(['host: relay', 'connection: keep-alive'])('is answered, and the connection stays only on request: %s', async (line) => {
    const { raw, status, headers } = await sharedRelay.exchange(http10Request('/nothing', ['host: relay', line]))
    expect(status).toBe(404)
    if (headers.get('connection') === 'keep-alive') {
      raw.send(http10Request('/healthz'))
      expect((await raw.response()).body).toBe(OK)
    } else await raw.ended()
  })

  it('receives a stream without chunks, which it could not read', async () => {
    const raw = await sharedRelay.connect()
    raw.send(http10Request('/v1/stream?symbols=AAPLc&types=transfer&format=ndjson'))
    const { status, headers } = await raw.responseHead()
    expect([status, headers.get('transfer-encoding')]).toEqual([200, undefined])
    await raw.until(() => raw.bytes.includes('"type":"live"'), 'live')
    transfer(sharedRelay.stack)
    await raw.until(() => /"type":"transfer".*\n$/.test(raw.bytes.toString()), 'a transfer')
    const types = raw.bytes
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).type)
    expect(types).toEqual(['hello', 'subscribed', 'snapshot', 'live', 'transfer'])
  })
})

it('an expectation of 100-continue is met before the answer', async () => {
  const raw = await sharedRelay.connect()
  raw.send(formatRequest('POST /v1/stream/AAPLc', ['expect: 100-continue', 'content-length: 5']))
  const first = await raw.responseHead()
  if (first.status === 100) {
    raw.send('abcde')
    expect((await raw.response()).status).toBe(405)
  } else expect([405, 417]).toContain(first.status)
})

describe('a connection', () => {
  it('ends when the client closes its half in the middle of a request', async () => {
    for (const bytes of [
      '',
      'GET',
      'GET /healthz HTTP/1.1\r\n',
      HEALTHZ.slice(0, -2),
      'POST /healthz HTTP/1.1\r\nhost: relay\r\ncontent-length: 5\r\n\r\nab',
    ]) {
      const raw = await sharedRelay.connect()
      raw.send(bytes)
      raw.finish()
      await raw.ended()
    }
  })

  it('leaves nothing behind after a reset at any byte of a request', async () => {
    await sharedRelay.expectNothingLeftAfter(async () => {
      const text = stream()
      for (let cut = 0; cut <= text.length; cut += 1) {
        const raw = await sharedRelay.connect()
        raw.send(text.slice(0, cut))
        if (cut % 2) await new Promise(setImmediate)
        raw.reset()
      }
    })
  })
})

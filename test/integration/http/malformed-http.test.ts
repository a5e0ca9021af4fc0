import { describe, expect, it } from 'vitest'
import { documents } from '../../../src/docs/documents.ts'
import { formatRequest } from './raw-connection.ts'
import { sharedRelayForFile } from './shared-relay.ts'

const sharedRelay = sharedRelayForFile()

const HEALTHZ = formatRequest('GET /healthz')
const headerLines = (count: number, value: string) => Array.from({ length: count }, (_, at) => `x-${at}: ${value}`)
const CLIENT_HELLO = Buffer.from(
  `16030100c1010000bd0303${'5a'.repeat(32)}20${'a5'.repeat(32)}0026${'1301'.repeat(19)}0100004e${'00'.repeat(78)}`,
  'hex',
)

/** Sends bytes and checks that one error record answers them and the connection ends. */
async function expectRefusal(bytes: string | Uint8Array): Promise<number> {
  const raw = await sharedRelay.connect()
  raw.send(bytes)
  const { status, headers, body } = await raw.response()
  expect(headers.get('access-control-allow-origin')).toBe('*')
  expect(JSON.parse(body)).toMatchObject({ code: status, message: expect.any(String), details: [{}] })
  expect(body).not.toMatch(/HPE_|node:|\/src\/|at \w+ \(/)
  await raw.ended()
  expect(raw.bytes.toString('latin1')).toBe('')
  return status
}

describe('input that is not HTTP', () => {
  it.each([
    ['a TLS handshake', CLIENT_HELLO],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['random bytes', Buffer.from(Array.from({ length: 512 }, (_, at) => (at * 167 + 13) % 256))],
    ['a PROXY line', 'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\nhost: relay\r\n\r\n'],
    ['a JSON-RPC request alone', '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}\r\n\r\n'],
    ['HTTP/1.2', 'GET /healthz HTTP/1.2\r\nhost: relay\r\n\r\n'],
    ['an unknown method', 'FETCH /healthz HTTP/1.1\r\nhost: relay\r\n\r\n'],
    ['a path with NUL', 'GET /health\0z HTTP/1.1\r\nhost: relay\r\n\r\n'],
  ])('such as %s is answered with 400, and the connection ends', async (_, bytes) => {
    expect(await expectRefusal(bytes)).toBe(400)
  })
})

describe('an ambiguous request', () => {
  const smuggled = 'GET /metrics HTTP/1.1\r\nhost: relay\r\n\r\n'
  it.each([
    ['a length and chunks', ['content-length: 5', 'transfer-encoding: chunked'], `0\r\n\r\n${smuggled}`],
    ['chunks and a length', ['transfer-encoding: chunked', 'content-length: 5'], `0\r\n\r\n${smuggled}`],
    ['two lengths', ['content-length: 0', `content-length: ${smuggled.length}`], smuggled],
    ['a negative length', ['content-length: -1'], smuggled],
    ['chunks of an unknown coding', ['transfer-encoding: chunked, cow'], `0\r\n\r\n${smuggled}`],
    ['a folded length', ['content-length:', ' 5'], smuggled],
    ['a space before the colon', ['content-length : 5'], smuggled],
    ['a header with NUL in it', ['x-odd: a\0b'], smuggled],
    ['a header with CR in it', ['x-odd: a\rcontent-length: 5'], smuggled],
    ['a header that ends with LF alone', ['x-odd: a\ncontent-length: 5'], smuggled],
  ])('with %s is refused, and the bytes behind it are not a request', async (_, lines, behind) => {
    expect(await expectRefusal(formatRequest('POST /healthz', lines, behind))).toBe(400)
  })

  it.each([
    ['a chunk whose size is not a number', `zz\r\n${smuggled}`],
    ['a chunk that is longer than it says', `1\r\nab\r\n0\r\n\r\n${smuggled}`],
    ['a chunk that ends with LF alone', `1\na\n0\n\n${smuggled}`],
  ])('with %s is answered at most, and the bytes behind it are not a request', async (_, chunks) => {
    const raw = await sharedRelay.connect()
    raw.send(formatRequest('POST /healthz', ['transfer-encoding: chunked'], chunks))
    await raw.ended()
    const answers = raw.bytes.toString('latin1').match(/HTTP\/1\.1 \d{3}/g) ?? []
    expect(['HTTP/1.1 400', 'HTTP/1.1 405']).toEqual(expect.arrayContaining(answers))
    expect(raw.bytes.toString()).not.toContain('stocktape_listeners')
  })

  it('with a second host is answered for the first one or refused', async () => {
    const { status, body } = await sharedRelay.exchange(formatRequest('GET /docs', ['host: elsewhere', 'connection: close']))
    expect([200, 400]).toContain(status)
    expect(body).not.toContain('elsewhere')
  })

  it.each([
    ['no host', 'GET /healthz HTTP/1.1\r\n\r\n'],
    ['no version', 'GET /healthz\r\n\r\n'],
    ['lines that end with LF alone', 'GET /healthz HTTP/1.1\nhost: relay\n\n'],
    ['an invalid host', 'GET /healthz HTTP/1.1\r\nhost: a b\r\nconnection: close\r\n\r\n'],
    ['an invalid absolute address', formatRequest('GET http://relay:99999/healthz', ['connection: close'])],
  ])('with %s is refused', async (_, bytes) => {
    expect(await expectRefusal(bytes)).toBe(400)
  })
})

describe('a request that is too large', () => {
  it.each([
    ['one header', formatRequest('GET /healthz', [`x-long: ${'x'.repeat(9_000)}`])],
    ['a Last-Event-ID', formatRequest('GET /v1/stream/AAPLc', [`last-event-id: ${'x'.repeat(10_240)}`])],
    ['its path', formatRequest(`GET /${'x'.repeat(9_000)}`)],
    ['its query', formatRequest(`GET /v1/stream?symbols=${'AAPLc,'.repeat(2_000)}`)],
    ['megabytes of header', formatRequest('GET /healthz', [`x-long: ${'x'.repeat(4 * 2 ** 20)}`])],
  ])('in %s is answered with 431, and the connection ends', async (_, bytes) => {
    const { raw, status } = await sharedRelay.exchange(bytes)
    expect(status).toBe(431)
    await raw.ended()
  })

  it.each([
    ['a request of 50', 'GET /healthz', 50, 200],
    ['a request of 51', 'GET /healthz', 51, 431],
    ['a handshake of 51', 'GET /v1/ws', 51, 431],
  ])('in its number of headers is refused: %s', async (_, start, count, status) => {
    const raw = await sharedRelay.connect()
    const upgrade = start.endsWith('/ws') ? ['upgrade: websocket', 'connection: upgrade'] : []
    // One of them is the host.
    raw.send(formatRequest(start, [...upgrade, ...headerLines(count - upgrade.length - 1, '1')]))
    expect((await raw.response()).status).toBe(status)
  })

  it.each([200, 500])('in its number of symbols is refused with a sentence, at the bound it is served: %i', async (count) => {
    const raw = await sharedRelay.connect()
    raw.send(formatRequest(`GET /v1/stream?symbols=${Array(count).fill('AAPLc').join(',')}`, ['connection: close']))
    const { status } = await raw.responseHead()
    expect(status).toBe(count > 200 ? 400 : 200)
  })

  it('in repetitions of one parameter is refused with a sentence', async () => {
    const { status, body } = await sharedRelay.exchange(formatRequest(`GET /v1/stream?${'symbols=AAPLc&'.repeat(500)}`))
    expect(status).toBe(400)
    expect(JSON.parse(body)).toMatchObject({ code: 400, message: expect.stringContaining('symbols') })
  })
})

describe('an answer', () => {
  it.each([
    ['a symbol', '/v1/stream/%0d%0aset-cookie:%20a=b'],
    ['a query', '/v1/stream?symbols=%0d%0aset-cookie:%20a=b'],
    ['a parameter', '/v1/stream?symbols=AAPLc&types=%0d%0aset-cookie:%20a=b'],
    ['a path', '/%0d%0aset-cookie:%20a=b'],
    ['a Last-Event-ID in the query', '/v1/stream?symbols=AAPLc&since=%0d%0aset-cookie:%20a=b'],
  ])('has no header injected by line breaks in %s', async (_, path) => {
    const { status, headers, body } = await sharedRelay.exchange(formatRequest(`GET ${path}`))
    expect([400, 404]).toContain(status)
    expect(headers.has('set-cookie')).toBe(false)
    expect(JSON.parse(body)).toMatchObject({ code: status })
  })
})

describe('a path', () => {
  const unknown = [
    ...['/../etc/passwd', '/%2e%2e/%2e%2e/etc/passwd', '/..%2f..%2fetc%2fpasswd', '/..%5c..%5cetc%5cpasswd'],
    ...['/%00', '//v1/stream?symbols=AAPLc', '/V1/STREAM/AAPLc', '/.env', '/v1/stream/%zz', '/v1/stream/%ff'],
    ...['/v1%2fstream?symbols=AAPLc', '/v1/stream%2fAAPLc', '/v1/stream/AAPLc/'],
    ...['/v1/stream/__proto__', '/v1/stream/constructor', '/__proto__', '/constructor', '/%', '/healthz/../metrics/../nothing'],
  ]
  it.each(unknown.map((path) => [path, 404]))('of %s is answered with %i and an error record', async (path, status) => {
    const answer = await sharedRelay.exchange(formatRequest(`GET ${path}`))
    expect(answer.status).toBe(status)
    expect(JSON.parse(answer.body)).toMatchObject({ code: status, details: [{}] })
  })

  const odd = [
    ...['/healthz?', '/healthz?a=%00', '/healthz#a', '/v1/../healthz', '/%68ealthz', 'http://relay/healthz', '*'],
    ...['http://elsewhere/healthz', 'ftp://relay/healthz', 'http://user:password@relay/healthz', 'http://relay:99999/healthz'],
  ]
  it.each(odd)('that is odd, or in absolute form, never fails: %s', async (path) => {
    expect([200, 400, 404]).toContain((await sharedRelay.exchange(formatRequest(`GET ${path}`))).status)
  })
})

describe('a host', () => {
  it.each([...['', 'a b', 'user@relay', '<script>', 'x'.repeat(300), 'réseau']])('called %j never fails', async (host) => {
    const { status, body } = await sharedRelay.exchange(`GET /docs HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
    expect([200, 400]).toContain(status)
    // The page does not depend on the host.
    if (status === 200) expect(body).toBe(new TextDecoder().decode(documents.get('/docs')?.bytes))
    else expect(body).not.toContain('<script>')
  })
})

describe('a method', () => {
  it.each([
    ['HEAD', 200],
    ['OPTIONS', 204],
    ['POST', 405],
    ['DELETE', 405],
  ])('%s on a stream is answered with %i', async (method, status) => {
    const raw = await sharedRelay.connect()
    raw.send(formatRequest(`${method} /v1/stream/AAPLc`, ['content-length: 0']), HEALTHZ)
    const answer = await raw.response({ toHead: method === 'HEAD' })
    expect(answer.status).toBe(status)
    if (status === 405) {
      expect(JSON.parse(answer.body)).toMatchObject({ code: 405, details: [{}] })
      expect(answer.headers.get('allow')).toContain('GET')
    } else expect(answer.body).toBe('')
    // The next answer follows without a stray byte.
    expect((await raw.response()).body).toBe('{"status":"ok"}')
    expect(await sharedRelay.listenerCount()).toBe(0)
  })

  it('TRACE is refused and echoes nothing', async () => {
    const { status, body } = await sharedRelay.exchange(
      formatRequest('TRACE /v1/stream/AAPLc', ['x-secret: of mine', 'connection: close']),
    )
    expect([[400, 404, 405].includes(status), body.includes('of mine')]).toEqual([true, false])
  })

  it('CONNECT opens no tunnel', async () => {
    const raw = await sharedRelay.connect()
    raw.send('CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: 127.0.0.1:22\r\n\r\nGET /healthz HTTP/1.1\r\nhost: relay\r\n\r\n')
    await raw.ended()
    expect(raw.bytes.toString('latin1')).not.toMatch(/^HTTP\/1\.1 2|SSH/)
  })
})

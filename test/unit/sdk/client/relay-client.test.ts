import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebSocketServer } from 'ws'
import { connect } from '../../../../src/sdk/client/connect.ts'
import { exportOf } from './fake-relay.ts'

type Handle = (request: IncomingMessage, response: ServerResponse) => unknown

/** A server that answers as a test says, and remembers what was asked. */
async function serve(handle: Handle) {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    handle(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  }
  onTestFinished(close)
  return { url, requests, server, close }
}

const refuse = (response: ServerResponse, code: number, reason: string, headers: Record<string, string> = {}) =>
  response
    .writeHead(code, headers)
    .end(JSON.stringify({ code, reason, message: `No: ${reason}.`, details: [{ suggest: ['AAPLc'] }] }))

const idOf = (seq: number) => ({ id: `e.${seq}` })

const COUNT = 2_007
const seqs = Array.from({ length: COUNT }, (_, at) => at + 1)

/** A history with these messages, as exports. */
const handleHistory: Handle = ({ url = '' }, response) => {
  const { searchParams } = new URL(url, 'http://x')
  const seqOf = (name: string, otherwise: number) => Number(searchParams.get(name)?.slice(2) ?? otherwise)
  const [after, before, through] = [seqOf('after', 0), seqOf('before', COUNT + 1), seqOf('through', COUNT)]
  const all = seqs.filter((seq) => seq > after && seq < before && seq <= through)
  const isDesc = searchParams.get('order') === 'desc'
  const messages = (isDesc ? all.toReversed() : all).slice(0, Number(searchParams.get('limit'))).map(idOf)
  const text = searchParams.get('receipt') === 'true' ? exportOf(messages) : messages.map((line) => JSON.stringify(line)).join('\n')
  response.end(`${text}\n`)
}

describe('the history', () => {
  it.each<[object, readonly number[], readonly string[]]>([
    [
      {},
      seqs,
      ['', '&after=e.1000', '&after=e.2000'].map(
        (after) => `/v1/events?symbols=AAPLc&limit=1000&format=ndjson&receipt=true${after}`,
      ),
    ],
    [
      { order: 'desc', through: 'e.2000' },
      seqs.slice(0, 2_000).reverse(),
      [
        '&through=e.2000&order=desc&limit=1000&format=ndjson&receipt=false',
        '&order=desc&limit=1000&format=ndjson&receipt=false&before=e.1001',
        '&order=desc&limit=1000&format=ndjson&receipt=false&before=e.1',
      ].map((query) => `/v1/events?symbols=AAPLc${query}`),
    ],
    [{ limit: 4 }, [1, 2, 3, 4], ['/v1/events?symbols=AAPLc&limit=4&format=ndjson&receipt=true']],
    [
      { limit: 1_002 },
      seqs.slice(0, 1_002),
      ['&limit=1000&format=ndjson&receipt=true', '&limit=2&format=ndjson&receipt=true&after=e.1000'].map(
        (query) => `/v1/events?symbols=AAPLc${query}`,
      ),
    ],
    [{ limit: 0 }, [], []],
    [
      { after: 'e.2', before: 'e.5' },
      [3, 4],
      ['/v1/events?symbols=AAPLc&after=e.2&before=e.5&limit=1000&format=ndjson&receipt=true'],
    ],
    [
      { since: new Date(0), until: '5m', types: ['nav'], minValue: 1, limit: 1 },
      [1],
      [
        '/v1/events?symbols=AAPLc&min_value=1&types=nav&since=1970-01-01T00%3A00%3A00.000Z&until=5m&limit=1&format=ndjson&receipt=true',
      ],
    ],
  ])('%j', async (options, expected, requested) => {
    const { url, requests } = await serve(handleHistory)
    const found: string[] = []
    for await (const { id } of connect(url).history('AAPLc', options)) found.push(id)
    expect(found).toEqual(expected.map((seq) => `e.${seq}`))
    expect(requests).toEqual(requested)
  })

  it('reads a page only when it is taken', async () => {
    const { url, requests } = await serve(handleHistory)
    for await (const { id } of connect(url).history('AAPLc')) if (id === 'e.1000') break
    expect(requests).toHaveLength(1)
  })

  it.each<[string, string]>([
    ['lacks its receipt', '{"id":"e.1"}\n'],
    [
      'has fewer messages than its receipt says',
      `${exportOf([idOf(1), idOf(2)])
        .split('\n')
        .slice(1)
        .join('\n')}\n`,
    ],
    ['has another message', exportOf([idOf(1)]).replace('"e.1"', '"e.2"')],
  ])('that %s is an error', async (_, text) => {
    const { url } = await serve((_, response) => response.end(text))
    const history = connect(url).history('AAPLc')[Symbol.asyncIterator]()
    await expect(history.next()).rejects.toMatchObject({ name: 'ConnectionError', code: 'not_a_relay', cause: expect.any(Error) })
  })

  it('is counted by its receipt where a page has no digests', async () => {
    vi.spyOn(globalThis.crypto, 'subtle', 'get').mockReturnValue(undefined as never)
    onTestFinished(() => void vi.restoreAllMocks())
    const texts = [exportOf([idOf(1)]).replace('"e.1"', '"e.2"'), '{"id":"e.1"}']
    const { url } = await serve((_, response) => response.end(texts.shift()))
    const relay = connect(url, { retry: { attempts: 0 } })
    expect(await Array.fromAsync(relay.history('AAPLc'))).toEqual([idOf(2)])
    await expect(Array.fromAsync(relay.history('AAPLc'))).rejects.toThrow('the receipt differs')
  })
})

describe('a request', () => {
  it.each([
    [400, 'bad_request'],
    [401, 'unauthorized'],
    [404, 'unknown_symbol'],
  ])('that is refused with %i throws', async (code, reason) => {
    const { url, requests } = await serve((_, response) => refuse(response, code, reason))
    await expect(connect(url).status()).rejects.toMatchObject({
      ...{ name: 'RelayError', code, reason, message: `No: ${reason}.`, suggest: ['AAPLc'] },
    })
    expect(requests).toHaveLength(1)
  })

  it('that another server refuses says so', async () => {
    const { url } = await serve((_, response) => response.writeHead(404).end('<html>'))
    await expect(connect(url).status()).rejects.toMatchObject({ name: 'ConnectionError', code: 'not_a_relay', cause: 'HTTP 404' })
  })

  it('that is refused for the moment is repeated, until its signal aborts', async () => {
    const abort = new AbortController()
    const { url, requests } = await serve((_, response) => {
      refuse(response, 429, 'too_many', { 'retry-after': '86400' })
      setTimeout(() => abort.abort(new Error('enough')), 20)
    })
    const history = connect(url).history('*', { signal: abort.signal })
    await expect(history[Symbol.asyncIterator]().next()).rejects.toThrow('enough')
    expect(requests).toHaveLength(1)
  })

  it('that breaks is repeated by a client that the relay has answered, and fails at once otherwise', async () => {
    const { url, requests } = await serve((_, response) => {
      if (requests.length > 3) return response.end(exportOf([{ id: 'a.1' }]))
      if (requests.length === 2) return response.end('{}')
      response.writeHead(200, { 'content-length': '99' }).write('{')
      return response.destroy()
    })
    const relay = connect(url)
    await expect(relay.status()).rejects.toMatchObject({ code: 'unreachable', cause: expect.any(Error) })
    expect(requests).toHaveLength(1)
    await relay.status()
    expect(await Array.fromAsync(relay.history('*'))).toEqual([{ id: 'a.1' }])
    expect(requests).toHaveLength(4)
  })

  it('goes below the path of the relay, with the key', async () => {
    const keys: (string | undefined)[] = []
    const { url, requests } = await serve(({ headers }, response) => {
      keys.push(headers.authorization)
      if (requests.at(-1)?.endsWith('APPL')) return refuse(response, 404, 'unknown_symbol')
      return response.end('{"snapshots":[],"rejected":[]}')
    })
    const relay = connect(`${url}/stocks`, { key: 'k' })
    await relay.status()
    await relay.snapshots(['AAPLc', 'TSLAc'])
    await expect(relay.snapshot('APPL')).rejects.toMatchObject({ code: 404, reason: 'unknown_symbol' })
    expect(requests).toEqual(['/stocks/v1/status', '/stocks/v1/snapshot?symbols=AAPLc%2CTSLAc', '/stocks/v1/snapshot?symbols=APPL'])
    expect(new Set(keys)).toEqual(new Set(['Bearer k']))
    expect([relay.url, relay.rpcUrl]).toEqual([`${url}/stocks/`, `${url}/stocks/rpc`])
  })
})

/** Sends a page to everybody, as a web server that is no relay. */
const handlePage: Handle = (_, response) => response.setHeader('content-type', 'text/html').end('<html>')

describe('a wrong URL', () => {
  it.each<[string, Handle | null, (url: string) => string, object]>([
    ['of a port where nothing listens', null, (url) => url, { code: 'unreachable', cause: expect.any(Error) }],
    [
      'with the scheme of TLS',
      handlePage,
      (url) => url.replace('http', 'https'),
      { code: 'unreachable', cause: expect.any(Error) },
    ],
    ['with the scheme of a WebSocket and another port', null, (url) => url.replace('http', 'ws'), { code: 'unreachable' }],
    ['of a page', handlePage, (url) => url, { code: 'not_a_relay', cause: expect.anything() }],
    [
      'of a path that a server lacks',
      (_, response) => response.writeHead(404).end('<html>'),
      (url) => url,
      { code: 'not_a_relay' },
    ],
    ['of a path that the relay lacks', (_, response) => refuse(response, 404, 'not_found'), (url) => url, { code: 404 }],
    ['without a scheme', null, (url) => url.slice(7), { code: 'bad_url' }],
    ['of another scheme', null, (url) => url.replace('http', 'ftp'), { code: 'bad_url' }],
  ])('%s is an error of each request and each stream', async (_, handle, wrong, error) => {
    const { url, close } = await serve(handle ?? handlePage)
    if (!handle) await close()
    const relay = connect(wrong(url))
    await expect(relay.status()).rejects.toMatchObject({ ...error, message: expect.stringContaining(' ') })
    await expect(relay.updates('*').next()).rejects.toMatchObject(error)
    for (const transport of ['websocket', 'sse'] as const)
      await expect(connect(wrong(url), { transport }).updates('*').next()).rejects.toMatchObject(error)
  })
})

describe('an API key', () => {
  it('is given in the first message of a WebSocket, and in the headers of a request, never in a URL', async () => {
    const { url, requests, server } = await serve(({ headers }, response) =>
      response.end(JSON.stringify({ key: headers.authorization })),
    )
    const sockets = new WebSocketServer({ server })
    onTestFinished(() => sockets.close())
    const first = once(sockets, 'connection').then(([socket]) => once(socket, 'message'))
    let calls = 0
    const relay = connect(url, { key: async () => `secret ${++calls}` })
    const stream = relay.updates('*')
    void stream.next().catch(() => {})
    expect(JSON.parse(String((await first)[0]))).toEqual({ type: 'auth', key: 'secret 1' })
    expect(await relay.status()).toEqual({ key: 'Bearer secret 2' })
    await stream.close()
    expect(requests.join()).not.toContain('secret')
  })

  it('that its function cannot give is an error', async () => {
    const key = () => Promise.reject(new Error('signed out'))
    const relay = connect('http://127.0.0.1:1', { key })
    const error = { code: 'no_key', cause: { message: 'signed out' } }
    await expect(relay.status()).rejects.toMatchObject(error)
    await expect(relay.updates('*').next()).rejects.toMatchObject(error)
  })
})

it.each([
  ['heartbeatS', () => connect('http://127.0.0.1', { heartbeatS: 5 } as object)],
  ['fill', () => connect('http://127.0.0.1').updates('*', { fill: true } as object)],
  ['strict', () => connect('http://127.0.0.1').updates('*', { strict: true } as object)],
  ['queueBound', () => connect('http://127.0.0.1').updates('*', { queueBound: 5 } as object)],
])('the former option %s is refused with the present one', (name, use) => {
  expect(use).toThrow(new RegExp(`the option ${name} is now \\w`))
})

describe('an event stream', () => {
  const hello = '{"type":"hello","id":"e.1","heartbeat_s":5,"source":"down","head":null,"demo":true}'
  const subscribed = '{"type":"subscribed","id":"e.1","rejected":[],"resume":"none"}'
  const nav = '{"type":"nav","id":"e.2","prev":null,"address":"0xa","symbol":"Ä€"}'

  it('is read whatever pieces its bytes come in', async () => {
    const bytes = Buffer.from(`: hi\nretry: 1000\n\ndata: ${hello}\n\ndata: ${subscribed}\n\nid: e.2\ndata: ${nav}\n\n`)
    const { url } = await serve(async (_, response) => {
      response.setHeader('content-type', 'text/event-stream')
      for (const byte of bytes) {
        response.write(Buffer.of(byte))
        await new Promise(setImmediate)
      }
    })
    const stream = connect(url, { transport: 'sse' }).updates('*')
    expect(await stream.next()).toMatchObject({ value: { id: 'e.2', symbol: 'Ä€' } })
    await stream.close()
  })

  it.each([
    [401, 'unauthorized'],
    [404, 'unknown_symbol'],
  ])('that is refused with %i ends, also where a WebSocket was tried first', async (code, reason) => {
    const { url, requests } = await serve((request, response) =>
      code === 404 && request.url === '/v1/status' ? response.end('{}') : refuse(response, code, reason),
    )
    await expect(connect(url).updates('APPL').next()).rejects.toMatchObject({ code, reason, suggest: ['AAPLc'] })
    expect([...new Set(requests.map((path) => path.split('?')[0]))]).toEqual([
      '/v1/ws',
      '/v1/status',
      ...(code === 404 ? ['/v1/stream'] : []),
    ])
  })

  it('that is refused for the moment waits as long as the relay asks', async () => {
    const { url } = await serve((_, response) => refuse(response, 503, 'full', { 'retry-after': '7' }))
    const waiting = Promise.withResolvers<number>()
    const stream = connect(url, { transport: 'sse' }).updates('*', {
      onState: ({ phase, retryAt }) => phase === 'waiting' && waiting.resolve((retryAt?.getTime() ?? 0) - Date.now()),
    })
    const next = stream.next()
    expect(await waiting.promise).toBeGreaterThanOrEqual(7_000)
    await stream.close()
    expect(await next).toMatchObject({ done: true })
  })
})

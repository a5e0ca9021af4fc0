import { describe, expect, it, onTestFinished } from 'vitest'
import { openApp } from '../../../src/relay/edge/http/http-app.ts'
import { listen } from '../../../src/relay/edge/http/http-server.ts'
import { Budget } from '../../../src/relay/edge/limits/budget.ts'
import { RateLimiter } from '../../../src/relay/edge/limits/rate-limiter.ts'
import { createRpcHttpHandler } from '../../../src/relay/gateway/rpc-http-handler.ts'
import { formatRequest, openRawConnection } from '../../integration/http/raw-connection.ts'
import { openTestStack, type TestStack } from '../../support/test-stack.ts'
import { openAnswers } from '../../unit/relay/gateway/shared-answers-fixture.ts'
import { highLimits, openedOnce, quantity, request } from './node-and-gateway.ts'
import { answerSummary, post, RawRpcSocket } from './raw-rpc-requests.ts'

const [BODY_BOUND_BYTES, MESSAGE_BOUND_BYTES] = [2 ** 19, 2 ** 17]
/** How much the relay reads of a body that is too large. */
const DISCARDED_BOUND_BYTES = 32 * 2 ** 20
const TEN_MB = 10_000_000

const stack = openedOnce((lifecycle) => openTestStack(highLimits, lifecycle))
const url = () => `${stack().relay.url}/rpc`
const openSocket = () => RawRpcSocket.open(stack())

const valid = '{"jsonrpc":"2.0","id":"good","method":"eth_chainId"}'
const validAnswer = ['good', 'result']
const withoutId = '{"jsonrpc":"2.0","method":"eth_chainId"}'
const accented = Buffer.from('{"jsonrpc":"2.0","id":"é😀","method":"eth_chainId"}')
/** A request of exactly this many bytes. */
const padded = (bytes: number): string => valid.replace('}', `${' '.repeat(bytes - valid.length)}}`)
const withBytes = (hex: string) => Buffer.concat([Buffer.from('{"id":"'), Buffer.from(hex, 'hex'), Buffer.from('"}')])
const nested = `${'['.repeat(60_000)}${']'.repeat(60_000)}`
const balance = request('eth_getBalance', [`0x${'a1'.repeat(20)}`, 'latest'], 2)

/** The answer to a body; null for none. */
const transports: Readonly<Record<string, (at: TestStack, body: string) => Promise<string | null>>> = {
  async HTTP(at, body) {
    const { status, headers, text } = await post(at, body)
    expect([status, headers.get('content-type')]).toEqual([text === '' ? 204 : 200, 'application/json'])
    return text === '' ? null : text
  },
  async WebSocket(at, body) {
    const socket = await RawRpcSocket.open(at)
    socket.send(body)
    socket.send(withoutId.replace('}', ',"id":"last"}'))
    const text = await socket.next()
    return text.includes('"last"') ? null : text
  },
}

// How a body is read is proved by the tests of the parts; here they are joined.
it.each(Object.entries(transports))('bodies over %s get their answers', async (_, ask) => {
  const idOf20Digits = '12345678901234567890'
  expect(await ask(stack(), withoutId.replace('}', `,"id":${idOf20Digits}}`))).toContain(`"id":${idOf20Digits},"result"`)
  for (const [body, expected] of [
    [withoutId, null],
    [`[${withoutId},${withoutId}]`, null],
    ['', [null, -32700]],
    [`{"jsonrpc":"2.0","id":7,"method":"eth_getLogs","params":${nested}}`, [7, -32602]],
    [JSON.stringify(Array(101).fill(balance)), Array(101).fill([2, -32600])],
  ] as const)
    expect(answerSummary(await ask(stack(), body))).toEqual(expected)
  const batch = [balance, request('eth_getBlockByNumber', ['latest', false], 1), { foo: 'boo' }]
  expect(JSON.parse((await ask(stack(), JSON.stringify(batch))) ?? '')).toMatchObject([
    { id: 2, result: '0x0' },
    { id: 1, result: { hash: stack().devnet.chain.head.hash } },
    { id: null, error: { code: -32600 } },
  ])
})

describe('an HTTP request', () => {
  it.each<[string, Record<string, string>, string?]>([
    ['the type of a form, as curl sends it', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['a credential and a cookie that the relay does not need', { authorization: 'Bearer unknown', cookie: 'a=b' }],
    ['a query, in which other nodes take a key', {}, '?key=mine'],
  ])('is accepted with %s', async (_, headers, query = '') => {
    const response = await fetch(url() + query, { method: 'POST', headers, body: valid })
    const result = quantity(stack().devnet.chainId)
    expect([response.status, await response.json()]).toEqual([200, { jsonrpc: '2.0', id: 'good', result }])
  })

  it('may come from the pages of every origin', async () => {
    const headers = { origin: 'https://wallet.example', 'access-control-request-method': 'POST' }
    const preflight = await fetch(url(), { method: 'OPTIONS', headers })
    expect([preflight.status, preflight.headers.get('access-control-allow-methods')]).toEqual([
      204,
      expect.stringContaining('POST'),
    ])
    expect(preflight.headers.get('access-control-allow-headers')?.toLowerCase()).toContain('content-type')
    expect((await post(stack(), valid)).headers.get('access-control-allow-origin')).toBe('*')
  })
})

const connect = async (at = url()) => {
  const raw = await openRawConnection(at)
  onTestFinished(() => void raw.socket.destroy())
  return raw
}
const head = (bytes: number): string => formatRequest('POST /rpc', [`content-length: ${bytes}`])
const chunkedHead = formatRequest('POST /rpc', ['transfer-encoding: chunked'])
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

describe('a body', () => {
  it('may have half a MiB; with more it is refused with 413, and fetch reads why', async () => {
    expect((await post(stack(), padded(BODY_BOUND_BYTES))).status).toBe(200)
    for (const body of [padded(BODY_BOUND_BYTES + 1), '['.repeat(TEN_MB)]) {
      const { status, text, headers } = await post(stack(), body)
      expect([status, answerSummary(text), headers.get('access-control-allow-origin')]).toEqual([413, [null, -32600], '*'])
      expect(text).toContain(String(BODY_BOUND_BYTES))
    }
  })

  it('that is too large leaves its connection usable, with a length or in chunks', async () => {
    const raw = await connect()
    for (const pieces of [
      [head(TEN_MB), padded(TEN_MB)],
      [chunkedHead, chunk(padded(TEN_MB)), '0\r\n\r\n'],
    ]) {
      raw.send(...pieces)
      expect((await raw.response()).status).toBe(413)
      raw.send(head(valid.length), valid)
      const { status, body } = await raw.response()
      expect([status, answerSummary(body)]).toEqual([200, validAnswer])
    }
  })

  it('is not read without end', async () => {
    const raw = await connect()
    const piece = Buffer.alloc(2 ** 20, ' ')
    raw.send(head(100 * DISCARDED_BOUND_BYTES))
    for (let sent = 0; sent < 2 * DISCARDED_BOUND_BYTES && raw.closeState === 'no'; sent += piece.length)
      await Promise.race([raw.sendSlowly([piece]), raw.until(() => raw.closeState !== 'no', 'the end').catch(() => {})])
    await raw.ended()
    expect(raw.bytes.toString()).toBe('')
  })

  it('may be cut anywhere, also within a character', async () => {
    const raw = await connect()
    raw.send(head(accented.length))
    await raw.sendSlowly([...accented].map((byte) => Buffer.of(byte)))
    expect(answerSummary((await raw.response()).body)).toEqual(['é😀', 'result'])
  })

  it('that is not UTF-8 is no JSON', async () => {
    for (const body of [withBytes('ff'), Buffer.from(valid, 'utf16le')])
      expect(answerSummary((await post(stack(), new Uint8Array(body))).text)).toEqual([null, -32700])
  })
})

describe('a slow body', () => {
  /** A connection to a server with short deadlines. */
  async function openServer() {
    const { answers, chainState } = openAnswers()
    const unsentBudget = new Budget(2 ** 20)
    const shared = {
      rates: new RateLimiter({ perSecond: 1_000, atOnce: 1_000 }),
      unsentBudget,
      addressOf: () => 'address',
      uptime: () => 0,
    }
    const handle = createRpcHttpHandler({ backend: { answers, chainState }, ...shared })
    const context = { clients: { isDraining: false }, authorize: () => null } as never
    const app = openApp({
      ...{ context, listCacheControl: '', loadDocuments: async () => new Map(), metrics: async () => '', metricsToken: undefined },
      nodeRoutes: [{ id: 'rpc', handle }],
      ...{ unreadyReasons: () => [], status: () => null as never },
    })
    const deadlines = { headers: 100, request: 200, keepAlive: 1_000, answer: 60_000, idle: 60_000, check: 10 }
    const server = await listen(app, { context, webSocketRoutes: [] }, { host: '127.0.0.1', port: 0, maxClients: 1 }, deadlines)
    onTestFinished(() => server.close(0))
    return () => connect(`http://127.0.0.1:${server.port}`)
  }

  it.each([
    ['with a length', head(1_000_000), ' '],
    ['in chunks', chunkedHead, chunk(' ')],
  ])('that arrives byte by byte is cut off, and others are answered meanwhile: %s', async (_, start, piece) => {
    const connectToServer = await openServer()
    const [slow, other] = [await connectToServer(), await connectToServer()]
    slow.send(start)
    other.send(head(2), '{}')
    expect(answerSummary((await other.response()).body)).toEqual([null, -32600])
    while (slow.closeState === 'no') await slow.sendSlowly([piece])
    expect(slow.bytes.toString()).not.toContain('200')
  })
})

describe('a message over a WebSocket', () => {
  it('may have 131,072 bytes', async () => {
    const socket = await openSocket()
    socket.send(padded(MESSAGE_BOUND_BYTES))
    expect(answerSummary(await socket.next())).toEqual(validAnswer)
  })

  const half = ' '.repeat(MESSAGE_BOUND_BYTES / 2)
  it.each<[string, readonly (string | Uint8Array)[], number]>([
    ['a byte more', [padded(MESSAGE_BOUND_BYTES + 1)], 1009],
    ['too many bytes in fewer characters', [JSON.stringify('é'.repeat(MESSAGE_BOUND_BYTES / 2))], 1009],
    ['100 MB', [Buffer.alloc(100_000_000, '[')], 1009],
    ['fragments that are too large together', [half, half, valid], 1009],
    ['thousands of fragments', [...Array(5_000).fill(' '), valid], 1008],
    ['text that is not UTF-8', [withBytes('c0af')], 1007],
  ])('of %s closes the connection, and no other', async (_, fragments, code) => {
    const [socket, other] = [await openSocket(), await openSocket()]
    for (const [index, fragment] of fragments.entries()) socket.send(fragment, { fin: index === fragments.length - 1 })
    expect(await socket.waitForClose()).toBe(code)
    other.send(valid)
    expect(answerSummary(await other.next())).toEqual(validAnswer)
  })

  it('that is binary is read as text and answered as text', async () => {
    const socket = await openSocket()
    for (const [body, expected] of [
      [Buffer.from(valid), validAnswer],
      [withBytes('ff'), [null, -32700]],
    ] as const) {
      socket.send(body, { binary: true })
      expect(answerSummary(await socket.next())).toEqual(expected)
    }
  })

  it('may come with thousands of others, which are each answered', async () => {
    const socket = await openSocket()
    const kinds = [
      ['', -32700],
      ['{"jsonrpc":"2.0","id":1}', -32600],
      ['{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":{"0":"newHeads"}}', -32602],
      ['{"jsonrpc":"2.0","id":1,"method":"eth_unsubscribe","params":[1]}', -32602],
    ] as const
    const messages = Array.from({ length: 3_500 }, (_, at) => kinds[at % kinds.length] ?? kinds[0])
    for (const [message] of messages) socket.send(message)
    await socket.until(() => socket.receivedTexts.length >= messages.length, 'every answer')
    const codes = socket.receivedTexts.map((text) => Number(answerSummary(text)?.[1]))
    expect(codes.sort()).toEqual(messages.map(([, code]) => Number(code)).sort())
  })
})

import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { type NodeRoute, openApp } from '../../../src/relay/edge/http/http-app.ts'
import { listen } from '../../../src/relay/edge/http/http-server.ts'
import { ByteBudget } from '../../../src/relay/edge/limits/byte-budget.ts'
import { RateLimiter } from '../../../src/relay/gateway/rate-limiter.ts'
import { RpcHttpHandler } from '../../../src/relay/gateway/rpc-http-handler.ts'
import { formatRequest, openRawConnection } from '../../integration/http/raw-connection.ts'
import { createTempFolder } from '../../support/child-program.ts'
import { needPrograms } from '../../support/debian-programs.ts'
import { openAnswers } from '../../unit/relay/gateway/shared-answers-fixture.ts'
import { answerSummary, expectNoUpstreamRequests, post, quietStackForFile } from './raw-rpc-requests.ts'

needPrograms('curl')

const BODY_BOUND_BYTES = 2 ** 19
/** How much the relay reads of a body that is too large. */
const DISCARDED_BOUND_BYTES = 32 * 2 ** 20
const TEN_MB = 10_000_000

const stack = quietStackForFile()
expectNoUpstreamRequests(stack)
afterEach(async () => {
  expect(answerSummary((await post(stack(), validRequest)).text)).toEqual(validAnswer)
})

const validRequest = '{"jsonrpc":"2.0","id":"good","method":"eth_chainId"}'
const validAnswer = ['good', 'result']
const connect = async (url = stack().relay.url) => {
  const raw = await openRawConnection(url)
  onTestFinished(() => void raw.socket.destroy())
  return raw
}
/** A request of exactly this many bytes. */
const paddedRequest = (bytes: number): string => validRequest.replace('}', `${' '.repeat(bytes - validRequest.length)}}`)
const requestHead = (bytes: number): string => formatRequest('POST /rpc', [`content-length: ${bytes}`])
const chunkedHead = formatRequest('POST /rpc', ['transfer-encoding: chunked'])
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

describe('a body that is too large', () => {
  it('has more than half a MiB', async () => {
    const { status: statusAtBound, text: textAtBound } = await post(stack(), paddedRequest(BODY_BOUND_BYTES))
    expect([statusAtBound, answerSummary(textAtBound)]).toEqual([200, validAnswer])
    const { status, text, headers } = await post(stack(), paddedRequest(BODY_BOUND_BYTES + 1))
    expect([status, answerSummary(text)]).toEqual([413, [null, -32600]])
    expect(text).toContain(String(BODY_BOUND_BYTES))
    expect(headers.get('access-control-allow-origin')).toBe('*')
  })

  it.each([
    ['JSON', paddedRequest(TEN_MB)],
    ['brackets', '['.repeat(TEN_MB)],
    ['zeros', '\u0000'.repeat(TEN_MB)],
  ])('is refused with 413, and fetch reads why: 10 MB of %s', async (_, body) => {
    const { status, text } = await post(stack(), body)
    expect([status, answerSummary(text)]).toEqual([413, [null, -32600]])
  })

  it.each([
    ['with its own headers', []],
    ['without Expect', ['-H', 'Expect:']],
    ['in chunks', ['-H', 'Transfer-Encoding: chunked']],
  ])('is refused with 413, and curl reads why: sent %s', async (_, options) => {
    const file = join(await createTempFolder({ onTestFinished }), 'body')
    await writeFile(file, paddedRequest(TEN_MB))
    const args = ['-sS', '-m', '20', '--data-binary', `@${file}`, ...options, '-w', '\n%{http_code}']
    const { stdout } = await promisify(execFile)('curl', [...args, `${stack().relay.url}/rpc`])
    const [text = '', status] = stdout.split('\n')
    expect([status, answerSummary(text)]).toEqual(['413', [null, -32600]])
  })

  it('leaves its connection usable, with a length or in chunks', async () => {
    const raw = await connect()
    for (const pieces of [
      [requestHead(TEN_MB), paddedRequest(TEN_MB)],
      [chunkedHead, chunk(paddedRequest(TEN_MB)), '0\r\n\r\n'],
    ]) {
      raw.send(...pieces)
      expect((await raw.response()).status).toBe(413)
      raw.send(requestHead(validRequest.length), validRequest)
      const { status, body } = await raw.response()
      expect([status, answerSummary(body)]).toEqual([200, validAnswer])
    }
  })

  it('is not read without end', async () => {
    const raw = await connect()
    const piece = Buffer.alloc(2 ** 20, ' ')
    raw.send(requestHead(100 * DISCARDED_BOUND_BYTES))
    for (let sent = 0; sent < 2 * DISCARDED_BOUND_BYTES && raw.closeState === 'no'; sent += piece.length)
      await Promise.race([raw.sendSlowly([piece]), raw.until(() => raw.closeState !== 'no', 'the end').catch(() => {})])
    await raw.ended()
    expect(raw.bytes.toString()).toBe('')
  })
})

describe('a body in pieces', () => {
  it('is answered once it is whole', async () => {
    const raw = await connect()
    raw.send(chunkedHead)
    await raw.sendSlowly([...validRequest].map(chunk))
    expect(raw.bytes.length).toBe(0)
    raw.send('0\r\n\r\n')
    expect(answerSummary((await raw.response()).body)).toEqual(validAnswer)
  })

  it('may be cut anywhere, also within a character', async () => {
    const raw = await connect()
    const body = Buffer.from('{"jsonrpc":"2.0","id":"é😀","method":"eth_chainId"}')
    raw.send(requestHead(body.length))
    await raw.sendSlowly([...body].map((byte) => Buffer.of(byte)))
    expect(answerSummary((await raw.response()).body)).toEqual(['é😀', 'result'])
  })

  it.each([
    ['a negative length', ['content-length: -1'], validRequest],
    ['two lengths', ['content-length: 5', 'content-length: 6'], validRequest],
    ['a length and chunks', ['content-length: 5', 'transfer-encoding: chunked'], chunk(validRequest)],
  ])('is refused with 400 where it is invalid HTTP: %s', async (_, headers, text) => {
    const raw = await connect()
    raw.send(formatRequest('POST /rpc', headers, text))
    const { status, body } = await raw.response()
    expect(status).toBe(400)
    expect(JSON.parse(body)).toMatchObject({ code: 400 })
    await raw.ended()
  })

  it('ends its connection where a chunk is invalid', async () => {
    const raw = await connect()
    raw.send(chunkedHead, chunk(validRequest), 'no chunk\r\n')
    await raw.ended()
    expect(raw.bytes.toString()).not.toContain('200')
  })

  it('is empty without a length', async () => {
    const raw = await connect()
    raw.send(formatRequest('POST /rpc'))
    expect(answerSummary((await raw.response()).body)).toEqual([null, -32700])
  })

  it.each(['reset', 'finish'] as const)('that breaks off with a %s reaches no node and frees its memory', async (way) => {
    // Together more than the relay may hold at a time.
    for (let round = 0; round < 160; round += 1) {
      const raw = await openRawConnection(stack().relay.url)
      await raw.sendSlowly([requestHead(BODY_BOUND_BYTES), paddedRequest(BODY_BOUND_BYTES - 1)])
      raw[way]()
      if (way === 'finish') await raw.ended()
    }
    expect((await post(stack(), paddedRequest(BODY_BOUND_BYTES))).status).toBe(200)
  })
})

describe('a slow body', () => {
  const body = '{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["latest"]}'

  /** A server with short deadlines, before a node that records calls and answers none. */
  async function openServer() {
    const { answers, chainState, upstreamCalls } = openAnswers()
    const shared = {
      rates: new RateLimiter(1_000),
      unsentBudget: new ByteBudget(2 ** 20),
      addressOf: () => 'address',
      uptime: () => 0,
    }
    const streams = { edge: { hub: { isDraining: false } }, authorize: () => null } as never
    const rpcHttp = new RpcHttpHandler({ backend: { answers, chainState }, ...shared })
    const route: NodeRoute = { id: 'rpc', handle: (...exchange) => rpcHttp.handle(...exchange) }
    const app = openApp({
      ...{ streams, nodeRoutes: [route], listCacheControl: '', loadDocuments: async () => new Map() },
      metrics: async () => '',
      metricsToken: undefined,
      unreadyReasons: () => [],
      status: () => null as never,
    })
    const deadlines = { headers: 100, request: 200, keepAlive: 1_000, answer: 60_000, idle: 60_000, check: 10 }
    const address = { host: '127.0.0.1', port: 0, maxClients: 1 }
    const server = await listen(app, { streams, webSocketRoutes: [] }, address, deadlines)
    onTestFinished(() => server.close(0))
    return { connectToServer: () => connect(`http://127.0.0.1:${server.port}`), upstreamCalls }
  }

  it.each([
    ['with a length', requestHead(1_000_000), ' '],
    ['in chunks', chunkedHead, chunk(' ')],
  ])('that arrives byte by byte is cut off, and others are answered meanwhile: %s', async (_, head, piece) => {
    const { connectToServer, upstreamCalls } = await openServer()
    const [slow, other] = [await connectToServer(), await connectToServer()]
    slow.send(head)
    other.send(requestHead(body.length), body)
    expect(answerSummary((await other.response()).body)).toEqual([1, -32602])
    while (slow.closeState === 'no') await slow.sendSlowly([piece])
    expect(slow.bytes.toString()).not.toContain('200')
    expect(upstreamCalls).toEqual([])
  })

  it('that stops half way is cut off', async () => {
    const { connectToServer, upstreamCalls } = await openServer()
    const raw = await connectToServer()
    raw.send(requestHead(1_000), body)
    await raw.ended()
    expect(raw.bytes.toString()).not.toContain('200')
    expect(upstreamCalls).toEqual([])
  })
})

it('thousands of malformed bodies at once are each answered', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 200 })
  onTestFinished(() => agent.destroy())
  const send = (body: string) =>
    new Promise<string>((resolve, reject) => {
      const outgoing = httpRequest(`${stack().relay.url}/rpc`, { agent, method: 'POST' }, (incoming) => {
        let text = ''
        incoming.setEncoding('utf8').on('data', (piece: string) => {
          text += piece
        })
        incoming.on('end', () => resolve(`${incoming.statusCode} ${text === '' ? '' : answerSummary(text)[1]}`))
      })
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  const kinds = [
    ['', '200 -32700'],
    ['['.repeat(5_000), '200 -32700'],
    ['{"jsonrpc":"2.0","id":1}', '200 -32600'],
    ['{"jsonrpc":"2.0","id":1,"method":"nothing"}', '200 -32601'],
    ['{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{}]}', '200 -32602'],
    ['{"jsonrpc":"2.0","method":"eth_getLogs","params":[{}]}', '204 '],
  ] as const
  const bodies = Array.from({ length: 3_000 }, (_, at) => kinds[at % kinds.length] ?? kinds[0])
  expect(await Promise.all(bodies.map(([body]) => send(body)))).toEqual(bodies.map(([, outcome]) => outcome))
})

import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { formatRequest, openRawConnection } from '../../integration/http/raw-connection.ts'
import { createTempFolder } from '../../support/child-program.ts'
import { answerSummary, expectNoUpstreamRequests, parseAnswer, post, quietStackForFile } from './raw-rpc-requests.ts'

/** How large a body may be, and what is read of one that is too large. */
const BODY_BOUND_BYTES = 2 ** 19
const DISCARDED_BOUND_BYTES = 32 * 2 ** 20
const TEN_MB = 10_000_000

const stack = quietStackForFile()
expectNoUpstreamRequests(stack)
afterEach(async () => {
  await expectServed()
})

const validRequest = '{"jsonrpc":"2.0","id":"good","method":"eth_chainId"}'
const expectServed = async () => {
  const { text } = await post(stack(), validRequest)
  expect(answerSummary(parseAnswer(text))).toEqual(['good', 'result'])
}
const connect = async () => {
  const raw = await openRawConnection(stack().relay.url)
  onTestFinished(() => void raw.socket.destroy())
  return raw
}
/** A request of exactly so many bytes. */
const paddedRequest = (bytes: number): string =>
  validRequest.replace('}', `${' '.repeat(bytes - validRequest.length)}}`)
const requestHead = (bytes: number): string => formatRequest('POST /rpc', [`content-length: ${bytes}`])
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

describe('a body that is too large', () => {
  it('is one of more than half a MiB', async () => {
    expect(answerSummary(parseAnswer((await post(stack(), paddedRequest(BODY_BOUND_BYTES))).text))).toEqual([
      'good',
      'result',
    ])
    const { status, text, headers } = await post(stack(), paddedRequest(BODY_BOUND_BYTES + 1))
    expect(status).toBe(413)
    expect(answerSummary(parseAnswer(text))).toEqual([null, -32600])
    expect(text).toContain(String(BODY_BOUND_BYTES))
    expect(headers.get('access-control-allow-origin')).toBe('*')
  })

  it.each([
    ['of JSON', paddedRequest(TEN_MB)],
    ['of nothing but brackets', '['.repeat(TEN_MB)],
    ['of zeros', '\u0000'.repeat(TEN_MB)],
  ])('is refused with 413, and fetch reads why: 10 MB %s', async (_, body) => {
    const { status, text } = await post(stack(), body)
    expect(status).toBe(413)
    expect(answerSummary(parseAnswer(text))).toEqual([null, -32600])
  })

  it.each([
    ['as curl does it', []],
    ['without asking first', ['-H', 'Expect:']],
    ['in chunks', ['-H', 'Transfer-Encoding: chunked']],
  ])('is refused with 413, and curl reads why: sent %s', async (_, options) => {
    const file = join(await createTempFolder({ onTestFinished }), 'body')
    await writeFile(file, paddedRequest(TEN_MB))
    const args = ['-sS', '-m', '20', '--data-binary', `@${file}`, ...options, '-w', '\n%{http_code}']
    const { stdout } = await promisify(execFile)('curl', [...args, `${stack().relay.url}/rpc`])
    const [text = '', status] = stdout.split('\n')
    expect(status).toBe('413')
    expect(answerSummary(parseAnswer(text))).toEqual([null, -32600])
  })

  it('leaves its connection usable, whether its length was said or not', async () => {
    const raw = await connect()
    for (const send of [
      () => raw.send(requestHead(TEN_MB), paddedRequest(TEN_MB)),
      () =>
        raw.send(formatRequest('POST /rpc', ['transfer-encoding: chunked']), chunk(paddedRequest(TEN_MB)), '0\r\n\r\n'),
    ]) {
      send()
      expect((await raw.response()).status).toBe(413)
      raw.send(requestHead(validRequest.length), validRequest)
      const { status, body } = await raw.response()
      expect([status, answerSummary(parseAnswer(body))]).toEqual([200, ['good', 'result']])
    }
  })

  it('is not read for ever', async () => {
    const raw = await connect()
    const piece = Buffer.alloc(2 ** 20, ' ')
    raw.send(requestHead(100 * DISCARDED_BOUND_BYTES))
    for (let sent = 0; sent < 2 * DISCARDED_BOUND_BYTES && raw.closeState === 'no'; sent += piece.length)
      await Promise.race([raw.sendSlowly([piece]), raw.until(() => raw.closeState !== 'no', 'the end').catch(() => {})])
    await raw.ended()
    expect(raw.bytes.toString()).toBe('')
  })
})

describe('a body that comes in pieces', () => {
  it('is answered once it is whole', async () => {
    const raw = await connect()
    raw.send(formatRequest('POST /rpc', ['transfer-encoding: chunked']))
    await raw.sendSlowly([...validRequest].map(chunk))
    expect(raw.bytes.length).toBe(0)
    raw.send('0\r\n\r\n')
    expect(answerSummary(parseAnswer((await raw.response()).body))).toEqual(['good', 'result'])
  })

  it('may be cut anywhere, also within a character', async () => {
    const raw = await connect()
    const body = Buffer.from('{"jsonrpc":"2.0","id":"é😀","method":"eth_chainId"}')
    raw.send(requestHead(body.length))
    await raw.sendSlowly([...body].map((byte) => Buffer.of(byte)))
    expect(answerSummary(parseAnswer((await raw.response()).body))).toEqual(['é😀', 'result'])
  })

  it.each([
    ['of a negative length', formatRequest('POST /rpc', ['content-length: -1'], validRequest)],
    ['of two lengths', formatRequest('POST /rpc', ['content-length: 5', 'content-length: 6'], validRequest)],
    [
      'of a length and chunks',
      formatRequest('POST /rpc', ['content-length: 5', 'transfer-encoding: chunked'], chunk(validRequest)),
    ],
  ])('and is no HTTP is refused with 400: one %s', async (_, bytes) => {
    const raw = await connect()
    raw.send(bytes)
    const { status, body } = await raw.response()
    expect(status).toBe(400)
    expect(JSON.parse(body)).toMatchObject({ code: 400 })
    await raw.ended()
  })

  it('ends its connection where a chunk is no chunk', async () => {
    const raw = await connect()
    raw.send(formatRequest('POST /rpc', ['transfer-encoding: chunked'], chunk(validRequest)), 'no chunk\r\n')
    await raw.ended()
    expect(raw.bytes.toString()).not.toContain('200')
  })

  it('is nothing without a length', async () => {
    const raw = await connect()
    raw.send(formatRequest('POST /rpc'))
    expect(answerSummary(parseAnswer((await raw.response()).body))).toEqual([null, -32700])
  })
})

describe('a body that breaks off', () => {
  it.each([
    ['with a reset', 'reset'],
    ['with an end', 'finish'],
  ] as const)('%s asks nothing, and what was held of it is given back', async (_, way) => {
    // Together more than may be held at a time.
    for (let round = 0; round < 160; round += 1) {
      const raw = await openRawConnection(stack().relay.url)
      await raw.sendSlowly([requestHead(BODY_BOUND_BYTES), paddedRequest(BODY_BOUND_BYTES - 1)])
      raw[way]()
      if (way === 'finish') await raw.ended()
    }
    const { status } = await post(stack(), paddedRequest(BODY_BOUND_BYTES))
    expect(status).toBe(200)
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
        incoming.on('end', () =>
          resolve(`${incoming.statusCode} ${text === '' ? '' : answerSummary(parseAnswer(text))[1]}`),
        )
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
  const many = Array.from({ length: 3_000 }, (_, at) => kinds[at % kinds.length] ?? kinds[0])
  const published = await Promise.all(many.map(([body]) => send(body)))
  expect(published).toEqual(many.map(([, answer]) => answer))
})

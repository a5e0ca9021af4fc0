import { afterEach, describe, expect, it } from 'vitest'
import {
  answerSummary,
  expectNoUpstreamRequests,
  parseAnswer,
  quietStackForFile,
  RawRpcSocket,
} from './raw-rpc-requests.ts'

const MESSAGE_BOUND_BYTES = 131_072

const stack = quietStackForFile()
expectNoUpstreamRequests(stack)
afterEach(async () => {
  expect(await (await RawRpcSocket.open(stack())).answersTo(validRequest)).toEqual([expect.stringContaining('"good"')])
})

const validRequest = '{"jsonrpc":"2.0","id":"good","method":"eth_chainId"}'
/** A request of exactly so many bytes. */
const paddedRequest = (bytes: number): string =>
  validRequest.replace('}', `${' '.repeat(bytes - validRequest.length)}}`)
const validAnswer = ['good', 'result']

describe('a message', () => {
  it('may have 131,072 bytes; one more closes with 1009', async () => {
    const line = await RawRpcSocket.open(stack())
    line.send(paddedRequest(MESSAGE_BOUND_BYTES))
    expect(answerSummary(parseAnswer(await line.next()))).toEqual(validAnswer)
    line.send(paddedRequest(MESSAGE_BOUND_BYTES + 1))
    expect(await line.waitForClose()).toBe(1009)
    expect(line.receivedTexts.length).toBe(1)
  })

  it('is counted in bytes', async () => {
    const line = await RawRpcSocket.open(stack())
    line.send(JSON.stringify('é'.repeat(MESSAGE_BOUND_BYTES / 2)))
    expect(await line.waitForClose()).toBe(1009)
  })

  it.each([10_000_000, 100_000_000])('of %d bytes closes with 1009', async (bytes) => {
    const line = await RawRpcSocket.open(stack())
    line.send(Buffer.alloc(bytes, '['))
    expect(await line.waitForClose()).toBe(1009)
  })

  it('in fragments is too large when they are together', async () => {
    const line = await RawRpcSocket.open(stack())
    line.send(' '.repeat(MESSAGE_BOUND_BYTES / 2), { fin: false })
    line.send(' '.repeat(MESSAGE_BOUND_BYTES / 2), { fin: false })
    line.send(validRequest)
    expect(await line.waitForClose()).toBe(1009)
  })

  it('in fragments is answered as a whole', async () => {
    const line = await RawRpcSocket.open(stack())
    const body = Buffer.from('{"jsonrpc":"2.0","id":"é😀","method":"eth_chainId"}')
    // Within a character, and one of them is empty.
    const cuts = [0, 23, 23, 26, body.length]
    cuts.slice(1).forEach((cut, at) => {
      line.send(body.subarray(cuts[at], cut), { fin: cut === body.length })
    })
    expect(answerSummary(parseAnswer(await line.next()))).toEqual(['é😀', 'result'])
  })

  it('in thousands of fragments closes the connection', async () => {
    const line = await RawRpcSocket.open(stack())
    for (let at = 0; at < 5_000; at += 1) line.send(' ', { fin: false })
    expect(await line.waitForClose()).toBe(1008)
  })

  it('that is binary is read as text is, and answered as text', async () => {
    const line = await RawRpcSocket.open(stack())
    expect(
      (await line.answersTo(Buffer.from(validRequest), { binary: true })).map((text) =>
        answerSummary(parseAnswer(text)),
      ),
    ).toEqual([validAnswer])
    const [error = ''] = await line.answersTo(Buffer.from([1, 2, 3]), { binary: true })
    expect(answerSummary(parseAnswer(error))).toEqual([null, -32700])
  })

  it('that is binary and not UTF-8 is a parse error', async () => {
    const line = await RawRpcSocket.open(stack())
    const body = Buffer.concat([
      Buffer.from(validRequest.slice(0, 30)),
      Buffer.of(0xff),
      Buffer.from(validRequest.slice(30)),
    ])
    const [error = ''] = await line.answersTo(body, { binary: true })
    expect(answerSummary(parseAnswer(error))).toEqual([null, -32700])
  })

  it.each(['ff', 'c0af', 'eda080', 'e282'])('of text that is not UTF-8 closes with 1007: %s', async (hex) => {
    const line = await RawRpcSocket.open(stack())
    line.send(Buffer.concat([Buffer.from('{"id":"'), Buffer.from(hex, 'hex'), Buffer.from('"}')]))
    expect(await line.waitForClose()).toBe(1007)
  })
})

it('thousands of malformed messages are each answered, and the connection stays', async () => {
  const line = await RawRpcSocket.open(stack())
  const kinds = [
    ['', -32700],
    ['['.repeat(100), -32700],
    ['{"jsonrpc":"2.0","id":1}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"nothing"}', -32601],
    ['{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":[]}', -32602],
    ['{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":{"0":"newHeads"}}', -32602],
    ['{"jsonrpc":"2.0","id":1,"method":"eth_unsubscribe","params":[1]}', -32602],
  ] as const
  const many = Array.from({ length: 3_500 }, (_, at) => kinds[at % kinds.length] ?? kinds[0])
  for (const [message] of many) line.send(message)
  await line.until(() => line.receivedTexts.length >= many.length, 'every answer')
  const codes = line.receivedTexts.map((text) => Number(answerSummary(parseAnswer(text))[1]))
  expect(codes.sort()).toEqual(many.map(([, code]) => Number(code)).sort())
})

import { afterEach, describe, expect, it } from 'vitest'
import { answerSummary, expectNoUpstreamRequests, quietStackForFile, RawRpcSocket } from './raw-rpc-requests.ts'

const MESSAGE_BOUND_BYTES = 131_072

const stack = quietStackForFile()
expectNoUpstreamRequests(stack)
const open = () => RawRpcSocket.open(stack())
afterEach(async () => {
  expect(await (await open()).answersTo(validRequest)).toEqual([expect.stringContaining('"good"')])
})

const validRequest = '{"jsonrpc":"2.0","id":"good","method":"eth_chainId"}'
/** A request of exactly this many bytes. */
const paddedRequest = (bytes: number): string => validRequest.replace('}', `${' '.repeat(bytes - validRequest.length)}}`)
const half = ' '.repeat(MESSAGE_BOUND_BYTES / 2)
const withBytes = (hex: string) => Buffer.concat([Buffer.from('{"id":"'), Buffer.from(hex, 'hex'), Buffer.from('"}')])

describe('a message', () => {
  it('may have 131,072 bytes; one more closes with 1009', async () => {
    const socket = await open()
    socket.send(paddedRequest(MESSAGE_BOUND_BYTES))
    expect(answerSummary(await socket.next())).toEqual(['good', 'result'])
    socket.send(paddedRequest(MESSAGE_BOUND_BYTES + 1))
    expect(await socket.waitForClose()).toBe(1009)
    expect(socket.receivedTexts.length).toBe(1)
  })

  it.each<[string, readonly (string | Uint8Array)[], number]>([
    ['too many bytes in fewer characters', [JSON.stringify('é'.repeat(MESSAGE_BOUND_BYTES / 2))], 1009],
    ['10 MB', [Buffer.alloc(10_000_000, '[')], 1009],
    ['100 MB', [Buffer.alloc(100_000_000, '[')], 1009],
    ['fragments that are too large together', [half, half, validRequest], 1009],
    ['thousands of fragments', [...Array(5_000).fill(' '), validRequest], 1008],
    ...['ff', 'c0af', 'eda080', 'e282'].map((hex): [string, Uint8Array[], number] => [
      `text with the bytes ${hex}, which are not UTF-8`,
      [withBytes(hex)],
      1007,
    ]),
  ])('of %s closes the connection', async (_, fragments, code) => {
    const socket = await open()
    for (const [index, fragment] of fragments.entries()) socket.send(fragment, { fin: index === fragments.length - 1 })
    expect(await socket.waitForClose()).toBe(code)
  })

  it('in fragments is answered as a whole', async () => {
    const socket = await open()
    const body = Buffer.from('{"jsonrpc":"2.0","id":"é😀","method":"eth_chainId"}')
    // One cut is within a character, and one fragment is empty.
    const cuts = [0, 23, 23, 26, body.length]
    cuts.slice(1).forEach((cut, at) => {
      socket.send(body.subarray(cuts[at], cut), { fin: cut === body.length })
    })
    expect(answerSummary(await socket.next())).toEqual(['é😀', 'result'])
  })

  it.each<[string, Uint8Array, readonly [id: unknown, outcome: unknown]]>([
    ['a valid request', Buffer.from(validRequest), ['good', 'result']],
    ['three bytes', Buffer.from([1, 2, 3]), [null, -32700]],
    ['a request that is not UTF-8', withBytes('ff'), [null, -32700]],
  ])('that is binary is read as text and answered as text: %s', async (_, body, expected) => {
    const answers = await (await open()).answersTo(body, { binary: true })
    expect(answers.map(answerSummary)).toEqual([expected])
  })
})

it('thousands of malformed messages are each answered, and the connection stays', async () => {
  const socket = await open()
  const kinds = [
    ['', -32700],
    ['['.repeat(100), -32700],
    ['{"jsonrpc":"2.0","id":1}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"nothing"}', -32601],
    ['{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":[]}', -32602],
    ['{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":{"0":"newHeads"}}', -32602],
    ['{"jsonrpc":"2.0","id":1,"method":"eth_unsubscribe","params":[1]}', -32602],
  ] as const
  const messages = Array.from({ length: 3_500 }, (_, at) => kinds[at % kinds.length] ?? kinds[0])
  for (const [message] of messages) socket.send(message)
  await socket.until(() => socket.receivedTexts.length >= messages.length, 'every answer')
  const codes = socket.receivedTexts.map((text) => Number(answerSummary(text)[1]))
  expect(codes.sort()).toEqual(messages.map(([, code]) => Number(code)).sort())
})

import { afterEach, describe, expect, it } from 'vitest'
import { answerIn, expectNothingAsked, gist, quietWorldOfFile, RpcLine } from './raw-rpc-requests.ts'

const MESSAGE_BOUND_BYTES = 131_072

const world = quietWorldOfFile()
expectNothingAsked(world)
afterEach(async () => {
  expect(await (await RpcLine.open(world())).saidTo(good)).toEqual([expect.stringContaining('"good"')])
})

const good = '{"jsonrpc":"2.0","id":"good","method":"eth_chainId"}'
/** A request of exactly so many bytes. */
const padded = (bytes: number): string => good.replace('}', `${' '.repeat(bytes - good.length)}}`)
const answered = ['good', 'result']

describe('a message', () => {
  it('may have 131,072 bytes; one more closes with 1009', async () => {
    const line = await RpcLine.open(world())
    line.send(padded(MESSAGE_BOUND_BYTES))
    expect(gist(answerIn(await line.next()))).toEqual(answered)
    line.send(padded(MESSAGE_BOUND_BYTES + 1))
    expect(await line.closing()).toBe(1009)
    expect(line.heard.length).toBe(1)
  })

  it('is counted in bytes', async () => {
    const line = await RpcLine.open(world())
    line.send(JSON.stringify('é'.repeat(MESSAGE_BOUND_BYTES / 2)))
    expect(await line.closing()).toBe(1009)
  })

  it.each([10_000_000, 100_000_000])('of %d bytes closes with 1009', async (bytes) => {
    const line = await RpcLine.open(world())
    line.send(Buffer.alloc(bytes, '['))
    expect(await line.closing()).toBe(1009)
  })

  it('in fragments is too large when they are together', async () => {
    const line = await RpcLine.open(world())
    line.send(' '.repeat(MESSAGE_BOUND_BYTES / 2), { fin: false })
    line.send(' '.repeat(MESSAGE_BOUND_BYTES / 2), { fin: false })
    line.send(good)
    expect(await line.closing()).toBe(1009)
  })

  it('in fragments is answered as a whole', async () => {
    const line = await RpcLine.open(world())
    const body = Buffer.from('{"jsonrpc":"2.0","id":"é😀","method":"eth_chainId"}')
    // Within a character, and one of them is empty.
    const cuts = [0, 23, 23, 26, body.length]
    cuts.slice(1).forEach((cut, at) => {
      line.send(body.subarray(cuts[at], cut), { fin: cut === body.length })
    })
    expect(gist(answerIn(await line.next()))).toEqual(['é😀', 'result'])
  })

  it('in thousands of fragments closes the connection', async () => {
    const line = await RpcLine.open(world())
    for (let at = 0; at < 5_000; at += 1) line.send(' ', { fin: false })
    expect(await line.closing()).toBe(1008)
  })

  it('that is binary is read as text is, and answered as text', async () => {
    const line = await RpcLine.open(world())
    expect((await line.saidTo(Buffer.from(good), { binary: true })).map((text) => gist(answerIn(text)))).toEqual([
      answered,
    ])
    const [error = ''] = await line.saidTo(Buffer.from([1, 2, 3]), { binary: true })
    expect(gist(answerIn(error))).toEqual([null, -32700])
  })

  it('that is binary and not UTF-8 is a parse error', async () => {
    const line = await RpcLine.open(world())
    const body = Buffer.concat([Buffer.from(good.slice(0, 30)), Buffer.of(0xff), Buffer.from(good.slice(30))])
    const [error = ''] = await line.saidTo(body, { binary: true })
    expect(gist(answerIn(error))).toEqual([null, -32700])
  })

  it.each(['ff', 'c0af', 'eda080', 'e282'])('of text that is not UTF-8 closes with 1007: %s', async (hex) => {
    const line = await RpcLine.open(world())
    line.send(Buffer.concat([Buffer.from('{"id":"'), Buffer.from(hex, 'hex'), Buffer.from('"}')]))
    expect(await line.closing()).toBe(1007)
  })
})

it('thousands of malformed messages are each answered, and the connection stays', async () => {
  const line = await RpcLine.open(world())
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
  await line.until(() => line.heard.length >= many.length, 'every answer')
  const codes = line.heard.map((text) => Number(gist(answerIn(text))[1]))
  expect(codes.sort()).toEqual(many.map(([, code]) => Number(code)).sort())
})

import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { openRelayFor } from '../../support/test-stack.ts'
import type { Responder } from '../../unit/chain/rpc/fake-endpoint.ts'
import { BOB, post, rpcCall, rpcResult, startManualDevnet } from '../../unit/devnet/devnet-client.ts'
import {
  expectSameAnswer,
  highRpcRateSettings,
  nodeWithOverrides,
  openGatewayForTest,
  request,
  throughRelay,
} from './node-and-gateway.ts'

const MIB = 2 ** 20
const BOUND_BYTES = 16 * MIB

type AnswerFormat = (id: number, result: string) => string
const standardFormat: AnswerFormat = (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`

/** A node whose answer to eth_getCode has so many bytes in all, however it writes it. */
const longAnswer =
  (bytes: number, write: AnswerFormat = standardFormat): Responder =>
  ({ id }, response) => {
    const padding = bytes - write(id, '"0x"').length
    const text = write(id, `"0x${'a'.repeat(padding)}"`)
    response.writeHead(200, { 'content-type': 'application/json' }).end(text)
  }

async function openRelayWithAnswer(answering: Responder) {
  const devnet = await startManualDevnet()
  const upstream = await nodeWithOverrides(devnet, ({ method }) => (method === 'eth_getCode' ? answering : null))
  return {
    upstream,
    node: throughRelay(devnet, await openRelayFor({ ...devnet, rpcUrl: upstream.url }, highRpcRateSettings)),
  }
}

const getCode = (node: Parameters<typeof rpcCall>[0]) => rpcCall(node, 'eth_getCode', BOB, 'latest')
const digest = (text: unknown) => createHash('sha256').update(String(text)).digest('hex')

describe('a long answer', () => {
  it.each<[string, AnswerFormat]>([
    ['as nodes write it', standardFormat],
    ['with its fields in another order', (id, result) => `{"result":${result},"id":${id},"jsonrpc":"2.0"}`],
    [
      'with room between its fields',
      (id, result) => `{\n  "jsonrpc" : "2.0",\n  "id" : ${id},\n  "result" : ${result}\n}\n`,
    ],
    [
      'with a field that nobody knows',
      (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result},"usage":{"cu":19}}`,
    ],
  ])('of 16 MiB is passed on to the last byte: %s', async (_, write) => {
    const { node } = await openRelayWithAnswer(longAnswer(BOUND_BYTES, write))
    const { status, result } = await getCode(node)
    expect(status).toBe(200)
    const expected = `0x${'a'.repeat(BOUND_BYTES - write(1, '"0x"').length)}`
    // The id that the node is asked by may have more digits than the client's.
    expect(String(result).length).toBeGreaterThan(expected.length - 4)
    expect(String(result).length).toBeLessThanOrEqual(expected.length)
    expect(digest(result)).toBe(digest(expected.slice(0, String(result).length)))
  })

  it('over 16 MiB is -32000 with HTTP 200, in a sentence that says the bound', async () => {
    const { node } = await openRelayWithAnswer(longAnswer(BOUND_BYTES + 1))
    const { status, error } = await getCode(node)
    expect({ status, error }).toEqual({
      status: 200,
      error: { code: -32000, message: expect.stringMatching(/16,?777,?216|16 MiB/) },
    })
    expect(await rpcResult(node, 'eth_getBalance', BOB, 'latest')).toBe('0x0')
  })

  it('with an error beside it is passed on as that error', async () => {
    const data = 'd'.repeat(MIB)
    const { node } = await openRelayWithAnswer(({ id }, response) => {
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: 3, message: 'execution reverted', data } }))
    })
    const { status, json } = await post(node, request('eth_getCode', [BOB, 'latest']))
    expect({ status, json }).toEqual({
      status: 200,
      json: { jsonrpc: '2.0', id: 1, error: { code: 3, message: 'execution reverted', data } },
    })
  })

  it('to another question is no answer', async () => {
    const { node } = await openRelayWithAnswer(
      ({ id }, response) => void response.end(standardFormat(id + 7, `"0x${'a'.repeat(MIB)}"`)),
    )
    expect(await getCode(node)).toMatchObject({ status: 200, error: { code: -32000 } })
  })

  it('that breaks off is no answer', async () => {
    const { node } = await openRelayWithAnswer(({ id }, response) => {
      const text = standardFormat(id, `"0x${'a'.repeat(MIB)}"`)
      response.writeHead(200, { 'content-length': text.length }).write(text.slice(0, -2))
      setImmediate(() => response.destroy())
    })
    expect(await getCode(node)).toMatchObject({ status: 200, error: { code: -32000 } })
  })

  it('in a batch leaves the others their own: what is over 16 MiB in all is refused by itself', async () => {
    const { node } = await openRelayWithAnswer(longAnswer(9 * MIB))
    const { status, json } = await post(node, [
      request('eth_getCode', [BOB, 'latest'], 1),
      request('eth_getCode', [BOB, 'pending'], 2),
      request('eth_getBalance', [BOB, 'latest'], 3),
    ])
    expect(status).toBe(200)
    const given = { result: expect.any(String) }
    const refused = { error: { code: -32000 } }
    // Whichever comes first is given.
    const [first, second] = JSON.stringify(json).startsWith('[{"jsonrpc":"2.0","id":1,"result"')
      ? [given, refused]
      : [refused, given]
    expect(json).toMatchObject([
      { id: 1, ...first },
      { id: 2, ...second },
      { id: 3, result: '0x0' },
    ])
  })
})

describe('a block with thousands of logs', () => {
  it('is answered as the node answers it', async () => {
    const own = await openGatewayForTest()
    for (let raw = 1n; raw <= 5_000n; raw += 1n) own.devnet.transfer({ symbol: 'AAPLc', raw })
    own.devnet.makeFlashblock()
    const { hash } = own.devnet.seal()
    expect(await expectSameAnswer(own, 'eth_getLogs', { blockHash: hash })).toHaveLength(5_000)
    await expectSameAnswer(own, 'eth_getBlockByNumber', 'latest', true)
  })
})

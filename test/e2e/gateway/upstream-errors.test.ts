import { describe, expect, it } from 'vitest'
import { openRelayFor } from '../../support/test-stack.ts'
import {
  errorResponder,
  type Responder,
  rawResponder,
  resultResponder,
  sendJson,
} from '../../unit/chain/rpc/fake-endpoint.ts'
import { BOB, post, rpcCall, rpcResult, startManualDevnet } from '../../unit/devnet/devnet-client.ts'
import { highRpcRateSettings, nodeWithOverrides, request, throughRelay } from './node-and-gateway.ts'

/** A relay whose node answers one method as it is told, and the rest as the devnet does. */
async function openRelayWithFailingMethod(method: string, answering: Responder, more: readonly string[] = []) {
  const devnet = await startManualDevnet()
  const upstream = await nodeWithOverrides(devnet, (question) => (question.method === method ? answering : null))
  const rpcUrl = [upstream.url, ...more].join()
  return {
    devnet,
    upstream,
    node: throughRelay(devnet, await openRelayFor({ ...devnet, rpcUrl }, highRpcRateSettings)),
  }
}

const rpcErrorAnswer =
  (status: number, error: unknown): Responder =>
  ({ id }, response) =>
    sendJson(response, { jsonrpc: '2.0', id, error }, status)

describe("an upstream's error", () => {
  it.each<[string, Record<string, unknown>]>([
    ['of the node', { code: -32000, message: 'header not found' }],
    ['of a range that is too large', { code: -32602, message: 'query exceeds max results 20000' }],
    ['with data that is a text', { code: -32000, message: 'no such state', data: '0x08c379a0' }],
    ['with data that is an object', { code: -32000, message: 'no', data: { from: 1, list: [null, 'ß', { a: true }] } }],
    ['with data that is null', { code: -32000, message: 'no', data: null }],
    ['with a code that only this provider knows', { code: 15, message: 'unheard of' }],
    ['without words', { code: -32000, message: '' }],
  ])('is passed on with its code, message and data: one %s', async (_, error) => {
    const { node } = await openRelayWithFailingMethod('eth_getBalance', rpcErrorAnswer(200, error))
    const { status, json: published } = await post(node, request('eth_getBalance', [BOB, 'latest'], 5))
    expect({ status, told: published }).toEqual({ status: 200, told: { jsonrpc: '2.0', id: 5, error } })
  })

  it('is passed on inside a batch', async () => {
    const error = { code: -32000, message: 'no such state', data: { at: [null, 1] } }
    const { node } = await openRelayWithFailingMethod('eth_getBalance', rpcErrorAnswer(200, error))
    const { status, json: published } = await post(node, [request('eth_getBalance', [BOB, 'latest'], 6)])
    expect({ status, told: published }).toEqual({ status: 200, told: [{ jsonrpc: '2.0', id: 6, error }] })
  })

  it.each([400, 404, 413, 500, 503])('is passed on in JSON-RPC where it comes with HTTP %i', async (status) => {
    const error = { code: -32011, message: 'no backend is currently healthy to serve traffic' }
    const { node } = await openRelayWithFailingMethod('eth_getCode', rpcErrorAnswer(status, error))
    expect(await rpcCall(node, 'eth_getCode', BOB, 'latest')).toMatchObject({ status: 200, error })
  })

  it('about one question keeps no other from being answered, in whatever words it comes', async () => {
    const { node } = await openRelayWithFailingMethod(
      'eth_getBalance',
      errorResponder(200, -32000, 'something nobody has heard of'),
    )
    for (const tag of ['latest', 'pending', 'safe', 'finalized']) {
      expect((await rpcCall(node, 'eth_getBalance', BOB, tag)).error?.message).toBe('something nobody has heard of')
      expect(await rpcResult(node, 'eth_getCode', BOB, tag)).toBe('0x')
    }
  })

  it('is kept by nobody: whoever asks again is answered anew', async () => {
    let answering = errorResponder(200, -32000, 'header not found')
    const { node } = await openRelayWithFailingMethod('eth_getBalance', (question, response) =>
      answering(question, response),
    )
    expect((await rpcCall(node, 'eth_getBalance', BOB, 'latest')).error?.message).toBe('header not found')
    answering = resultResponder('0x7')
    expect(await rpcResult(node, 'eth_getBalance', BOB, 'latest')).toBe('0x7')
  })
})

describe('an upstream that says nothing that can be read', () => {
  it.each<[string, Responder]>([
    ['a page of HTML', rawResponder(200, '<html>', { 'content-type': 'text/html' })],
    ['a page of HTML with HTTP 502', rawResponder(502, '<html>Bad Gateway</html>')],
    ['no body', rawResponder(200)],
    ['no JSON-RPC', (_, response) => sendJson(response, { hello: 'world' })],
    [
      'the answer to another question',
      (_, response) => sendJson(response, { jsonrpc: '2.0', id: 999_999, result: '0x1' }),
    ],
    ['half an answer', (_, response) => void response.writeHead(200, { 'content-length': 99 }).end('{"jsonrpc":')],
    ['no answer but the end of the connection', (_, response) => void response.destroy()],
  ])('is -32000 with HTTP 200: %s', async (_, answering) => {
    const { node } = await openRelayWithFailingMethod('eth_getBalance', answering)
    const published = await rpcCall(node, 'eth_getBalance', BOB, 'latest')
    expect(published).toMatchObject({ status: 200, error: { code: -32000, message: expect.stringMatching(/\S/) } })
    expect(published.result).toBeUndefined()
  })

  it('does not matter where another upstream answers', async () => {
    const other = await startManualDevnet()
    const { node } = await openRelayWithFailingMethod('eth_getBalance', rawResponder(502), [other.rpcUrl])
    expect(await rpcResult(node, 'eth_getBalance', BOB, 'latest')).toBe('0x0')
  })
})

describe('an upstream that times out', () => {
  it('is -32000 with HTTP 200, and holds up nothing else', async () => {
    const { devnet, node } = await openRelayWithFailingMethod('eth_getBalance', () => {})
    const silent = rpcCall(node, 'eth_getBalance', BOB, 'latest')
    expect(await rpcResult(node, 'eth_getCode', BOB, 'latest')).toBe('0x')
    expect(await silent).toMatchObject({ status: 200, error: { code: -32000 } })
    expect(await rpcResult(node, 'eth_chainId')).toBe(`0x${devnet.chainId.toString(16)}`)
  })

  it('over many blocks is -32000 with HTTP 200', async () => {
    const devnet = await startManualDevnet()
    const upstream = await nodeWithOverrides(devnet, ({ method, params }) =>
      method === 'eth_getLogs' && JSON.stringify(params).includes(BOB) ? () => {} : null,
    )
    const node = throughRelay(devnet, await openRelayFor({ ...devnet, rpcUrl: upstream.url }, highRpcRateSettings))
    const published = await rpcCall(node, 'eth_getLogs', { fromBlock: 'finalized', toBlock: 'latest', address: BOB })
    expect(published).toMatchObject({ status: 200, error: { code: -32000 } })
    const batch = await post(node, [
      request('eth_getLogs', [{ fromBlock: 'safe', address: BOB }]),
      request('eth_chainId'),
    ])
    expect(batch).toMatchObject({ status: 200, json: [{ error: { code: -32000 } }, { result: expect.any(String) }] })
  })
})

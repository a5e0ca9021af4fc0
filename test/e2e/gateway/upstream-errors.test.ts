import { describe, expect, it } from 'vitest'
import { relayOn } from '../../support/test-stack.ts'
import { type Answering, bare, json, refusal, result } from '../../unit/chain/rpc/fake-endpoint.ts'
import { ask, BOB, manual, post, read } from '../../unit/devnet/devnet-client.ts'
import { eager, request, standIn, through } from './node-and-gateway.ts'

/** A relay whose node answers one method as it is told, and the rest as the devnet does. */
async function open(method: string, answering: Answering, more: readonly string[] = []) {
  const devnet = await manual()
  const upstream = await standIn(devnet, (question) => (question.method === method ? answering : null))
  const rpcUrl = [upstream.url, ...more].join()
  return { devnet, upstream, node: through(devnet, await relayOn({ ...devnet, rpcUrl }, eager)) }
}

const failing =
  (status: number, error: unknown): Answering =>
  ({ id }, response) =>
    json(response, { jsonrpc: '2.0', id, error }, status)

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
    const { node } = await open('eth_getBalance', failing(200, error))
    const { status, json: told } = await post(node, request('eth_getBalance', [BOB, 'latest'], 5))
    expect({ status, told }).toEqual({ status: 200, told: { jsonrpc: '2.0', id: 5, error } })
  })

  it('is passed on inside a batch', async () => {
    const error = { code: -32000, message: 'no such state', data: { at: [null, 1] } }
    const { node } = await open('eth_getBalance', failing(200, error))
    const { status, json: told } = await post(node, [request('eth_getBalance', [BOB, 'latest'], 6)])
    expect({ status, told }).toEqual({ status: 200, told: [{ jsonrpc: '2.0', id: 6, error }] })
  })

  it.each([400, 404, 413, 500, 503])('is passed on in JSON-RPC where it comes with HTTP %i', async (status) => {
    const error = { code: -32011, message: 'no backend is currently healthy to serve traffic' }
    const { node } = await open('eth_getCode', failing(status, error))
    expect(await ask(node, 'eth_getCode', BOB, 'latest')).toMatchObject({ status: 200, error })
  })

  it('about one question keeps no other from being answered, in whatever words it comes', async () => {
    const { node } = await open('eth_getBalance', refusal(200, -32000, 'something nobody has heard of'))
    for (const tag of ['latest', 'pending', 'safe', 'finalized']) {
      expect((await ask(node, 'eth_getBalance', BOB, tag)).error?.message).toBe('something nobody has heard of')
      expect(await read(node, 'eth_getCode', BOB, tag)).toBe('0x')
    }
  })

  it('is kept by nobody: whoever asks again is answered anew', async () => {
    let answering = refusal(200, -32000, 'header not found')
    const { node } = await open('eth_getBalance', (question, response) => answering(question, response))
    expect((await ask(node, 'eth_getBalance', BOB, 'latest')).error?.message).toBe('header not found')
    answering = result('0x7')
    expect(await read(node, 'eth_getBalance', BOB, 'latest')).toBe('0x7')
  })
})

describe('an upstream that says nothing that can be read', () => {
  it.each<[string, Answering]>([
    ['a page of HTML', bare(200, '<html>', { 'content-type': 'text/html' })],
    ['a page of HTML with HTTP 502', bare(502, '<html>Bad Gateway</html>')],
    ['no body', bare(200)],
    ['no JSON-RPC', (_, response) => json(response, { hello: 'world' })],
    ['the answer to another question', (_, response) => json(response, { jsonrpc: '2.0', id: 999_999, result: '0x1' })],
    ['half an answer', (_, response) => void response.writeHead(200, { 'content-length': 99 }).end('{"jsonrpc":')],
    ['no answer but the end of the connection', (_, response) => void response.destroy()],
  ])('is -32000 with HTTP 200: %s', async (_, answering) => {
    const { node } = await open('eth_getBalance', answering)
    const told = await ask(node, 'eth_getBalance', BOB, 'latest')
    expect(told).toMatchObject({ status: 200, error: { code: -32000, message: expect.stringMatching(/\S/) } })
    expect(told.result).toBeUndefined()
  })

  it('does not matter where another upstream answers', async () => {
    const other = await manual()
    const { node } = await open('eth_getBalance', bare(502), [other.rpcUrl])
    expect(await read(node, 'eth_getBalance', BOB, 'latest')).toBe('0x0')
  })
})

describe('an upstream that times out', () => {
  it('is -32000 with HTTP 200, and holds up nothing else', async () => {
    const { devnet, node } = await open('eth_getBalance', () => {})
    const silent = ask(node, 'eth_getBalance', BOB, 'latest')
    expect(await read(node, 'eth_getCode', BOB, 'latest')).toBe('0x')
    expect(await silent).toMatchObject({ status: 200, error: { code: -32000 } })
    expect(await read(node, 'eth_chainId')).toBe(`0x${devnet.chainId.toString(16)}`)
  })

  it('over many blocks is -32000 with HTTP 200', async () => {
    const devnet = await manual()
    const upstream = await standIn(devnet, ({ method, params }) =>
      method === 'eth_getLogs' && JSON.stringify(params).includes(BOB) ? () => {} : null,
    )
    const node = through(devnet, await relayOn({ ...devnet, rpcUrl: upstream.url }, eager))
    const told = await ask(node, 'eth_getLogs', { fromBlock: 'finalized', toBlock: 'latest', address: BOB })
    expect(told).toMatchObject({ status: 200, error: { code: -32000 } })
    const batch = await post(node, [
      request('eth_getLogs', [{ fromBlock: 'safe', address: BOB }]),
      request('eth_chainId'),
    ])
    expect(batch).toMatchObject({ status: 200, json: [{ error: { code: -32000 } }, { result: expect.any(String) }] })
  })
})

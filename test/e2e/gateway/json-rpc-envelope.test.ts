import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openRelayFor } from '../../support/test-stack.ts'
import { BOB, post, rpcCall, startManualDevnet } from '../../unit/devnet/devnet-client.ts'
import { type GatewayStack, openGatewayStack, quantity, request, throughRelay } from './node-and-gateway.ts'

let stack: GatewayStack
beforeAll(async () => {
  stack = await openGatewayStack()
})
afterAll(() => stack.stop())

const chainId = () => quantity(stack.devnet.chainId)
const send = (body: unknown, headers: Record<string, string> = {}) => post(stack.node, body, headers)
/** A body as it is written, since JSON that is read and written again may be another. */
const textOf = async (body: string) => {
  const response = await fetch(stack.node.rpcUrl, { method: 'POST', body })
  return { status: response.status, text: await response.text() }
}

describe('a request', () => {
  it.each<[string, unknown]>([
    ['an integer', 7],
    ['nought', 0],
    ['a negative integer', -1],
    ['an integer that no double holds', '__12345678901234567890'],
    ['a fraction', '__1.5'],
    ['a text', 'seven'],
    ['an empty text', ''],
    ['null', null],
  ])('is answered with jsonrpc 2.0 and its own id: %s', async (_, id) => {
    const written = typeof id === 'string' && id.startsWith('__') ? id.slice(2) : JSON.stringify(id)
    const { status, text } = await textOf(`{"jsonrpc":"2.0","id":${written},"method":"eth_chainId","params":[]}`)
    expect(status).toBe(200)
    expect(text.replaceAll(' ', '')).toMatch(new RegExp(`"id":${written}[,}]`))
    expect(JSON.parse(text)).toEqual({ jsonrpc: '2.0', id: JSON.parse(written), result: chainId() })
  })

  it('is answered as the node answers it, and in JSON', async () => {
    const body = request('eth_getBlockByNumber', ['latest', true], 11)
    const [published, direct] = [await send(body), await post(stack.devnet, body)]
    expect(published.json).toEqual(direct.json)
    expect(published.headers.get('content-type')).toBe('application/json')
    expect(published.status).toBe(200)
  })

  it.each(['application/json; charset=utf-8', 'text/plain', 'application/x-www-form-urlencoded', 'nonsense'])(
    'may come as %s',
    async (type) => {
      expect(await send(request('eth_chainId'), { 'content-type': type })).toMatchObject({
        status: 200,
        json: { result: chainId() },
      })
    },
  )

  it('needs no credential, and bears any that a client is used to send', async () => {
    const headers = { authorization: 'Bearer nobody', cookie: 'a=b' }
    expect(await send(request('eth_chainId'), headers)).toMatchObject({ status: 200, json: { result: chainId() } })
  })

  it('may leave out params where the method takes none', async () => {
    expect((await send({ ...request('eth_chainId'), params: undefined })).json).toMatchObject({ result: chainId() })
  })

  it('may have fields that nobody knows', async () => {
    expect((await send({ ...request('eth_chainId'), extra: 1 })).json).toMatchObject({ result: chainId() })
  })

  it('without an id is a notification: nothing is answered', async () => {
    const { status, text } = await textOf('{"jsonrpc":"2.0","method":"eth_chainId","params":[]}')
    expect({ status, text }).toEqual({ status: 204, text: '' })
  })

  it.each<[string, unknown, number]>([
    ['a body that is not JSON', '{"jsonrpc":', -32700],
    ['an empty body', '', -32700],
    ['a body that is no object', '5', -32600],
    ['no jsonrpc', { ...request('eth_chainId'), jsonrpc: undefined }, -32600],
    ['another version of JSON-RPC', { ...request('eth_chainId'), jsonrpc: '1.0' }, -32600],
    ['no method', { ...request('eth_chainId'), method: undefined }, -32600],
    ['a method that is no string', { ...request('eth_chainId'), method: 5 }, -32600],
    ['params that are a text', { ...request('eth_chainId'), params: 'latest' }, -32600],
    ['an id that is a list', { ...request('eth_chainId'), id: [1] }, -32600],
    ['params by name', { ...request('eth_getBalance'), params: { address: BOB, block: 'latest' } }, -32602],
    ['an unknown method', request('eth_sendRawTransaction', ['0x00']), -32601],
    ['a method of another namespace', request('net_version'), -32601],
    ['a name of every object', request('constructor'), -32601],
    ['a subscription without a socket', request('eth_subscribe', ['logs', {}]), -32601],
  ])('is refused with an error of JSON-RPC 2.0, HTTP 200, for %s', async (_, body, code) => {
    const { status, json } = await send(body)
    expect({ status, json }).toEqual({
      status: 200,
      json: { jsonrpc: '2.0', id: expect.toSatisfy((id) => id === 1 || id === null), error: expect.anything() },
    })
    expect(json).toMatchObject({ error: { code, message: expect.stringMatching(/\S/) } })
  })

  it('over half a MiB is refused with 413, and one just below it is read', async () => {
    const padded = (bytes: number) => JSON.stringify(request('eth_chainId')).padEnd(bytes)
    expect(await textOf(padded(2 ** 19))).toMatchObject({ status: 200 })
    const { status, text } = await textOf(padded(2 ** 19 + 1))
    expect({ status, ...JSON.parse(text) }).toMatchObject({ status: 413, error: { code: -32600 } })
  })
})

describe('an unknown method', () => {
  it('is asked of nobody, and named in the refusal', async () => {
    const devnet = await startManualDevnet()
    const node = throughRelay(devnet, await openRelayFor(devnet))
    const published = await rpcCall(node, 'eth_estimateGas', {})
    expect(published).toMatchObject({
      status: 200,
      error: { code: -32601, message: expect.stringContaining('eth_estimateGas') },
    })
    expect(devnet.requests.unknown).toBe(0)
  })
})

describe('a batch', () => {
  it('answers each request by its id, with its own result or error', async () => {
    const batch = [
      request('eth_chainId', [], 'a'),
      request('eth_nothing', [], 2),
      request('eth_getBalance', [BOB, 'newest'], 3),
      'rubbish',
      request('eth_blockNumber', [], null),
    ]
    const { status, json } = await send(batch)
    expect(status).toBe(200)
    expect(json).toHaveLength(5)
    expect(json).toEqual(
      expect.arrayContaining([
        { jsonrpc: '2.0', id: 'a', result: chainId() },
        { jsonrpc: '2.0', id: 2, error: expect.objectContaining({ code: -32601 }) },
        { jsonrpc: '2.0', id: 3, error: expect.objectContaining({ code: -32602 }) },
        { jsonrpc: '2.0', id: null, error: expect.objectContaining({ code: -32600 }) },
        { jsonrpc: '2.0', id: null, result: quantity(stack.devnet.chain.head.number) },
      ]),
    )
  })

  it('answers as the node answers it', async () => {
    const batch = [
      request('eth_getBlockByNumber', ['latest', true], 1),
      request('eth_getLogs', [{ fromBlock: 'latest', toBlock: 'pending' }], 2),
      request('eth_getBalance', [stack.devnet.custodian, 'pending'], 3),
    ]
    expect((await send(batch)).json).toEqual((await post(stack.devnet, batch)).json)
  })

  it('holds up to 50 requests', async () => {
    const batch = Array.from({ length: 50 }, (_, id) => request('eth_getTransactionCount', [BOB, 'latest'], id))
    expect((await send(batch)).json).toEqual(batch.map(({ id }) => ({ jsonrpc: '2.0', id, result: '0x0' })))
  })

  it('of 51 is refused as a whole, each request by its id', async () => {
    const batch = Array.from({ length: 51 }, (_, id) => request('eth_chainId', [], id))
    const error = { code: -32600, message: expect.stringContaining('50') }
    expect((await send(batch)).json).toMatchObject(batch.map(({ id }) => ({ id, error })))
  })

  it('of none is refused', async () => {
    expect((await send([])).json).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32600 } })
  })

  it('leaves out what has no id, and says nothing where nothing has', async () => {
    const silent = { ...request('eth_chainId'), id: undefined }
    expect((await send([silent, request('eth_chainId', [], 4)])).json).toEqual([
      { jsonrpc: '2.0', id: 4, result: chainId() },
    ])
    expect(await textOf(JSON.stringify([silent, silent]))).toEqual({ status: 204, text: '' })
  })

  it('keeps every digit of every id', async () => {
    const { text } = await textOf(
      '[{"jsonrpc":"2.0","id":12345678901234567890,"method":"eth_chainId"},{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}]',
    )
    expect(text).toContain('"id":12345678901234567890')
    expect(text).toContain('"id":1,')
  })

  it('counts each of its requests: over the rate all are refused with -32005 and HTTP 429', async () => {
    const devnet = await startManualDevnet()
    const node = throughRelay(devnet, await openRelayFor(devnet, { RPC_RATE: '5' }))
    const batch = Array.from({ length: 6 }, (_, id) => request('eth_chainId', [], id))
    const { status, headers, json } = await post(node, batch)
    expect(status).toBe(429)
    expect(headers.get('retry-after')).toMatch(/^\d+$/)
    expect(json).toMatchObject(batch.map(({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32005 } })))
    expect((await post(node, batch.slice(1))).status).toBe(200)
  })
})

describe('the address of the relay', () => {
  it.each(['GET', 'PUT', 'DELETE'])('refuses %s with the error record, and says what is answered', async (method) => {
    const response = await fetch(stack.node.rpcUrl, { method })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toContain('POST')
    expect(await response.json()).toMatchObject({ code: 405, message: expect.any(String), details: [{}] })
  })

  it('lets the pages of every origin ask', async () => {
    const headers = { origin: 'https://wallet.example', 'access-control-request-method': 'POST' }
    const asked = { ...headers, 'access-control-request-headers': 'content-type' }
    const preflight = await fetch(stack.node.rpcUrl, { method: 'OPTIONS', headers: asked })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    expect(preflight.headers.get('access-control-allow-methods')).toContain('POST')
    expect(preflight.headers.get('access-control-allow-headers')?.toLowerCase()).toContain('content-type')
    const { headers: answered } = await send(request('eth_chainId'), { origin: 'https://wallet.example' })
    expect(answered.get('access-control-allow-origin')).toBe('*')
    expect(answered.has('access-control-allow-credentials')).toBe(false)
  })

  it('answers under a query, as a client with a key of its own sends it', async () => {
    const response = await fetch(`${stack.node.rpcUrl}?key=mine`, {
      method: 'POST',
      body: JSON.stringify(request('eth_chainId')),
    })
    expect(await response.json()).toMatchObject({ result: chainId() })
  })
})

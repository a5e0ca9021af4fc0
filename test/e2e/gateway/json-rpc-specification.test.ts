import Big from 'big.js'
import { describe, expect, it } from 'vitest'
import { post as postJson } from '../../unit/devnet/devnet-client.ts'
import { gatewayWithTransfers, quantity, request } from './node-and-gateway.ts'
import {
  answerSummary,
  bodyText,
  expectExchange,
  parseAnswers,
  quietStackForFile,
  type RpcExchange,
  rawIdOf,
  rpcTransports,
} from './raw-rpc-requests.ts'

const stack = quietStackForFile()

const ADDRESS = `0x${'a1'.repeat(20)}`
/** Only the node can answer it. */
const balance = { jsonrpc: '2.0', method: 'eth_getBalance', params: [ADDRESS, 'latest'] }
/** The relay answers it by itself. */
const chain = { jsonrpc: '2.0', method: 'eth_chainId' }
const unknown = { jsonrpc: '2.0', method: 'eth_noSuchMethod' }

/** The examples of the JSON-RPC 2.0 specification, with methods of the relay. */
const exchanges: readonly RpcExchange[] = [
  ['a call with positional parameters', { ...balance, id: 1 }, [1, 'result'], '"jsonrpc":"2.0"', '"result":"0x0"'],
  ['a call with swapped parameters', { ...balance, params: ['latest', ADDRESS], id: 2 }, [2, -32602]],
  ['named parameters', { ...balance, params: { address: ADDRESS, block: 'latest' }, id: 3 }, [3, -32602], 'position'],
  ['named, swapped', { ...balance, params: { block: 'latest', address: ADDRESS }, id: 4 }, [4, -32602], 'position'],
  ['named parameters that are empty', { ...balance, params: {}, id: 5 }, [5, -32602], 'position'],
  ['a call without params where the method takes none', { ...chain, id: 6 }, [6, 'result']],
  ['a call with an unknown field', { ...chain, extra: 1, id: 7 }, [7, 'result']],
  ['a notification', balance, null],
  ['a notification of a method without parameters', chain, null],
  ['a notification of an unknown method', unknown, null],
  ['a notification whose parameters do not fit', { ...balance, params: [1, 2, 3, 4, 5] }, null],
  ['a notification with named parameters', { ...balance, params: { address: ADDRESS } }, null],
  ['a batch of notifications alone', [balance, chain, { ...unknown, params: [7] }], null],
  [
    'a mixed batch',
    [
      { ...balance, id: '1' },
      balance,
      { ...chain, id: '2' },
      { foo: 'boo' },
      { jsonrpc: '2.0', method: 'foo.get', params: { name: 'myself' }, id: '5' },
      { ...chain, params: [], id: '9' },
    ],
    [
      ['1', 'result'],
      ['2', 'result'],
      [null, -32600],
      ['5', -32601],
      ['9', 'result'],
    ],
  ],
  [
    'a batch with a wrong parameter, a string and the id null',
    [
      { ...chain, id: 'a' },
      { ...unknown, id: 2 },
      { ...balance, params: [ADDRESS, 'newest'], id: 3 },
      'text',
      request('eth_blockNumber', [], null),
    ],
    [
      ['a', 'result'],
      [2, -32601],
      [3, -32602],
      [null, -32600],
      [null, 'result'],
    ],
  ],
  [
    'requests with one id in a batch',
    [chain, balance, chain].map((call) => ({ ...call, id: 7 })),
    [
      [7, 'result'],
      [7, 'result'],
      [7, 'result'],
    ],
  ],
]

const sameText = (received: string, id: string) => received === id
const sameString = (received: string, id: string) => JSON.parse(received) === JSON.parse(id)
const sameNumber = (received: string, id: string) => received !== 'null' && new Big(received).eq(id)
const ids: readonly (readonly [id: string, isSame: (received: string, id: string) => boolean])[] = [
  ...['""', '"a"', '"seven"', '"\\u00e9\\ud83d\\ude00"', '"é😀"', '"\\n\\"\\\\\\/\\u2028\\u0000"', '"\\ud800"', '"null"'].map(
    (id) => [id, sameString] as const,
  ),
  ...['0', '7', '-1', '1.5', '0.1', '9007199254740991', '9007199254740993', '12345678901234567890', '1e400', 'null'].map(
    (id) => [id, sameText] as const,
  ),
  // The relay may write the same number in another way.
  ...['-0', '1.0', '1.50', '1e2', '1E+2', '1e21', '1e-400', '1.00000000000000000001', '0.10000000000000000001'].map(
    (id) => [id, sameNumber] as const,
  ),
]
const withId = (id: string, rest = '"method":"eth_chainId"') => `{"jsonrpc":"2.0","id":${id},${rest}}`
const requestsWithId: readonly (readonly [string, (id: string) => string])[] = [
  ['a result', (id) => withId(id)],
  ['a result in a batch', (id) => `[{"jsonrpc":"2.0","method":"eth_chainId","id":${id}}]`],
  ['an error', (id) => withId(id, '"method":"eth_noSuchMethod"')],
  ['an invalid request', (id) => `{"jsonrpc":"1.0","id":${id},"method":"eth_chainId"}`],
]

describe.each(rpcTransports)('over %s', (_, open) => {
  it.each(exchanges)('answers as the specification says: %s', async (...exchange) => {
    const { answer, replyTo } = await open(stack())
    const [, body, expected] = exchange
    expectExchange(await (expected === null ? replyTo(bodyText(body)) : answer(bodyText(body))), exchange)
    // A late answer to a notification would arrive before this one.
    if (expected === null) expect(answerSummary(await answer(bodyText({ ...balance, id: 'next' })))).toEqual(['next', 'result'])
  })

  it.each(ids)('returns the id %s with every kind of answer', async (id, isSame) => {
    const { answer } = await open(stack())
    for (const [kind, write] of requestsWithId) {
      const text = await answer(write(id))
      expect(isSame(rawIdOf(text), id), `${kind} came under ${rawIdOf(text)}`).toBe(true)
      if (kind === 'a result') expect(JSON.parse(text).result).toBe(quantity(stack().devnet.chainId))
    }
  })

  it('returns every digit of every id of a batch', async () => {
    const { answer } = await open(stack())
    const batch = ['12345678901234567890', '"12345678901234567890"', '1', '1.5', '9007199254740993', 'null']
    const text = await answer(`[${batch.map((id) => withId(id)).join()}]`)
    expect(parseAnswers(text)).toHaveLength(batch.length)
    for (const id of batch) expect(text).toContain(`"id":${id},`)
  })
})

describe('over HTTP', () => {
  const gateway = gatewayWithTransfers()
  const chainIdAnswer = () => ({ jsonrpc: '2.0', id: 1, result: quantity(gateway().devnet.chainId) })
  const fetchRpc = (init: RequestInit, query = '') => fetch(`${gateway().node.rpcUrl}${query}`, init)

  it.each<[string, unknown]>([
    ['a request', request('eth_getBlockByNumber', ['latest', true], 11)],
    [
      'a batch',
      [
        request('eth_getBlockByNumber', ['latest', true], 1),
        request('eth_getLogs', [{ fromBlock: 'latest', toBlock: 'pending' }], 2),
        request('eth_getBalance', [ADDRESS, 'pending'], 3),
      ],
    ],
    ['a batch of 50', Array.from({ length: 50 }, (_, id) => request('eth_getTransactionCount', [ADDRESS, 'latest'], id))],
  ])('answers %s with the JSON of the node', async (_, body) => {
    const [ours, direct] = [await postJson(gateway().node, body), await postJson(gateway().devnet, body)]
    expect(ours.json).toEqual(direct.json)
    expect([ours.status, ours.headers.get('content-type')]).toEqual([200, 'application/json'])
  })

  it.each<[string, Record<string, string>, string?]>([
    ['a charset', { 'content-type': 'application/json; charset=utf-8' }],
    ['the type of text', { 'content-type': 'text/plain' }],
    ['the type of a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['an invalid type', { 'content-type': 'nonsense' }],
    ['a credential and a cookie that it does not need', { authorization: 'Bearer unknown', cookie: 'a=b' }],
    ['a query, in which other nodes take a key', {}, '?key=mine'],
  ])('accepts a request with %s', async (_, headers, query) => {
    const response = await fetchRpc({ method: 'POST', headers, body: bodyText(request('eth_chainId')) }, query)
    expect([response.status, await response.json()]).toEqual([200, chainIdAnswer()])
  })

  it('refuses a subscription, which needs a socket', async () => {
    const { status, json } = await postJson(gateway().node, request('eth_subscribe', ['logs', {}]))
    expect({ status, json }).toMatchObject({ status: 200, json: { id: 1, error: { code: -32601 } } })
  })

  it.each(['GET', 'PUT', 'DELETE'])('refuses %s with the error record and the methods that it allows', async (method) => {
    const response = await fetchRpc({ method })
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toContain('POST')
    expect(await response.json()).toMatchObject({ code: 405, message: expect.any(String), details: [{}] })
  })

  it('allows the pages of every origin', async () => {
    const headers = { origin: 'https://wallet.example', 'access-control-request-method': 'POST' }
    const preflight = await fetchRpc({
      method: 'OPTIONS',
      headers: { ...headers, 'access-control-request-headers': 'content-type' },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    expect(preflight.headers.get('access-control-allow-methods')).toContain('POST')
    expect(preflight.headers.get('access-control-allow-headers')?.toLowerCase()).toContain('content-type')
    const { headers: answered } = await postJson(gateway().node, request('eth_chainId'), headers)
    expect(answered.get('access-control-allow-origin')).toBe('*')
    expect(answered.has('access-control-allow-credentials')).toBe(false)
  })
})

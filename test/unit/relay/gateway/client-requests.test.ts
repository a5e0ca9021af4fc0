import fc from 'fast-check'
import { expect, it } from 'vitest'
import { methods } from '../../../../src/protocol/json-rpc-methods.ts'
import { decodeText } from '../../../../src/relay/gateway/rpc-request-parser.ts'
import { openBody } from './shared-answers-fixture.ts'

const ADDRESS = `0x${'a1'.repeat(20)}`
const WORD = `0x${'0b'.repeat(32)}`

const request = (method: unknown, params?: unknown, id: unknown = 'mine') => ({ jsonrpc: '2.0', id, method, params })
const chain = { jsonrpc: '2.0', method: 'eth_chainId' }
const chainId = JSON.stringify({ ...chain, id: 1 })
const withId = (id: string) => chainId.replace('"id":1', `"id":${id}`)
const balance = { jsonrpc: '2.0', method: 'eth_getBalance', params: [ADDRESS, 'latest'] }
const getLogs = (params: string) => `{"jsonrpc":"2.0","id":7,"method":"eth_getLogs","params":${params}}`
const MINE = '"mine"'
const repeat = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))

/**
 * What a client sends, a string as it is, and the answer in short: its id with its error code or `result`, for a batch those
 * of each, and nothing for no answer; and what it contains.
 */
type Exchange = [name: string, body: unknown, expected: string, ...fragments: string[]]
const all = (count: number, outcome: number | 'result', idAt = (at: number): number | null => at) =>
  repeat(count, (at) => `${idAt(at)} ${outcome}`).join()
const nullId = () => null

const unreadable: readonly (readonly [name: string, body: string])[] = [
  ['nothing', ''],
  ['half a request', chainId.slice(0, -1)],
  ['two requests in a row', `${chainId}${chainId}`],
  ['a byte order mark', `\ufeff${chainId}`],
  ['many opening brackets', '['.repeat(60_000)],
  ...['ff', 'eda080'].map((hex): [string, string] => [
    `the bytes ${hex}, which are not UTF-8`,
    decodeText(Buffer.concat([Buffer.from('{"jsonrpc":"2.0","method":"eth_chainId","id":"'), Buffer.from(`${hex}227d`, 'hex')])),
  ]),
]

const invalidIds = ['{}', '{"id":1}', '[]', '[1]', 'true', 'false'].map(withId)
const invalid: readonly (readonly [name: string, body: unknown, id?: string])[] = [
  ...['1', '"eth_chainId"', 'null', '{}', ...invalidIds, '[]'].map((body) => [body, body] as const),
  ['a request under __proto__', `{"__proto__":${chainId}}`],
  ['an inherited method', '{"__proto__":{"method":"eth_chainId"},"jsonrpc":"2.0"}'],
  ['no version', { method: 'eth_chainId', id: 'mine' }, MINE],
  ...['1.0', 2].map((jsonrpc) => [`the version ${jsonrpc}`, { ...request('eth_chainId'), jsonrpc }, MINE] as const),
  ...[undefined, null, 5, ['eth_chainId'], { toString: 1 }].map(
    (method) => [`the method ${JSON.stringify(method)}`, request(method), MINE] as const,
  ),
  ...['latest', 0, true].map((params) => [`params ${params}`, request('eth_chainId', params), MINE] as const),
  ['params that are a string, in a notification', { ...chain, params: 'latest' }],
  ['a batch of 1,001', repeat(1_001, () => 1)],
]

const unknownMethods = [
  ...['eth_noSuchMethod', '', 'eth_chainid', ' eth_chainId', 'toString', '__proto__', 'constructor', 'eth_sendRawTransaction'],
  ...['x'.repeat(100_000), '\u{1f600}'.repeat(20_000), '\u0000'.repeat(10_000), '"\\\n'.repeat(9)],
]

type InvalidParams = readonly [method: string, params: unknown, sentence: string]
const invalidAddresses: readonly unknown[] = [
  ...['', 'AAPLc', ADDRESS.slice(2), ADDRESS.replace('0x', '0X'), ADDRESS.slice(0, -1)],
  ...[`${ADDRESS}0`, `${ADDRESS}00`, `${ADDRESS}\n`, 1, null],
]
/** Filters, and where the error is. */
const invalidFilters: readonly (readonly [filter: unknown, sentence: string])[] = [
  ...[null, 'latest', []].map((filter) => [filter, 'params[0]'] as const),
  ...[{}, { unknown: 1 }, { address: null, topics: null, fromBlock: null }].map((filter) => [filter, 'one criterion'] as const),
  [{ fromBlock: 'now' }, 'params[0].fromBlock'],
  [{ fromBlock: '0x0', toBlock: '0x7d0' }, 'at most 2,000'],
  ...[`0x${'g'.repeat(40)}`, [ADDRESS, 'AAPLc'], { 0: ADDRESS }].map((address) => [{ address }, 'params[0].address'] as const),
  ...[WORD, [null, ['0x1']], repeat(5, () => null)].map((topics) => [{ topics }, 'params[0].topics'] as const),
  [{ blockHash: '0x12' }, 'params[0].blockHash'],
]
const stateMethods = ['eth_getBalance', 'eth_getCode', 'eth_getTransactionCount', 'eth_getStorageAt']
const invalidParams: readonly InvalidParams[] = [
  ['eth_chainId', ['latest'], 'eth_chainId takes 0 parameters, this call has 1'],
  ['eth_blockNumber', {}, 'by position'],
  ['eth_getBalance', { address: ADDRESS, block: 'latest' }, 'by position'],
  ...[undefined, ['latest'], ['latest', true, 1]].map(
    (params): InvalidParams => ['eth_getBlockByNumber', params, 'eth_getBlockByNumber takes 2 parameters'],
  ),
  ...['true', 1].map((full): InvalidParams => ['eth_getBlockByNumber', ['latest', full], 'params[1]']),
  ...['newest', '0x01', 1, { blockHash: WORD }].map((at): InvalidParams => ['eth_getBlockByNumber', [at, true], 'params[0]']),
  ...['newest', { blockHash: WORD, blockNumber: '0x1' }].map((at): InvalidParams => ['eth_getBlockReceipts', [at], 'params[0]']),
  ...[[], [{ fromBlock: 'latest' }, {}]].map((params): InvalidParams => ['eth_getLogs', params, 'eth_getLogs takes 1 parameter, ']),
  ...invalidFilters.map(([filter, sentence]): InvalidParams => ['eth_getLogs', [filter], sentence]),
  ...['0', 2, '0x', `0x${'0'.repeat(65)}`, null].map(
    (slot): InvalidParams => ['eth_getStorageAt', [ADDRESS, slot, 'latest'], 'params[1]'],
  ),
  ...invalidAddresses.map((address): InvalidParams => ['eth_getBalance', [address, 'latest'], 'params[0]']),
  ...stateMethods.flatMap((method): readonly InvalidParams[] => {
    const slot = method === 'eth_getStorageAt' ? ['0x7'] : []
    return [
      [method, [], `${method} takes`],
      [method, ['0x12', ...slot, 'latest'], 'params[0]'],
      [method, [ADDRESS, ...slot, 'newest'], `params[${slot.length + 1}]`],
    ]
  }),
]

/** The examples of the JSON-RPC 2.0 specification, with methods that need no request to the node. */
const specified: readonly Exchange[] = [
  ['a call', { ...chain, params: [], id: 1 }, '1 result', '{"jsonrpc":"2.0","id":1,"result":"0x7"}'],
  ['a call without params', { ...chain, id: 6 }, '6 result'],
  ['a call whose params are null', { ...chain, params: null, id: 6 }, '6 result'],
  ['a call with an unknown field', { ...chain, extra: 1, id: 7 }, '7 result'],
  ['a call with the id null', { ...chain, id: null }, 'null result'],
  ['a notification', balance, ''],
  ['a notification of a method without parameters', chain, ''],
  ['a notification of an unknown method', { ...chain, method: 'eth_noSuchMethod' }, ''],
  ['a notification whose parameters do not fit', { ...balance, params: [1, 2, 3, 4, 5] }, ''],
  ['a notification with named parameters', { ...balance, params: { address: ADDRESS } }, ''],
  ['a batch of notifications alone', repeat(50, (at) => (at % 2 === 0 ? balance : chain)), ''],
  [
    'a mixed batch',
    [{ ...chain, id: '1' }, balance, { foo: 'boo' }, request('foo.get', { name: 'myself' }, '5'), 'text', { ...chain, id: null }],
    '["1" result,null -32600,"5" -32601,null -32600,null result]',
  ],
  ['requests with one id in a batch', repeat(3, () => ({ ...chain, id: 7 })), '[7 result,7 result,7 result]'],
  ['a batch within a batch', [[chain], { ...chain, id: 2 }, []], '[null -32600,2 result,null -32600]'],
  ['a batch of 100', repeat(100, (id) => ({ ...chain, id })), `[${all(100, 'result')}]`],
  ...[101, 1_000].map(
    (count): Exchange => [`a batch of ${count}`, repeat(count, (id) => ({ ...balance, id })), `[${all(count, -32600)}]`, '100'],
  ),
  ['a batch of invalid elements', `[1,null,"eth_chainId",[],{},${invalidIds.join()}]`, `[${all(11, -32600, nullId)}]`],
]

const lastFieldCounts = (first: string, last: string) =>
  `{"jsonrpc":"2.0","id":1,"id":"last","method":"${first}","method":"${last}"}`
const inheritedFilter = `{"__proto__":{"fromBlock":"latest","address":"${ADDRESS}"}}`
const DEPTH = 99_999
const lists = `${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`
const objects = `${'{"a":'.repeat(DEPTH / 3)}1${'}'.repeat(DEPTH / 3)}`
const longId = '12345678901234567890'

const exchanges: readonly Exchange[] = [
  ...specified,
  ...unreadable.map(([name, body]): Exchange => [`parse error: ${name}`, body, 'null -32700']),
  ...invalid.map(([name, body, id = 'null']): Exchange => [`invalid request: ${name}`, body, `${id} -32600`]),
  ...unknownMethods.map((method): Exchange => [`unknown method: "${method.slice(0, 30)}"`, request(method), '"mine" -32601']),
  ['unknown method, which the refusal names', request('eth_estimateGas', [{}]), '"mine" -32601', '\\"eth_estimateGas\\"'],
  ...['eth_subscribe', 'eth_unsubscribe'].map(
    (method): Exchange => [`${method}, which needs a socket`, request(method, ['logs']), '"mine" -32601', 'ws://'],
  ),
  ...invalidParams.map(([method, params, sentence]): Exchange => {
    const name = `invalid params: ${method} ${JSON.stringify(params)}`
    return [name, request(method, params), '"mine" -32602', '"message":"invalid params: ', sentence]
  }),
  ['a repeated field, of which the last is valid', lastFieldCounts('nothing', 'eth_chainId'), '"last" result'],
  ['a repeated field, of which the last is invalid', lastFieldCounts('eth_chainId', 'nothing'), '"last" -32601'],
  ...[`[${inheritedFilter}]`, `{"__proto__":[${inheritedFilter}]}`].map(
    (params): Exchange => [`inherited parameters: ${params}`, getLogs(params), '7 -32602'],
  ),
  ['nested lists', lists, '[null -32600]'],
  ['nested objects', objects, 'null -32600'],
  ['nested params', getLogs(lists), '7 -32602'],
  ['a nested filter', getLogs(`[${objects}]`), '7 -32602'],
  ['a nested address', getLogs(`[{"address":${lists}}]`), '7 -32602'],
  ['nested topics', getLogs(`[{"topics":${lists}}]`), '7 -32602'],
  ['a nested id', withId(lists), 'null -32600'],
  [
    'a long id beside nested params of an unknown method',
    `{"jsonrpc":"2.0","id":${longId},"method":"eth_noSuchMethod","params":${lists}}`,
    ...([`${Number(longId)} -32601`, `"id":${longId},`] as const),
  ],
]

/** The text of the answer; null for none. No request may reach the node. */
async function answerTo(body: string): Promise<string | null> {
  const { send, texts, upstreamCalls } = openBody()
  await send(body)
  expect(upstreamCalls).toEqual([])
  expect(texts().length).toBe(1)
  return texts()[0] || null
}

const summarise = ({ id, error }: { id: unknown; error?: { code: number } }) => `${JSON.stringify(id)} ${error?.code ?? 'result'}`

it.each(exchanges)('a client that sends %s gets the specified answer', async (_, body, expected, ...fragments) => {
  const text = await answerTo(typeof body === 'string' ? body : JSON.stringify(body))
  const json = text && JSON.parse(text)
  expect(Array.isArray(json) ? `[${json.map(summarise)}]` : json ? summarise(json) : '').toBe(expected)
  for (const fragment of fragments) expect(text).toContain(fragment)
  if (!Array.isArray(json)) expect(text?.length ?? 0, 'length of the answer').toBeLessThan(1_000)
  expect(Object.keys(Object.prototype)).toEqual([])
})

/** Methods whose parameters are never valid by chance. */
const knownMethods = Object.keys(methods).filter((name) => name !== 'eth_blockNumber' && name !== 'eth_getBlockReceipts')
const nearlyValidRequests = fc.record(
  {
    jsonrpc: fc.oneof({ weight: 6, arbitrary: fc.constant('2.0') }, fc.constantFrom('1.0', 2, null)),
    method: fc.oneof(fc.constantFrom(...knownMethods, 'eth_subscribe', '__proto__'), fc.string(), fc.jsonValue()),
    params: fc.oneof(fc.jsonValue(), fc.array(fc.jsonValue()), fc.array(fc.constantFrom('latest', '0x1', 1, {}))),
    id: fc.oneof(fc.string({ unit: 'binary' }), fc.integer(), fc.double(), fc.constant(null), fc.jsonValue()),
  },
  { requiredKeys: [] },
)
const bodies = {
  'any text': fc.string({ unit: 'binary', maxLength: 300 }),
  'a request that is nearly valid': nearlyValidRequests.map((body) => JSON.stringify(body)),
  'a batch of such requests': fc.array(nearlyValidRequests, { maxLength: 110 }).map((body) => JSON.stringify(body)),
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

const isNotification = (json: unknown): boolean => {
  if (typeof json !== 'object' || json === null || Array.isArray(json) || 'id' in json) return false
  const { jsonrpc, method, params = null } = json as Record<string, unknown>
  return jsonrpc === '2.0' && typeof method === 'string' && typeof params === 'object'
}

it.each(Object.entries(bodies))('a client that sends %s gets as many answers as JSON-RPC specifies', async (_, arbitrary) => {
  const property = fc.asyncProperty(arbitrary, async (body) => {
    const text = await answerTo(body)
    const [json, answer] = [parseJson(body), text && JSON.parse(text)]
    const isBatch = Array.isArray(json) && json.length > 0
    expect(Array.isArray(answer)).toBe(isBatch && text !== null)
    const requests = isBatch ? json : [json]
    const isRefused = isBatch && json.length > 100
    expect(text === null ? 0 : [answer].flat().length).toBe(requests.filter((one) => isRefused || !isNotification(one)).length)
    for (const { jsonrpc, error, result } of [answer ?? []].flat()) {
      expect(jsonrpc).toBe('2.0')
      if (error) expect([-32700, -32600, -32601, -32602]).toContain(error.code)
      // The chain id is all that the relay can answer here without the node.
      else expect(result).toBe('0x7')
    }
  })
  await fc.assert(property, { numRuns: 200 })
})

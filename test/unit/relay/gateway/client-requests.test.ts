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
const repeat = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))

/** The id of an answer, with its error code or `result`. */
type Summary = readonly [id: unknown, outcome: number | 'result']
/** What a client sends, a string as it is, and the answer: several for a batch, null for none; and what it contains. */
type Exchange = [name: string, body: unknown, expected: Summary | readonly Summary[] | null, ...fragments: string[]]

const unreadable: readonly (readonly [name: string, body: string])[] = [
  ['nothing', ''],
  ['white space', ' \r\n'],
  ['a word', 'eth_chainId'],
  ['half a request', chainId.slice(0, -1)],
  ['an open string', '{"jsonrpc":"2.0","method":"eth_chainId,"params":"latest","id]'],
  ['a batch that breaks off', `[${chainId},{"jsonrpc":"2.0","method"]`],
  ['two requests in a row', `${chainId}${chainId}`],
  ['a request and a zero byte', `${chainId}\u0000`],
  ['a request in single quotes', chainId.replaceAll('"', "'")],
  ['a comma too many', chainId.replace('}', ',}')],
  ['a byte order mark', `\ufeff${chainId}`],
  ['the number NaN', withId('NaN')],
  ['a number with a leading zero', withId('01')],
  ['a line break in a string', withId('"\n"')],
  ['many opening brackets', '['.repeat(60_000)],
  ['many opening braces', '{"a":'.repeat(20_000)],
  ['one closing bracket too many', `${'['.repeat(30_000)}${']'.repeat(30_001)}`],
  ...['ff', '80', 'c0af', 'eda080', 'e282'].map((hex): [string, string] => [
    `the bytes ${hex}, which are not UTF-8`,
    decodeText(Buffer.concat([Buffer.from('{"jsonrpc":"2.0","method":"eth_chainId","id":"'), Buffer.from(`${hex}227d`, 'hex')])),
  ]),
]

const invalidIds = ['{}', '{"id":1}', '[]', '[1]', 'true', 'false'].map(withId)
const invalid: readonly (readonly [name: string, body: unknown, id?: unknown])[] = [
  ...['1', '"eth_chainId"', 'null', 'true', '1e999', '{}'].map((body) => [body, body] as const),
  ['an object of other fields', { foo: 'boo' }],
  ['a request under __proto__', `{"__proto__":${chainId}}`],
  ['a request under constructor', { constructor: { prototype: request('eth_chainId') } }],
  ['an inherited method', '{"__proto__":{"method":"eth_chainId"},"jsonrpc":"2.0"}'],
  ['no version', { method: 'eth_chainId', id: 'mine' }, 'mine'],
  ...['1.0', 2].map((jsonrpc) => [`the version ${jsonrpc}`, { ...request('eth_chainId'), jsonrpc }, 'mine'] as const),
  ...[undefined, null, 5, ['eth_chainId'], { toString: 1 }].map(
    (method) => [`the method ${JSON.stringify(method)}`, request(method), 'mine'] as const,
  ),
  ...['latest', 0, true].map((params) => [`params ${params}`, request('eth_chainId', params), 'mine'] as const),
  ['params that are a string, in a notification', { ...chain, params: 'latest' }],
  ...invalidIds.map((body) => [body, body] as const),
  ['an empty batch', '[]'],
  ['a batch of 1,001', repeat(1_001, () => 1)],
]

const unknownMethods = [
  ...['eth_noSuchMethod', '', 'eth_chainid', ' eth_chainId', 'toString', '__proto__', 'constructor', 'eth_sendRawTransaction'],
  ...['x'.repeat(100_000), '\u{1f600}'.repeat(20_000), '\u0000'.repeat(10_000), '"\\\n'.repeat(9)],
]

const invalidBlocks: readonly unknown[] = [
  ...['', 'newest', 'LATEST', ' latest', '1', '0x', '0X1', '0x0g', '0x01', '-0x1', '0x1.0', `0x${'1'.repeat(65)}`],
  ...[1, null, {}, ['latest']],
]
const invalidAddresses: readonly unknown[] = [
  ...['', '0x', 'AAPLc', ADDRESS.slice(2), ADDRESS.replace('0x', '0X'), ADDRESS.slice(0, -1)],
  ...[`${ADDRESS}0`, `${ADDRESS}00`, `${ADDRESS} `, `${ADDRESS}\n`, 1, null],
]
const invalidFilters: readonly (readonly [filter: unknown, sentence: string])[] = [
  ...[null, 'latest', []].map((filter) => [filter, 'params[0]'] as const),
  ...[{}, { unknown: 1 }, { address: null, topics: null, fromBlock: null }].map(
    (filter) => [filter, 'at least one criterion'] as const,
  ),
  ...[1, 'now'].map((fromBlock) => [{ fromBlock }, 'params[0].fromBlock'] as const),
  [{ fromBlock: '0x0', toBlock: '0x7d0' }, 'at most 2,000'],
  ...['0x12', `0x${'g'.repeat(40)}`, [ADDRESS, 'AAPLc'], { 0: ADDRESS }].map(
    (address) => [{ address }, 'params[0].address'] as const,
  ),
  ...[WORD, ['0x12'], [null, ['0x1']], [[['0x12']]], repeat(5, () => null)].map(
    (topics) => [{ topics }, 'params[0].topics'] as const,
  ),
  [{ blockHash: '0x12' }, 'params[0].blockHash'],
]
const stateMethods = ['eth_getBalance', 'eth_getCode', 'eth_getTransactionCount', 'eth_getStorageAt']
/** Parameters that fit no method, and where the error is. */
const invalidParams: readonly (readonly [method: string, params: unknown, sentence: string])[] = [
  ...['eth_chainId', 'eth_blockNumber'].flatMap((method) => [
    ...[[1], [null], ['latest']].map((params) => [method, params, `${method} takes 0 parameters, this call has 1`] as const),
    [method, {}, 'by position'] as const,
  ]),
  ...[undefined, null, [], ['latest'], ['latest', true, 1]].map(
    (params) => ['eth_getBlockByNumber', params, 'eth_getBlockByNumber takes 2 parameters'] as const,
  ),
  ...['true', 1, null].map((full) => ['eth_getBlockByNumber', ['latest', full], 'params[1]'] as const),
  ...[...invalidBlocks, { blockHash: WORD }].map((at) => ['eth_getBlockByNumber', [at, true], 'params[0]'] as const),
  ...invalidFilters.map(([filter, sentence]) => ['eth_getLogs', [filter], sentence] as const),
  ...[[], [{ fromBlock: 'latest' }, {}]].map((params) => ['eth_getLogs', params, 'eth_getLogs takes 1 parameter, '] as const),
  ...[...invalidBlocks, { blockHash: '0x12' }, { blockHash: WORD, blockNumber: '0x1' }].map(
    (at) => ['eth_getBlockReceipts', [at], 'params[0]'] as const,
  ),
  ...['0', 2, 'two', '0x', `0x${'0'.repeat(65)}`, `0x${'f'.repeat(65)}`, null].map(
    (slot) => ['eth_getStorageAt', [ADDRESS, slot, 'latest'], 'params[1]'] as const,
  ),
  ...stateMethods.flatMap((method) => {
    const slot = method === 'eth_getStorageAt' ? ['0x7'] : []
    const blockAt = slot.length + 1
    return [
      ...[[], [...slot, 'latest', 1, 1], [ADDRESS, ...slot, 'latest', 'latest']].map(
        (params) => [params, `${method} takes`] as const,
      ),
      ...invalidAddresses.map((address) => [[address, ...slot, 'latest'], 'params[0]'] as const),
      ...[...invalidBlocks, { blockHash: WORD, other: 1 }].map((at) => [[ADDRESS, ...slot, at], `params[${blockAt}]`] as const),
    ].map(([params, sentence]) => [method, params, sentence] as const)
  }),
  ['eth_getBalance', { address: ADDRESS, block: 'latest' }, 'by position'],
]

/** The examples of the JSON-RPC 2.0 specification, with methods that need no request to the node. */
const specified: readonly Exchange[] = [
  ['a call', { ...chain, params: [], id: 1 }, [1, 'result'], '{"jsonrpc":"2.0","id":1,"result":"0x7"}'],
  ['a call without params', { ...chain, id: 6 }, [6, 'result']],
  ['a call whose params are null', { ...chain, params: null, id: 6 }, [6, 'result']],
  ['a call with an unknown field', { ...chain, extra: 1, id: 7 }, [7, 'result']],
  ['a call with the id null', { ...chain, id: null }, [null, 'result']],
  ['a notification', balance, null],
  ['a notification of a method without parameters', chain, null],
  ['a notification of an unknown method', { ...chain, method: 'eth_noSuchMethod' }, null],
  ['a notification whose parameters do not fit', { ...balance, params: [1, 2, 3, 4, 5] }, null],
  ['a notification with named parameters', { ...balance, params: { address: ADDRESS } }, null],
  ['a batch of notifications alone', repeat(50, (at) => (at % 2 === 0 ? balance : chain)), null],
  [
    'a mixed batch',
    [{ ...chain, id: '1' }, balance, { foo: 'boo' }, request('foo.get', { name: 'myself' }, '5'), 'text', { ...chain, id: null }],
    [
      ['1', 'result'],
      [null, -32600],
      ['5', -32601],
      [null, -32600],
      [null, 'result'],
    ],
  ],
  ['requests with one id in a batch', repeat(3, () => ({ ...chain, id: 7 })), repeat(3, () => [7, 'result'])],
  [
    'a batch within a batch',
    [[chain], { ...chain, id: 2 }, []],
    [
      [null, -32600],
      [2, 'result'],
      [null, -32600],
    ],
  ],
  ['a batch of 100', repeat(100, (id) => ({ ...chain, id })), repeat(100, (id) => [id, 'result'])],
  ...[101, 1_000].map(
    (count): Exchange => [
      `a batch of ${count}`,
      repeat(count, (id) => ({ ...balance, id })),
      repeat(count, (id) => [id, -32600]),
      '100',
    ],
  ),
  ...['[1,2,3]', '[null,"eth_chainId",[],{}]', `[${invalidIds.join()}]`].map(
    (batch): Exchange => [`invalid elements: ${batch}`, batch, repeat(JSON.parse(batch).length, () => [null, -32600])],
  ),
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
  ...unreadable.map(([name, body]): Exchange => [`parse error: ${name}`, body, [null, -32700]]),
  ...invalid.map(([name, body, id = null]): Exchange => [`invalid request: ${name}`, body, [id, -32600]]),
  ...unknownMethods.map((method): Exchange => [`unknown method: "${method.slice(0, 30)}"`, request(method), ['mine', -32601]]),
  ['unknown method, which the refusal names', request('eth_estimateGas', [{}]), ['mine', -32601], '\\"eth_estimateGas\\"'],
  ...['eth_subscribe', 'eth_unsubscribe'].map(
    (method): Exchange => [`${method}, which needs a socket`, request(method, ['logs']), ['mine', -32601], 'ws://'],
  ),
  ...invalidParams.map(
    ([method, params, sentence]): Exchange => [
      `invalid params: ${method} ${JSON.stringify(params)}`,
      request(method, params),
      ['mine', -32602],
      '"message":"invalid params: ',
      sentence,
    ],
  ),
  ['a repeated field, of which the last is valid', lastFieldCounts('nothing', 'eth_chainId'), ['last', 'result']],
  ['a repeated field, of which the last is invalid', lastFieldCounts('eth_chainId', 'nothing'), ['last', -32601]],
  ...[`[${inheritedFilter}]`, `{"__proto__":[${inheritedFilter}]}`].map(
    (params): Exchange => [`inherited parameters: ${params}`, getLogs(params), [7, -32602]],
  ),
  ['nested lists', lists, [[null, -32600]]],
  ['nested objects', objects, [null, -32600]],
  ['nested params', getLogs(lists), [7, -32602]],
  ['a nested filter', getLogs(`[${objects}]`), [7, -32602]],
  ['a nested address', getLogs(`[{"address":${lists}}]`), [7, -32602]],
  ['nested topics', getLogs(`[{"topics":${lists}}]`), [7, -32602]],
  ['a nested id', withId(lists), [null, -32600]],
  [
    'a long id beside nested params of an unknown method',
    `{"jsonrpc":"2.0","id":${longId},"method":"eth_noSuchMethod","params":${lists}}`,
    ...[[Number(longId), -32601] as const, `"id":${longId},`],
  ] as Exchange,
]

/** The text of the answer; null for none. No request may reach the node. */
async function answerTo(body: string): Promise<string | null> {
  const { send, texts, upstreamCalls } = openBody()
  await send(body)
  expect(upstreamCalls).toEqual([])
  expect(texts().length).toBe(1)
  return texts()[0] || null
}

const summarise = ({ id, error }: { id: unknown; error?: { code: number } }): Summary => [id, error?.code ?? 'result']

it.each(exchanges)('a client that sends %s gets the specified answer', async (_, body, expected, ...fragments) => {
  const text = await answerTo(typeof body === 'string' ? body : JSON.stringify(body))
  const json = text && JSON.parse(text)
  expect(Array.isArray(json) ? json.map(summarise) : json && summarise(json)).toEqual(expected)
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
  'any bytes': fc.uint8Array({ maxLength: 2_000 }).map((bytes) => decodeText(Buffer.from(bytes))),
  'any JSON': fc.json(),
  'a request that is nearly valid': nearlyValidRequests.map((body) => JSON.stringify(body)),
  'a batch of such requests': fc.array(nearlyValidRequests, { maxLength: 110 }).map((body) => JSON.stringify(body)),
  'a damaged request': fc.tuple(fc.nat(80), fc.string({ minLength: 1, maxLength: 3 })).map(([at, replacement]) => {
    const intact = JSON.stringify({ ...balance, params: ['0x12', 'latest'], id: 1 })
    return intact.slice(0, at) + replacement + intact.slice(at + 1)
  }),
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

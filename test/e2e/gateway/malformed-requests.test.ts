import { describe, expect, it } from 'vitest'
import { request } from './node-and-gateway.ts'
import {
  type AnswerSummary,
  answerSummary,
  bodyText,
  expectExchange,
  expectNoUpstreamRequests,
  quietStackForFile,
  type RpcExchange,
  rpcTransports,
} from './raw-rpc-requests.ts'

const stack = quietStackForFile()
expectNoUpstreamRequests(stack)

const ADDRESS = `0x${'a1'.repeat(20)}`
const WORD = `0x${'0b'.repeat(32)}`
const chainId = bodyText(request('eth_chainId'))
const repeat = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))

const unreadable: readonly (readonly [name: string, body: string])[] = [
  ['nothing', ''],
  ['a space', ' '],
  ['a line break', '\r\n'],
  ['a word', 'eth_chainId'],
  ['the word undefined', 'undefined'],
  ['half a request', '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"'],
  ['a field without a value', '{"jsonrpc":'],
  ['an open string', '{"jsonrpc":"2.0","method":"eth_chainId,"params":"latest","id]'],
  ['a batch that breaks off', `[${chainId},{"jsonrpc":"2.0","method"]`],
  ['two requests in a row', `${chainId}${chainId}`],
  ['a request and a zero byte', `${chainId}\u0000`],
  ['a request in single quotes', chainId.replaceAll('"', "'")],
  ['a comma too many', chainId.replace('}', ',}')],
  ['a comment', `/* */${chainId}`],
  ['a byte order mark', `\ufeff${chainId}`],
  ['the number NaN', chainId.replace('"id":1', '"id":NaN')],
  ['a number with a leading zero', chainId.replace('"id":1', '"id":01')],
  ['a hexadecimal number', chainId.replace('"id":1', '"id":0x1')],
  ['a line break in a string', chainId.replace('"id":1', '"id":"\n"')],
  ['a form', 'jsonrpc=2.0&id=1&method=eth_chainId'],
  ['many opening brackets', '['.repeat(60_000)],
  ['many opening braces', '{"a":'.repeat(20_000)],
  ['one closing bracket too many', `${'['.repeat(30_000)}${']'.repeat(30_001)}`],
]

const invalidIds = ['{}', '{"id":1}', '[]', '[1]', 'true', 'false'].map((id) => chainId.replace('"id":1', `"id":${id}`))
const invalid: readonly (readonly [name: string, body: unknown, id?: unknown])[] = [
  ['a number', '1'],
  ['a string', '"eth_chainId"'],
  ['null', 'null'],
  ['true', 'true'],
  ['a number that no double can hold', '1e999'],
  ['an empty object', {}],
  ['an object of other fields', { foo: 'boo' }],
  ['a request under __proto__', `{"__proto__":${chainId}}`],
  ['a request under constructor', { constructor: { prototype: request('eth_chainId') } }],
  ['an inherited method', '{"__proto__":{"method":"eth_chainId"},"jsonrpc":"2.0"}'],
  ['a method and parameters of wrong types', { jsonrpc: '2.0', method: 1, params: 'latest' }],
  ['no version', { method: 'eth_chainId', id: 'mine' }, 'mine'],
  ['another version', { ...request('eth_chainId', [], 'mine'), jsonrpc: '1.0' }, 'mine'],
  ['a version that is a number', { ...request('eth_chainId', [], 'mine'), jsonrpc: 2 }, 'mine'],
  ['no method', { jsonrpc: '2.0', id: 'mine' }, 'mine'],
  ...[null, 5].map((method) => [`the method ${method}`, { jsonrpc: '2.0', method, id: 'mine' }, 'mine'] as const),
  ...['latest', 0, true].map((params) => [`params ${params}`, request('eth_chainId', params, 'mine'), 'mine'] as const),
  ...invalidIds.map((body) => [`the request ${body}`, body] as const),
  ['an empty batch', '[]'],
  ['a batch of 20,000', repeat(20_000, () => 1)],
]

const longNames = ['x'.repeat(100_000), '\u{1f600}'.repeat(20_000), '\u0000'.repeat(10_000), '"\\\n'.repeat(9)]
const unknownMethods = [
  ...['eth_noSuchMethod', '', 'eth_chainid', ' eth_chainId', 'rpc.discover', 'toString', '__proto__', 'constructor'],
  ...['eth_sendRawTransaction', 'net_version'],
]

const invalidBlocks: readonly unknown[] = [
  ...['', 'newest', 'LATEST', ' latest', '1', '12', '0x', '0X1', '0x0g', '0x01', '-0x1', '0x1.0', `0x${'1'.repeat(65)}`],
  ...[1, 12, null, {}, ['latest'], { blockHash: WORD }],
]
const invalidAddresses: readonly unknown[] = [
  ...['', '0x', 'AAPLc', ADDRESS.slice(2), ADDRESS.replace('0x', '0X'), ADDRESS.slice(0, -1)],
  ...[`${ADDRESS}0`, `${ADDRESS}00`, `${ADDRESS} `, `${ADDRESS}\n`, 1, null],
]
const invalidFilters: readonly object[] = [
  ...[{ fromBlock: 1 }, { toBlock: 'now' }, { toBlock: 'newest' }, { fromBlock: '0x0', toBlock: '0x7d0' }],
  ...['0x12', `0x${'g'.repeat(40)}`, [ADDRESS, 'AAPLc'], { 0: ADDRESS }].map((address) => ({ address })),
  ...[WORD, ['0x12'], [[['0x12']]], [WORD, null, null, null, null], Array(5).fill(null)].map((topics) => ({ topics })),
  { blockHash: '0x12' },
]
const addressMethods = ['eth_getBalance', 'eth_getCode', 'eth_getTransactionCount', 'eth_getStorageAt']
/** Parameters that fit no method. */
const invalidParams: readonly (readonly [method: string, params: unknown, sentence?: string])[] = [
  ...['eth_chainId', 'eth_blockNumber'].flatMap((method) =>
    [[1], [null], {}, ['latest']].map((params) => [method, params] as const),
  ),
  ...[undefined, null, [], ['latest'], [true, 'latest'], ['latest', true, 1], ['latest', false, 1]].map(
    (params) => ['eth_getBlockByNumber', params] as const,
  ),
  ...['true', 1, null].map((full) => ['eth_getBlockByNumber', ['latest', full]] as const),
  ...invalidBlocks.map((at) => ['eth_getBlockByNumber', [at, true], 'params[0]'] as const),
  ...[[], [null], ['latest'], [[]], [['latest']], [{ unknown: 1 }], [{ fromBlock: 'latest' }, {}]].map(
    (params) => ['eth_getLogs', params] as const,
  ),
  ...[{}, { address: null, topics: null, fromBlock: null }].map(
    (filter) => ['eth_getLogs', [filter], 'at least one criterion'] as const,
  ),
  ...invalidFilters.map((filter) => ['eth_getLogs', [filter]] as const),
  ...[[null], ['newest'], ['latest', 'latest'], [1], [{ blockHash: '0x12' }]].map(
    (params) => ['eth_getBlockReceipts', params] as const,
  ),
  ['eth_getBlockReceipts', [{ blockHash: WORD, blockNumber: '0x1' }]],
  ['eth_getStorageAt', [ADDRESS, 'latest', '0x0']],
  ...['0', '2', 0, 2, 'two', '0x', `0x${'0'.repeat(65)}`, `0x${'f'.repeat(65)}`, null].map(
    (slot) => ['eth_getStorageAt', [ADDRESS, slot, 'latest']] as const,
  ),
  ...addressMethods.flatMap((method) => {
    const slot = method === 'eth_getStorageAt' ? ['0x7'] : []
    const blocks = ['newest', '0x01', 'pending ', {}, { blockHash: WORD, other: 1 }, 1, null, ['latest']]
    return [
      ...[[], [...slot, 'latest'], [ADDRESS, ...slot, 'latest', 'latest']],
      ...invalidAddresses.map((address) => [address, ...slot, 'latest']),
      ...blocks.map((block) => [ADDRESS, ...slot, block]),
    ].map((params) => [method, params] as const)
  }),
]

const lastFieldCounts = (first: string, last: string) =>
  `{"jsonrpc":"2.0","id":1,"id":"last","method":"${first}","method":"${last}"}`
const inheritedFilter = `{"__proto__":{"fromBlock":"latest","address":"${ADDRESS}"}}`
const getLogs = (params: string) => `{"jsonrpc":"2.0","id":7,"method":"eth_getLogs","params":${params}}`
const getBalance = (id: number) => request('eth_getBalance', [ADDRESS, 'latest'], id)
const { id: _, ...notification } = getBalance(1)
const invalidElement: AnswerSummary = [null, -32600]

const exchanges: readonly RpcExchange[] = [
  ...unreadable.map(([name, body]): RpcExchange => [`parse error: ${name}`, body, [null, -32700]]),
  ...invalid.map(([name, body, id = null]): RpcExchange => [`invalid request: ${name}`, body, [id, -32600]]),
  ...['[1]', '[1,2,3]', '[null,"eth_chainId",[],{}]', `[${invalidIds.join()}]`].map(
    (batch): RpcExchange => [`invalid elements: ${batch}`, batch, repeat(JSON.parse(batch).length, () => invalidElement)],
  ),
  ['invalid elements: fifty lists', repeat(50, (at) => [at]), repeat(50, () => invalidElement)],
  [
    'a batch within a batch',
    [[request('eth_chainId')], request('eth_chainId', [], 2), []],
    [invalidElement, [2, 'result'], invalidElement],
  ],
  ['a batch of 100', repeat(100, (id) => request('eth_chainId', [], id)), repeat(100, (id) => [id, 'result'])],
  ...[101, 1_000].map(
    (count): RpcExchange => [`a batch of ${count}`, repeat(count, getBalance), repeat(count, (id) => [id, -32600]), '50'],
  ),
  ['50 notifications', repeat(50, () => notification), null],
  ...unknownMethods.map((method): RpcExchange => [`unknown method: "${method}"`, request(method), [1, -32601]]),
  ...longNames.map((name, at): RpcExchange => [`unknown method: long name ${at}`, request(name), [1, -32601]]),
  ['unknown method with named parameters', request('eth_noSuchMethod', { name: 'myself' }, '5'), ['5', -32601]],
  ['unknown method, which the refusal names', request('eth_estimateGas', [{}]), [1, -32601], 'eth_estimateGas'],
  ...invalidParams.map(
    ([method, params, sentence = '']): RpcExchange => [
      `invalid params: ${method} ${JSON.stringify(params)}`,
      request(method, params, 'mine'),
      ['mine', -32602],
      '"message":"invalid params: ',
      sentence,
    ],
  ),
  ['a repeated field, of which the last is valid', lastFieldCounts('nothing', 'eth_chainId'), ['last', 'result']],
  ['a repeated field, of which the last is invalid', lastFieldCounts('eth_chainId', 'nothing'), ['last', -32601]],
  ...[`[${inheritedFilter}]`, `{"__proto__":[${inheritedFilter}]}`, `[${inheritedFilter},${inheritedFilter}]`].map(
    (params): RpcExchange => [`inherited parameters: ${params}`, getLogs(params), [7, -32602]],
  ),
]

const nestedExchanges = (depth: number): readonly RpcExchange[] => {
  const lists = `${'['.repeat(depth)}${']'.repeat(depth)}`
  const objects = `${'{"a":'.repeat(depth / 3)}1${'}'.repeat(depth / 3)}`
  const unknownMethod = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"eth_noSuchMethod","params":${lists}}`
  const longId = '12345678901234567890'
  return [
    ['nested lists', lists, [invalidElement]],
    ['nested objects', objects, invalidElement],
    ['nested params', getLogs(lists), [7, -32602]],
    ['a nested filter', getLogs(`[${objects}]`), [7, -32602]],
    ['a nested address', getLogs(`[{"address":${lists}}]`), [7, -32602]],
    ['nested topics', getLogs(`[{"topics":${lists}}]`), [7, -32602]],
    ['nested params of an unknown method', unknownMethod('3'), [3, -32601]],
    ['a nested id', chainId.replace('"id":1', `"id":${lists}`), invalidElement],
    ['a long id beside nested params', unknownMethod(longId), [Number(longId), -32601], `"id":${longId},`],
  ]
}

describe.each(rpcTransports)('over %s', (transport, open) => {
  // The bound of a WebSocket message allows fewer levels.
  it.each([...exchanges, ...nestedExchanges(transport === 'HTTP' ? 100_000 : 60_000)])('%s', async (...exchange) => {
    const { replyTo } = await open(stack())
    const reply = await replyTo(bodyText(exchange[1]))
    expectExchange(reply, exchange)
    if (!reply?.startsWith('[')) expect(reply?.length ?? 0, 'length of the answer').toBeLessThan(1_000)
    expect(Object.keys(Object.prototype)).toEqual([])
  })
})

/** Over a WebSocket such a message is no text at all. */
describe('a body over HTTP', () => {
  const start = '{"jsonrpc":"2.0","method":"eth_chainId","id":"'
  const withBytes = (...bytes: number[]) => Buffer.concat([Buffer.from(start), Buffer.from(bytes), Buffer.from('"}')])
  it.each<[string, Buffer]>([
    ['a byte that is never used', withBytes(0xff)],
    ['a continuation of nothing', withBytes(0x80)],
    ['two bytes where one would do', withBytes(0xc0, 0xaf)],
    ['half a surrogate pair', withBytes(0xed, 0xa0, 0x80)],
    ['a character that breaks off', withBytes(0xe2, 0x82)],
    ['UTF-16', Buffer.from(chainId, 'utf16le')],
  ])('is a parse error where it is not UTF-8: %s', async (_, body) => {
    const { replyTo } = await rpcTransports[0][1](stack())
    expect(answerSummary((await replyTo(new Uint8Array(body))) ?? '')).toEqual([null, -32700])
  })
})

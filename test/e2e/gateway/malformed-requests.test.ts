import { describe, expect, it } from 'vitest'
import {
  answerSummary,
  expectNoUpstreamRequests,
  parseAnswer,
  parseAnswers,
  quietStackForFile,
  rpcTransports,
} from './raw-rpc-requests.ts'

const stack = quietStackForFile()
expectNoUpstreamRequests(stack)

const ADDRESS = `0x${'a1'.repeat(20)}`
const WORD = `0x${'0b'.repeat(32)}`
const request = (method: string, params?: unknown, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params })
const text = (what: unknown): string => JSON.stringify(what)
const bytes = (...parts: (string | number[])[]) =>
  new Uint8Array(Buffer.concat(parts.map((part) => Buffer.from(part as string))))

const unreadable = [
  ['nothing', ''],
  ['a space', ' '],
  ['a line break', '\r\n'],
  ['a word', 'eth_chainId'],
  ['the word undefined', 'undefined'],
  ['half a request', '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"'],
  ['two requests in a row', `${text(request('eth_chainId'))}${text(request('eth_chainId'))}`],
  ['a request and a zero byte', `${text(request('eth_chainId'))}\u0000`],
  ['a request in single quotes', "{'jsonrpc':'2.0','id':1,'method':'eth_chainId'}"],
  ['a comma too many', '{"jsonrpc":"2.0","id":1,"method":"eth_chainId",}'],
  ['a comment', '/* */{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}'],
  ['a byte order mark', `\ufeff${text(request('eth_chainId'))}`],
  ['a number that is none', '{"jsonrpc":"2.0","id":NaN,"method":"eth_chainId"}'],
  ['a number with a zero before it', '{"jsonrpc":"2.0","id":01,"method":"eth_chainId"}'],
  ['a hexadecimal number', '{"jsonrpc":"2.0","id":0x1,"method":"eth_chainId"}'],
  ['a line break in a string', '{"jsonrpc":"2.0","id":"\n","method":"eth_chainId"}'],
  ['a form', 'jsonrpc=2.0&id=1&method=eth_chainId'],
  ['many opening brackets', '['.repeat(60_000)],
  ['many opening braces', '{"a":'.repeat(20_000)],
  ['one closing bracket too many', `${'['.repeat(30_000)}${']'.repeat(30_001)}`],
] as const

const invalid = [
  ['a number', '1'],
  ['a string', '"eth_chainId"'],
  ['null', 'null'],
  ['true', 'true'],
  ['a number that no double can hold', '1e999'],
  ['an empty object', '{}'],
  ['an object of other fields', '{"foo":"boo"}'],
  ['what stands under __proto__', `{"__proto__":${text(request('eth_chainId'))}}`],
  ['what stands under constructor', `{"constructor":{"prototype":${text(request('eth_chainId'))}}}`],
  ['a method from elsewhere', '{"__proto__":{"method":"eth_chainId"},"jsonrpc":"2.0"}'],
] as const

/** Parameters that fit no method; each is refused under the id of its request. */
const invalidParams: readonly (readonly [method: string, params: unknown])[] = [
  ['eth_chainId', [1]],
  ['eth_chainId', [null]],
  ['eth_chainId', {}],
  ['eth_blockNumber', ['latest']],
  ['eth_getBlockByNumber', undefined],
  ['eth_getBlockByNumber', null],
  ['eth_getBlockByNumber', []],
  ['eth_getBlockByNumber', ['latest']],
  ['eth_getBlockByNumber', [true, 'latest']],
  ['eth_getBlockByNumber', ['latest', 'true']],
  ['eth_getBlockByNumber', ['latest', 1]],
  ['eth_getBlockByNumber', ['latest', null]],
  ['eth_getBlockByNumber', ['latest', true, 1]],
  ...['', 'newest', 'LATEST', ' latest', '12', '0x', '0X1', '0x0g', '0x01', '-0x1', '0x1.0', `0x${'1'.repeat(65)}`].map(
    (at) => ['eth_getBlockByNumber', [at, true]] as const,
  ),
  ...[12, null, {}, ['latest'], { blockHash: WORD }].map((at) => ['eth_getBlockByNumber', [at, true]] as const),
  ['eth_getLogs', []],
  ['eth_getLogs', [{}]],
  ['eth_getLogs', [null]],
  ['eth_getLogs', ['latest']],
  ['eth_getLogs', [[]]],
  ['eth_getLogs', [{ unknown: 1 }]],
  ['eth_getLogs', [{ fromBlock: 'latest' }, {}]],
  ['eth_getLogs', [{ fromBlock: 1 }]],
  ['eth_getLogs', [{ toBlock: 'now' }]],
  ['eth_getLogs', [{ address: '0x12' }]],
  ['eth_getLogs', [{ address: `0x${'g'.repeat(40)}` }]],
  ['eth_getLogs', [{ address: [ADDRESS, 'AAPLc'] }]],
  ['eth_getLogs', [{ address: { 0: ADDRESS } }]],
  ['eth_getLogs', [{ topics: WORD }]],
  ['eth_getLogs', [{ topics: ['0x12'] }]],
  ['eth_getLogs', [{ topics: [[['0x12']]] }]],
  ['eth_getLogs', [{ topics: [WORD, null, null, null, null] }]],
  ['eth_getLogs', [{ blockHash: '0x12' }]],
  ['eth_getLogs', [{ fromBlock: '0x0', toBlock: '0x7d0' }]],
  ['eth_getBlockReceipts', []],
  ['eth_getBlockReceipts', [{ blockHash: '0x12' }]],
  ['eth_getBlockReceipts', [{ blockHash: WORD, blockNumber: '0x1' }]],
  ['eth_getStorageAt', [ADDRESS, '0x0']],
  ['eth_getStorageAt', [ADDRESS, 'latest', '0x0']],
  ['eth_getStorageAt', [ADDRESS, '0', 'latest']],
  ['eth_getStorageAt', [ADDRESS, 0, 'latest']],
  ['eth_getStorageAt', [ADDRESS, `0x${'0'.repeat(65)}`, 'latest']],
  ...['eth_getBalance', 'eth_getCode', 'eth_getTransactionCount'].flatMap((method) => [
    [method, []] as const,
    [method, [ADDRESS]] as const,
    [method, [ADDRESS, 'latest', 'latest']] as const,
    ...['', '0x', 'a1'.repeat(20), `0X${'a1'.repeat(20)}`, `${ADDRESS}00`, `${ADDRESS} `, `${ADDRESS}\n`, 1, null].map(
      (address) => [method, [address, 'latest']] as const,
    ),
    ...[{}, { blockHash: WORD, other: 1 }, 1, null, 'pending ', ['latest']].map(
      (at) => [method, [ADDRESS, at]] as const,
    ),
  ]),
]

describe.each(rpcTransports)('over %s', (transport, open) => {
  it.each(unreadable)('%s is a parse error', async (_, body) => {
    const { replyTo } = await open(stack())
    expect(answerSummary(parseAnswer((await replyTo(body)) ?? ''))).toEqual([null, -32700])
  })

  it.each(invalid)('%s is an invalid request', async (_, body) => {
    const { replyTo } = await open(stack())
    expect(answerSummary(parseAnswer((await replyTo(body)) ?? ''))).toEqual([null, -32600])
  })

  it('parameters that do not fit are refused under their id, with a sentence that names what must be there', async () => {
    const { replyTo } = await open(stack())
    for (const [method, params] of invalidParams) {
      const answer = parseAnswer((await replyTo(text(request(method, params, 'mine')))) ?? '')
      expect(answerSummary(answer), `${method} ${text(params)}`).toEqual(['mine', -32602])
      expect(answer).toMatchObject({ error: { message: expect.stringMatching(/^invalid params: ./) } })
    }
  })

  it('the last of several fields of the same name counts', async () => {
    const { replyTo } = await open(stack())
    const twice = (first: string, last: string) =>
      `{"jsonrpc":"2.0","id":1,"id":"last","method":"${first}","method":"${last}"}`
    expect(answerSummary(parseAnswer((await replyTo(twice('nothing', 'eth_chainId'))) ?? ''))).toEqual([
      'last',
      'result',
    ])
    expect(answerSummary(parseAnswer((await replyTo(twice('eth_chainId', 'nothing'))) ?? ''))).toEqual(['last', -32601])
  })

  it('nothing that stands under __proto__ is taken for a parameter', async () => {
    const { replyTo } = await open(stack())
    const filter = `{"__proto__":{"fromBlock":"latest","address":"${ADDRESS}"}}`
    for (const params of [`[${filter}]`, `{"__proto__":[${filter}]}`, `[${filter},${filter}]`]) {
      const body = `{"jsonrpc":"2.0","id":7,"method":"eth_getLogs","params":${params}}`
      expect(answerSummary(parseAnswer((await replyTo(body)) ?? '')), params).toEqual([7, -32602])
    }
    expect(Object.keys(Object.prototype)).toEqual([])
  })

  const depth = transport === 'HTTP' ? 100_000 : 60_000
  const nested = `${'['.repeat(depth)}${']'.repeat(depth)}`
  const braces = `${'{"a":'.repeat(depth / 3)}1${'}'.repeat(depth / 3)}`

  it(`a body that is nested ${depth} deep is an invalid request`, async () => {
    const { replyTo } = await open(stack())
    expect(parseAnswers((await replyTo(nested)) ?? '').map(answerSummary)).toEqual([[null, -32600]])
    expect(answerSummary(parseAnswer((await replyTo(braces)) ?? ''))).toEqual([null, -32600])
  })

  it(`what is nested ${depth} deep within a request is refused under its id`, async () => {
    const { replyTo } = await open(stack())
    const call = (method: string, params: string) => `{"jsonrpc":"2.0","id":3,"method":"${method}","params":${params}}`
    for (const [params, code] of [
      [nested, -32602],
      [`[${braces}]`, -32602],
      [`[{"address":${nested}}]`, -32602],
      [`[{"topics":${nested}}]`, -32602],
    ] as const)
      expect(answerSummary(parseAnswer((await replyTo(call('eth_getLogs', params))) ?? ''))).toEqual([3, code])
    expect(answerSummary(parseAnswer((await replyTo(call('eth_noSuchMethod', nested))) ?? ''))).toEqual([3, -32601])
    const deepId = `{"jsonrpc":"2.0","id":${nested},"method":"eth_chainId"}`
    expect(answerSummary(parseAnswer((await replyTo(deepId)) ?? ''))).toEqual([null, -32600])
  })

  it(`a long id is kept beside what is nested ${depth} deep`, async () => {
    const { replyTo } = await open(stack())
    const call = `{"jsonrpc":"2.0","id":12345678901234567890,"method":"eth_noSuchMethod","params":${nested}}`
    const answer = (await replyTo(call)) ?? ''
    expect(answerSummary(parseAnswer(answer))[1]).toBe(-32601)
    expect(answer).toContain('"id":12345678901234567890,')
  })

  it('a name that nobody has, however long, is refused in few words', async () => {
    const { replyTo } = await open(stack())
    for (const method of [
      'x'.repeat(100_000),
      '\u{1f600}'.repeat(20_000),
      '\u0000'.repeat(10_000),
      '"\\\n'.repeat(9),
    ]) {
      const answer = (await replyTo(text(request(method)))) ?? ''
      expect(answerSummary(parseAnswer(answer))).toEqual([1, -32601])
      expect(answer.length).toBeLessThan(1_000)
    }
  })
})

describe.each(rpcTransports)('a batch over %s', (_, open) => {
  const chain = (id: number) => request('eth_chainId', [], id)
  const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (__, at) => make(at))

  it('of 50 is answered, and matched by id', async () => {
    const { replyTo } = await open(stack())
    const answers = parseAnswers((await replyTo(text(many(50, chain)))) ?? '')
    expect(answers.map(answerSummary).sort(([a], [b]) => Number(a) - Number(b))).toEqual(
      many(50, (id) => [id, 'result']),
    )
  })

  it.each([51, 1_000])('of %d asks none of its questions, and refuses each by itself', async (count) => {
    const { replyTo } = await open(stack())
    const questions = many(count, (id) => ({ ...request('eth_getBalance', [ADDRESS, 'latest'], id) }))
    const answers = parseAnswers((await replyTo(text(questions))) ?? '')
    expect(answers.map(answerSummary)).toEqual(many(count, (id) => [id, -32600]))
    expect(answers[0]).toMatchObject({ error: { message: expect.stringContaining('50') } })
  })

  it('of 20,000 is one invalid request', async () => {
    const { replyTo } = await open(stack())
    const answer = parseAnswer((await replyTo(text(many(20_000, () => 1)))) ?? '')
    expect(answerSummary(answer)).toEqual([null, -32600])
  })

  it('of 50 notifications is answered with nothing, and nothing is asked', async () => {
    const { replyTo } = await open(stack())
    const { id, ...notification } = request('eth_getBalance', [ADDRESS, 'latest'])
    expect(id).toBe(1)
    expect(await replyTo(text(many(50, () => notification)))).toBeNull()
  })

  it('of nothing that is a request is answered element by element', async () => {
    const { replyTo } = await open(stack())
    const answers = parseAnswers((await replyTo(text(many(50, (at) => [at])))) ?? '')
    expect(answers.map(answerSummary)).toEqual(many(50, () => [null, -32600]))
  })

  it('within a batch is an invalid request', async () => {
    const { replyTo } = await open(stack())
    const answers = parseAnswers((await replyTo(text([[chain(1)], chain(2), []]))) ?? '')
    expect(answers.map(answerSummary)).toEqual(
      expect.arrayContaining([
        [null, -32600],
        [2, 'result'],
        [null, -32600],
      ]),
    )
    expect(answers.length).toBe(3)
  })
})

/** Over a WebSocket such a message is no text at all. */
describe('a body that is not UTF-8', () => {
  const [, open] = rpcTransports[0]
  const start = '{"jsonrpc":"2.0","method":"eth_chainId","id":"'
  it.each([
    ['a byte that is never used', [0xff]],
    ['a continuation of nothing', [0x80]],
    ['two bytes where one would do', [0xc0, 0xaf]],
    ['half a surrogate pair', [0xed, 0xa0, 0x80]],
    ['a character that breaks off', [0xe2, 0x82]],
  ])('is a parse error: %s', async (_, wrong) => {
    const { replyTo } = await open(stack())
    expect(answerSummary(parseAnswer((await replyTo(bytes(start, wrong, '"}'))) ?? ''))).toEqual([null, -32700])
  })

  it('is a parse error where it is UTF-16', async () => {
    const { replyTo } = await open(stack())
    const utf16 = new Uint8Array(Buffer.from(text(request('eth_chainId')), 'utf16le'))
    expect(answerSummary(parseAnswer((await replyTo(utf16)) ?? ''))).toEqual([null, -32700])
  })
})

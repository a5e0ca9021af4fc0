import Big from 'big.js'
import { describe, expect, it } from 'vitest'
import {
  answerSummary,
  parseAnswer,
  parseAnswers,
  quietStackForFile,
  rawIdOf,
  rpcTransports,
} from './raw-rpc-requests.ts'

/** Every example of the JSON-RPC 2.0 specification, with methods that the relay has. */
const stack = quietStackForFile()

const ADDRESS = `0x${'a1'.repeat(20)}`
/** What the node must be asked for. */
const balance = { jsonrpc: '2.0', method: 'eth_getBalance', params: [ADDRESS, 'latest'] }
const chain = { jsonrpc: '2.0', method: 'eth_chainId' }
const body = (what: unknown): string => JSON.stringify(what)

describe.each(rpcTransports)('over %s', (_, open) => {
  it('a call with positional parameters is answered under its id', async () => {
    const { answer } = await open(stack())
    expect(parseAnswer(await answer(body({ ...balance, id: 1 })))).toEqual({ jsonrpc: '2.0', id: 1, result: '0x0' })
    const swapped = { ...balance, params: ['latest', ADDRESS], id: 2 }
    expect(answerSummary(parseAnswer(await answer(body(swapped))))).toEqual([2, -32602])
  })

  it.each([
    [3, { address: ADDRESS, block: 'latest' }],
    [4, { block: 'latest', address: ADDRESS }],
    [5, {}],
  ])('a call with named parameters is told that they go by position (%#)', async (id, params) => {
    const { answer } = await open(stack())
    const said = parseAnswer(await answer(body({ ...balance, params, id })))
    expect(answerSummary(said)).toEqual([id, -32602])
    expect(said).toMatchObject({ error: { message: expect.stringContaining('position') } })
  })

  it.each([
    ['of a method that there is', balance],
    ['of a method without parameters', chain],
    ['of a method that there is not', { jsonrpc: '2.0', method: 'eth_noSuchMethod' }],
    ['with parameters that do not fit', { ...balance, params: [1, 2, 3, 4, 5] }],
    ['with named parameters', { ...balance, params: { address: ADDRESS } }],
  ])('a notification %s is answered with nothing', async (__, notification) => {
    const { replyTo, answer } = await open(stack())
    expect(await replyTo(body(notification))).toBeNull()
    // Had anything been said later, it would come first here.
    expect(answerSummary(parseAnswer(await answer(body({ ...balance, id: 'next' }))))).toEqual(['next', 'result'])
  })

  it.each(['eth_noSuchMethod', '', 'eth_chainid', ' eth_chainId', 'rpc.discover', 'toString', '__proto__'])(
    'the method "%s" does not exist',
    async (method) => {
      const { answer } = await open(stack())
      expect(answerSummary(parseAnswer(await answer(body({ jsonrpc: '2.0', method, id: '1' }))))).toEqual(['1', -32601])
    },
  )

  it('a method that does not exist is named before its parameters are looked at', async () => {
    const { answer } = await open(stack())
    const call = { jsonrpc: '2.0', method: 'eth_noSuchMethod', params: { name: 'myself' }, id: '5' }
    expect(answerSummary(parseAnswer(await answer(body(call))))).toEqual(['5', -32601])
  })

  it('what is no JSON is a parse error', async () => {
    const { answer } = await open(stack())
    const broken = '{"jsonrpc":"2.0","method":"eth_chainId,"params":"latest","id]'
    expect(answerSummary(parseAnswer(await answer(broken)))).toEqual([null, -32700])
  })

  it('what is no request is an invalid request', async () => {
    const { answer } = await open(stack())
    expect(answerSummary(parseAnswer(await answer(body({ jsonrpc: '2.0', method: 1, params: 'latest' }))))).toEqual([
      null,
      -32600,
    ])
  })

  it.each([
    ['of no version', { method: 'eth_chainId' }],
    ['of another version', { ...chain, jsonrpc: '1.0' }],
    ['of a version that is a number', { ...chain, jsonrpc: 2 }],
    ['without a method', { jsonrpc: '2.0' }],
    ['whose method is null', { jsonrpc: '2.0', method: null }],
    ['whose parameters are a string', { ...chain, params: 'latest' }],
    ['whose parameters are a number', { ...chain, params: 0 }],
    ['whose parameters are true', { ...chain, params: true }],
  ])('a request %s is invalid, under its id', async (__, request) => {
    const { answer } = await open(stack())
    expect(answerSummary(parseAnswer(await answer(body({ ...request, id: 'mine' }))))).toEqual(['mine', -32600])
  })

  it('a batch that is no JSON is one parse error', async () => {
    const { answer } = await open(stack())
    const broken = `[${body({ ...chain, id: '1' })},{"jsonrpc":"2.0","method"]`
    expect(answerSummary(parseAnswer(await answer(broken)))).toEqual([null, -32700])
  })

  it('an empty batch is one invalid request', async () => {
    const { answer } = await open(stack())
    expect(answerSummary(parseAnswer(await answer('[]')))).toEqual([null, -32600])
  })

  it.each(['[1]', '[1,2,3]', '[null,"eth_chainId",[],{}]'])(
    'each element of the batch %s is an invalid request of its own',
    async (batch) => {
      const { answer } = await open(stack())
      const expected = (JSON.parse(batch) as unknown[]).map(() => [null, -32600])
      expect(parseAnswers(await answer(batch)).map(answerSummary)).toEqual(expected)
    },
  )

  it('a mixed batch is answered element by element, and its notifications are not', async () => {
    const { answer } = await open(stack())
    const batch = [
      { ...balance, id: '1' },
      balance,
      { ...chain, id: '2' },
      { foo: 'boo' },
      { jsonrpc: '2.0', method: 'foo.get', params: { name: 'myself' }, id: '5' },
      { ...chain, params: [], id: '9' },
    ]
    const answers = parseAnswers(await answer(body(batch)))
    expect(new Map(answers.map(answerSummary))).toEqual(
      new Map<unknown, unknown>([
        ['1', 'result'],
        ['2', 'result'],
        [null, -32600],
        ['5', -32601],
        ['9', 'result'],
      ]),
    )
    expect(answers.length).toBe(5)
  })

  it('a batch of nothing but notifications is answered with nothing', async () => {
    const { replyTo, answer } = await open(stack())
    expect(
      await replyTo(body([balance, chain, { jsonrpc: '2.0', method: 'eth_noSuchMethod', params: [7] }])),
    ).toBeNull()
    expect(answerSummary(parseAnswer(await answer(body({ ...balance, id: 'next' }))))).toEqual(['next', 'result'])
  })

  it('requests of the same id in one batch are each answered', async () => {
    const { answer } = await open(stack())
    const answers = parseAnswers(await answer(body([chain, balance, chain].map((call) => ({ ...call, id: 7 })))))
    expect(answers.map(answerSummary)).toEqual([7, 7, 7].map((id) => [id, 'result']))
  })
})

const strings = [
  '""',
  '"a"',
  '"\\u00e9\\ud83d\\ude00"',
  '"é😀"',
  '"\\n\\"\\\\\\/\\u2028\\u0000"',
  '"\\ud800"',
  '"null"',
]
const numbers = ['0', '-1', '1.5', '0.1', '9007199254740991', '9007199254740993', '12345678901234567890', '1e400']
/** The same number may be written otherwise. */
const spelled = [
  '-0',
  '1.0',
  '1.50',
  '1e2',
  '1E+2',
  '1e21',
  '1e-400',
  '1.00000000000000000001',
  '0.10000000000000000001',
]

describe.each(rpcTransports)('an id over %s', (_, open) => {
  const ways = [
    ['a result', (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"eth_chainId"}`],
    ['a result of a batch', (id: string) => `[{"jsonrpc":"2.0","method":"eth_chainId","id":${id}}]`],
    ['an error', (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"eth_noSuchMethod"}`],
    ['an invalid request', (id: string) => `{"jsonrpc":"1.0","id":${id},"method":"eth_chainId"}`],
  ] as const

  it.each(strings)('that is the string %s comes back with each answer', async (id) => {
    const { answer } = await open(stack())
    for (const [, write] of ways) expect(JSON.parse(rawIdOf(await answer(write(id))))).toBe(JSON.parse(id))
  })

  it.each(numbers)('that is the number %s comes back as it was written', async (id) => {
    const { answer } = await open(stack())
    for (const [, write] of ways) expect(rawIdOf(await answer(write(id)))).toBe(id)
  })

  it.each(spelled)('that is the number %s comes back as that number', async (id) => {
    const { answer } = await open(stack())
    for (const [what, write] of ways) {
      const given = rawIdOf(await answer(write(id)))
      expect(given === 'null' ? null : new Big(given).eq(id), `${what} came under ${given}`).toBe(true)
    }
  })

  it('that is null is answered, unlike one that is missing', async () => {
    const { answer } = await open(stack())
    for (const [, write] of ways) expect(rawIdOf(await answer(write('null')))).toBe('null')
  })

  it.each(['{}', '{"id":1}', '[]', '[1]', 'true', 'false'])('that is %s makes the request invalid', async (id) => {
    const { answer } = await open(stack())
    const single = `{"jsonrpc":"2.0","id":${id},"method":"eth_chainId"}`
    expect(answerSummary(parseAnswer(await answer(single)))).toEqual([null, -32600])
    expect(parseAnswers(await answer(`[${single},${single}]`)).map(answerSummary)).toEqual([
      [null, -32600],
      [null, -32600],
    ])
  })

  it('keeps its digits beside others in the same batch', async () => {
    const { answer } = await open(stack())
    const ids = ['12345678901234567890', '"12345678901234567890"', '1', '1.5', '9007199254740993', 'null']
    const text = await answer(`[${ids.map((id) => `{"jsonrpc":"2.0","id":${id},"method":"eth_chainId"}`).join()}]`)
    for (const id of ids) expect(text).toContain(`"id":${id},`)
  })
})

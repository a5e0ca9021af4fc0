import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/relay/chain/rpc/upstream-error.ts'
import { alice, apple, blockHash, TRANSFER, tesla } from '../chain/node-json.ts'
import { chainEvents, openAnswers, rpcErrorOf, type UpstreamCall } from './shared-answers-fixture.ts'

type RpcCall = readonly [method: string, ...params: unknown[]]

const HEAD = 1_000
const NEAR = '0x3e7'
const DEEP = '0x10'
const balance = (block: unknown) => ['eth_getBalance', alice, block] as const
const block = (number: string) => ['eth_getBlockByNumber', number, false] as const
const logs = (filter: object) => ['eth_getLogs', filter] as const

/** Makes two calls, with something in between while the first is under way; returns how many reached the node. */
async function countUpstreamCalls(
  first: RpcCall,
  second: RpcCall,
  between: (node: ReturnType<typeof openAnswers>) => void = () => {},
): Promise<number> {
  const node = openAnswers({ head: HEAD })
  const answers = [node.request(...first)]
  await yieldToEventLoop()
  between(node)
  answers.push(node.request(...second))
  await yieldToEventLoop()
  for (const [at, { succeed }] of node.upstreamCalls.entries()) await succeed({ at })
  expect(await Promise.all(answers)).toEqual(['{"at":0}', `{"at":${node.upstreamCalls.length - 1}}`])
  return node.upstreamCalls.length
}

describe('a call that is under way', () => {
  it('is shared by every client that makes the same call', async () => {
    const { request, upstreamCalls } = openAnswers()
    const answers = Array.from({ length: 1_000 }, () => request(...balance('pending')))
    await yieldToEventLoop()
    expect(upstreamCalls).toMatchObject([{ method: 'eth_getBalance', params: [alice, 'pending'] }])
    await upstreamCalls[0]?.succeed('0x5')
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['"0x5"']))
  })

  it.each([
    ['an address in capitals', balance('latest'), ['eth_getBalance', `0x${'A1'.repeat(20)}`, 'latest']],
    ['a number in capitals', block('0xab'), block('0xAB')],
    ['a hash in capitals', balance(`0x${'ab'.repeat(32)}`), balance(`0x${'AB'.repeat(32)}`)],
    ['a topic in capitals', logs({ topics: [TRANSFER] }), logs({ topics: [`0x${TRANSFER.slice(2).toUpperCase()}`] })],
    ['another order of criteria', logs({ address: apple, topics: [null] }), logs({ topics: [null], address: apple })],
    ['null criteria', logs({ address: apple }), logs({ address: apple, topics: null, blockHash: null })],
    [
      'a range beside a hash, which wins',
      logs({ blockHash: blockHash(5) }),
      logs({ blockHash: blockHash(5), fromBlock: '0x1', toBlock: '0x2' }),
    ],
  ] as const)('is the same with %s', async (_, first, second) => {
    expect(await countUpstreamCalls(first, second)).toBe(1)
  })

  it.each([
    ['another order of topics', logs({ topics: [TRANSFER, null] }), logs({ topics: [null, TRANSFER] })],
    ['one topic in place of any', logs({ address: apple, topics: [] }), logs({ address: apple, topics: [TRANSFER] })],
    ['another address', logs({ address: apple }), logs({ address: tesla })],
    ['another block', block(NEAR), block('0x3e6')],
    ['another tag', balance('latest'), balance('pending')],
    ['whole transactions', block(NEAR), ['eth_getBlockByNumber', NEAR, true]],
    ['another method', balance('latest'), ['eth_getTransactionCount', alice, 'latest']],
    ['another slot', ['eth_getStorageAt', apple, '0x1', 'latest'], ['eth_getStorageAt', apple, '0x2', 'latest']],
  ] as const)('differs by %s', async (_, first, second) => {
    expect(await countUpstreamCalls(first, second)).toBe(2)
  })

  it.each([
    ['the pending state, after a log', balance('pending'), chainEvents.log(HEAD + 1)],
    ['the pending state, after a block was begun', balance('pending'), chainEvents.pendingHead(HEAD + 1)],
    ['the pending state, after a head', balance('pending'), chainEvents.head(HEAD + 1)],
    ['pending logs, after a log', logs({ fromBlock: NEAR, toBlock: 'pending' }), chainEvents.log(HEAD + 1)],
    ['the latest block, after a head', block('latest'), chainEvents.head(HEAD + 1)],
    ['logs without a range, after a head', logs({ address: apple }), chainEvents.head(HEAD + 1)],
    ['the newest number, after a head', ['eth_blockNumber'], chainEvents.head(HEAD + 1)],
    ['the safe block, after it rose', block('safe'), chainEvents.finality('safe', 900)],
    ['the finalized block, after it rose', block('finalized'), chainEvents.finality('finalized', 800)],
    ['a number near the head, after a head', block(NEAR), chainEvents.head(HEAD + 1)],
    ['a number above the head, after a head', block('0x3e9'), chainEvents.head(HEAD + 1)],
    ['a hash, after a head', logs({ blockHash: blockHash(999) }), chainEvents.head(HEAD + 1)],
    ['the pending state, after a reorganisation', balance('pending'), chainEvents.reorg(HEAD)],
    ['the latest block, after a reorganisation', block('latest'), chainEvents.reorg(HEAD)],
    ['a number, after a reorganisation', block(NEAR), chainEvents.reorg(HEAD)],
    ['a number deep down, after a reorganisation', block(DEEP), chainEvents.reorg(HEAD)],
    ['a hash, after a reorganisation', balance(blockHash(999)), chainEvents.reorg(HEAD)],
  ] as const)('is made again about %s', async (_, call, event) => {
    expect(await countUpstreamCalls(call, call, ({ chainState }) => chainState.receive(event))).toBe(2)
  })

  it.each([
    ['the latest block, after a log', block('latest'), chainEvents.log(HEAD + 1)],
    ['a number, after a log', block(NEAR), chainEvents.log(HEAD + 1)],
    ['a number deep down, after a head', block(DEEP), chainEvents.head(HEAD + 1)],
    ['the pending state, after a block that was settled', balance('pending'), chainEvents.sealed(HEAD)],
    ['the chain, after a head', ['eth_chainId'], chainEvents.head(HEAD + 1)],
  ] as const)('is still shared about %s', async (_, call, event) => {
    expect(await countUpstreamCalls(call, call, ({ chainState }) => chainState.receive(event))).toBe(1)
  })

  it('fails for all who share it, and the next call is made again', async () => {
    const { request, upstreamCalls } = openAnswers()
    const faults = [1, 2, 3].map(() => rpcErrorOf(request(...balance('pending'))))
    await yieldToEventLoop()
    await upstreamCalls[0]?.fail(new UpstreamError('unreachable', 'timed out'))
    expect((await Promise.all(faults)).map(({ code }) => code)).toEqual([-32000, -32000, -32000])
    const answer = request(...balance('pending'))
    await yieldToEventLoop()
    await upstreamCalls[1]?.succeed('0x7')
    expect(await answer).toBe('"0x7"')
    expect(upstreamCalls).toHaveLength(2)
  })

  it('takes nothing from a later call when it ends late', async () => {
    const { request, upstreamCalls, chainState } = openAnswers()
    const before = request(...block('latest'))
    await yieldToEventLoop()
    chainState.receive(chainEvents.head(HEAD + 1))
    const after = [request(...block('latest'))]
    await yieldToEventLoop()
    await upstreamCalls[0]?.succeed({ number: HEAD })
    after.push(request(...block('latest')))
    await yieldToEventLoop()
    await upstreamCalls[1]?.succeed({ number: HEAD + 1 })
    expect(await before).toBe('{"number":1000}')
    expect(await Promise.all(after)).toEqual(Array(2).fill('{"number":1001}'))
    expect(upstreamCalls).toHaveLength(2)
  })
})

describe('calls under way', () => {
  const quick = (n: number): RpcCall => ['eth_getBlockByNumber', `0x${(n + 1).toString(16)}`, false]
  const slow = (n: number): RpcCall => ['eth_getLogs', { fromBlock: `0x${(n + 1).toString(16)}`, toBlock: '0x100' }]
  const queues: [string, (n: number) => RpcCall, number, number][] = [
    ['for logs', slow, 8, 100],
    ['for anything else', quick, 16, 500],
  ]
  const placeOf = ({ method, params: [first] }: UpstreamCall) =>
    Number(method === 'eth_getLogs' ? (first as { fromBlock: string }).fromBlock : first) - 1

  it.each(queues)('%s are bounded: the others wait and run in their order', async (_, nth, atOnce) => {
    const { request, upstreamCalls } = openAnswers({ head: 10_000 })
    const count = atOnce + 10
    const answers = Array.from({ length: count }, (_, n) => request(...nth(n)).catch(() => 'failed'))
    await yieldToEventLoop()
    expect(upstreamCalls).toHaveLength(atOnce)
    await upstreamCalls[7]?.succeed({ n: 7 })
    await upstreamCalls[3]?.fail(new UpstreamError('unreachable', 'timed out'))
    expect(upstreamCalls.map(placeOf)).toEqual(Array.from({ length: atOnce + 2 }, (_, n) => n))
    for (let n = 0; n < count; n += 1) await upstreamCalls[n]?.succeed({ n })
    expect(await Promise.all(answers)).toEqual(answers.map((_, n) => (n === 3 ? 'failed' : `{"n":${n}}`)))
  })

  it.each(queues)(
    '%s have a bound of waiting ones: one more is refused at once, and one that shares may join',
    async (...queue) => {
      const [, nth, atOnce, waiting] = queue
      const count = atOnce + waiting
      const { request, upstreamCalls } = openAnswers({ head: 10_000 })
      const answers = Array.from({ length: count }, (_, n) => request(...nth(n)))
      await yieldToEventLoop()
      expect(await rpcErrorOf(request(...nth(count)))).toMatchObject({ code: -32005, status: 503 })
      answers.push(request(...nth(count - 1)))
      for (let n = 0; n < count; n += 1) await upstreamCalls[n]?.succeed({ n })
      expect((await Promise.all(answers)).at(-1)).toBe(`{"n":${count - 1}}`)
      expect(upstreamCalls).toHaveLength(count)
      const again = request(...nth(count))
      await yieldToEventLoop()
      await upstreamCalls[count]?.succeed({})
      expect(await again).toBe('{}')
    },
  )

  it('for logs do not delay others, however long they take', async () => {
    const { request, upstreamCalls } = openAnswers({ head: 10_000 })
    const answers = Array.from({ length: 50 }, (_, n) => request(...slow(n)))
    await yieldToEventLoop()
    const other = request(...quick(0))
    await yieldToEventLoop()
    await upstreamCalls.at(-1)?.succeed({})
    expect(await other).toBe('{}')
    for (let n = 0; n <= 50; n += 1) await upstreamCalls[n]?.succeed([])
    expect(await Promise.all(answers)).toEqual(answers.map(() => '[]'))
  })

  it('wait for a limited time and are then refused without reaching the node', async () => {
    const { request, upstreamCalls, clock } = openAnswers({ head: 10_000 })
    const answers = Array.from({ length: 16 }, (_, n) => request(...quick(n)))
    await yieldToEventLoop()
    const early = rpcErrorOf(request(...quick(16)))
    clock.uptime = 1
    const late = request(...quick(17))
    clock.uptime = 10_000
    await yieldToEventLoop()
    await upstreamCalls[0]?.succeed({})
    expect(await early).toMatchObject({ code: -32005, status: 503 })
    for (const { succeed } of upstreamCalls) await succeed({})
    expect(await late).toBe('{}')
    expect(await Promise.all(answers)).toEqual(answers.map(() => '{}'))
    expect(upstreamCalls.map(placeOf)).not.toContain(24)
  })
})

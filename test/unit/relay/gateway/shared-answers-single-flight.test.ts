import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/relay/chain/rpc/upstream-error.ts'
import { alice, apple, blockHash } from '../chain/node-json.ts'
import { chainEvents, openAnswers, rpcErrorOf, type UpstreamCall } from './shared-answers-fixture.ts'

type RpcCall = readonly [method: string, ...params: unknown[]]

const HEAD = 1_000
const NEAR = '0x3e7'
const DEEP = '0x10'
const balance = (block: unknown) => ['eth_getBalance', alice, block] as const
const block = (number: string) => ['eth_getBlockByNumber', number, false] as const
const logs = (filter: object) => ['eth_getLogs', filter] as const

describe('a call that is under way', () => {
  it('is shared by every client that makes the same call', async () => {
    const { request, upstreamCalls } = openAnswers()
    const answers = Array.from({ length: 1_000 }, () => request(...balance('pending')))
    await yieldToEventLoop()
    expect(upstreamCalls).toMatchObject([{ method: 'eth_getBalance', params: [alice, 'pending'] }])
    await upstreamCalls[0]?.succeed('0x5')
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['"0x5"']))
  })

  const again = [
    ['the pending state, after a log', balance('pending'), chainEvents.log(HEAD + 1)],
    ['the pending state, after a block was begun', balance('pending'), chainEvents.pendingHead(HEAD + 1)],
    ['the pending state, after a head', balance('pending'), chainEvents.head(HEAD + 1)],
    ['pending logs, after a log', logs({ fromBlock: NEAR, toBlock: 'pending' }), chainEvents.log(HEAD + 1)],
    ['the latest block, after a head', block('latest'), chainEvents.head(HEAD + 1)],
    ['logs without a range, after a head', logs({ address: apple }), chainEvents.head(HEAD + 1)],
    ['the newest number, after a head', ['eth_blockNumber'], chainEvents.head(HEAD + 1)],
    ['the safe block, after it rose', block('safe'), chainEvents.finality('safe', 900)],
    ['a number near the head, after a head', block(NEAR), chainEvents.head(HEAD + 1)],
    ['a number above the head, after a head', block('0x3e9'), chainEvents.head(HEAD + 1)],
    ['a hash, after a head', logs({ blockHash: blockHash(999) }), chainEvents.head(HEAD + 1)],
    ...[balance('pending'), block('latest'), block(NEAR), block(DEEP), balance(blockHash(999))].map(
      (call) => [`${call}, after a reorganisation`, call, chainEvents.reorg(HEAD)] as const,
    ),
  ] as const
  const shared = [
    ['the latest block, after a log', block('latest'), chainEvents.log(HEAD + 1)],
    ['a number, after a log', block(NEAR), chainEvents.log(HEAD + 1)],
    ['a number deep down, after a head', block(DEEP), chainEvents.head(HEAD + 1)],
    ['the pending state, after a block that was settled', balance('pending'), chainEvents.sealed(HEAD)],
    ['the chain, after a head', ['eth_chainId'], chainEvents.head(HEAD + 1)],
  ] as const

  it.each([
    ...again.map(([name, call, event]) => ['is made again', name, call, event, 2] as const),
    ...shared.map(([name, call, event]) => ['is still shared', name, call, event, 1] as const),
  ])('%s about %s', async (_, __, call: RpcCall, event, count) => {
    const { request, upstreamCalls, chainState } = openAnswers({ head: HEAD })
    const before = request(...call)
    await yieldToEventLoop()
    chainState.receive(event)
    const after = request(...call)
    await yieldToEventLoop()
    for (const [at, { succeed }] of upstreamCalls.entries()) await succeed({ at })
    expect(upstreamCalls).toHaveLength(count)
    expect(await Promise.all([before, after])).toEqual(['{"at":0}', `{"at":${count - 1}}`])
  })

  it('fails for all who share it, and the next call is made again', async () => {
    const { request, callsUpstream, upstreamCalls } = openAnswers()
    const faults = [1, 2, 3].map(() => rpcErrorOf(request(...balance('pending'))))
    await yieldToEventLoop()
    await upstreamCalls[0]?.fail(new UpstreamError('unreachable', 'timed out'))
    expect((await Promise.all(faults)).map(({ code }) => code)).toEqual([-32000, -32000, -32000])
    expect(await callsUpstream(balance('pending'), '0x7')).toBe(true)
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
  const placeOf = ({ method, params: [first] }: UpstreamCall) =>
    Number(method === 'eth_getLogs' ? (first as { fromBlock: string }).fromBlock : first) - 1

  it.each<[string, (n: number) => RpcCall, number, number]>([
    ['for logs', slow, 8, 100],
    ['for anything else', quick, 16, 500],
  ])('%s are bounded: others wait in order, one more is refused, one that shares may join', async (_, nth, atOnce, waiting) => {
    const count = atOnce + waiting
    const { request, upstreamCalls } = openAnswers({ head: 10_000 })
    const answers = Array.from({ length: count }, (_, n) => request(...nth(n)).catch(() => 'failed'))
    await yieldToEventLoop()
    expect(upstreamCalls).toHaveLength(atOnce)
    expect(await rpcErrorOf(request(...nth(count)))).toMatchObject({ code: -32005, status: 503 })
    answers.push(request(...nth(count - 1)))
    await upstreamCalls[7]?.succeed({ n: 7 })
    await upstreamCalls[3]?.fail(new UpstreamError('unreachable', 'timed out'))
    expect(upstreamCalls.map(placeOf)).toEqual(Array.from({ length: atOnce + 2 }, (_, n) => n))
    for (let n = 0; n < count; n += 1) await upstreamCalls[n]?.succeed({ n })
    const expected = Array.from({ length: count }, (_, n) => (n === 3 ? 'failed' : `{"n":${n}}`))
    expect(await Promise.all(answers)).toEqual([...expected, `{"n":${count - 1}}`])
    expect(upstreamCalls).toHaveLength(count)
    const again = request(...nth(count))
    await yieldToEventLoop()
    await upstreamCalls[count]?.succeed({})
    expect(await again).toBe('{}')
  })

  it('for logs do not delay others, however long they take', async () => {
    const { request, callsUpstream, upstreamCalls } = openAnswers({ head: 10_000 })
    const answers = Array.from({ length: 50 }, (_, n) => request(...slow(n)))
    await yieldToEventLoop()
    expect(await callsUpstream(quick(0), {})).toBe(true)
    for (let n = 0; n <= 50; n += 1) await upstreamCalls[n]?.succeed([])
    expect(await Promise.all(answers)).toEqual(answers.map(() => '[]'))
  })
})

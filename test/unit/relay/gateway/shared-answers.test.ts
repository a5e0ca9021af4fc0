import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/relay/chain/rpc/upstream-error.ts'
import type { ChainEvent } from '../../../../src/relay/chain/source/source.ts'
import { alice, apple, blockHash, word, ZERO_WORD } from '../chain/node-json.ts'
import { chainEvents, openAnswers, rpcErrorOf, type UpstreamCall } from './shared-answers-fixture.ts'
import { hashOf } from './subscriptions/log-notifier-fixture.ts'

const { head, pendingHead, log, sealed, connected, disconnected, reorg, finality } = chainEvents
const HEAD = 1_000
const HOUR_MS = 3_600_000
const hex = (number: number) => `0x${number.toString(16)}`
type RpcCall = readonly [method: string, ...params: unknown[]]
const balance = (at: unknown): RpcCall => ['eth_getBalance', alice, at]
const block = (at: string): RpcCall => ['eth_getBlockByNumber', at, false]
const logs = (filter: object): RpcCall => ['eth_getLogs', filter]
const range = (from: number, to: number) => logs({ address: apple, fromBlock: hex(from), toBlock: hex(to) })

/** Deep enough below the head: for a block without a known hash, for a range, and for an empty answer. */
const NEAREST_OLD = HEAD - 64
const NEAREST_RANGE = HEAD - 8
const NEAREST_DEEP = 10_000

const nextHead = head(HEAD + 1)
const pendingMoves = [log(HEAD + 1), pendingHead(HEAD + 1)]
const finalities = (['safe', 'finalized'] as const).map((stage) => finality(stage, HEAD - 30))

/** What calls are about, how long their answers are reused, what ends them, and what does not. */
type Group = {
  readonly about: string
  readonly calls: readonly RpcCall[]
  readonly ms: number
  readonly endedBy: readonly ChainEvent[]
  readonly keptThrough: readonly ChainEvent[]
}
const groups: readonly Group[] = [
  {
    about: 'the pending state',
    calls: [balance('pending'), block('pending'), logs({ fromBlock: 'pending', toBlock: 'pending' })],
    ms: 200,
    endedBy: [...pendingMoves, nextHead],
    keptThrough: [],
  },
  {
    about: 'the head',
    calls: [
      ...[block('latest'), block('safe'), balance('finalized'), logs({ address: apple })],
      ...[logs({ fromBlock: hex(HEAD - 9), toBlock: 'latest' }), ['eth_blockNumber'] as const],
    ],
    ms: 60_000,
    endedBy: [nextHead, ...finalities],
    keptThrough: pendingMoves,
  },
  {
    about: 'sealed blocks',
    calls: [
      ...[block(hex(HEAD)), balance(hex(HEAD - 1)), balance({ blockNumber: hex(HEAD - 1) }), block('earliest')],
      ...[balance(blockHash(HEAD)), balance({ blockHash: blockHash(HEAD) }), logs({ blockHash: blockHash(HEAD) })],
      ...[range(HEAD, HEAD), block(hex(NEAREST_OLD)), range(1, NEAREST_RANGE), ['eth_chainId'] as const],
    ],
    ms: HOUR_MS,
    endedBy: [],
    keptThrough: [...pendingMoves, sealed(HEAD), nextHead, ...finalities],
  },
]
const rows = groups.flatMap((group) => group.calls.map((call) => ({ ...group, name: JSON.stringify(call), call })))
const headRows = rows.filter(({ about }) => about === 'the head')
const reorganisations = [reorg(HEAD), sealed(HEAD)].map((first) => [first, sealed(HEAD, word(7))])

/** Answers of which the node has given one. */
async function openAnswered(call: RpcCall, result?: unknown) {
  const node = openAnswers({ head: HEAD })
  /** By default the newest block, with its known hash. */
  const callsUpstreamAgain = () => node.callsUpstream(call, result === undefined ? { hash: node.chainState.hashOf(HEAD) } : result)
  expect(await callsUpstreamAgain()).toBe(true)
  /** Whether the same call reaches the node again. */
  return { ...node, callsUpstreamAgain }
}

/** Whether an answer is kept though these events arrive before it. */
async function isKeptAfter(call: RpcCall, ...events: readonly ChainEvent[]): Promise<boolean> {
  const { request, callsUpstream, upstreamCalls, chainState } = openAnswers({ head: HEAD })
  const answer = request(...call)
  await yieldToEventLoop()
  for (const event of events) chainState.receive(event)
  await upstreamCalls[0]?.succeed({ of: 'before' })
  expect(await answer).toBe('{"of":"before"}')
  return !(await callsUpstream(call, { of: 'after' }))
}

describe('an answer', () => {
  it.each(rows)('about $about is reused for less than $ms ms: $name', async ({ call, ms, keptThrough }) => {
    const { clock, chainState, callsUpstreamAgain } = await openAnswered(call)
    for (const event of keptThrough) chainState.receive(event)
    clock.uptime = ms - 1
    expect(await callsUpstreamAgain()).toBe(false)
    clock.uptime = ms
    expect(await callsUpstreamAgain()).toBe(true)
  })

  it.each(rows)('about $about ends with what changes it, and with a reorganisation: $name', async ({ call, endedBy }) => {
    for (const events of [...endedBy.map((event) => [event]), ...reorganisations]) {
      const { chainState, callsUpstreamAgain } = await openAnswered(call)
      for (const event of events) chainState.receive(event)
      expect(await callsUpstreamAgain(), JSON.stringify(events)).toBe(true)
      expect(await callsUpstreamAgain(), JSON.stringify(events)).toBe(false)
      expect(await isKeptAfter(call, ...events), JSON.stringify(events)).toBe(false)
    }
    expect(await isKeptAfter(call, reorg(HEAD))).toBe(false)
  })

  it.each(headRows)('is reused for less than 200 ms while no heads arrive: $name', async ({ call }) => {
    const { clock, chainState, callsUpstreamAgain } = await openAnswered(call)
    chainState.receive(disconnected)
    expect(await callsUpstreamAgain()).toBe(true)
    clock.uptime = 199
    expect(await callsUpstreamAgain()).toBe(false)
    clock.uptime = 200
    expect(await callsUpstreamAgain()).toBe(true)
    chainState.receive(connected)
    clock.uptime = 400
    expect(await callsUpstreamAgain()).toBe(true)
    clock.uptime = 60_399
    expect(await callsUpstreamAgain()).toBe(false)
  })
})

it.each<[string, string, boolean]>([
  ['is not cached if it is no number', '[x]', false],
  ['is not cached if it is nested deeply', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, false],
  ['is not cached if its node lags behind', `"${hex(HEAD - 1)}"`, false],
  ['is cached if it is that of the head', `"${hex(HEAD)}"`, true],
])('the newest number %s', async (_, text, isCached) => {
  expect(await (await openAnswered(['eth_blockNumber'], Buffer.from(text))).callsUpstreamAgain()).toBe(!isCached)
})

describe('an empty answer about sealed blocks', () => {
  const emptyResults: unknown[] = [[], '0x', '0x0', ZERO_WORD]

  it.each([block(hex(HEAD)), block(hex(HEAD - 7)), balance(blockHash(HEAD))])(
    'is not cached if it is null for a block that another node may have by now: %s %s',
    async (...call) => {
      expect(await (await openAnswered(call as never, null)).callsUpstreamAgain()).toBe(true)
    },
  )

  it.each(emptyResults.map((empty) => ({ empty })))('is reused for less than 200 ms at the head: $empty', async ({ empty }) => {
    for (const call of [balance(hex(HEAD)), range(HEAD - 9, HEAD), range(HEAD - 7, HEAD - 7)]) {
      const { clock, callsUpstreamAgain } = await openAnswered(call, empty)
      clock.uptime = 199
      expect(await callsUpstreamAgain()).toBe(false)
      clock.uptime = 200
      expect(await callsUpstreamAgain()).toBe(true)
    }
  })

  it.each([null, ...emptyResults].map((empty) => ({ empty })))('is cached deep down, or up to safe: $empty', async ({ empty }) => {
    for (const [at, safe, isKept] of [
      [NEAREST_DEEP, null, true],
      [NEAREST_DEEP + 1, null, false],
      [NEAREST_DEEP + 1, NEAREST_DEEP + 1, true],
      [NEAREST_DEEP + 1, NEAREST_DEEP, false],
    ] as const) {
      for (const call of [block(hex(at)), balance(hex(at)), range(at - 9, at)]) {
        const { chainState, callsUpstream } = openAnswers({ head: NEAREST_DEEP + 1_024 })
        if (safe !== null) chainState.receive(finality('safe', safe))
        await callsUpstream(call, empty)
        chainState.receive(sealed(NEAREST_DEEP + 1_024))
        expect(await callsUpstream(call, empty)).toBe(false)
        chainState.receive(head(NEAREST_DEEP + 1_025))
        expect(await callsUpstream(call, empty)).toBe(!isKept)
      }
    }
  })
})

const someLogs = [{ some: 'log' }]
describe('an answer about sealed blocks', () => {
  it.each<[string, RpcCall, unknown]>([
    ['it is empty for an old number that is not deep down', balance(hex(1)), '0x0'],
    ['it is empty for an old range', range(1, 9), []],
    ['it is empty for a hash', logs({ blockHash: blockHash(HEAD) }), []],
    ['it is of a range that reaches near it', range(HEAD - 1, HEAD), someLogs],
    ['its range ends just too near', range(1, NEAREST_RANGE + 1), someLogs],
    ['its range ends before it begins', range(HEAD, HEAD - 1), someLogs],
    ['no hash is known, since a replacement would go unnoticed', block(hex(HEAD - 2)), undefined],
    ['it is just not old enough', balance(hex(NEAREST_OLD + 1)), undefined],
  ])('ends with the next head if %s: %j', async (_, call, result) => {
    const { chainState, callsUpstreamAgain } = await openAnswered(call, result)
    expect(await callsUpstreamAgain()).toBe(false)
    chainState.receive(nextHead)
    expect(await callsUpstreamAgain()).toBe(true)
  })

  it.each(['0x10', word(1), [null]].map((result) => ({ result })))(
    'is something, and stays with the next head, if it is $result',
    async ({ result }) => {
      const { chainState, callsUpstreamAgain } = await openAnswered(balance(hex(HEAD)), result)
      chainState.receive(nextHead)
      expect(await callsUpstreamAgain()).toBe(false)
    },
  )

  it('is not cached if its hash differs from the known one, since that node is on another chain', async () => {
    const { callsUpstream } = openAnswers({ head: HEAD })
    expect(await callsUpstream(block(hex(HEAD)), { hash: word(7) })).toBe(true)
    expect(await callsUpstream(block(hex(HEAD)), { hash: hashOf(HEAD) })).toBe(true)
    expect(await callsUpstream(block(hex(HEAD)), { hash: hashOf(HEAD) })).toBe(false)
  })
})

describe('an answer about a number above the head', () => {
  it.each([block(hex(HEAD + 1)), balance(hex(HEAD + 1)), range(HEAD, HEAD + 1), range(HEAD + 1, HEAD + 1)])(
    'is never kept, though the head comes while it is under way: %s %j',
    async (...call) => {
      expect(await (await openAnswered(call as never)).callsUpstreamAgain()).toBe(true)
      expect(await isKeptAfter(call as never, nextHead)).toBe(false)
    },
  )
})

it('the chain id is answered without a call once it is known', async () => {
  const known = openAnswers({ chainId: 84_532 })
  expect(await known.request('eth_chainId')).toBe('"0x14a34"')
  expect(known.upstreamCalls).toEqual([])
})

describe('a call that is under way', () => {
  const [near, deep] = [hex(HEAD - 1), hex(16)]
  const after = { log: log(HEAD + 1), begun: pendingHead(HEAD + 1), head: head(HEAD + 1), settled: sealed(HEAD) }
  const again = [
    ['the pending state, after a log', balance('pending'), after.log],
    ['the pending state, after a block was begun', balance('pending'), after.begun],
    ['the pending state, after a head', balance('pending'), after.head],
    ['pending logs, after a log', logs({ fromBlock: near, toBlock: 'pending' }), after.log],
    ['the latest block, after a head', block('latest'), after.head],
    ['logs without a range, after a head', logs({ address: apple }), after.head],
    ['the safe block, after it rose', block('safe'), finality('safe', 900)],
    ['a number near the head, after a head', block(near), after.head],
    ['a number above the head, after a head', block(hex(HEAD + 1)), after.head],
    ['a hash, after a head', logs({ blockHash: blockHash(HEAD - 1) }), after.head],
    ['a number deep down, after a reorganisation', block(deep), reorg(HEAD)],
  ] as const
  const shared = [
    ['the latest block, after a log', block('latest'), after.log],
    ['a number deep down, after a head', block(deep), after.head],
    ['the pending state, after a block was settled', balance('pending'), after.settled],
    ['the chain, after a head', ['eth_chainId'], after.head],
  ] as const

  it.each([
    ...again.map(([name, call, event]) => ['is made again', name, call, event, 2] as const),
    ...shared.map(([name, call, event]) => ['is still shared', name, call, event, 1] as const),
  ])('%s about %s', async (_, __, call: RpcCall, event, count) => {
    const { request, upstreamCalls, chainState } = openAnswers({ head: HEAD })
    const before = request(...call)
    await yieldToEventLoop()
    chainState.receive(event)
    const second = request(...call)
    await yieldToEventLoop()
    for (const [at, { succeed }] of upstreamCalls.entries()) await succeed({ at })
    expect(upstreamCalls).toHaveLength(count)
    expect(await Promise.all([before, second])).toEqual(['{"at":0}', `{"at":${count - 1}}`])
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
    chainState.receive(head(HEAD + 1))
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
})

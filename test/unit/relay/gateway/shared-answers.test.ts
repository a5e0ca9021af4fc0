import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/relay/chain/rpc/upstream-error.ts'
import type { ChainEvent } from '../../../../src/relay/chain/source/source.ts'
import { alice, apple, blockHash, word, ZERO_WORD } from '../chain/node-json.ts'
import { chainEvents, openAnswers, rpcErrorOf } from './shared-answers-fixture.ts'
import { hashOf } from './subscriptions/log-notifier-fixture.ts'

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

const nextHead = chainEvents.head(HEAD + 1)
const pendingMoves = [chainEvents.log(HEAD + 1), chainEvents.pendingHead(HEAD + 1)]
const finalities = (['safe', 'finalized'] as const).map((stage) => chainEvents.finality(stage, HEAD - 30))

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
      ...[range(HEAD, HEAD), block(hex(NEAREST_OLD)), range(1, NEAREST_RANGE)],
    ],
    ms: HOUR_MS,
    endedBy: [],
    keptThrough: [...pendingMoves, chainEvents.sealed(HEAD), nextHead, ...finalities],
  },
]
const rows = groups.flatMap((group) => group.calls.map((call) => ({ ...group, name: JSON.stringify(call), call })))
const headRows = rows.filter(({ about }) => about === 'the head')
const reorganisations = [chainEvents.reorg(HEAD), chainEvents.sealed(HEAD)].map((first) => [
  first,
  chainEvents.sealed(HEAD, word(7)),
])

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
    expect(await isKeptAfter(call, chainEvents.reorg(HEAD))).toBe(false)
  })

  it.each(rows)('that is a failure is never cached: $name', async ({ call }) => {
    const { request, callsUpstream, upstreamCalls } = openAnswers({ head: HEAD })
    const error = rpcErrorOf(request(...call))
    await yieldToEventLoop()
    await upstreamCalls[0]?.fail(new UpstreamError('invalid', '-32602 no'))
    await error
    expect(await callsUpstream(call, {})).toBe(true)
  })

  it.each(headRows)('is reused for less than 200 ms while no heads arrive: $name', async ({ call }) => {
    const { clock, chainState, callsUpstreamAgain } = await openAnswered(call)
    chainState.receive(chainEvents.disconnected)
    expect(await callsUpstreamAgain()).toBe(true)
    clock.uptime = 199
    expect(await callsUpstreamAgain()).toBe(false)
    clock.uptime = 200
    expect(await callsUpstreamAgain()).toBe(true)
    chainState.receive(chainEvents.connected)
    clock.uptime = 400
    expect(await callsUpstreamAgain()).toBe(true)
    clock.uptime = 60_399
    expect(await callsUpstreamAgain()).toBe(false)
  })

  it.each(['success', 'failure'])(
    'is not replaced by a %s that was requested before the head and arrives after it',
    async (end) => {
      const { request, callsUpstream, upstreamCalls, chainState } = openAnswers()
      const old = request(...block('latest')).catch(() => 'failed')
      await yieldToEventLoop()
      chainState.receive(nextHead)
      expect(await callsUpstream(block('latest'), { number: HEAD + 1 })).toBe(true)
      if (end === 'success') await upstreamCalls[0]?.succeed({ number: HEAD })
      else await upstreamCalls[0]?.fail(new UpstreamError('unreachable', 'timed out'))
      expect(await old).toBe(end === 'success' ? '{"number":1000}' : 'failed')
      expect(await callsUpstream(block('latest'), { number: HEAD + 1 })).toBe(false)
    },
  )
})

describe('the newest number', () => {
  it.each(['[x]', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, `"${hex(HEAD - 1)}"`])(
    'is not cached if it is no number, or of a node that lags behind: %.10s',
    async (text) => {
      const { callsUpstream } = openAnswers({ head: HEAD })
      for (let time = 0; time < 2; time += 1) expect(await callsUpstream(['eth_blockNumber'], Buffer.from(text))).toBe(true)
    },
  )

  it('is cached if it is that of the head', async () => {
    expect(await (await openAnswered(['eth_blockNumber'], hex(HEAD))).callsUpstreamAgain()).toBe(false)
  })
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
        if (safe !== null) chainState.receive(chainEvents.finality('safe', safe))
        await callsUpstream(call, empty)
        chainState.receive(chainEvents.sealed(NEAREST_DEEP + 1_024))
        expect(await callsUpstream(call, empty)).toBe(false)
        chainState.receive(chainEvents.head(NEAREST_DEEP + 1_025))
        expect(await callsUpstream(call, empty)).toBe(!isKept)
      }
    }
  })
})

const someLogs = [{ some: 'log' }]
describe('an answer about sealed blocks', () => {
  it.each<[string, RpcCall, unknown]>([
    ...emptyAnswers(balance(hex(1)), range(1, 9), logs({ blockHash: blockHash(HEAD) })),
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

  it.each(['0x1', '0x10', word(1), [null], {}, false].map((result) => ({ result })))(
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

function emptyAnswers(...calls: readonly RpcCall[]): [string, RpcCall, unknown][] {
  return [[], '0x', '0x0', ZERO_WORD].flatMap((empty) =>
    calls.map((call): [string, RpcCall, unknown] => [`it is ${JSON.stringify(empty)} near it`, call, empty]),
  )
}

describe('an answer about a number above the head', () => {
  it.each([block(hex(HEAD + 1)), balance(hex(HEAD + 1)), range(HEAD, HEAD + 1), range(HEAD + 1, HEAD + 1)])(
    'is never kept, though the head comes while it is under way: %s %j',
    async (...call) => {
      expect(await (await openAnswered(call as never)).callsUpstreamAgain()).toBe(true)
      expect(await isKeptAfter(call as never, nextHead)).toBe(false)
    },
  )

  it.each([1, 64])('is not cached without a known head, %i below the first one', async (below) => {
    const { request, callsUpstream, upstreamCalls, chainState } = openAnswers({ head: null })
    const call = balance(hex(HEAD))
    expect(await callsUpstream(call, '0x0')).toBe(true)
    const answer = request(...call)
    await yieldToEventLoop()
    chainState.receive(chainEvents.head(HEAD + below))
    await upstreamCalls[1]?.succeed('0x0')
    await answer
    expect(await callsUpstream(call, '0x5')).toBe(true)
  })

  it('is premature, and not kept for long, after a reorganisation that removes the block', async () => {
    const { callsUpstream, chainState } = openAnswers({ head: HEAD })
    chainState.receive(chainEvents.reorg(900))
    expect(await callsUpstream(balance(hex(920)), '0x0')).toBe(true)
    chainState.receive(chainEvents.head(901))
    expect(await callsUpstream(balance(hex(920)), '0x0')).toBe(true)
  })
})

it('the chain id is answered without a call once it is known', async () => {
  const known = openAnswers({ chainId: 84_532 })
  expect(await known.request('eth_chainId')).toBe('"0x14a34"')
  expect(known.upstreamCalls).toEqual([])
  const { chainState, clock, callsUpstreamAgain } = await openAnswered(['eth_chainId'], '0x1')
  chainState.receive(nextHead)
  clock.uptime = HOUR_MS - 1
  expect(await callsUpstreamAgain()).toBe(false)
})

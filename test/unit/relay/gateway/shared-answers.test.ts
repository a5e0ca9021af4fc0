import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/relay/chain/rpc/upstream-error.ts'
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
const pendingCalls = [balance('pending'), block('pending'), logs({ fromBlock: 'pending', toBlock: 'pending' })]
const headCalls = [
  block('latest'),
  block('safe'),
  balance('finalized'),
  logs({ address: apple }),
  logs({ fromBlock: hex(HEAD - 9), toBlock: 'latest' }),
  ['eth_blockNumber'] as const,
]
const sealedCalls = [
  block(hex(HEAD)),
  balance(hex(HEAD - 1)),
  balance({ blockNumber: hex(HEAD - 1) }),
  block('earliest'),
  balance(blockHash(HEAD)),
  balance({ blockHash: blockHash(HEAD) }),
  logs({ blockHash: blockHash(HEAD) }),
  range(HEAD, HEAD),
  block(hex(NEAREST_OLD)),
  range(1, NEAREST_RANGE),
]
const withLabel = (call: RpcCall) => [JSON.stringify(call), call] as const

/** Answers of which the node has given one. */
async function openAnswered(call: RpcCall, result?: unknown) {
  const node = openAnswers({ head: HEAD })
  /** By default the newest block, with its known hash. */
  const callsUpstreamAgain = () => node.callsUpstream(call, result === undefined ? { hash: node.chainState.hashOf(HEAD) } : result)
  expect(await callsUpstreamAgain()).toBe(true)
  /** Whether the same call reaches the node again. */
  return { ...node, callsUpstreamAgain }
}

describe('an answer about the pending state', () => {
  it.each(pendingCalls.map(withLabel))('is reused for less than 200 ms: %s', async (_, call) => {
    const { clock, callsUpstreamAgain } = await openAnswered(call)
    clock.uptime = 199
    expect(await callsUpstreamAgain()).toBe(false)
    clock.uptime = 200
    expect(await callsUpstreamAgain()).toBe(true)
  })

  it.each([
    ['a log', chainEvents.log(HEAD + 1)],
    ['a block that is begun', chainEvents.pendingHead(HEAD + 1)],
    ['a head', chainEvents.head(HEAD + 1)],
  ])('ends with %s', async (_, events) => {
    for (const call of pendingCalls) {
      const { chainState, callsUpstreamAgain } = await openAnswered(call)
      chainState.receive(events)
      expect(await callsUpstreamAgain()).toBe(true)
    }
  })

  it('is not reused if the pending state moved before it arrived', async () => {
    const { request, callsUpstream, upstreamCalls, chainState } = openAnswers()
    const answer = request(...balance('pending'))
    await yieldToEventLoop()
    chainState.receive(chainEvents.log(HEAD + 1))
    await upstreamCalls[0]?.succeed('0x1')
    expect(await answer).toBe('"0x1"')
    expect(await callsUpstream(balance('pending'), '0x2')).toBe(true)
  })
})

describe('an answer about the head', () => {
  it.each(headCalls.map(withLabel))('is reused for less than a minute while the head stays: %s', async (_, call) => {
    const { clock, chainState, callsUpstreamAgain } = await openAnswered(call)
    chainState.receive(chainEvents.log(HEAD + 1))
    chainState.receive(chainEvents.pendingHead(HEAD + 1))
    clock.uptime = 59_999
    expect(await callsUpstreamAgain()).toBe(false)
    clock.uptime = 60_000
    expect(await callsUpstreamAgain()).toBe(true)
  })

  it.each(headCalls.map(withLabel))('is reused for less than 200 ms while no heads arrive: %s', async (_, call) => {
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

  it.each(headCalls.map(withLabel))('ends with the next head: %s', async (_, call) => {
    const { chainState, callsUpstreamAgain } = await openAnswered(call)
    chainState.receive(chainEvents.head(HEAD + 1))
    expect(await callsUpstreamAgain()).toBe(true)
  })

  it.each(['safe', 'finalized'] as const)('ends when the %s block rises', async (stage) => {
    const { chainState, callsUpstreamAgain } = await openAnswered(block(stage))
    chainState.receive(chainEvents.finality(stage, HEAD - 30))
    expect(await callsUpstreamAgain()).toBe(true)
  })

  it('is not cached if its number is below the head, since that node lags behind', async () => {
    const { callsUpstream } = openAnswers({ head: HEAD })
    expect(await callsUpstream(['eth_blockNumber'], hex(HEAD - 1))).toBe(true)
    expect(await callsUpstream(['eth_blockNumber'], hex(HEAD))).toBe(true)
    expect(await callsUpstream(['eth_blockNumber'], hex(HEAD))).toBe(false)
  })

  it.each(['[x]', '['.repeat(100_000) + ']'.repeat(100_000)])('is not cached if it is no number: %#', async (text) => {
    const { callsUpstream } = openAnswers({ head: HEAD })
    expect(await callsUpstream(['eth_blockNumber'], Buffer.from(text))).toBe(true)
    expect(await callsUpstream(['eth_blockNumber'], Buffer.from(text))).toBe(true)
  })

  it('is not replaced by one that was requested before the head and arrives after it', async () => {
    const { request, callsUpstream, upstreamCalls, chainState } = openAnswers()
    const old = request(...block('latest'))
    await yieldToEventLoop()
    chainState.receive(chainEvents.head(HEAD + 1))
    expect(await callsUpstream(block('latest'), { number: HEAD + 1 })).toBe(true)
    await upstreamCalls[0]?.succeed({ number: HEAD })
    expect(await old).toBe('{"number":1000}')
    expect(await callsUpstream(block('latest'), { number: HEAD + 1 })).toBe(false)
  })
})

describe('an answer about sealed blocks', () => {
  it.each(sealedCalls.map(withLabel))('is reused for an hour, through later events: %s', async (_, call) => {
    const { clock, chainState, callsUpstreamAgain } = await openAnswered(call)
    for (const events of [
      chainEvents.log(HEAD + 1),
      chainEvents.sealed(HEAD),
      chainEvents.head(HEAD + 1),
      chainEvents.finality('safe', 900),
    ])
      chainState.receive(events)
    clock.uptime = HOUR_MS - 1
    expect(await callsUpstreamAgain()).toBe(false)
    clock.uptime = HOUR_MS
    expect(await callsUpstreamAgain()).toBe(true)
  })

  it.each([block(hex(HEAD)), block(hex(HEAD - 7)), balance(blockHash(HEAD))].map(withLabel))(
    'is not cached if it is null for a block that another node may have by now: %s',
    async (_, call) => {
      const { callsUpstreamAgain } = await openAnswered(call, null)
      expect(await callsUpstreamAgain()).toBe(true)
    },
  )

  it.each([[], '0x', '0x0', ZERO_WORD].map((one) => [one]))(
    'is reused for less than 200 ms if it is empty at the head: %j',
    async (empty) => {
      for (const call of [balance(hex(HEAD)), range(HEAD - 9, HEAD), range(HEAD - 7, HEAD - 7)]) {
        const { clock, callsUpstreamAgain } = await openAnswered(call, empty)
        clock.uptime = 199
        expect(await callsUpstreamAgain()).toBe(false)
        clock.uptime = 200
        expect(await callsUpstreamAgain()).toBe(true)
      }
    },
  )

  it.each([[], '0x', '0x0', ZERO_WORD].map((one) => [one]))('ends with the next head if it is empty near it: %j', async (empty) => {
    for (const call of [balance(hex(1)), range(1, 9), logs({ blockHash: blockHash(HEAD) })]) {
      const { chainState, callsUpstreamAgain } = await openAnswered(call, empty)
      expect(await callsUpstreamAgain()).toBe(false)
      chainState.receive(chainEvents.head(HEAD + 1))
      expect(await callsUpstreamAgain()).toBe(true)
    }
  })

  it.each([null, [], '0x', '0x0', ZERO_WORD])('is cached deep down even if it is empty: %j', async (empty) => {
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

  const things: unknown[] = ['0x1', '0x10', word(1), [null], {}, false]
  it.each(things.map((one) => [one]))('is something if it is %j', async (result) => {
    const { chainState, callsUpstreamAgain } = await openAnswered(balance(hex(HEAD)), result)
    chainState.receive(chainEvents.head(HEAD + 1))
    expect(await callsUpstreamAgain()).toBe(false)
  })

  it('ends with the next head for a range that reaches near it', async () => {
    for (const call of [range(HEAD - 1, HEAD), range(1, NEAREST_RANGE + 1), range(HEAD, HEAD - 1)]) {
      const { chainState, callsUpstreamAgain } = await openAnswered(call, [{ some: 'log' }])
      expect(await callsUpstreamAgain()).toBe(false)
      chainState.receive(chainEvents.head(HEAD + 1))
      expect(await callsUpstreamAgain()).toBe(true)
    }
  })

  it('is not cached if its hash differs from the known one, since that node is on another chain', async () => {
    const { callsUpstream } = openAnswers({ head: HEAD })
    expect(await callsUpstream(block(hex(HEAD)), { hash: word(7) })).toBe(true)
    expect(await callsUpstream(block(hex(HEAD)), { hash: hashOf(HEAD) })).toBe(true)
    expect(await callsUpstream(block(hex(HEAD)), { hash: hashOf(HEAD) })).toBe(false)
  })

  it('ends with the next head if no hash is known, since a replacement would go unnoticed', async () => {
    for (const call of [block(hex(HEAD - 2)), balance(hex(NEAREST_OLD + 1))]) {
      const { chainState, callsUpstreamAgain } = await openAnswered(call)
      expect(await callsUpstreamAgain()).toBe(false)
      chainState.receive(chainEvents.head(HEAD + 1))
      expect(await callsUpstreamAgain()).toBe(true)
    }
  })
})

describe('an answer about a number above the head', () => {
  const above = [block(hex(HEAD + 1)), balance(hex(HEAD + 1)), range(HEAD, HEAD + 1), range(HEAD + 1, HEAD + 1)]

  it.each(above.map(withLabel))('is never kept: %s', async (_, call) => {
    const { callsUpstreamAgain } = await openAnswered(call)
    expect(await callsUpstreamAgain()).toBe(true)
  })

  it.each(above.map(withLabel))('is not kept though the head comes while it is under way: %s', async (_, call) => {
    const { request, callsUpstream, upstreamCalls, chainState } = openAnswers({ head: HEAD })
    const answer = request(...call)
    await yieldToEventLoop()
    chainState.receive(chainEvents.head(HEAD + 1))
    await upstreamCalls[0]?.succeed({ is: 'being built' })
    await answer
    expect(await callsUpstream(call, { is: 'sealed' })).toBe(true)
  })

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
})

describe('a reorganisation', () => {
  const all = [...pendingCalls, ...headCalls, ...sealedCalls]
  const doubts = [chainEvents.reorg(HEAD), chainEvents.sealed(HEAD, word(7))]
  const otherHash = [chainEvents.sealed(HEAD), chainEvents.sealed(HEAD, word(7))]

  it.each([
    ['reorg', doubts],
    ['found when a block is settled anew', otherHash],
  ])('invalidates all earlier answers when it is %s', async (_, events) => {
    for (const call of all) {
      const { chainState, callsUpstreamAgain } = await openAnswered(call)
      for (const event of events) chainState.receive(event)
      expect(await callsUpstreamAgain(), JSON.stringify(call)).toBe(true)
      expect(await callsUpstreamAgain(), JSON.stringify(call)).toBe(false)
    }
  })

  it('makes the removed blocks shallow again: a premature answer is not kept for long', async () => {
    const { callsUpstream, chainState } = openAnswers({ head: HEAD })
    chainState.receive(chainEvents.reorg(900))
    expect(await callsUpstream(balance(hex(920)), '0x0')).toBe(true)
    chainState.receive(chainEvents.head(901))
    expect(await callsUpstream(balance(hex(920)), '0x0')).toBe(true)
  })

  it('invalidates calls that were under way', async () => {
    for (const call of all) {
      const { request, callsUpstream, upstreamCalls, chainState } = openAnswers({ head: HEAD })
      const answer = request(...call)
      await yieldToEventLoop()
      chainState.receive(chainEvents.reorg(HEAD))
      await upstreamCalls[0]?.succeed({ of: 'a chain that is no more' })
      await answer
      expect(await callsUpstream(call, { of: 'the chain' }), JSON.stringify(call)).toBe(true)
    }
  })
})

describe('a failure', () => {
  it('is never cached', async () => {
    for (const call of [...pendingCalls, ...headCalls, ...sealedCalls]) {
      const { request, callsUpstream, upstreamCalls } = openAnswers({ head: HEAD })
      const error = rpcErrorOf(request(...call))
      await yieldToEventLoop()
      await upstreamCalls[0]?.fail(new UpstreamError('invalid', '-32602 no'))
      await error
      expect(await callsUpstream(call, {})).toBe(true)
    }
  })

  it('leaves the cache unchanged', async () => {
    const { request, callsUpstream, upstreamCalls, chainState } = openAnswers({ head: HEAD })
    const old = rpcErrorOf(request(...block('latest')))
    await yieldToEventLoop()
    chainState.receive(chainEvents.head(HEAD + 1))
    expect(await callsUpstream(block('latest'), {})).toBe(true)
    await upstreamCalls[0]?.fail(new UpstreamError('unreachable', 'timed out'))
    await old
    expect(await callsUpstream(block('latest'), {})).toBe(false)
  })
})

describe('the chain id', () => {
  it('is answered without a call once it is known', async () => {
    const known = openAnswers({ chainId: 84_532 })
    expect(await known.request('eth_chainId')).toBe('"0x14a34"')
    expect(known.upstreamCalls).toEqual([])
    const { chainState, clock, callsUpstreamAgain } = await openAnswered(['eth_chainId'], '0x1')
    chainState.receive(chainEvents.head(HEAD + 1))
    clock.uptime = HOUR_MS - 1
    expect(await callsUpstreamAgain()).toBe(false)
  })
})

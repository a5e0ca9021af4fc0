import { describe, expect, it } from 'vitest'
import type { ReadFilter } from '../../../../../src/relay/chain/logs/log-filter.ts'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { noPendingMemory } from '../../../../../src/relay/chain/source/pending-status.ts'
import { type PollResult, pollHead, pollPending } from '../../../../../src/relay/chain/source/polls.ts'
import { initialState } from '../../../../../src/relay/chain/source/source-evidence.ts'
import { FakeChain } from '../fake-chain.ts'
import { apple, keyOf, tesla, timestampOf, word } from '../node-json.ts'

const HEAD = 1_000
const SILENCE_MS = 3_000

/** Polls of a scripted chain, with a memory that learns from them alone and a clock that the test moves. */
const openPoller = ({ sealedOnly = false } = {}) => {
  const chain = new FakeChain(HEAD)
  const node = new ChainReader(chain.request)
  const list = { filters: [{ addresses: [apple] }] as readonly ReadFilter[] }
  const clock = { now: 0 }
  let state = { ...initialState(1, SILENCE_MS, 0), head: HEAD, pending: sealedOnly ? 'missing' : 'unknown' } as const
  let memory = noPendingMemory
  const poll = async (wanted: Parameters<typeof pollPending>[1] | 'head' = 'of_changed_block', afterMs = 200) => {
    clock.now += afterMs
    const before = chain.requests.length
    const events: Exclude<PollResult, { type: 'polling' }>[] = []
    const began: string[] = []
    const emit = (result: PollResult) => {
      if (result.type !== 'polling') events.push(result)
      else began.push(result.poll)
      if (began.includes('head')) state = { ...state, headPolledAt: clock.now }
      if (result.type === 'pending' || result.type === 'covered') memory = result.memory ?? memory
    }
    const { signal } = new AbortController()
    const polling = { knowsSealed: () => false, now: () => clock.now, emit, signal }
    const inputs = { node, state, memory, filters: list.filters, ...polling }
    const failure = await (wanted === 'head' ? pollHead(inputs) : pollPending(inputs, wanted)).then(
      () => null,
      (error: unknown) => error,
    )
    const requests = chain.requests.slice(before).map(({ method, params }) => (method === 'eth_getLogs' ? 'logs' : params[0]))
    return { requests, began, events, failure, types: events.map(({ type }) => type) }
  }
  return {
    chain,
    list,
    clock,
    poll,
    /** The judgement of one poll, and the number of the block that counts as pre-confirmed; null without such a block. */
    judge: async () => {
      const { events } = await poll('none')
      return events.flatMap((result) =>
        result.type === 'pending' ? [result.memory.status, result.block && (result.block.number ?? 'none')] : [],
      )
    },
  }
}
const logsOf = (keys: readonly string[], closesGap = false) => ({
  type: 'polled_logs',
  logs: { logs: keys.map((key) => expect.objectContaining({ key })), unreadable: 0 },
  closesGap,
})

describe('a poll of the pending block', () => {
  it('reads it, the head and the pre-confirmed logs', async () => {
    const { chain, poll } = openPoller()
    const log = chain.addLog(HEAD + 1)
    chain.addLog(HEAD)
    const { requests, began, events } = await poll()
    expect(requests).toEqual(['pending', 'latest', 'logs'])
    expect(began).toEqual(['pending', 'head'])
    expect(chain.requestedRanges()).toEqual([[HEAD, 'pending']])
    expect(events).toEqual([
      { type: 'latest', header: expect.objectContaining({ number: HEAD }) },
      {
        type: 'pending',
        memory: expect.objectContaining({ status: 'preconfirmed' }),
        block: expect.objectContaining({ number: HEAD + 1, timestamp: timestampOf(HEAD + 1) }),
      },
      logsOf([keyOf(log)]),
      expect.objectContaining({ type: 'covered', filters: [{ addresses: [apple] }] }),
    ])
  })

  it.each([
    [3_000, ['latest', 'pending', 'covered']],
    [3_001, ['latest']],
  ])('is judged by a head that took %i ms, or not at all if that is too long', async (ms, types) => {
    const { chain, poll, clock } = openPoller()
    // The node answers with the block of before the request that hangs.
    chain.override = ({ params }) => {
      if (params[0] === 'pending') chain.head += 2
      else clock.now += ms
      return undefined
    }
    chain.pending = 'null'
    expect((await poll()).types).toEqual(types)
  })

  it('reads nothing else while it is unchanged, until the head is due', async () => {
    const { chain, poll } = openPoller()
    await poll()
    expect(await poll()).toMatchObject({
      requests: ['pending'],
      events: [{ memory: { status: 'preconfirmed' }, block: { number: HEAD + 1 } }],
    })
    expect((await poll('of_changed_block', SILENCE_MS)).requests).toEqual(['pending', 'latest'])
    chain.addLog(HEAD + 1)
    expect((await poll()).requests).toEqual(['pending', 'latest', 'logs'])
  })

  it('reads logs after the list changed, even if the block did not', async () => {
    const { chain, poll, list } = openPoller()
    const log = chain.addLog(HEAD + 1, tesla)
    await poll()
    list.filters = [{ addresses: [apple, tesla] }]
    expect((await poll()).events).toContainEqual(logsOf([keyOf(log)]))
    expect((await poll()).requests).toEqual(['pending'])
  })

  it.each([
    ['that reads no logs', 'none', ['pending', 'latest'], ['pending', 'latest']],
    ['that closes a gap', 'to_close_gap', ['pending', 'latest', 'logs'], ['pending', 'latest', 'logs']],
  ] as const)(
    '%s reads the head of an unchanged block too, and does not keep the next from its logs',
    async (_, wanted, first, second) => {
      const { chain, poll } = openPoller()
      const log = chain.addLog(HEAD + 1)
      const { requests, events } = await poll(wanted)
      expect(requests).toEqual(first)
      if (wanted === 'to_close_gap') expect(events).toContainEqual(logsOf([keyOf(log)], true))
      expect((await poll(wanted)).requests).toEqual(second)
      if (wanted === 'none') expect((await poll()).requests).toEqual(['pending', 'latest', 'logs'])
    },
  )

  it.each([
    ['shown', 'preconfirmed', HEAD + 1],
    ['partial', 'preconfirmed', HEAD + 1],
    ['numberless', 'preconfirmed', 'none'],
    ['latest', 'latest', null],
    ['refused', 'latest', null],
    ['null', 'null', null],
    ['behind', 'behind', null],
  ] as const)('with a block that is %s has the status %s', async (pending, status, number) => {
    const { chain, judge } = openPoller()
    chain.pending = pending
    expect(await judge()).toEqual([status, number])
  })

  it.each([
    ['is not behind because the chain moves on during the poll', 'shown', 10, ['latest', null]],
    ['counts a block as pre-confirmed that is sealed between two reads', 'shown', 1, ['preconfirmed', HEAD + 1]],
    ['counts a block without number as pre-confirmed that is sealed between two reads', 'numberless', 1, ['preconfirmed', 'none']],
  ] as const)('%s', async (_, pending, blocks, expected) => {
    const { chain, judge } = openPoller()
    chain.pending = pending
    chain.override = ({ params }) => {
      if (params[0] === 'latest') chain.head += blocks
      return undefined
    }
    expect(await judge()).toEqual(expected)
  })

  it.each([
    [
      'finds nothing pre-confirmed in a block without number on another parent',
      HEAD + 1,
      { number: null, hash: null, parentHash: word(5) },
    ],
    ['counts a block with the hash of the latest as the latest, with any number', HEAD, { number: '0x3e9' }],
  ])('%s', async (_, block, fields) => {
    const { chain, judge } = openPoller()
    chain.override = ({ params }) => (params[0] === 'pending' ? { ...chain.headerOf(block), ...fields } : undefined)
    expect(await judge()).toEqual(['latest', null])
  })

  it('fails with the error of the upstream, or without a latest block', async () => {
    const { chain, poll } = openPoller()
    chain.failure = new UpstreamError('unreachable', 'ECONNREFUSED')
    expect((await poll()).failure).toBe(chain.failure)
    chain.failure = null
    chain.override = ({ params }) => (params[0] === 'latest' ? null : undefined)
    expect((await poll()).failure).toMatchObject({ kind: 'unreadable' })
  })
})

it('a poll of the head reads the head alone, and covers the listed tokens', async () => {
  const { poll } = openPoller()
  expect(await poll('head')).toMatchObject({
    requests: ['latest'],
    began: ['head'],
    events: [
      { type: 'latest', header: { number: HEAD } },
      { type: 'covered', filters: [{ addresses: [apple] }], memory: null },
    ],
  })
})

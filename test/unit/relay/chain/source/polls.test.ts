import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { noPendingMemory } from '../../../../../src/relay/chain/source/pending-status.ts'
import { type PollResult, pollHead, pollPending } from '../../../../../src/relay/chain/source/polls.ts'
import { duePoll } from '../../../../../src/relay/chain/source/source-decisions.ts'
import { type Evidence, initialState, next } from '../../../../../src/relay/chain/source/source-evidence.ts'
import { FakeChain } from '../fake-chain.ts'
import { apple, keyOf, tesla, timestampOf, word } from '../node-json.ts'

const HEAD = 1_000
const SILENCE_MS = 3_000

/** Polls of a scripted chain, with a state that learns from them alone and a clock that the test moves. */
const openPoller = ({ hasLink = false } = {}) => {
  const chain = new FakeChain(HEAD)
  const node = new ChainReader(chain.request)
  const list = { addresses: [apple] as readonly Hex[] }
  let [state, memory, now] = [initialState(hasLink ? 1 : 0, SILENCE_MS, 0), noPendingMemory, 0]
  const learn = (...evidence: readonly Evidence[]) => {
    for (const piece of evidence) state = next(state, piece, now)
  }
  const learnHead = (number: number, via: 'link' | 'poll') =>
    learn({ type: 'head', number, via }, { type: 'progress', head: Math.max(number, state.head ?? 0), settled: null })
  const take = (result: PollResult) => {
    if (result.type === 'polling') learn(result)
    if (result.type === 'latest') learnHead(result.header.number, 'poll')
    if (result.type === 'pending') learn({ type: 'pending', status: result.memory.status })
    if (result.type === 'pending' || result.type === 'covered') memory = result.memory ?? memory
  }
  const collect = async (due: ReturnType<typeof duePoll> | 'gap') => {
    const events: Exclude<PollResult, { type: 'polling' }>[] = []
    const failures: unknown[] = []
    const emit = (result: PollResult) => {
      take(result)
      if (result.type !== 'polling') events.push(result)
    }
    const { signal } = new AbortController()
    const inputs = { node, state, memory, addresses: list.addresses, knowsSealed: () => false, now: () => now, emit, signal }
    const wanted = ({ gap: 'to_close_gap', pending_logs: 'of_changed_block', pending: 'none' } as const)[String(due)]
    try {
      if (due === 'head') await pollHead(inputs)
      else if (wanted) await pollPending(inputs, wanted)
    } catch (failure) {
      failures.push(failure)
    }
    return { events, failures }
  }
  return {
    chain,
    list,
    learn,
    pushHead: (number = chain.head) => learnHead(number, 'link'),
    state: () => state,
    passTime: (ms: number) => {
      now += ms
    },
    /** Polls what is due, and returns the requests and the results. */
    due: async (afterMs = 200) => {
      now += afterMs
      const before = chain.requests.length
      const { events, failures } = await collect(duePoll(state, now))
      const requests = chain.requests.slice(before).map(({ method, params }) => (method === 'eth_getLogs' ? 'logs' : params[0]))
      return { requests, events, failures, types: events.map(({ type }) => type) }
    },
    pollForced: () => collect('gap'),
    poll: async () =>
      (await collect(duePoll(state, now))).events.flatMap((result) =>
        result.type === 'pending' ? [[result.memory.status, result.block?.number ?? null]] : [],
      ),
  }
}
const live: Evidence = { type: 'live', subscription: 'pendingLogs' }
const delivered: Evidence = { type: 'pushed', newest: HEAD + 1 }
/** Logs of two sealed blocks that were not pushed. */
const missed: readonly Evidence[] = [
  { type: 'polled_logs', newest: null, closesGap: true },
  { type: 'settled', number: HEAD + 1, logs: 2 },
  { type: 'settled', number: HEAD + 2, logs: 2 },
]

/** The requests of several polls. */
const requestsOf = async (
  due: (afterMs: number) => Promise<{ readonly requests: readonly unknown[] }>,
  delays: readonly number[],
) => {
  const requests: unknown[] = []
  for (const ms of delays) requests.push(...(await due(ms)).requests)
  return requests
}

describe('a poll of the pending block', () => {
  it('reads it, the head and the pre-confirmed logs', async () => {
    const { chain, due } = openPoller()
    const log = chain.addLog(HEAD + 1)
    chain.addLog(HEAD)
    const { requests, events } = await due()
    expect(requests).toEqual(['pending', 'latest', 'logs'])
    expect(chain.requestedRanges()).toEqual([[HEAD, 'pending']])
    expect(events).toEqual([
      { type: 'latest', header: expect.objectContaining({ number: HEAD }) },
      {
        type: 'pending',
        memory: expect.objectContaining({ status: 'preconfirmed' }),
        block: expect.objectContaining({ number: HEAD + 1, timestamp: timestampOf(HEAD + 1) }),
      },
      { type: 'polled_logs', logs: { logs: [expect.objectContaining({ key: keyOf(log) })], unreadable: 0 }, closesGap: false },
      expect.objectContaining({ type: 'covered', addresses: [apple] }),
    ])
  })

  it.each([
    [3_000, ['latest', 'pending', 'covered']],
    [3_001, ['latest']],
  ])('is judged by a head that took %i ms, or not at all if that is too long', async (ms, types) => {
    const { chain, due, passTime } = openPoller()
    // The node answers with the block of before the request that hangs.
    chain.override = ({ params }) => {
      if (params[0] === 'pending') chain.head += 2
      else passTime(ms)
      return undefined
    }
    chain.pending = 'null'
    expect((await due()).types).toEqual(types)
  })

  it('reads nothing else while it is unchanged, until the head is due', async () => {
    const { chain, due } = openPoller()
    await due()
    expect(await due()).toMatchObject({
      requests: ['pending'],
      events: [{ memory: { status: 'preconfirmed' }, block: { number: HEAD + 1 } }],
    })
    expect((await due(SILENCE_MS)).requests).toEqual(['pending', 'latest'])
    chain.addLog(HEAD + 1)
    expect((await due()).requests).toEqual(['pending', 'latest', 'logs'])
  })

  it('reads logs after the list changed, even if the block did not', async () => {
    const { chain, due, list } = openPoller()
    const log = chain.addLog(HEAD + 1, tesla)
    await due()
    list.addresses = [apple, tesla]
    expect((await due()).events).toContainEqual({
      type: 'polled_logs',
      logs: { logs: [expect.objectContaining({ key: keyOf(log) })], unreadable: 0 },
      closesGap: false,
    })
    expect((await due()).requests).toEqual(['pending'])
  })

  it('is repeated as a whole after it failed half-way', async () => {
    const { chain, due } = openPoller()
    chain.addLog(HEAD + 1)
    chain.override = ({ method }) => {
      if (method === 'eth_getLogs') throw new UpstreamError('busy', 'over rate limit')
      return undefined
    }
    const { failures, types } = await due()
    expect(failures).toHaveLength(1)
    expect(types).not.toContain('covered')
    chain.override = () => undefined
    expect((await due()).requests).toEqual(['pending', 'latest', 'logs'])
  })

  it('reads the logs of an unchanged block when forced', async () => {
    const { chain, due, pollForced } = openPoller()
    const log = chain.addLog(HEAD + 1)
    await due()
    expect(
      (await pollForced()).events.flatMap((result) =>
        result.type === 'polled_logs' ? result.logs.logs.map(({ key }) => key) : [],
      ),
    ).toEqual([keyOf(log)])
  })

  it.each([
    ['shown', 'preconfirmed', HEAD + 1],
    ['partial', 'preconfirmed', HEAD + 1],
    ['numberless', 'preconfirmed', null],
    ['latest', 'latest', null],
    ['refused', 'latest', null],
    ['null', 'null', null],
    ['behind', 'behind', null],
  ] as const)('with a block that is %s has the status %s', async (pending, status, number) => {
    const { chain, pushHead, poll } = openPoller()
    pushHead(HEAD)
    chain.pending = pending
    expect(await poll()).toEqual([[status, number]])
  })

  it.each(['latest', 'refused', 'null', 'behind'] as const)('with a block that is %s has no block time', async (pending) => {
    const { chain, pushHead, due } = openPoller()
    pushHead(HEAD)
    chain.pending = pending
    expect((await due()).events).toContainEqual(expect.objectContaining({ type: 'pending', block: null }))
  })

  it('has the status behind even as the first poll', async () => {
    const { chain, poll } = openPoller()
    chain.pending = 'behind'
    expect(await poll()).toEqual([['behind', null]])
  })

  it('is not behind because the chain moves on during the poll', async () => {
    const { chain, pushHead, poll } = openPoller()
    pushHead(HEAD)
    chain.override = ({ params }) => {
      if (params[0] === 'latest') chain.head = HEAD + 10
      return undefined
    }
    expect(await poll()).toEqual([['latest', null]])
  })

  it('counts a block as pre-confirmed that is sealed between two reads', async () => {
    const { chain, poll } = openPoller()
    chain.override = ({ params }) => {
      if (params[0] === 'latest') chain.head = HEAD + 1
      return undefined
    }
    expect(await poll()).toEqual([['preconfirmed', HEAD + 1]])
  })

  it('counts a block without number as pre-confirmed that is sealed between two reads', async () => {
    const { chain, poll } = openPoller()
    chain.pending = 'numberless'
    chain.override = ({ params }) => {
      if (params[0] === 'latest') chain.head = HEAD + 1
      return undefined
    }
    expect(await poll()).toEqual([['preconfirmed', null]])
  })

  it('finds nothing pre-confirmed in a block without number on another parent', async () => {
    const { chain, poll } = openPoller()
    chain.override = ({ params }) =>
      params[0] === 'pending' ? { ...chain.headerOf(HEAD + 1), number: null, hash: null, parentHash: word(5) } : undefined
    expect(await poll()).toEqual([['latest', null]])
  })

  it('counts a block with the hash of the latest as the latest, with any number', async () => {
    const { chain, poll } = openPoller()
    chain.override = ({ params }) => (params[0] === 'pending' ? { ...chain.headerOf(HEAD), number: '0x3e9' } : undefined)
    expect(await poll()).toEqual([['latest', null]])
  })

  it('fails with the error of the upstream', async () => {
    const { chain, due } = openPoller()
    chain.failure = new UpstreamError('unreachable', 'ECONNREFUSED')
    expect((await due()).failures).toEqual([chain.failure])
    chain.failure = null
    chain.override = ({ params }) => (params[0] === 'latest' ? null : undefined)
    expect((await due()).failures).toMatchObject([{ kind: 'unreadable' }])
  })
})

describe('the poller while logs are pushed', () => {
  it('polls the pending block twice a second until the logs are proven, without reading logs', async () => {
    const { chain, due, learn } = openPoller({ hasLink: true })
    learn(live)
    chain.pending = 'null'
    chain.addLog(HEAD + 1)
    const requests = await requestsOf(due, [200, 200, 200, 200, 200])
    expect(requests).toEqual(['pending', 'latest', 'latest', 'latest', 'pending', 'latest', 'latest'])
    learn(delivered)
    expect((await due(60_000)).requests).toEqual(['latest'])
  })

  it('reads pre-confirmed logs once the pushed ones are distrusted, even of an unchanged block', async () => {
    const { chain, due, learn } = openPoller({ hasLink: true })
    learn(live)
    chain.addLog(HEAD + 1)
    expect((await due()).requests).toEqual(['pending', 'latest'])
    learn(...missed)
    expect((await due()).requests).toEqual(['pending', 'latest', 'logs'])
  })

  it('proves the pushed logs by one pre-confirmed block', async () => {
    const { due, learn, state, pushHead } = openPoller({ hasLink: true })
    learn(live)
    expect((await due()).requests).toEqual(['pending', 'latest'])
    pushHead(HEAD)
    expect((await due(1_000)).requests).toEqual([])
    expect(state().trust).toBe('proven')
  })
})

describe('the polled head', () => {
  /** A poller that need not poll the pending block. */
  const openProven = async () => {
    const opened = openPoller({ hasLink: true })
    opened.learn(live, delivered)
    await opened.due()
    return opened
  }

  it('is read with every poll while none is pushed', async () => {
    const { due } = await openProven()
    expect(await requestsOf(due, [200, 200, 200])).toEqual(['latest', 'latest', 'latest'])
  })

  it('is read after each silence while heads are pushed', async () => {
    const { due, pushHead } = await openProven()
    await due()
    pushHead(HEAD)
    expect((await due(SILENCE_MS - 1)).requests).toEqual([])
    expect((await due(1)).requests).toEqual(['latest'])
    expect((await due(1_000)).requests).toEqual([])
  })

  it('is read with every poll after it was newer than the pushed one twice', async () => {
    const { chain, due, pushHead } = await openProven()
    pushHead(HEAD)
    await due()
    for (const _ of [1, 2]) {
      chain.head += 1
      expect((await due(SILENCE_MS)).requests).toEqual(['latest'])
    }
    expect((await due()).requests).toEqual(['latest'])
    pushHead()
    expect((await due()).requests).toEqual([])
  })

  it('is read at once when there is evidence of a newer one', async () => {
    const { due, learn, pushHead } = await openProven()
    await due()
    pushHead(HEAD)
    expect((await due()).requests).toEqual([])
    learn({ type: 'head_wanted' })
    expect((await due()).requests).toEqual(['latest'])
  })

  it('is read with every poll once heads are no longer pushed', async () => {
    const { due, learn, pushHead } = await openProven()
    await due()
    pushHead(HEAD)
    learn({ type: 'down', isRefused: false }, live, delivered)
    expect((await due()).requests).toEqual(['latest'])
  })
})

describe('the poller of a node without pre-confirmations', () => {
  it('reads the head with every poll', async () => {
    const { chain, due } = openPoller()
    chain.pending = 'latest'
    expect((await due()).requests).toEqual(['pending', 'latest'])
    chain.head += 1
    expect((await due()).events[0]).toMatchObject({ type: 'latest', header: { number: HEAD + 1 } })
    expect((await due()).requests).toEqual(['pending', 'latest'])
  })

  it('looks for pre-confirmations every minute while heads are pushed', async () => {
    const { chain, due, pushHead } = openPoller()
    chain.pending = 'latest'
    await due()
    pushHead(HEAD)
    expect(await requestsOf(due, [200, 200, 2_600])).toEqual(['latest'])
    expect((await due(60_000)).requests).toEqual(['pending', 'latest'])
  })
})

import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { BlockReader } from '../../../../src/chain/rpc/block-reader.ts'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { ChainPoller, type PollResult } from '../../../../src/chain/source/poller.ts'
import { SourceState } from '../../../../src/chain/source/state.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { FakeChain } from '../fake-chain.ts'
import { apple, keyOf, tesla, timestampOf, word } from '../node-json.ts'

const HEAD = 1_000
const SILENCE_MS = 3_000

const openPoller = ({ hasLink = false } = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(HEAD)
  const state = new SourceState({ hasLink, silenceMs: SILENCE_MS, now: () => clock.frame })
  const list = { addresses: [apple] as readonly Hex[] }
  const poller = new ChainPoller({
    node: new BlockReader(chain.request),
    state,
    addresses: () => list.addresses,
    silenceMs: SILENCE_MS,
    clock,
  })
  const collect = (asked = poller.pollDue()) => {
    const events: PollResult[] = []
    const failures: unknown[] = []
    asked.subscribe({ next: (seen) => events.push(seen), error: (failure) => failures.push(failure) })
    for (const seen of events) if (seen.type === 'pending') state.pendingPolled(seen.status)
    return { events, failures }
  }
  return {
    chain,
    verdict: state,
    list,
    poller,
    /** Asks for what is due; in which words it was asked, and what was heard. */
    due: (afterMs = 200) => {
      clock.frame += afterMs
      const before = chain.requests.length
      const { events, failures } = collect()
      const asked = chain.requests
        .slice(before)
        .map(({ method, params }) => (method === 'eth_getLogs' ? 'logs' : params[0]))
      return { asked, events, failures, types: events.map(({ type }) => type) }
    },
    closely: () => collect(poller.pollPending()),
    look: () =>
      collect().events.flatMap((seen) => (seen.type === 'pending' ? [[seen.status, seen.block.pending]] : [])),
  }
}

describe('a look at the pending state', () => {
  it('asks for it, for the head, and for what is pre-confirmed', () => {
    const { chain, due } = openPoller()
    const log = chain.addLog(HEAD + 1)
    chain.addLog(HEAD)
    const { asked, events } = due()
    expect(asked).toEqual(['pending', 'latest', 'logs'])
    expect(chain.requestedRanges()).toEqual([[HEAD, 'pending']])
    expect(events).toEqual([
      { type: 'latest', header: expect.objectContaining({ number: HEAD }) },
      { type: 'pending', status: 'preconfirmed', block: { pending: HEAD + 1, timestamp: timestampOf(HEAD + 1) } },
      { type: 'logs', logs: { logs: [expect.objectContaining({ key: keyOf(log) })], unreadable: 0 } },
      { type: 'complete', addresses: [apple] },
    ])
  })

  it('that shows nothing new asks for no more, until the head is due', () => {
    const { chain, due } = openPoller()
    due()
    expect(due()).toMatchObject({
      asked: ['pending'],
      events: [{ status: 'preconfirmed', block: { pending: HEAD + 1 } }],
    })
    expect(due(SILENCE_MS).asked).toEqual(['pending', 'latest'])
    chain.addLog(HEAD + 1)
    expect(due().asked).toEqual(['pending', 'latest', 'logs'])
  })

  it('asks for logs though nothing moved, once the list changed', () => {
    const { chain, due, list } = openPoller()
    const log = chain.addLog(HEAD + 1, tesla)
    due()
    list.addresses = [apple, tesla]
    expect(due().events).toContainEqual({
      type: 'logs',
      logs: { logs: [expect.objectContaining({ key: keyOf(log) })], unreadable: 0 },
    })
    expect(due().asked).toEqual(['pending'])
  })

  it('that failed half-way is taken again as a whole', () => {
    const { chain, due } = openPoller()
    chain.addLog(HEAD + 1)
    chain.override = ({ method }) => {
      if (method === 'eth_getLogs') throw new UpstreamError('busy', 'over rate limit')
      return undefined
    }
    const { failures, types } = due()
    expect(failures).toHaveLength(1)
    expect(types).not.toContain('complete')
    chain.override = () => undefined
    expect(due().asked).toEqual(['pending', 'latest', 'logs'])
  })

  it('taken closely asks for logs whatever it looked like before', () => {
    const { chain, due, closely } = openPoller()
    const log = chain.addLog(HEAD + 1)
    due()
    expect(
      closely().events.flatMap((seen) => (seen.type === 'logs' ? seen.logs.logs.map(({ key }) => key) : [])),
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
  ] as const)('where it reads as %s shows %s', (pending, shown, number) => {
    const { chain, poller, look } = openPoller()
    poller.recordPushedHead(HEAD)
    chain.pending = pending
    expect(look()).toEqual([[shown, number]])
  })

  it.each(['latest', 'refused', 'null', 'behind'] as const)(
    'where it reads as %s shows the time of no block',
    (pending) => {
      const { chain, poller, due } = openPoller()
      poller.recordPushedHead(HEAD)
      chain.pending = pending
      expect(due().events).toContainEqual(expect.objectContaining({ block: { pending: null, timestamp: null } }))
    },
  )

  it('shows what is behind though nothing was known of the chain before', () => {
    const { chain, look } = openPoller()
    chain.pending = 'behind'
    expect(look()).toEqual([['behind', null]])
  })

  it('takes long, and is not behind because the chain goes on meanwhile', () => {
    const { chain, poller, look } = openPoller()
    poller.recordPushedHead(HEAD)
    chain.override = ({ params }) => {
      if (params[0] === 'latest') chain.head = HEAD + 10
      return undefined
    }
    expect(look()).toEqual([['latest', null]])
  })

  it('sees a block that is sealed between two questions as it was', () => {
    const { chain, look } = openPoller()
    chain.override = ({ params }) => {
      if (params[0] === 'latest') chain.head = HEAD + 1
      return undefined
    }
    expect(look()).toEqual([['preconfirmed', HEAD + 1]])
  })

  it('sees a numberless block that is sealed between two questions as it was', () => {
    const { chain, look } = openPoller()
    chain.pending = 'numberless'
    chain.override = ({ params }) => {
      if (params[0] === 'latest') chain.head = HEAD + 1
      return undefined
    }
    expect(look()).toEqual([['preconfirmed', null]])
  })

  it('sees no pre-confirmation in a numberless block that stands on another', () => {
    const { chain, look } = openPoller()
    chain.override = ({ params }) =>
      params[0] === 'pending'
        ? { ...chain.headerOf(HEAD + 1), number: null, hash: null, parentHash: word(5) }
        : undefined
    expect(look()).toEqual([['latest', null]])
  })

  it("takes a block with the latest one's hash for the latest, whatever its number", () => {
    const { chain, look } = openPoller()
    chain.override = ({ params }) =>
      params[0] === 'pending' ? { ...chain.headerOf(HEAD), number: '0x3e9' } : undefined
    expect(look()).toEqual([['latest', null]])
  })

  it('fails with the upstream', () => {
    const { chain, due } = openPoller()
    chain.failure = new UpstreamError('unreachable', 'ECONNREFUSED')
    expect(due().failures).toEqual([chain.failure])
    chain.failure = null
    chain.override = ({ params }) => (params[0] === 'latest' ? null : undefined)
    expect(due().failures).toMatchObject([{ kind: 'unreadable' }])
  })
})

describe('while logs are pushed', () => {
  it('the pending state is looked at twice a second until they have proven themselves, and never read', () => {
    const { chain, due, verdict } = openPoller({ hasLink: true })
    verdict.setLink('pushing')
    chain.pending = 'null'
    chain.addLog(HEAD + 1)
    const asked = [200, 200, 200, 200, 200].flatMap((ms) => due(ms).asked)
    expect(asked).toEqual(['pending', 'latest', 'latest', 'latest', 'pending', 'latest', 'latest'])
    verdict.markDelivered()
    expect(due(60_000).asked).toEqual(['latest'])
  })

  it('what is pre-confirmed is read as soon as they are distrusted, though nothing moved', () => {
    const { chain, due, verdict } = openPoller({ hasLink: true })
    verdict.setLink('pushing')
    chain.addLog(HEAD + 1)
    expect(due().asked).toEqual(['pending', 'latest'])
    verdict.markDoubted('silent')
    expect(due().asked).toEqual(['pending', 'latest', 'logs'])
  })

  it('one look that shows what is pre-confirmed proves them', () => {
    const { due, verdict, poller } = openPoller({ hasLink: true })
    verdict.setLink('pushing')
    expect(due().asked).toEqual(['pending', 'latest'])
    poller.recordPushedHead(HEAD)
    expect(due(1_000).asked).toEqual([])
    expect(verdict.isProven).toBe(true)
  })
})

describe('the head', () => {
  /** One that has no need to look at what is pending. */
  const proven = () => {
    const opened = openPoller({ hasLink: true })
    opened.verdict.setLink('pushing')
    opened.verdict.markDelivered()
    opened.due()
    return opened
  }

  it('is asked for with every poll while none is pushed', () => {
    const { due } = proven()
    expect([200, 200, 200].flatMap((ms) => due(ms).asked)).toEqual(['latest', 'latest', 'latest'])
  })

  it('is asked for now and then while heads are pushed', () => {
    const { due, poller } = proven()
    due()
    poller.recordPushedHead(HEAD)
    expect(due(SILENCE_MS - 1).asked).toEqual([])
    expect(due(1).asked).toEqual(['latest'])
    expect(due(1_000).asked).toEqual([])
  })

  it('is asked for with every poll again, once it was twice found to be ahead of what is pushed', () => {
    const { chain, due, poller } = proven()
    poller.recordPushedHead(HEAD)
    due()
    for (const _ of [1, 2]) {
      chain.head += 1
      expect(due(SILENCE_MS).asked).toEqual(['latest'])
    }
    expect(due().asked).toEqual(['latest'])
    poller.recordPushedHead(chain.head)
    expect(due().asked).toEqual([])
  })

  it('is asked for at once where there is news of a newer one', () => {
    const { due, poller } = proven()
    due()
    poller.recordPushedHead(HEAD)
    expect(due().asked).toEqual([])
    poller.pollHeadSoon()
    expect(due().asked).toEqual(['latest'])
  })

  it('is asked for with every poll when nothing is pushed any more', () => {
    const { due, poller } = proven()
    due()
    poller.recordPushedHead(HEAD)
    poller.forgetPushedHead()
    expect(due().asked).toEqual(['latest'])
  })
})

describe('where nothing is pre-confirmed', () => {
  it('the head is asked for with every poll', () => {
    const { chain, due } = openPoller()
    chain.pending = 'latest'
    expect(due().asked).toEqual(['pending', 'latest'])
    chain.head += 1
    expect(due().events[0]).toMatchObject({ type: 'latest', header: { number: HEAD + 1 } })
    expect(due().asked).toEqual(['pending', 'latest'])
  })

  it('and heads are pushed, it is looked for again after a minute', () => {
    const { chain, due, poller } = openPoller()
    chain.pending = 'latest'
    due()
    poller.recordPushedHead(HEAD)
    expect([200, 200, 2_600].flatMap((ms) => due(ms).asked)).toEqual(['latest'])
    expect(due(60_000).asked).toEqual(['pending', 'latest'])
  })
})

import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { Reader } from '../../../../src/chain/rpc/block-reader.ts'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { Looks, type Seen } from '../../../../src/chain/source/poller.ts'
import { Verdict } from '../../../../src/chain/source/state.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { FakeChain } from '../fake-chain.ts'
import { apple, keyOf, secondOf, tesla, word } from '../node-json.ts'

const HEAD = 1_000
const SILENCE_MS = 3_000

const open = ({ hasLink = false } = {}) => {
  const clock = new VirtualTimeScheduler(undefined, 0)
  const chain = new FakeChain(HEAD)
  const verdict = new Verdict({ hasLink, silenceMs: SILENCE_MS, now: () => clock.frame })
  const list = { addresses: [apple] as readonly Hex[] }
  const looks = new Looks({
    node: new Reader(chain.ask),
    verdict,
    wanted: () => list.addresses,
    silenceMs: SILENCE_MS,
    clock,
  })
  const listen = (asked = looks.due()) => {
    const heard: Seen[] = []
    const failures: unknown[] = []
    asked.subscribe({ next: (seen) => heard.push(seen), error: (failure) => failures.push(failure) })
    for (const seen of heard) if (seen.type === 'look') verdict.looked(seen.look)
    return { heard, failures }
  }
  return {
    chain,
    verdict,
    list,
    looks,
    /** Asks for what is due; in which words it was asked, and what was heard. */
    due: (afterMs = 200) => {
      clock.frame += afterMs
      const before = chain.asked.length
      const { heard, failures } = listen()
      const asked = chain.asked
        .slice(before)
        .map(({ method, params }) => (method === 'eth_getLogs' ? 'logs' : params[0]))
      return { asked, heard, failures, types: heard.map(({ type }) => type) }
    },
    closely: () => listen(looks.closely()),
    look: () => listen().heard.flatMap((seen) => (seen.type === 'look' ? [[seen.look, seen.building.pending]] : [])),
  }
}

describe('a look at the pending state', () => {
  it('asks for it, for the head, and for what is pre-confirmed', () => {
    const { chain, due } = open()
    const log = chain.put(HEAD + 1)
    chain.put(HEAD)
    const { asked, heard } = due()
    expect(asked).toEqual(['pending', 'latest', 'logs'])
    expect(chain.ranges()).toEqual([[HEAD, 'pending']])
    expect(heard).toEqual([
      { type: 'latest', header: expect.objectContaining({ number: HEAD }) },
      { type: 'look', look: 'preconfirmed', building: { pending: HEAD + 1, timestamp: secondOf(HEAD + 1) } },
      { type: 'logs', found: { logs: [expect.objectContaining({ key: keyOf(log) })], unreadable: 0 } },
      { type: 'asked', addresses: [apple] },
    ])
  })

  it('that shows nothing new asks for no more, until the head is due', () => {
    const { chain, due } = open()
    due()
    expect(due()).toMatchObject({
      asked: ['pending'],
      heard: [{ look: 'preconfirmed', building: { pending: HEAD + 1 } }],
    })
    expect(due(SILENCE_MS).asked).toEqual(['pending', 'latest'])
    chain.put(HEAD + 1)
    expect(due().asked).toEqual(['pending', 'latest', 'logs'])
  })

  it('asks for logs though nothing moved, once the list changed', () => {
    const { chain, due, list } = open()
    const log = chain.put(HEAD + 1, tesla)
    due()
    list.addresses = [apple, tesla]
    expect(due().heard).toContainEqual({
      type: 'logs',
      found: { logs: [expect.objectContaining({ key: keyOf(log) })], unreadable: 0 },
    })
    expect(due().asked).toEqual(['pending'])
  })

  it('that failed half-way is taken again as a whole', () => {
    const { chain, due } = open()
    chain.put(HEAD + 1)
    chain.instead = ({ method }) => {
      if (method === 'eth_getLogs') throw new UpstreamError('busy', 'over rate limit')
      return undefined
    }
    const { failures, types } = due()
    expect(failures).toHaveLength(1)
    expect(types).not.toContain('asked')
    chain.instead = () => undefined
    expect(due().asked).toEqual(['pending', 'latest', 'logs'])
  })

  it('taken closely asks for logs whatever it looked like before', () => {
    const { chain, due, closely } = open()
    const log = chain.put(HEAD + 1)
    due()
    expect(
      closely().heard.flatMap((seen) => (seen.type === 'logs' ? seen.found.logs.map(({ key }) => key) : [])),
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
    const { chain, looks, look } = open()
    looks.pushed(HEAD)
    chain.pending = pending
    expect(look()).toEqual([[shown, number]])
  })

  it.each(['latest', 'refused', 'null', 'behind'] as const)(
    'where it reads as %s shows the time of no block',
    (pending) => {
      const { chain, looks, due } = open()
      looks.pushed(HEAD)
      chain.pending = pending
      expect(due().heard).toContainEqual(expect.objectContaining({ building: { pending: null, timestamp: null } }))
    },
  )

  it('shows what is behind though nothing was known of the chain before', () => {
    const { chain, look } = open()
    chain.pending = 'behind'
    expect(look()).toEqual([['behind', null]])
  })

  it('takes long, and is not behind because the chain goes on meanwhile', () => {
    const { chain, looks, look } = open()
    looks.pushed(HEAD)
    chain.instead = ({ params }) => {
      if (params[0] === 'latest') chain.head = HEAD + 10
      return undefined
    }
    expect(look()).toEqual([['latest', null]])
  })

  it('sees a block that is sealed between two questions as it was', () => {
    const { chain, look } = open()
    chain.instead = ({ params }) => {
      if (params[0] === 'latest') chain.head = HEAD + 1
      return undefined
    }
    expect(look()).toEqual([['preconfirmed', HEAD + 1]])
  })

  it('sees a numberless block that is sealed between two questions as it was', () => {
    const { chain, look } = open()
    chain.pending = 'numberless'
    chain.instead = ({ params }) => {
      if (params[0] === 'latest') chain.head = HEAD + 1
      return undefined
    }
    expect(look()).toEqual([['preconfirmed', null]])
  })

  it('sees no pre-confirmation in a numberless block that stands on another', () => {
    const { chain, look } = open()
    chain.instead = ({ params }) =>
      params[0] === 'pending'
        ? { ...chain.headerOf(HEAD + 1), number: null, hash: null, parentHash: word(5) }
        : undefined
    expect(look()).toEqual([['latest', null]])
  })

  it("takes a block with the latest one's hash for the latest, whatever its number", () => {
    const { chain, look } = open()
    chain.instead = ({ params }) => (params[0] === 'pending' ? { ...chain.headerOf(HEAD), number: '0x3e9' } : undefined)
    expect(look()).toEqual([['latest', null]])
  })

  it('fails with the upstream', () => {
    const { chain, due } = open()
    chain.trouble = new UpstreamError('unreachable', 'ECONNREFUSED')
    expect(due().failures).toEqual([chain.trouble])
    chain.trouble = null
    chain.instead = ({ params }) => (params[0] === 'latest' ? null : undefined)
    expect(due().failures).toMatchObject([{ kind: 'unreadable' }])
  })
})

describe('while logs are pushed', () => {
  it('the pending state is looked at twice a second until they have proven themselves, and never read', () => {
    const { chain, due, verdict } = open({ hasLink: true })
    verdict.linked('pushing')
    chain.pending = 'null'
    chain.put(HEAD + 1)
    const asked = [200, 200, 200, 200, 200].flatMap((ms) => due(ms).asked)
    expect(asked).toEqual(['pending', 'latest', 'latest', 'latest', 'pending', 'latest', 'latest'])
    verdict.delivered()
    expect(due(60_000).asked).toEqual(['latest'])
  })

  it('what is pre-confirmed is read as soon as they are distrusted, though nothing moved', () => {
    const { chain, due, verdict } = open({ hasLink: true })
    verdict.linked('pushing')
    chain.put(HEAD + 1)
    expect(due().asked).toEqual(['pending', 'latest'])
    verdict.doubted('silent')
    expect(due().asked).toEqual(['pending', 'latest', 'logs'])
  })

  it('one look that shows what is pre-confirmed proves them', () => {
    const { due, verdict, looks } = open({ hasLink: true })
    verdict.linked('pushing')
    expect(due().asked).toEqual(['pending', 'latest'])
    looks.pushed(HEAD)
    expect(due(1_000).asked).toEqual([])
    expect(verdict.proven).toBe(true)
  })
})

describe('the head', () => {
  /** One that has no need to look at what is pending. */
  const proven = () => {
    const opened = open({ hasLink: true })
    opened.verdict.linked('pushing')
    opened.verdict.delivered()
    opened.due()
    return opened
  }

  it('is asked for with every poll while none is pushed', () => {
    const { due } = proven()
    expect([200, 200, 200].flatMap((ms) => due(ms).asked)).toEqual(['latest', 'latest', 'latest'])
  })

  it('is asked for now and then while heads are pushed', () => {
    const { due, looks } = proven()
    due()
    looks.pushed(HEAD)
    expect(due(SILENCE_MS - 1).asked).toEqual([])
    expect(due(1).asked).toEqual(['latest'])
    expect(due(1_000).asked).toEqual([])
  })

  it('is asked for with every poll again, once it was twice found to be ahead of what is pushed', () => {
    const { chain, due, looks } = proven()
    looks.pushed(HEAD)
    due()
    for (const _ of [1, 2]) {
      chain.head += 1
      expect(due(SILENCE_MS).asked).toEqual(['latest'])
    }
    expect(due().asked).toEqual(['latest'])
    looks.pushed(chain.head)
    expect(due().asked).toEqual([])
  })

  it('is asked for at once where there is news of a newer one', () => {
    const { due, looks } = proven()
    due()
    looks.pushed(HEAD)
    expect(due().asked).toEqual([])
    looks.hurry()
    expect(due().asked).toEqual(['latest'])
  })

  it('is asked for with every poll when nothing is pushed any more', () => {
    const { due, looks } = proven()
    due()
    looks.pushed(HEAD)
    looks.alone()
    expect(due().asked).toEqual(['latest'])
  })
})

describe('where nothing is pre-confirmed', () => {
  it('the head is asked for with every poll', () => {
    const { chain, due } = open()
    chain.pending = 'latest'
    expect(due().asked).toEqual(['pending', 'latest'])
    chain.head += 1
    expect(due().heard[0]).toMatchObject({ type: 'latest', header: { number: HEAD + 1 } })
    expect(due().asked).toEqual(['pending', 'latest'])
  })

  it('and heads are pushed, it is looked for again after a minute', () => {
    const { chain, due, looks } = open()
    chain.pending = 'latest'
    due()
    looks.pushed(HEAD)
    expect([200, 200, 2_600].flatMap((ms) => due(ms).asked)).toEqual(['latest'])
    expect(due(60_000).asked).toEqual(['pending', 'latest'])
  })
})

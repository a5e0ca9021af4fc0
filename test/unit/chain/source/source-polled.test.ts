import { BehaviorSubject, NEVER } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { apple, keyOf, secondOf, tesla } from '../node-json.ts'
import { feed, HEAD, POLL_MS } from './source-fixture.ts'

/** One without a link. */
const polled = (given: Parameters<typeof feed>[0] = {}) => feed({ linked: false, ...given })

describe('without a link the source polls', () => {
  it('and tells from where on it tells all, what is pre-confirmed, whose logs it hears, and that it polls', () => {
    const { chain, pass, told, statuses, all } = polled()
    chain.put(HEAD)
    const log = chain.put(HEAD + 1)
    pass(0)
    expect(all('cursor')).toEqual([{ type: 'cursor', cursor: { number: HEAD, hash: chain.hashOf(HEAD) } }])
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['poll ok'])
    expect(all('hearing')).toEqual([{ type: 'hearing', addresses: [apple] }])
    expect(all('head')).toEqual([
      {
        ...{ type: 'head', sealed: HEAD, pending: null, timestamp: secondOf(HEAD) },
        ...{ hash: chain.hashOf(HEAD), parentHash: chain.hashOf(HEAD - 1) },
      },
      { type: 'head', sealed: null, pending: HEAD + 1, timestamp: secondOf(HEAD + 1) },
    ])
  })

  it('and tells every block as it is sealed', () => {
    const { pass, seal, sealed, statuses } = polled()
    pass(0)
    for (const logs of [1, 0, 3]) seal(logs, { announced: false, pushed: false })
    expect(sealed().map(({ number, logs, via }) => [number, logs.length, via])).toEqual([
      [HEAD + 1, 1, 'sealed'],
      [HEAD + 2, 0, 'sealed'],
      [HEAD + 3, 3, 'sealed'],
    ])
    expect(statuses()).toEqual(['poll ok'])
  })

  it('but tells no log while no token is known', () => {
    const { chain, pass, told, all } = polled({ addresses: NEVER })
    chain.put(HEAD + 1)
    pass(2_000)
    expect(told()).toEqual([])
    expect(all('hearing')).toEqual([])
    expect(chain.addresses()).toEqual([])
  })

  it('and hears each log at the next poll, with the time at which it came', () => {
    const { chain, pass, all } = polled()
    pass(POLL_MS / 2)
    const log = chain.put(HEAD + 1)
    pass(POLL_MS)
    expect(all('log').map((one) => [one.log.key, one.receivedAt])).toEqual([[keyOf(log), POLL_MS]])
  })

  it('and tells a log of a block that was quicker than it is when that block is settled', () => {
    const { chain, pass, told, sealed } = polled()
    pass(0)
    const logs = [1, 2, 3, 4, 5].map((ahead) => chain.put(HEAD + ahead))
    chain.head = HEAD + 4
    pass(POLL_MS)
    expect(sealed().flatMap((block) => block.logs.map(({ key }) => key))).toEqual(logs.slice(0, 4).map(keyOf))
    expect(told()).toEqual([`${keyOf(logs[4] ?? { block: 0 })} poll`])
  })

  it('and hears new tokens with the next poll, though nothing moved', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, pass, told, all } = polled({ addresses })
    const log = chain.put(HEAD + 1, tesla)
    pass(POLL_MS)
    expect(told()).toEqual([])
    addresses.next([tesla])
    pass(POLL_MS)
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(all('hearing').map((one) => one.addresses)).toEqual([[apple], [tesla]])
  })

  it('and says that it hears new tokens only once it was answered', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, pass, all } = polled({ addresses })
    pass(0)
    chain.trouble = new UpstreamError('busy', 'over rate limit')
    addresses.next([apple, tesla])
    pass(2_000)
    expect(all('hearing')).toHaveLength(1)
    chain.trouble = null
    pass(POLL_MS)
    expect(all('hearing')).toHaveLength(2)
  })

  it('and never asks for one thing again before it was answered', () => {
    const { chain, pass } = polled()
    chain.delayMs = 700
    chain.put(HEAD + 1)
    pass(5_000)
    const looks = chain.asked.filter(({ params }) => params[0] === 'pending')
    expect(looks.length).toBeLessThan(5)
  })

  it('and after a restart tells what was sealed meanwhile as caught up', () => {
    const { chain, pass, all, sealed } = polled({ cursor: { number: HEAD - 3, hash: null } })
    const log = chain.put(HEAD - 2)
    pass(POLL_MS)
    expect(all('cursor')).toEqual([])
    expect(sealed().map(({ number, via }) => [number, via])).toEqual([
      [HEAD - 2, 'backfill'],
      [HEAD - 1, 'backfill'],
      [HEAD, 'backfill'],
    ])
    expect(sealed()[0]?.logs.map(({ key }) => key)).toEqual([keyOf(log)])
  })

  it('and takes nothing back when nodes behind one name stand at different heights', () => {
    const { chain, pass, sealed, statuses, said } = polled()
    pass(0)
    const logs = [1, 2, 3, 4, 5, 6].map((ahead) => chain.put(HEAD + ahead))
    for (const head of [2, 0, 3, 1, 5, 4, 6]) {
      chain.lag = Math.max(0, chain.head - HEAD - head)
      chain.head = Math.max(chain.head, HEAD + head)
      pass(POLL_MS)
    }
    chain.lag = 0
    pass(5_000)
    expect(sealed().map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6].map((ahead) => HEAD + ahead))
    expect(sealed().flatMap((block) => block.logs.map(({ key }) => key))).toEqual(logs.map(keyOf))
    expect(said).not.toContain('the chain was reorganised')
    expect(statuses()).toEqual(['poll ok'])
  })

  it('and goes on polling where a block is sealed between two questions of one poll', () => {
    const { chain, pass, statuses, sealed } = polled()
    chain.instead = ({ params }) => {
      if (params[0] === 'latest') chain.head += 1
      return undefined
    }
    pass(20 * POLL_MS)
    expect(statuses()).toEqual(['poll ok'])
    expect(sealed().length).toBeGreaterThan(18)
  })
})

describe('a pending block', () => {
  it.each(['numberless', 'partial'] as const)(
    'that is %s is a pre-confirmation where it follows the latest',
    (shown) => {
      const { chain, pass, statuses, told } = polled()
      chain.pending = shown
      const log = chain.put(HEAD + 1)
      pass(0)
      expect(statuses()).toEqual(['poll ok'])
      expect(told()).toEqual([`${keyOf(log)} poll`])
    },
  )

  it.each([
    ['latest', 'sealed no_pending'],
    ['null', 'sealed no_pending'],
    ['refused', 'sealed no_pending'],
  ] as const)('that is %s means that nothing is pre-confirmed, and what is sealed is told', (shown, status) => {
    const { chain, pass, statuses, sealed, seal, said, told } = polled()
    chain.pending = shown
    pass(0)
    expect(statuses()).toEqual([status])
    seal(1, { announced: false, pushed: false })
    pass(POLL_MS)
    expect(sealed().map(({ number, logs }) => [number, logs.length])).toEqual([[HEAD + 1, 1]])
    expect(told()).toEqual([])
    expect(statuses()).toEqual([status])
    expect(said).not.toContain('polling failed')
  })

  it('that is far behind means that nothing is pre-confirmed either', () => {
    const { chain, pass, statuses } = polled()
    chain.pending = 'behind'
    pass(POLL_MS)
    expect(statuses()).toEqual(['sealed behind'])
  })

  it('that is the latest one of a node that is ahead of the others of its name is no pre-confirmation', () => {
    const { chain, pass, statuses } = polled()
    chain.pending = 'latest'
    pass(POLL_MS)
    let questions = 0
    chain.instead = () => {
      questions += 1
      chain.lag = [0, 1, 1, 0, 2, 0, 1][questions % 7] ?? 0
      return undefined
    }
    for (let poll = 0; poll < 100; poll += 1) {
      chain.head += 1
      pass(POLL_MS)
    }
    expect(statuses()).toEqual(['sealed no_pending'])
  })

  it('that is partial is a pre-confirmation though the latest one was shown in its place before', () => {
    const { chain, pass, statuses, seal } = polled()
    chain.pending = 'latest'
    pass(POLL_MS)
    chain.pending = 'partial'
    seal(0, { pushed: false })
    pass(POLL_MS)
    expect(statuses()).toEqual(['sealed no_pending', 'poll ok'])
  })

  it('that comes and goes with each flashblock is no change of source', () => {
    const { chain, pass, statuses } = polled()
    for (let poll = 0; poll < 50; poll += 1) {
      chain.pending = poll % 5 === 0 ? 'shown' : 'null'
      pass(POLL_MS)
    }
    expect(statuses()).toEqual(['poll ok'])
  })

  it('that stays away is one, and its return another', () => {
    const { chain, pass, statuses } = polled()
    pass(0)
    chain.pending = 'null'
    pass(2_600)
    expect(statuses()).toEqual(['poll ok', 'sealed no_pending'])
    chain.pending = 'shown'
    pass(POLL_MS)
    expect(statuses()).toEqual(['poll ok', 'sealed no_pending', 'poll ok'])
  })
})

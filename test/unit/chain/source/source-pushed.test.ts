import { BehaviorSubject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Signal } from '../../../../src/chain/link/socket.ts'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { apple, blockHash, keyOf, pendingLog, sealedLog, tesla } from '../node-json.ts'
import { down, feed, HEAD, live, POLL_MS, push, pushSealed } from './source-fixture.ts'

describe('a link that lives', () => {
  it('is the source: what it pushes is told, and the node is asked for sealed blocks alone', () => {
    const { chain, pass, signal, head, seal, told, statuses, sealed } = feed()
    signal(live(), head())
    pass(POLL_MS)
    const before = chain.asked.length
    for (const logs of [1, 0, 2]) seal(logs)
    expect(statuses()).toEqual(['pendingLogs ok'])
    expect(told()).toEqual(
      [0, 2, 2].map((ahead, index) => `${keyOf({ block: HEAD + 1 + ahead, index: index === 2 ? 1 : 0 })} pendingLogs`),
    )
    expect(sealed().map(({ number, logs }) => [number, logs.length])).toEqual([
      [HEAD + 1, 1],
      [HEAD + 2, 0],
      [HEAD + 3, 2],
    ])
    // Three blocks by their hash, and one audit.
    expect(chain.asked.slice(before).map(({ method }) => method)).toEqual(Array(4).fill('eth_getLogs'))
  })

  it('may send one log at a time or all of them again and again', () => {
    const { signal, head, told, all } = feed()
    signal(live(), head())
    const logs = [0, 1].map((index) => pendingLog({ block: HEAD + 1, index }))
    signal(push(logs[0], 7), push([...logs, null]))
    const keys = [0, 1].map((index) => `${keyOf({ block: HEAD + 1, index })} pendingLogs`)
    expect(told()).toEqual([keys[0], keys[0], keys[1]])
    expect(all('log')[0]?.receivedAt).toBe(7)
    expect(all('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
  })

  it('is told which tokens are wanted', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { lists } = feed({ addresses })
    addresses.next([apple, tesla])
    const heard: (readonly Hex[])[] = []
    lists.subscribe((list) => heard.push(list))
    expect(heard).toEqual([[apple], [apple, tesla]])
  })

  it('is not waited for: until it lives, what is pre-confirmed is asked for', () => {
    const { chain, pass, signal, told, statuses } = feed()
    const log = chain.put(HEAD + 1)
    pass(0)
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual([])
    signal(live())
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('closes the hole between what was heard before and what it pushes', () => {
    const { chain, pass, signal, told } = feed()
    pass(0)
    const log = chain.put(HEAD + 1)
    signal(live())
    expect(chain.ranges().at(-1)).toEqual([HEAD, 'pending'])
    expect(told()).toEqual([`${keyOf(log)} poll`])
  })

  it('asks the closing question until it is answered', () => {
    const { chain, pass, signal, head, told, statuses } = feed()
    signal(head())
    chain.trouble = new UpstreamError('busy', 'over rate limit')
    signal(live())
    pass(2_500)
    const log = chain.put(HEAD + 1)
    chain.trouble = null
    expect(told()).toEqual([])
    pass(500)
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('closes the hole again after each subscription, for the tokens wanted now', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, signal, head, told, all } = feed({ addresses })
    signal(live(), head())
    const log = chain.put(HEAD + 1, tesla)
    addresses.next([apple, tesla])
    expect(told()).toEqual([])
    signal(live([apple, tesla]))
    expect(told()).toEqual([`${keyOf(log)} poll`])
    expect(all('hearing').map((one) => one.addresses)).toEqual([[apple], [apple, tesla]])
  })

  it('closes the hole though sealed logs are subscribed to meanwhile', () => {
    const { chain, pass, signal, head, told } = feed()
    signal(head())
    chain.delayMs = 100
    const log = chain.put(HEAD + 1)
    signal(live(), live([apple], 'logs'))
    pass(300)
    expect(told()).toEqual([`${keyOf(log)} poll`])
  })

  it('does not close a hole for one that is lost by then: it is asked all the same', () => {
    const { chain, pass, signal, head, told, statuses } = feed()
    signal(head())
    chain.delayMs = 100
    const log = chain.put(HEAD + 1)
    signal(live())
    pass(50)
    signal(down)
    pass(600)
    expect(told()).toContain(`${keyOf(log)} poll`)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable'])
  })
})

describe('whose logs are heard', () => {
  it('is said as soon as they are pushed, once a head is known', () => {
    const { signal, head, all, chain } = feed()
    chain.delayMs = 1_000
    signal(live([apple, tesla]))
    expect(all('hearing')).toEqual([])
    signal(head())
    expect(all('hearing')).toEqual([{ type: 'hearing', addresses: [apple, tesla] }])
    signal(live([tesla]))
    expect(all('hearing').at(-1)).toEqual({ type: 'hearing', addresses: [tesla] })
  })

  it('is said before the first of them is told', () => {
    const { signal, head, heard } = feed()
    signal(live(), push(pendingLog({ block: HEAD + 1 })), head())
    const types = heard.map(({ type }) => type)
    expect(types.indexOf('hearing')).toBeLessThan(types.indexOf('log'))
    expect(types.indexOf('cursor')).toBeLessThan(types.indexOf('hearing'))
  })

  it('is said by who is asked, while the link does not push what is pre-confirmed', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { signal, pass, all } = feed({ addresses })
    signal(live([apple], 'logs'))
    pass(POLL_MS)
    addresses.next([apple, tesla])
    pass(POLL_MS)
    expect(all('hearing').map((one) => one.addresses)).toEqual([[apple], [apple, tesla]])
  })

  it('is not said twice', () => {
    const { signal, pass, head, all } = feed({ addresses: new BehaviorSubject<readonly Hex[]>([apple]) })
    pass(POLL_MS)
    const wanted = all('hearing')[0]?.addresses ?? []
    signal(live(wanted), head(), live(wanted), down)
    pass(1_000)
    expect(all('hearing')).toHaveLength(1)
  })
})

describe('the beginning', () => {
  it('on a tape that knows nothing, is the first head', () => {
    const { chain, signal, head, all, seal, sealed } = feed()
    chain.put(HEAD)
    signal(live(), head())
    seal(1)
    expect(all('cursor')).toEqual([{ type: 'cursor', cursor: { number: HEAD, hash: blockHash(HEAD) } }])
    expect(sealed().map(({ number }) => number)).toEqual([HEAD + 1])
  })

  it('is right before the first thing that was pushed, where that is earlier', () => {
    const { chain, signal, head, all, told, pass, sealed } = feed()
    chain.delayMs = 1_000
    signal(live(), push(pendingLog({ block: HEAD + 1 })), push(pendingLog({ block: HEAD + 2 })))
    chain.head = HEAD + 3
    signal(head())
    expect(all('cursor')).toEqual([{ type: 'cursor', cursor: { number: HEAD, hash: null } }])
    expect(told()).toHaveLength(2)
    pass(10_000)
    expect(sealed().map(({ number }) => number)).toEqual([HEAD + 1, HEAD + 2, HEAD + 3])
  })

  it('is not where garbage says that it is', () => {
    const { chain, signal, head, all, told } = feed()
    chain.delayMs = 1_000
    for (const block of [0, 5, HEAD - 64, HEAD + 1, 9_000_000_000]) signal(push(pendingLog({ block })))
    signal(live(), head())
    expect(all('cursor')).toEqual([{ type: 'cursor', cursor: { number: HEAD, hash: blockHash(HEAD) } }])
    expect(told().length).toBeGreaterThan(0)
  })

  it('keeps so much of what comes before any head is known; the rest is told with its block', () => {
    const { chain, signal, head, told, pass, sealed } = feed()
    chain.delayMs = 1_000
    const logs = Array.from({ length: 3_000 }, () => chain.put(HEAD + 1))
    signal(live(), push(logs.map(pendingLog)))
    expect(told()).toEqual([])
    signal(head())
    expect(told()).toHaveLength(2_000)
    chain.head = HEAD + 1
    signal(head())
    pass(5_000)
    expect(sealed().map(({ logs }) => logs.length)).toEqual([3_000])
  })

  it('of a chain that has just begun is its first block', () => {
    const { chain, signal, head, all } = feed()
    chain.head = 0
    chain.delayMs = 1_000
    signal(live(), push(pendingLog({ block: 0 })), head())
    expect(all('cursor')).toEqual([{ type: 'cursor', cursor: { number: 0, hash: blockHash(0) } }])
  })

  it('of a tape that knows where it ended is there', () => {
    const { signal, head, all, sealed } = feed({ cursor: { number: HEAD - 2, hash: blockHash(HEAD - 2) } })
    signal(live(), head())
    expect(all('cursor')).toEqual([])
    expect(sealed().map(({ number, via }) => [number, via])).toEqual([
      [HEAD - 1, 'backfill'],
      [HEAD, 'backfill'],
    ])
  })
})

describe('what is pushed', () => {
  it('and is taken back is nothing that was told', () => {
    const { signal, head, told } = feed()
    signal(live(), head(), push({ ...pendingLog({ block: HEAD + 1 }), removed: true }))
    expect(told()).toEqual([])
  })

  it('though it is sealed by the head is told by the settling alone', () => {
    const { signal, head, told } = feed()
    signal(live(), head(), push(sealedLog({ block: HEAD })))
    expect(told()).toEqual([])
  })

  it('may be a head that cannot be read', () => {
    const { signal, all, head } = feed()
    const heads: Signal[] = [{ number: 'five' }, null, { ...pendingLog({ block: 5 }) }].map((header) => ({
      type: 'head',
      header,
    }))
    signal(live(), head(), ...heads)
    expect(all('unreadable')).toHaveLength(3)
  })

  it('may be a head that no chain could have reached', () => {
    const { signal, all, head, seal, sealed } = feed()
    signal(live(), head())
    const beyond = { ...pendingLog({ block: 5 }), number: '0xffffffffff', hash: blockHash(5) }
    signal({ type: 'head', header: beyond })
    expect(all('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
    seal(1)
    expect(sealed().map(({ number }) => number)).toEqual([HEAD + 1])
  })

  it('and is no message at all is counted', () => {
    const { signal, all } = feed()
    signal({ type: 'unreadable' })
    expect(all('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
  })
})

describe('sealed logs that are pushed', () => {
  it('are told by the settling of their block, which is asked for at once', () => {
    const { chain, signal, head, pass, sealed, told } = feed()
    signal(live([apple], 'logs'), head())
    pass(POLL_MS)
    chain.pending = 'latest'
    pass(3_000)
    const log = chain.put(HEAD + 1)
    chain.head = HEAD + 1
    signal(pushSealed(sealedLog(log)))
    pass(POLL_MS)
    expect(told()).toEqual([])
    expect(sealed().flatMap((block) => block.logs.map(({ key }) => key))).toEqual([keyOf(log)])
  })

  it('and taken back show a reorganisation', () => {
    const { chain, signal, head, seal, sealed, pass } = feed()
    signal(live([apple], 'logs'), head())
    seal(1, { announced: false })
    const old = { ...sealedLog({ block: HEAD + 1 }), removed: true }
    chain.reorganise(1)
    signal(pushSealed(old))
    pass(0)
    expect(sealed().map(({ number, hash, logs }) => [number, hash, logs.length])).toEqual([
      [HEAD + 1, blockHash(HEAD + 1), 1],
      [HEAD + 1, chain.hashOf(HEAD + 1), 0],
    ])
  })

  it('are counted where they cannot be read', () => {
    const { signal, head, all } = feed()
    signal(live([apple], 'logs'), head(), pushSealed({ data: '0x1' }))
    expect(all('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
  })
})

import { BehaviorSubject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { LinkSignal } from '../../../../src/chain/link/socket.ts'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { apple, blockHash, keyOf, pendingLog, sealedLog, tesla } from '../node-json.ts'
import {
  downSignal,
  HEAD,
  liveSignal,
  openSource,
  POLL_MS,
  pendingLogSignal,
  sealedLogSignal,
} from './source-fixture.ts'

describe('a link that lives', () => {
  it('is the source: what it pushes is told, and the node is asked for sealed blocks alone', () => {
    const { chain, advance, emit, head, seal, pendingLogs, statuses, sealedBlocks } = openSource()
    emit(liveSignal(), head())
    advance(POLL_MS)
    const before = chain.requests.length
    for (const logs of [1, 0, 2]) seal(logs)
    expect(statuses()).toEqual(['pendingLogs ok'])
    expect(pendingLogs()).toEqual(
      [0, 2, 2].map((ahead, index) => `${keyOf({ block: HEAD + 1 + ahead, index: index === 2 ? 1 : 0 })} pendingLogs`),
    )
    expect(sealedBlocks().map(({ number, logs }) => [number, logs.length])).toEqual([
      [HEAD + 1, 1],
      [HEAD + 2, 0],
      [HEAD + 3, 2],
    ])
    // Three blocks by their hash, and one audit.
    expect(chain.requests.slice(before).map(({ method }) => method)).toEqual(Array(4).fill('eth_getLogs'))
  })

  it('may send one log at a time or all of them again and again', () => {
    const { emit, head, pendingLogs, ofType } = openSource()
    emit(liveSignal(), head())
    const logs = [0, 1].map((index) => pendingLog({ block: HEAD + 1, index }))
    emit(pendingLogSignal(logs[0], 7), pendingLogSignal([...logs, null]))
    const keys = [0, 1].map((index) => `${keyOf({ block: HEAD + 1, index })} pendingLogs`)
    expect(pendingLogs()).toEqual([keys[0], keys[0], keys[1]])
    expect(ofType('log')[0]?.receivedAt).toBe(7)
    expect(ofType('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
  })

  it('is told which tokens are wanted', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { lists } = openSource({ addresses })
    addresses.next([apple, tesla])
    const heard: (readonly Hex[])[] = []
    lists.subscribe((list) => heard.push(list))
    expect(heard).toEqual([[apple], [apple, tesla]])
  })

  it('is not waited for: until it lives, what is pre-confirmed is asked for', () => {
    const { chain, advance, emit, pendingLogs, statuses } = openSource()
    const log = chain.addLog(HEAD + 1)
    advance(0)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual([])
    emit(liveSignal())
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('closes the hole between what was heard before and what it pushes', () => {
    const { chain, advance, emit, pendingLogs } = openSource()
    advance(0)
    const log = chain.addLog(HEAD + 1)
    emit(liveSignal())
    expect(chain.requestedRanges().at(-1)).toEqual([HEAD, 'pending'])
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
  })

  it('asks the closing question until it is answered', () => {
    const { chain, advance, emit, head, pendingLogs, statuses } = openSource()
    emit(head())
    chain.failure = new UpstreamError('busy', 'over rate limit')
    emit(liveSignal())
    advance(2_500)
    const log = chain.addLog(HEAD + 1)
    chain.failure = null
    expect(pendingLogs()).toEqual([])
    advance(500)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('closes the hole again after each subscription, for the tokens wanted now', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, emit, head, pendingLogs, ofType } = openSource({ addresses })
    emit(liveSignal(), head())
    const log = chain.addLog(HEAD + 1, tesla)
    addresses.next([apple, tesla])
    expect(pendingLogs()).toEqual([])
    emit(liveSignal([apple, tesla]))
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(ofType('hearing').map((one) => one.addresses)).toEqual([[apple], [apple, tesla]])
  })

  it('closes the hole though sealed logs are subscribed to meanwhile', () => {
    const { chain, advance, emit, head, pendingLogs } = openSource()
    emit(head())
    chain.delayMs = 100
    const log = chain.addLog(HEAD + 1)
    emit(liveSignal(), liveSignal([apple], 'logs'))
    advance(300)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
  })

  it('does not close a hole for one that is lost by then: it is asked all the same', () => {
    const { chain, advance, emit, head, pendingLogs, statuses } = openSource()
    emit(head())
    chain.delayMs = 100
    const log = chain.addLog(HEAD + 1)
    emit(liveSignal())
    advance(50)
    emit(downSignal)
    advance(600)
    expect(pendingLogs()).toContain(`${keyOf(log)} poll`)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable'])
  })
})

describe('whose logs are heard', () => {
  it('is said as soon as they are pushed, once a head is known', () => {
    const { emit, head, ofType, chain } = openSource()
    chain.delayMs = 1_000
    emit(liveSignal([apple, tesla]))
    expect(ofType('hearing')).toEqual([])
    emit(head())
    expect(ofType('hearing')).toEqual([{ type: 'hearing', addresses: [apple, tesla] }])
    emit(liveSignal([tesla]))
    expect(ofType('hearing').at(-1)).toEqual({ type: 'hearing', addresses: [tesla] })
  })

  it('is said before the first of them is told', () => {
    const { emit, head, received } = openSource()
    emit(liveSignal(), pendingLogSignal(pendingLog({ block: HEAD + 1 })), head())
    const types = received.map(({ type }) => type)
    expect(types.indexOf('hearing')).toBeLessThan(types.indexOf('log'))
    expect(types.indexOf('cursor')).toBeLessThan(types.indexOf('hearing'))
  })

  it('is said by who is asked, while the link does not push what is pre-confirmed', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { emit, advance, ofType } = openSource({ addresses })
    emit(liveSignal([apple], 'logs'))
    advance(POLL_MS)
    addresses.next([apple, tesla])
    advance(POLL_MS)
    expect(ofType('hearing').map((one) => one.addresses)).toEqual([[apple], [apple, tesla]])
  })

  it('is not said twice', () => {
    const { emit, advance, head, ofType } = openSource({ addresses: new BehaviorSubject<readonly Hex[]>([apple]) })
    advance(POLL_MS)
    const wanted = ofType('hearing')[0]?.addresses ?? []
    emit(liveSignal(wanted), head(), liveSignal(wanted), downSignal)
    advance(1_000)
    expect(ofType('hearing')).toHaveLength(1)
  })
})

describe('the beginning', () => {
  it('on a tape that knows nothing, is the first head', () => {
    const { chain, emit, head, ofType, seal, sealedBlocks } = openSource()
    chain.addLog(HEAD)
    emit(liveSignal(), head())
    seal(1)
    expect(ofType('cursor')).toEqual([{ type: 'cursor', cursor: { number: HEAD, hash: blockHash(HEAD) } }])
    expect(sealedBlocks().map(({ number }) => number)).toEqual([HEAD + 1])
  })

  it('is right before the first thing that was pushed, where that is earlier', () => {
    const { chain, emit, head, ofType, pendingLogs, advance, sealedBlocks } = openSource()
    chain.delayMs = 1_000
    emit(
      liveSignal(),
      pendingLogSignal(pendingLog({ block: HEAD + 1 })),
      pendingLogSignal(pendingLog({ block: HEAD + 2 })),
    )
    chain.head = HEAD + 3
    emit(head())
    expect(ofType('cursor')).toEqual([{ type: 'cursor', cursor: { number: HEAD, hash: null } }])
    expect(pendingLogs()).toHaveLength(2)
    advance(10_000)
    expect(sealedBlocks().map(({ number }) => number)).toEqual([HEAD + 1, HEAD + 2, HEAD + 3])
  })

  it('is not where garbage says that it is', () => {
    const { chain, emit, head, ofType, pendingLogs } = openSource()
    chain.delayMs = 1_000
    for (const block of [0, 5, HEAD - 64, HEAD + 1, 9_000_000_000]) emit(pendingLogSignal(pendingLog({ block })))
    emit(liveSignal(), head())
    expect(ofType('cursor')).toEqual([{ type: 'cursor', cursor: { number: HEAD, hash: blockHash(HEAD) } }])
    expect(pendingLogs().length).toBeGreaterThan(0)
  })

  it('keeps so much of what comes before any head is known; the rest is told with its block', () => {
    const { chain, emit, head, pendingLogs, advance, sealedBlocks } = openSource()
    chain.delayMs = 1_000
    const logs = Array.from({ length: 3_000 }, () => chain.addLog(HEAD + 1))
    emit(liveSignal(), pendingLogSignal(logs.map(pendingLog)))
    expect(pendingLogs()).toEqual([])
    emit(head())
    expect(pendingLogs()).toHaveLength(2_000)
    chain.head = HEAD + 1
    emit(head())
    advance(5_000)
    expect(sealedBlocks().map(({ logs }) => logs.length)).toEqual([3_000])
  })

  it('of a chain that has just begun is its first block', () => {
    const { chain, emit, head, ofType } = openSource()
    chain.head = 0
    chain.delayMs = 1_000
    emit(liveSignal(), pendingLogSignal(pendingLog({ block: 0 })), head())
    expect(ofType('cursor')).toEqual([{ type: 'cursor', cursor: { number: 0, hash: blockHash(0) } }])
  })

  it('of a tape that knows where it ended is there', () => {
    const { emit, head, ofType, sealedBlocks } = openSource({ cursor: { number: HEAD - 2, hash: blockHash(HEAD - 2) } })
    emit(liveSignal(), head())
    expect(ofType('cursor')).toEqual([])
    expect(sealedBlocks().map(({ number, via }) => [number, via])).toEqual([
      [HEAD - 1, 'backfill'],
      [HEAD, 'backfill'],
    ])
  })
})

describe('what is pushed', () => {
  it('and is taken back is nothing that was told', () => {
    const { emit, head, pendingLogs } = openSource()
    emit(liveSignal(), head(), pendingLogSignal({ ...pendingLog({ block: HEAD + 1 }), removed: true }))
    expect(pendingLogs()).toEqual([])
  })

  it('though it is sealed by the head is told by the settling alone', () => {
    const { emit, head, pendingLogs } = openSource()
    emit(liveSignal(), head(), pendingLogSignal(sealedLog({ block: HEAD })))
    expect(pendingLogs()).toEqual([])
  })

  it('may be a head that cannot be read', () => {
    const { emit, ofType, head } = openSource()
    const heads: LinkSignal[] = [{ number: 'five' }, null, { ...pendingLog({ block: 5 }) }].map((header) => ({
      type: 'head',
      header,
    }))
    emit(liveSignal(), head(), ...heads)
    expect(ofType('unreadable')).toHaveLength(3)
  })

  it('may be a head that no chain could have reached', () => {
    const { emit, ofType, head, seal, sealedBlocks } = openSource()
    emit(liveSignal(), head())
    const beyond = { ...pendingLog({ block: 5 }), number: '0xffffffffff', hash: blockHash(5) }
    emit({ type: 'head', header: beyond })
    expect(ofType('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
    seal(1)
    expect(sealedBlocks().map(({ number }) => number)).toEqual([HEAD + 1])
  })

  it('and is no message at all is counted', () => {
    const { emit, ofType } = openSource()
    emit({ type: 'unreadable' })
    expect(ofType('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
  })
})

describe('sealed logs that are pushed', () => {
  it('are told by the settling of their block, which is asked for at once', () => {
    const { chain, emit, head, advance, sealedBlocks, pendingLogs } = openSource()
    emit(liveSignal([apple], 'logs'), head())
    advance(POLL_MS)
    chain.pending = 'latest'
    advance(3_000)
    const log = chain.addLog(HEAD + 1)
    chain.head = HEAD + 1
    emit(sealedLogSignal(sealedLog(log)))
    advance(POLL_MS)
    expect(pendingLogs()).toEqual([])
    expect(sealedBlocks().flatMap((block) => block.logs.map(({ key }) => key))).toEqual([keyOf(log)])
  })

  it('and taken back show a reorganisation', () => {
    const { chain, emit, head, seal, sealedBlocks, advance } = openSource()
    emit(liveSignal([apple], 'logs'), head())
    seal(1, { announced: false })
    const old = { ...sealedLog({ block: HEAD + 1 }), removed: true }
    chain.reorganise(1)
    emit(sealedLogSignal(old))
    advance(0)
    expect(sealedBlocks().map(({ number, hash, logs }) => [number, hash, logs.length])).toEqual([
      [HEAD + 1, blockHash(HEAD + 1), 1],
      [HEAD + 1, chain.hashOf(HEAD + 1), 0],
    ])
  })

  it('are counted where they cannot be read', () => {
    const { emit, head, ofType } = openSource()
    emit(liveSignal([apple], 'logs'), head(), sealedLogSignal({ data: '0x1' }))
    expect(ofType('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
  })
})

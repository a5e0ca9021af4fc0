import { BehaviorSubject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { LinkSignal } from '../../../../../src/relay/chain/link/subscription-socket.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { UNPROVEN_POLL_MS } from '../../../../../src/relay/chain/source/source-decisions.ts'
import { waitOn } from '../../../../support/virtual-time.ts'
import { apple, blockHash, keyOf, pendingLog, sealedLog, tesla, timestampOf } from '../node-json.ts'
import {
  downSignal,
  HEAD,
  liveSignal,
  openSource,
  POLL_MS,
  pendingLogSignal,
  SILENCE_MS,
  sealedLogSignal,
} from './source-fixture.ts'

/** A source whose link pushes since the first head. */
const openLive = async (settings?: Parameters<typeof openSource>[0]) => {
  const opened = openSource(settings)
  await opened.emit(liveSignal(), opened.head())
  return opened
}
const pushedKey = (block: number, index = 0) => `${keyOf({ block, index })} pendingLogs`

describe('a live link', () => {
  it('is the source: its logs are emitted, and the node is read for sealed blocks alone', async () => {
    const { chain, advance, seal, pendingLogs, statuses, sealedBlocks } = await openLive()
    await advance(POLL_MS)
    const before = chain.requests.length
    for (const logs of [1, 0, 2]) await seal(logs)
    expect(statuses()).toEqual(['pendingLogs ok'])
    expect(pendingLogs()).toEqual([pushedKey(HEAD + 1), pushedKey(HEAD + 3), pushedKey(HEAD + 3, 1)])
    expect(sealedBlocks().map(({ number, logs }) => [number, logs.length])).toEqual([
      [HEAD + 1, 1],
      [HEAD + 2, 0],
      [HEAD + 3, 2],
    ])
    // Three blocks by hash, each with its header, and one recheck.
    const methods = chain.requests.slice(before).map(({ method }) => method)
    expect(methods.toSorted()).toEqual([...Array(3).fill('eth_getBlockByNumber'), ...Array(4).fill('eth_getLogs')])
  })

  it('may push one log at a time or a growing array', async () => {
    const { emit, pendingLogs, ofType, unreadable } = await openLive()
    const logs = [0, 1].map((index) => pendingLog({ block: HEAD + 1, index }))
    await emit(pendingLogSignal(logs[0], 7), pendingLogSignal([...logs, null]))
    expect(pendingLogs()).toEqual([0, 0, 1].map((index) => pushedKey(HEAD + 1, index)))
    expect(ofType('logs')[0]?.receivedAt).toBe(7)
    expect(unreadable()).toBe(1)
  })

  it('that refuses the logs of a longer list is polled for all of them, and asked again each minute', async () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, emit, head, advance, statuses, ofType, pendingLogs, probeTimes } = openSource({ addresses })
    await emit({ type: 'heads_live' }, liveSignal(), head())
    await advance(1_000)
    addresses.next([apple, tesla])
    await emit({ type: 'refused' })
    await advance(POLL_MS)
    expect(ofType('subscribed').map((event) => event.filters[0]?.addresses)).toEqual([[apple], [apple, tesla]])
    const log = chain.addLog(chain.head + 1, tesla)
    await advance(POLL_MS)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['pendingLogs ok', 'poll refused'])
    expect(probeTimes).toHaveLength(1)
    await emit(liveSignal([apple, tesla]))
    expect(statuses().at(-1)).toBe('pendingLogs ok')
  })
})

describe('the poll after a subscription', () => {
  it('is repeated where the head came too late to judge the pending block', async () => {
    const { chain, clock, advance, emit, head, pendingLogs } = openSource()
    await advance(0)
    const [unpushed, pushed] = [chain.addLog(HEAD + 1), chain.addLog(HEAD + 1)]
    const lateHead = waitOn(clock, SILENCE_MS + 1).then(() => chain.headerOf(HEAD))
    chain.override = ({ params }) => (params[0] === 'latest' ? lateHead : undefined)
    await emit({ type: 'heads_live' }, liveSignal(), head(), pendingLogSignal(pendingLog({ block: HEAD + 1, index: pushed.index })))
    await advance(SILENCE_MS + 1)
    expect(pendingLogs()).toEqual([`${keyOf(pushed)} pendingLogs`])
    await advance(UNPROVEN_POLL_MS)
    expect(pendingLogs()).toContain(`${keyOf(unpushed)} poll`)
  })

  it('is repeated until it is answered', async () => {
    const { chain, advance, emit, head, pendingLogs, statuses } = openSource()
    await emit(head())
    chain.failure = new UpstreamError('busy', 'over rate limit')
    await emit(liveSignal())
    await advance(2_500)
    const log = chain.addLog(HEAD + 1)
    chain.failure = null
    expect(pendingLogs()).toEqual([])
    await advance(500)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('is made after each subscription, for the new tokens', async () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, emit, pendingLogs, ofType } = await openLive({ addresses })
    const log = chain.addLog(HEAD + 1, tesla)
    addresses.next([apple, tesla])
    expect(pendingLogs()).toEqual([])
    await emit(liveSignal([apple, tesla]))
    expect(chain.requestedRanges().at(-1)).toEqual([HEAD, 'pending'])
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(ofType('subscribed').map((event) => event.filters[0]?.addresses)).toEqual([[apple], [apple, tesla]])
  })

  it.each([
    ['is completed while sealed logs are subscribed to', liveSignal([apple], 'logs'), ['pendingLogs ok']],
    ['is left to regular polling if the link is lost', downSignal, ['pendingLogs ok', 'poll unreachable']],
  ])('%s', async (_, signal, expected) => {
    const { chain, advance, emit, head, pendingLogs, statuses } = openSource()
    await emit(head())
    chain.delayMs = 100
    const log = chain.addLog(HEAD + 1)
    await emit(liveSignal())
    await advance(50)
    await emit(signal)
    await advance(600)
    expect(new Set(pendingLogs())).toEqual(new Set([`${keyOf(log)} poll`]))
    expect(statuses()).toEqual(expected)
  })
})

describe('the addresses event', () => {
  it('comes as soon as logs are pushed and a head is known', async () => {
    const { emit, head, ofType, chain } = openSource()
    chain.delayMs = 1_000
    await emit(liveSignal([apple, tesla]))
    expect(ofType('subscribed')).toEqual([])
    await emit(head())
    await emit(liveSignal([tesla]))
    expect(ofType('subscribed').map((event) => event.filters[0]?.addresses)).toEqual([[apple, tesla], [tesla]])
  })

  it('comes before the first log', async () => {
    const { emit, head, received } = openSource()
    await emit(liveSignal(), pendingLogSignal(pendingLog({ block: HEAD + 1 })), head())
    const types = received.map(({ type }) => type)
    expect(types.indexOf('subscribed')).toBeLessThan(types.indexOf('logs'))
    expect(types.indexOf('cursor')).toBeLessThan(types.indexOf('subscribed'))
  })

  it('comes from polling while the link pushes no pre-confirmed logs, and is not repeated', async () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { emit, head, advance, ofType } = openSource({ addresses })
    await emit(liveSignal([apple], 'logs'))
    await advance(POLL_MS)
    const [{ filters } = { filters: [] }] = ofType('subscribed')
    const live = { ...liveSignal(), filters }
    await emit(live, head(), live, downSignal)
    await advance(1_000)
    addresses.next([apple, tesla])
    await advance(POLL_MS)
    expect(ofType('subscribed').map((event) => event.filters[0]?.addresses)).toEqual([[apple], [apple, tesla]])
  })
})

describe('the start of settling', () => {
  const near = [HEAD + 1, HEAD + 2]
  it.each([
    ['is the first head on an empty tape', HEAD, [], { number: HEAD, hash: blockHash(HEAD) }],
    ['is right before the first pushed log, if that is earlier', HEAD + 3, near, { number: HEAD, hash: null }],
    ['includes logs of at most the last 64 blocks', HEAD + 65, near, { number: HEAD + 1, hash: null }],
    ['ignores logs of implausible blocks', HEAD, [0, 5, HEAD - 64, HEAD + 1, 9e9], { number: HEAD, hash: blockHash(HEAD) }],
    ['may be block 0 of a new chain', 0, [0], { number: 0, hash: blockHash(0) }],
  ])('%s', async (_, first, blocks, cursor) => {
    const { chain, emit, head, ofType, pendingLogs, sealedBlocks, advance } = openSource()
    chain.delayMs = 1_000
    chain.head = first
    await emit(liveSignal(), ...blocks.map((block) => pendingLogSignal(pendingLog({ block }))), head())
    expect(ofType('cursor').map((event) => event.cursor)).toEqual([cursor])
    // Logs of far above the head are of no real block.
    expect(pendingLogs()).toEqual(blocks.filter((block) => block < 9e9).map((block) => pushedKey(block)))
    chain.head += 1
    await emit(head())
    await advance(20_000)
    expect(sealedBlocks()[0]?.number).toBe(cursor.number + 1)
  })

  it('keeps a bounded number of logs from before the first head, and settles the others', async () => {
    const { chain, emit, head, pendingLogs, advance, sealedBlocks } = openSource()
    chain.delayMs = 1_000
    const logs = Array.from({ length: 2_500 }, () => chain.addLog(HEAD + 1))
    await emit(
      liveSignal(),
      pendingLogSignal(logs.slice(0, 100).map(pendingLog)),
      pendingLogSignal(logs.slice(100).map(pendingLog)),
    )
    expect(pendingLogs()).toEqual([])
    await emit(head())
    expect(pendingLogs()).toHaveLength(2_000)
    chain.head = HEAD + 1
    await emit(head())
    await advance(5_000)
    expect(sealedBlocks().map(({ logs: settled }) => settled.length)).toEqual([2_500])
  })
})

describe('a pushed head', () => {
  it('far above the chain is asked for, and not believed', async () => {
    const { chain, emit, advance, ofType, seal, sealedBlocks, pendingLogs, unreadable } = await openLive()
    await seal(1)
    await emit({ type: 'head', header: { ...chain.headerOf(HEAD + 1), number: `0x${(HEAD + 86_000_000).toString(16)}` } })
    await emit(pendingLogSignal(pendingLog({ block: HEAD + 50_000 })))
    await advance(POLL_MS)
    await seal(1)
    expect(ofType('head').every(({ sealed }) => (sealed ?? 0) <= HEAD + 2)).toBe(true)
    expect(sealedBlocks().map(({ number }) => number)).toEqual([HEAD + 1, HEAD + 2])
    expect(pendingLogs()).toHaveLength(2)
    expect(unreadable()).toBe(0)
  })

  it('with a false time does not change the time of its block', async () => {
    const { chain, emit, advance, ofType, sealedBlocks } = await openLive()
    await advance(POLL_MS)
    chain.head += 1
    await emit({ type: 'head', header: { ...chain.headerOf(chain.head), timestamp: '0xffffffff' } })
    await advance(POLL_MS)
    expect(sealedBlocks().map(({ timestamp }) => timestamp)).toEqual([timestampOf(HEAD + 1)])
    const believed = ofType('head').filter(({ isPushed }) => !isPushed)
    expect(believed.every(({ timestamp }) => (timestamp ?? 0) <= timestampOf(HEAD + 2))).toBe(true)
  })
})

describe('a push', () => {
  it.each([
    ['of a removed log is ignored', { ...pendingLog({ block: HEAD + 1 }), removed: true }],
    ['of a log in the head block is left to settling', sealedLog({ block: HEAD })],
  ])('%s', async (_, log) => {
    const { emit, pendingLogs } = await openLive()
    await emit(pendingLogSignal(log))
    expect(pendingLogs()).toEqual([])
  })

  it.each<[string, LinkSignal]>([
    ['a head with a number in words', { type: 'head', header: { number: 'five' } }],
    ['a head without a number', { type: 'head', header: pendingLog({ block: 5 }) }],
    ['a head beyond any possible number', { type: 'head', header: { number: '0xffffffffff', hash: blockHash(5) } }],
    ['an unreadable sealed log', sealedLogSignal({ data: '0x1' })],
    ['no message', { type: 'unreadable', count: 1 }],
  ])('is counted if it is %s', async (_, signal) => {
    const { emit, seal, sealedBlocks, unreadable } = await openLive()
    await emit(signal)
    expect(unreadable()).toBe(1)
    await seal(1)
    expect(sealedBlocks().map(({ number }) => number)).toEqual([HEAD + 1])
  })
})

describe('pushed sealed logs', () => {
  it('are emitted by settling their block, which is read at once', async () => {
    const { chain, emit, head, advance, sealedBlocks, pendingLogs } = openSource()
    await emit(liveSignal([apple], 'logs'), head())
    await advance(POLL_MS)
    chain.pending = 'latest'
    await advance(3_000)
    const log = chain.addLog(HEAD + 1)
    chain.head = HEAD + 1
    await emit(sealedLogSignal(sealedLog(log)))
    await advance(POLL_MS)
    expect(pendingLogs()).toEqual([])
    expect(sealedBlocks().flatMap((block) => block.logs.map(({ key }) => key))).toEqual([keyOf(log)])
  })

  it('that are removed reveal a reorganisation, which is reported when it is suspected and when it is found', async () => {
    const { chain, emit, head, seal, sealedBlocks, ofType, advance } = openSource()
    await emit(liveSignal([apple], 'logs'), head())
    await seal(1, { announced: false })
    const old = { ...sealedLog({ block: HEAD + 1 }), removed: true }
    chain.reorganise(1)
    await emit(sealedLogSignal(old), sealedLogSignal(old), sealedLogSignal(old))
    await advance(0)
    expect(ofType('reorg').map(({ from, isSuspected }) => [from, isSuspected])).toEqual([
      [HEAD + 1, true],
      [HEAD + 1, undefined],
    ])
    expect(sealedBlocks().map(({ number, hash, logs }) => [number, hash, logs.length])).toEqual([
      [HEAD + 1, blockHash(HEAD + 1), 1],
      [HEAD + 1, chain.hashOf(HEAD + 1), 0],
    ])
  })
})

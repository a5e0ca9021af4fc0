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

describe('a live link', () => {
  it('is the source: its logs are emitted, and the node is read for sealed blocks alone', async () => {
    const { chain, advance, emit, head, seal, pendingLogs, statuses, sealedBlocks } = openSource()
    await emit(liveSignal(), head())
    await advance(POLL_MS)
    const before = chain.requests.length
    for (const logs of [1, 0, 2]) await seal(logs)
    expect(statuses()).toEqual(['pendingLogs ok'])
    expect(pendingLogs()).toEqual(
      [0, 2, 2].map((ahead, index) => `${keyOf({ block: HEAD + 1 + ahead, index: index === 2 ? 1 : 0 })} pendingLogs`),
    )
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
    const { emit, head, pendingLogs, ofType } = openSource()
    await emit(liveSignal(), head())
    const logs = [0, 1].map((index) => pendingLog({ block: HEAD + 1, index }))
    await emit(pendingLogSignal(logs[0], 7), pendingLogSignal([...logs, null]))
    const keys = [0, 1].map((index) => `${keyOf({ block: HEAD + 1, index })} pendingLogs`)
    expect(pendingLogs()).toEqual([keys[0], keys[0], keys[1]])
    expect(ofType('logs')[0]?.receivedAt).toBe(7)
    expect(ofType('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
  })

  it('that refuses the logs of a longer list is polled for all of them, and asked again each minute', async () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, emit, head, advance, statuses, ofType, pendingLogs, probeTimes } = openSource({ addresses })
    await emit({ type: 'heads_live' }, liveSignal(), head())
    await advance(1_000)
    addresses.next([apple, tesla])
    await emit({ type: 'refused' })
    await advance(POLL_MS)
    expect(ofType('subscribed').map((event) => event.addresses)).toEqual([[apple], [apple, tesla]])
    const log = chain.addLog(chain.head + 1, tesla)
    await advance(POLL_MS)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['pendingLogs ok', 'poll refused'])
    expect(probeTimes).toHaveLength(1)
    await emit(liveSignal([apple, tesla]))
    expect(statuses().at(-1)).toBe('pendingLogs ok')
  })

  it('receives every token list', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { lists } = openSource({ addresses })
    addresses.next([apple, tesla])
    const received: (readonly Hex[])[] = []
    lists.subscribe((list) => received.push(list))
    expect(received).toEqual([[apple], [apple, tesla]])
  })

  it('is preceded by a gap that is polled again where the head came too late to judge the pending block', async () => {
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

  it('is not awaited: until it is live, pre-confirmed logs are polled', async () => {
    const { chain, advance, emit, pendingLogs, statuses } = openSource()
    const log = chain.addLog(HEAD + 1)
    await advance(0)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual([])
    await emit(liveSignal())
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('starts with a poll for the logs before it', async () => {
    const { chain, advance, emit, pendingLogs } = openSource()
    await advance(0)
    const log = chain.addLog(HEAD + 1)
    await emit(liveSignal())
    expect(chain.requestedRanges().at(-1)).toEqual([HEAD, 'pending'])
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
  })

  it('repeats that poll until it is answered', async () => {
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

  it('polls again after each subscription, for the new tokens', async () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, emit, head, pendingLogs, ofType } = openSource({ addresses })
    await emit(liveSignal(), head())
    const log = chain.addLog(HEAD + 1, tesla)
    addresses.next([apple, tesla])
    expect(pendingLogs()).toEqual([])
    await emit(liveSignal([apple, tesla]))
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(ofType('subscribed').map((event) => event.addresses)).toEqual([[apple], [apple, tesla]])
  })

  it('completes that poll while sealed logs are subscribed to', async () => {
    const { chain, advance, emit, head, pendingLogs } = openSource()
    await emit(head())
    chain.delayMs = 100
    const log = chain.addLog(HEAD + 1)
    await emit(liveSignal(), liveSignal([apple], 'logs'))
    await advance(300)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
  })

  it('that is lost during that poll leaves it to regular polling', async () => {
    const { chain, advance, emit, head, pendingLogs, statuses } = openSource()
    await emit(head())
    chain.delayMs = 100
    const log = chain.addLog(HEAD + 1)
    await emit(liveSignal())
    await advance(50)
    await emit(downSignal)
    await advance(600)
    expect(pendingLogs()).toContain(`${keyOf(log)} poll`)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable'])
  })
})

describe('the addresses event', () => {
  it('comes as soon as logs are pushed and a head is known', async () => {
    const { emit, head, ofType, chain } = openSource()
    chain.delayMs = 1_000
    await emit(liveSignal([apple, tesla]))
    expect(ofType('subscribed')).toEqual([])
    await emit(head())
    expect(ofType('subscribed')).toEqual([{ type: 'subscribed', addresses: [apple, tesla] }])
    await emit(liveSignal([tesla]))
    expect(ofType('subscribed').at(-1)).toEqual({ type: 'subscribed', addresses: [tesla] })
  })

  it('comes before the first log', async () => {
    const { emit, head, received } = openSource()
    await emit(liveSignal(), pendingLogSignal(pendingLog({ block: HEAD + 1 })), head())
    const types = received.map(({ type }) => type)
    expect(types.indexOf('subscribed')).toBeLessThan(types.indexOf('logs'))
    expect(types.indexOf('cursor')).toBeLessThan(types.indexOf('subscribed'))
  })

  it('comes from polling while the link pushes no pre-confirmed logs', async () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { emit, advance, ofType } = openSource({ addresses })
    await emit(liveSignal([apple], 'logs'))
    await advance(POLL_MS)
    addresses.next([apple, tesla])
    await advance(POLL_MS)
    expect(ofType('subscribed').map((event) => event.addresses)).toEqual([[apple], [apple, tesla]])
  })

  it('is not repeated', async () => {
    const { emit, advance, head, ofType } = openSource({ addresses: new BehaviorSubject<readonly Hex[]>([apple]) })
    await advance(POLL_MS)
    const listed = ofType('subscribed')[0]?.addresses ?? []
    await emit(liveSignal(listed), head(), liveSignal(listed), downSignal)
    await advance(1_000)
    expect(ofType('subscribed')).toHaveLength(1)
  })
})

describe('the start of settling', () => {
  it('is the first head on an empty tape', async () => {
    const { chain, emit, head, ofType, seal, sealedBlocks } = openSource()
    chain.addLog(HEAD)
    await emit(liveSignal(), head())
    await seal(1)
    expect(ofType('cursor').map(({ cursor }) => cursor)).toEqual([{ number: HEAD, hash: blockHash(HEAD) }])
    expect(sealedBlocks().map(({ number }) => number)).toEqual([HEAD + 1])
  })

  it('is right before the first pushed log, if that is earlier', async () => {
    const { chain, emit, head, ofType, pendingLogs, advance, sealedBlocks } = openSource()
    chain.delayMs = 1_000
    await emit(liveSignal(), pendingLogSignal(pendingLog({ block: HEAD + 1 })), pendingLogSignal(pendingLog({ block: HEAD + 2 })))
    chain.head = HEAD + 3
    await emit(head())
    expect(ofType('cursor').map(({ cursor }) => cursor)).toEqual([{ number: HEAD, hash: null }])
    expect(pendingLogs()).toHaveLength(2)
    await advance(10_000)
    expect(sealedBlocks().map(({ number }) => number)).toEqual([HEAD + 1, HEAD + 2, HEAD + 3])
  })

  it('ignores logs of implausible blocks', async () => {
    const { chain, emit, head, ofType, pendingLogs } = openSource()
    chain.delayMs = 1_000
    for (const block of [0, 5, HEAD - 64, HEAD + 1, 9_000_000_000]) await emit(pendingLogSignal(pendingLog({ block })))
    await emit(liveSignal(), head())
    expect(ofType('cursor').map(({ cursor }) => cursor)).toEqual([{ number: HEAD, hash: blockHash(HEAD) }])
    expect(pendingLogs().length).toBeGreaterThan(0)
  })

  it('keeps a bounded number of logs from before the first head, and settles the others', async () => {
    const { chain, emit, head, pendingLogs, advance, sealedBlocks } = openSource()
    chain.delayMs = 1_000
    const logs = Array.from({ length: 3_000 }, () => chain.addLog(HEAD + 1))
    await emit(liveSignal(), pendingLogSignal(logs.map(pendingLog)))
    expect(pendingLogs()).toEqual([])
    await emit(head())
    expect(pendingLogs()).toHaveLength(2_000)
    chain.head = HEAD + 1
    await emit(head())
    await advance(5_000)
    expect(sealedBlocks().map(({ logs }) => logs.length)).toEqual([3_000])
  })

  it('may be block 0 of a new chain', async () => {
    const { chain, emit, head, ofType } = openSource()
    chain.head = 0
    chain.delayMs = 1_000
    await emit(liveSignal(), pendingLogSignal(pendingLog({ block: 0 })), head())
    expect(ofType('cursor').map(({ cursor }) => cursor)).toEqual([{ number: 0, hash: blockHash(0) }])
  })

  it('is the cursor of the previous run', async () => {
    const { emit, head, ofType, sealedBlocks } = openSource({ cursor: { number: HEAD - 2, hash: blockHash(HEAD - 2) } })
    await emit(liveSignal(), head())
    expect(ofType('cursor')).toEqual([])
    expect(sealedBlocks().map(({ number, via }) => [number, via])).toEqual([
      [HEAD - 1, 'backfill'],
      [HEAD, 'backfill'],
    ])
  })
})

describe('a pushed head', () => {
  it('far above the chain is asked for, and not believed', async () => {
    const { chain, emit, head, advance, ofType, seal, sealedBlocks, pendingLogs } = openSource()
    await emit(liveSignal(), head())
    await seal(1)
    await emit({ type: 'head', header: { ...chain.headerOf(HEAD + 1), number: `0x${(HEAD + 86_000_000).toString(16)}` } })
    await emit(pendingLogSignal(pendingLog({ block: HEAD + 50_000 })))
    await advance(POLL_MS)
    await seal(1)
    expect(ofType('head').every(({ sealed }) => (sealed ?? 0) <= HEAD + 2)).toBe(true)
    expect(sealedBlocks().map(({ number }) => number)).toEqual([HEAD + 1, HEAD + 2])
    expect(pendingLogs()).toHaveLength(2)
    expect(ofType('unreadable')).toEqual([])
  })

  it('with a false time does not change the time of its block', async () => {
    const { chain, emit, head, advance, ofType, sealedBlocks } = openSource()
    await emit(liveSignal(), head())
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
  it('of a removed log is ignored', async () => {
    const { emit, head, pendingLogs } = openSource()
    await emit(liveSignal(), head(), pendingLogSignal({ ...pendingLog({ block: HEAD + 1 }), removed: true }))
    expect(pendingLogs()).toEqual([])
  })

  it('of a log in the head block is left to settling', async () => {
    const { emit, head, pendingLogs } = openSource()
    await emit(liveSignal(), head(), pendingLogSignal(sealedLog({ block: HEAD })))
    expect(pendingLogs()).toEqual([])
  })

  it('may be an unreadable head', async () => {
    const { emit, ofType, head } = openSource()
    const heads: LinkSignal[] = [{ number: 'five' }, null, { ...pendingLog({ block: 5 }) }].map((header) => ({
      type: 'head',
      header,
    }))
    await emit(liveSignal(), head(), ...heads)
    expect(ofType('unreadable')).toHaveLength(3)
  })

  it('may be a head beyond any possible number', async () => {
    const { emit, ofType, head, seal, sealedBlocks } = openSource()
    await emit(liveSignal(), head())
    const beyond = { ...pendingLog({ block: 5 }), number: '0xffffffffff', hash: blockHash(5) }
    await emit({ type: 'head', header: beyond })
    expect(ofType('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
    await seal(1)
    expect(sealedBlocks().map(({ number }) => number)).toEqual([HEAD + 1])
  })

  it('that is not a message is counted', async () => {
    const { emit, ofType } = openSource()
    await emit({ type: 'unreadable', count: 1 })
    expect(ofType('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
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

  it('are counted when they are unreadable', async () => {
    const { emit, head, ofType } = openSource()
    await emit(liveSignal([apple], 'logs'), head(), sealedLogSignal({ data: '0x1' }))
    expect(ofType('unreadable')).toEqual([{ type: 'unreadable', count: 1 }])
  })
})

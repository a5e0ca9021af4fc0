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

describe('a source without a link', () => {
  it('emits the start, the pre-confirmed logs, their addresses and its status', async () => {
    const { chain, advance, pendingLogs, statuses, ofType, subscribed } = openSource({ hasLink: false })
    chain.addLog(HEAD)
    const log = chain.addLog(HEAD + 1)
    await advance(0)
    expect(ofType('cursor').map(({ cursor }) => cursor)).toEqual([{ number: HEAD, hash: chain.hashOf(HEAD) }])
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['poll ok'])
    expect(subscribed()).toEqual([[apple]])
    expect(ofType('head')).toEqual([
      {
        ...{ type: 'head', sealed: HEAD, pending: null, timestamp: timestampOf(HEAD) },
        ...{ hash: chain.hashOf(HEAD), parentHash: chain.hashOf(HEAD - 1) },
      },
      { type: 'head', sealed: null, pending: HEAD + 1, timestamp: timestampOf(HEAD + 1) },
    ])
  })

  it('emits each log at the next poll, with the time of arrival', async () => {
    const { chain, advance, ofType } = openSource({ hasLink: false })
    await advance(POLL_MS / 2)
    const log = chain.addLog(HEAD + 1)
    await advance(POLL_MS)
    expect(ofType('logs').map(({ logs, receivedAt }) => [logs[0]?.key, receivedAt])).toEqual([[keyOf(log), POLL_MS]])
  })

  it('emits a log of a block that was sealed between two polls when that block is settled', async () => {
    const { chain, advance, pendingLogs, sealedBlocks } = openSource({ hasLink: false })
    await advance(0)
    const [sealed, pending] = [chain.addLog(HEAD + 1), chain.addLog(HEAD + 2)]
    chain.head = HEAD + 1
    await advance(POLL_MS)
    expect(sealedBlocks().map(({ logs, via }) => [via, ...logs.map(({ key }) => key)])).toEqual([['sealed', keyOf(sealed)]])
    expect(pendingLogs()).toEqual([`${keyOf(pending)} poll`])
  })

  it('is down after too long a silence, and works again with the first answer', async () => {
    const { chain, advance, statuses } = openSource({ hasLink: false })
    await advance(0)
    chain.failure = new UpstreamError('unreachable', 'HTTP 503')
    await advance(SILENCE_MS)
    expect(statuses()).toEqual(['poll ok'])
    await advance(500)
    expect(statuses()).toEqual(['poll ok', 'down unreachable'])
    chain.failure = null
    await advance(POLL_MS)
    expect(statuses()).toEqual(['poll ok', 'down unreachable', 'poll ok'])
  })

  it('never repeats a request before it is answered', async () => {
    const { chain, advance } = openSource({ hasLink: false })
    chain.delayMs = 700
    chain.addLog(HEAD + 1)
    await advance(5_000)
    expect(chain.requestedHeaders().filter((block) => block === 'pending').length).toBeLessThan(5)
  })
})

describe('a push', () => {
  it('may be one log at a time or a growing array', async () => {
    const { emit, pendingLogs, ofType, unreadable } = await openLive()
    const logs = [0, 1].map((index) => pendingLog({ block: HEAD + 1, index }))
    await emit(pendingLogSignal(logs[0], 7), pendingLogSignal([...logs, null]))
    expect(pendingLogs()).toEqual([0, 0, 1].map((index) => pushedKey(HEAD + 1, index)))
    expect(ofType('logs')[0]?.receivedAt).toBe(7)
    expect(unreadable()).toBe(1)
  })

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

describe('a stream that lags behind', () => {
  it.each([
    ['is detected by its late logs, and replaced by polling', 2, 'behind'],
    ['is not assumed because logs arrive while their block is sealed', 1, 'silent'],
  ])('%s', async (_, lateBlocks, reason) => {
    const { chain, seal, emit, advance, statuses } = await openLive()
    await advance(POLL_MS)
    for (const logs of [2, 2]) {
      await emit(pendingLogSignal(pendingLog({ block: chain.head - lateBlocks })))
      await seal(logs, { announced: false })
    }
    expect(statuses()).toEqual(['pendingLogs ok', `poll ${reason}`])
    await emit(pendingLogSignal(pendingLog({ block: chain.head + 1 })))
    expect(statuses()).toEqual(['pendingLogs ok', `poll ${reason}`, 'pendingLogs ok'])
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
    const { chain, emit, pendingLogs, subscribed } = await openLive({ addresses })
    const log = chain.addLog(HEAD + 1, tesla)
    addresses.next([apple, tesla])
    expect(pendingLogs()).toEqual([])
    await emit(liveSignal([apple, tesla]))
    expect(chain.requestedRanges().at(-1)).toEqual([HEAD, 'pending'])
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(subscribed()).toEqual([[apple], [apple, tesla]])
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
    const { emit, head, subscribed, chain } = openSource()
    chain.delayMs = 1_000
    await emit(liveSignal([apple, tesla]))
    expect(subscribed()).toEqual([])
    await emit(head())
    await emit(liveSignal([tesla]))
    expect(subscribed()).toEqual([[apple, tesla], [tesla]])
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
    const { emit, head, advance, ofType, subscribed } = openSource({ addresses })
    await emit(liveSignal([apple], 'logs'))
    await advance(POLL_MS)
    const [{ filters } = { filters: [] }] = ofType('subscribed')
    const live = { ...liveSignal(), filters }
    await emit(live, head(), live, downSignal)
    await advance(1_000)
    addresses.next([apple, tesla])
    await advance(POLL_MS)
    expect(subscribed()).toEqual([[apple], [apple, tesla]])
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
    await emit(liveSignal(), ...[logs.slice(0, 100), logs.slice(100)].map((part) => pendingLogSignal(part.map(pendingLog))))
    expect(pendingLogs()).toEqual([])
    await emit(head())
    expect(pendingLogs()).toHaveLength(2_000)
    chain.head = HEAD + 1
    await emit(head())
    await advance(5_000)
    expect(sealedBlocks().map(({ logs: settled }) => settled.length)).toEqual([2_500])
  })
})

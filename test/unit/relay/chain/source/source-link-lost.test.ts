import { describe, expect, it } from 'vitest'
import type { LinkSignal } from '../../../../../src/relay/chain/link/subscription-socket.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { apple, keyOf, pendingLog, word } from '../node-json.ts'
import { downSignal, HEAD, liveSignal, MINUTE_MS, openSource, POLL_MS, pendingLogSignal, SILENCE_MS } from './source-fixture.ts'

const unreachable = new UpstreamError('unreachable', 'ECONNREFUSED')

/** A source whose link pushes since the first head. */
const openWithLiveLink = async () => {
  const opened = openSource()
  await opened.emit(liveSignal(), opened.head())
  await opened.advance(POLL_MS)
  return opened
}
const blocksAfterHead = (sealed: readonly { readonly number: number }[]) => sealed.map(({ number }) => number - HEAD)

describe('a lost link', () => {
  it('is replaced by polling at once, from the newest head on', async () => {
    const { chain, advance, emit, seal, pendingLogs, statuses } = await openWithLiveLink()
    await seal(0)
    await emit(downSignal)
    const log = chain.addLog(HEAD + 2)
    await advance(POLL_MS)
    expect(chain.requestedRanges().at(-1)).toEqual([HEAD + 1, 'pending'])
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable'])
  })

  it('never interrupts polling, however often it is lost', async () => {
    const { chain, advance, emit, pendingLogs } = openSource()
    await advance(0)
    chain.delayMs = 60
    const log = chain.addLog(HEAD + 1)
    // If each loss restarted polling, no request would ever be answered.
    for (let times = 0; times < 20; times += 1) {
      await advance(50)
      await emit(downSignal)
    }
    expect(pendingLogs()).toContain(`${keyOf(log)} poll`)
  })

  it('that never opened leaves polling as the source', async () => {
    const { advance, emit, statuses } = openSource()
    await advance(0)
    await emit(downSignal)
    await advance(POLL_MS * 2)
    expect(statuses()).toEqual(['poll unreachable'])
  })

  it('is down with the rest of the upstream after too long a silence', async () => {
    const { chain, advance, emit, statuses } = await openWithLiveLink()
    chain.failure = unreachable
    await emit(downSignal)
    await advance(SILENCE_MS)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable'])
    await advance(500)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable', 'down unreachable'])
  })

  it('becomes the source again, with the blocks of the outage settled', async () => {
    const { chain, advance, emit, head, statuses, sealedBlocks, seal } = await openWithLiveLink()
    await emit(downSignal)
    chain.failure = unreachable
    await advance(10_000)
    const logs = [chain.addLog(HEAD + 1), chain.addLog(HEAD + 3)]
    chain.head = HEAD + 4
    chain.failure = null
    await emit(liveSignal(), head())
    await advance(2_000)
    await seal(1)
    expect(statuses().slice(2)).toEqual(['down unreachable', 'pendingLogs unreachable', 'pendingLogs ok'])
    expect(blocksAfterHead(sealedBlocks())).toEqual([1, 2, 3, 4, 5])
    expect(
      sealedBlocks()
        .slice(0, 4)
        .flatMap((block) => block.logs.map(({ key }) => key)),
    ).toEqual(logs.map(keyOf))
    expect(sealedBlocks().map(({ via }) => via)).toEqual([...Array(4).fill('backfill'), 'sealed'])
  })
})

describe('a node that fails requests while the link pushes', () => {
  it('is reported as unreachable, delays no pushed log, and settles all blocks afterwards', async () => {
    const { chain, advance, seal, statuses, sealedBlocks, pendingLogs } = await openWithLiveLink()
    chain.failure = unreachable
    for (let block = 0; block < 40; block += 1) await seal(1)
    expect(pendingLogs()).toHaveLength(40)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs unreachable'])
    expect(sealedBlocks()).toEqual([])
    chain.failure = null
    await advance(5_000)
    expect(blocksAfterHead(sealedBlocks())).toEqual(Array.from({ length: 40 }, (_, index) => index + 1))
    expect(sealedBlocks().every(({ logs }) => logs.length === 1)).toBe(true)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs unreachable', 'pendingLogs ok'])
  })

  it('does not keep pushed logs from starting the source', async () => {
    const { chain, emit, head, statuses, pendingLogs } = openSource()
    chain.failure = unreachable
    await emit(liveSignal(), head(), pendingLogSignal(pendingLog({ block: HEAD + 1 })))
    expect(statuses()).toEqual(['pendingLogs ok'])
    expect(pendingLogs()).toEqual([`${keyOf({ block: HEAD + 1 })} pendingLogs`])
  })
})

describe('heads', () => {
  it('are polled after the silence once they stop, then with every poll', async () => {
    const { chain, advance, seal, sealedBlocks, statuses } = await openWithLiveLink()
    await seal(1)
    chain.head += 1
    await advance(SILENCE_MS + POLL_MS)
    expect(blocksAfterHead(sealedBlocks())).toEqual([1, 2])
    for (let block = 0; block < 5; block += 1) {
      chain.head += 1
      await advance(SILENCE_MS + POLL_MS)
    }
    chain.head += 1
    await advance(POLL_MS)
    expect(blocksAfterHead(sealedBlocks())).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('are polled with every poll if they were never pushed', async () => {
    const { chain, advance, emit, sealedBlocks } = openSource()
    await emit(liveSignal())
    await advance(POLL_MS)
    for (let block = 0; block < 10; block += 1) {
      chain.head += 1
      await advance(POLL_MS)
    }
    await advance(POLL_MS)
    expect(blocksAfterHead(sealedBlocks())).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })

  it('are polled within the silence if the pushing node lags behind', async () => {
    const { chain, advance, emit, head, sealedBlocks } = await openWithLiveLink()
    for (let block = 0; block < 40; block += 1) {
      chain.head += 1
      await emit(head(chain.head - 20))
      await advance(POLL_MS)
    }
    // The lagging node has pushed only the first 20 by now.
    expect(blocksAfterHead(sealedBlocks()).at(-1)).toBeGreaterThanOrEqual(40 - SILENCE_MS / POLL_MS)
  })

  it('are reported as stale once after half a minute without a new one', async () => {
    const { advance, seal, statuses } = await openWithLiveLink()
    await advance(29_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
    await advance(MINUTE_MS)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs stale_head'])
    await seal(1)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs stale_head', 'pendingLogs ok'])
  })

  it('that stand still while the chain moves on make the link leave its node', async () => {
    const { chain, advance, emit, reconnectTimes, clock } = await openWithLiveLink()
    await emit({ type: 'heads_live' })
    const since = clock.now()
    for (let block = 0; block < 20; block += 1) {
      chain.head += 1
      await advance(2_000)
    }
    expect(reconnectTimes).toHaveLength(1)
    expect(reconnectTimes[0]).toBeGreaterThan(since + 30_000)
    expect(reconnectTimes[0]).toBeLessThan(since + 31_000)
  })

  it('are emitted once each as they rise', async () => {
    const { chain, emit, head, seal, ofType } = await openWithLiveLink()
    await seal(0)
    await seal(0)
    await emit(head(HEAD + 1), head(chain.head))
    expect(ofType('head').flatMap(({ sealed }) => sealed ?? [])).toEqual([HEAD, HEAD + 1, HEAD + 2])
  })
})

describe('a node that refuses every subscription', () => {
  const refusing: LinkSignal = { type: 'down', reason: 'logs refused: method not found', isRefused: true }

  it('is polled as refused, until it is unreachable or accepts again', async () => {
    const { advance, emit, head, statuses } = openSource()
    await emit(refusing)
    await advance(POLL_MS)
    expect(statuses()).toEqual(['poll refused'])
    await emit(refusing)
    await advance(POLL_MS)
    await emit(downSignal)
    await advance(POLL_MS)
    expect(statuses()).toEqual(['poll refused', 'poll unreachable'])
    await emit(liveSignal(), head())
    await advance(POLL_MS)
    await emit(refusing)
    await advance(POLL_MS)
    expect(statuses().slice(2)).toEqual(['pendingLogs ok', 'poll refused'])
  })
})

describe('a node that refuses pendingLogs', () => {
  const refused = liveSignal([apple], 'logs')

  it('is polled as refused, and its blocks are settled as heads are pushed', async () => {
    const { chain, advance, emit, head, seal, pendingLogs, sealedBlocks, statuses } = openSource()
    await emit(refused, head())
    const log = chain.addLog(HEAD + 1)
    await advance(POLL_MS)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['poll refused'])
    await seal(0)
    expect(sealedBlocks().map(({ logs }) => logs.length)).toEqual([1])
  })

  it('without pre-confirmations is read by sealed blocks, without constant polling', async () => {
    const { chain, advance, emit, head, seal, statuses, sealedBlocks } = openSource()
    chain.pending = 'latest'
    await emit(refused, head())
    await advance(POLL_MS)
    expect(statuses()).toEqual(['sealed no_pending'])
    const before = chain.requests.length
    for (let block = 0; block < 50; block += 1) await seal(0)
    expect(sealedBlocks()).toHaveLength(50)
    // Each block by its hash and with its header.
    const others = chain.requests.slice(before).filter(({ method }) => method !== 'eth_getLogs')
    expect(others.length).toBeLessThan(50 + 5)
  })

  it('is probed every minute, and is the source once it accepts', async () => {
    const { advance, emit, head, probeTimes, statuses, seal } = openSource()
    await emit(refused, head())
    await advance(2 * MINUTE_MS + POLL_MS)
    expect(probeTimes).toHaveLength(3)
    expect(statuses()).toEqual(['poll refused', 'poll stale_head'])
    await emit(liveSignal(), refused)
    await seal(1)
    expect(statuses().at(-1)).toBe('pendingLogs ok')
  })

  it('is polled for pre-confirmations every minute if there were none', async () => {
    const { chain, advance, emit, head, seal, statuses, pendingLogs } = openSource()
    chain.pending = 'latest'
    await emit(refused, head())
    await advance(POLL_MS)
    chain.pending = 'shown'
    for (let block = 0; block < 300; block += 1) await seal(0)
    expect(statuses()).toEqual(['sealed no_pending', 'poll refused'])
    const log = chain.addLog(chain.head + 1)
    await advance(POLL_MS)
    expect(pendingLogs().at(-1)).toBe(`${keyOf(log)} poll`)
  })
})

describe('finality', () => {
  it('reveals a reorganisation that no head revealed', async () => {
    const { chain, advance, seal, ofType, sealedBlocks } = openSource({ finalityPollMs: 1_000 })
    await advance(0)
    for (let block = 0; block < 5; block += 1) await seal(0)
    chain.safe = HEAD + 2
    await advance(1_000)
    expect(ofType('finality').map(({ stage, block }) => [stage, block.number])).toEqual([['safe', HEAD + 2]])
    chain.reorganise(2)
    chain.safe = HEAD + 4
    await advance(1_000)
    expect(sealedBlocks().at(-1)?.hash).toBe(chain.hashOf(HEAD + 5))
  })

  it('is emitted only when that block is settled', async () => {
    const { chain, advance, seal, received } = openSource({ finalityPollMs: 1_000 })
    await advance(0)
    for (let block = 0; block < 5; block += 1) await seal(1)
    chain.reorganise(2)
    chain.safe = HEAD + 4
    await advance(1_000)
    const settledAt = received.findIndex(
      (event) => event.type === 'sealed' && event.blocks.some(({ hash }) => hash === chain.hashOf(HEAD + 4)),
    )
    expect(settledAt).toBeGreaterThan(0)
    expect(received.findIndex(({ type }) => type === 'finality')).toBe(settledAt + 1)
  })

  it('after a restart is emitted only once the settled blocks are confirmed', async () => {
    const { chain, advance, received, emit, head } = openSource({
      finalityPollMs: 1_000,
      cursor: { number: HEAD - 2, hash: word(77) },
    })
    chain.safe = HEAD - 3
    await advance(500)
    await emit(head(HEAD))
    await advance(2_000)
    const types = received.map(({ type }) => type)
    expect(types).toContain('finality')
    expect(types.indexOf('sealed')).toBeLessThan(types.indexOf('finality'))
  })
})

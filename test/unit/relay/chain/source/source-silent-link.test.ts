import { BehaviorSubject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { apple, keyOf, pendingLog, tesla } from '../node-json.ts'
import { downSignal, HEAD, liveSignal, MINUTE_MS, openSource, POLL_MS, pendingLogSignal } from './source-fixture.ts'

/** A source with a pushing link. By default the node shows no pending block, so pushed logs are the only evidence. */
const openWithLiveLink = async (pending: 'null' | 'shown' | 'latest' = 'null') => {
  const opened = openSource()
  opened.chain.pending = pending
  await opened.emit(liveSignal(), opened.head())
  await opened.advance(POLL_MS)
  return opened
}
const unpushed = { announced: false }

describe('a silent node with another one beside it', () => {
  const openSilent = async () => {
    const opened = openSource({ linkCount: 2 })
    await opened.emit({ type: 'heads_live' }, liveSignal(), opened.head())
    for (const logs of [2, 1]) await opened.seal(logs, unpushed)
    await opened.advance(POLL_MS)
    return opened
  }

  it('is left at once, and the other is the source with its first timely log', async () => {
    const { emit, head, seal, statuses, reconnectTimes } = await openSilent()
    expect(reconnectTimes).toHaveLength(1)
    await emit({ type: 'heads_live' }, liveSignal(), head())
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
    await seal(1)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent', 'pendingLogs ok'])
  })

  it('takes turns with it once a minute while both are silent, without another status', async () => {
    const { emit, head, seal, advance, statuses, reconnectTimes } = await openSilent()
    for (let second = 0; second < 150; second += 2) {
      await seal(1, { ...unpushed, pushed: false })
      if (second % 60 === 2) await emit({ type: 'heads_live' }, liveSignal(), head())
      await advance(1_800)
    }
    expect(reconnectTimes).toHaveLength(3)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
  })

  it('is reported as lost only if the other does not answer either', async () => {
    const { emit, statuses } = await openSilent()
    await emit(downSignal)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent', 'poll unreachable'])
  })
})

describe('a subscription that is accepted and never delivers', () => {
  it('is silent also if it pushes a log of an impossible block', async () => {
    const { emit, seal, statuses } = await openWithLiveLink('shown')
    await emit(pendingLogSignal(pendingLog({ block: HEAD + 9_000_000 })))
    for (const logs of [2, 1]) await seal(logs, unpushed)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
  })

  it('is silent after three missed logs in two blocks, and is replaced by polling', async () => {
    const { chain, advance, seal, statuses, pendingLogs } = await openWithLiveLink('shown')
    await seal(2, unpushed)
    expect(statuses()).toEqual(['pendingLogs ok'])
    await seal(1, unpushed)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
    const log = chain.addLog(chain.head + 1)
    await advance(POLL_MS)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
  })

  it('is silent after three missed logs in one block, ten seconds later', async () => {
    const { advance, seal, statuses } = await openWithLiveLink('shown')
    await seal(3, unpushed)
    await advance(9_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
    await advance(1_500)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
  })

  it('is silent even if its node shows no pending block to poll', async () => {
    const { seal, statuses } = await openWithLiveLink('null')
    for (let block = 0; block < 15; block += 1) await seal(1, unpushed)
    expect(statuses()).toEqual(['pendingLogs ok', 'sealed no_pending'])
  })

  it('is detected without any log if the node shows the latest block as pending', async () => {
    const { advance, seal, statuses, sealedBlocks } = await openWithLiveLink('latest')
    await advance(3_000)
    expect(statuses()).toEqual(['pendingLogs ok', 'sealed no_pending'])
    await seal(1, unpushed)
    expect(sealedBlocks().map(({ logs }) => logs.length)).toEqual([1])
  })

  it('is detected as well if the node that names the head lags behind the one that shows it as pending', async () => {
    const { chain, emit, head, advance, statuses } = openSource()
    chain.pending = 'latest'
    chain.override = ({ params }) => {
      chain.lagBlocks = params[0] === 'latest' ? 1 : 0
      return undefined
    }
    await emit(liveSignal(), head())
    await advance(3_000)
    expect(statuses()).toEqual(['pendingLogs ok', 'sealed no_pending'])
  })

  it('is not trusted again because it is accepted again', async () => {
    const { advance, seal, emit, statuses } = await openWithLiveLink('shown')
    for (const logs of [2, 2]) await seal(logs, unpushed)
    await emit(liveSignal())
    await advance(1_000)
    await emit(downSignal)
    await advance(1_000)
    await emit(liveSignal())
    await advance(1_000)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent', 'poll unreachable', 'poll silent'])
  })

  it('is trusted again when it delivers in time', async () => {
    const { chain, advance, seal, emit, statuses } = await openWithLiveLink('shown')
    for (const logs of [2, 2]) await seal(logs, unpushed)
    await emit(pendingLogSignal(pendingLog({ block: chain.head - 5 })))
    expect(statuses().at(-1)).toBe('poll behind')
    await emit(pendingLogSignal(pendingLog({ block: chain.head + 1 })))
    await advance(250)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent', 'poll behind', 'pendingLogs ok'])
  })

  it('is probed every minute', async () => {
    const { advance, seal, probeTimes, clock } = await openWithLiveLink('shown')
    await advance(MINUTE_MS)
    expect(probeTimes).toEqual([])
    for (const logs of [2, 2]) await seal(logs, unpushed)
    const since = clock.now()
    await advance(3 * MINUTE_MS)
    expect(probeTimes).toHaveLength(4)
    expect(probeTimes[0]).toBeLessThanOrEqual(since)
    expect((probeTimes[3] ?? 0) - (probeTimes[0] ?? 0)).toBe(3 * MINUTE_MS)
  })

  it('is not probed while it is lost, nor once it delivers', async () => {
    const { chain, advance, seal, emit, probeTimes } = await openWithLiveLink('shown')
    for (const logs of [2, 2]) await seal(logs, unpushed)
    await advance(POLL_MS)
    await emit(downSignal)
    await advance(3 * MINUTE_MS)
    expect(probeTimes).toHaveLength(1)
    await emit(liveSignal(), pendingLogSignal(pendingLog({ block: chain.head + 1 })))
    await advance(3 * MINUTE_MS)
    expect(probeTimes).toHaveLength(1)
  })
})

describe('a stream that lags behind', () => {
  it('is detected by its late logs, and replaced by polling', async () => {
    const { chain, advance, seal, emit, statuses } = await openWithLiveLink('shown')
    for (let block = 0; block < 3; block += 1) {
      await emit(pendingLogSignal(pendingLog({ block: chain.head - 450 + block })))
      await seal(2, unpushed)
    }
    await advance(250)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll behind'])
  })

  it('is not assumed because logs arrive while their block is sealed', async () => {
    const { chain, seal, emit, statuses } = await openWithLiveLink('shown')
    for (let block = 0; block < 20; block += 1) {
      await seal(2, { announced: block % 2 === 0 })
      await emit(pendingLogSignal(pendingLog({ block: chain.head - 1 })))
    }
    expect(statuses()).toEqual(['pendingLogs ok'])
  })
})

describe('a quiet market', () => {
  it('is never taken for a dead stream', async () => {
    const { advance, seal, statuses, probeTimes } = await openWithLiveLink('null')
    for (let block = 0; block < 300; block += 1) {
      await seal(0)
      await advance(1_800)
    }
    expect(statuses()).toEqual(['pendingLogs ok'])
    expect(probeTimes).toEqual([])
  })

  it('with a pushed log now and then is never taken for a dead stream', async () => {
    const { advance, seal, statuses } = await openWithLiveLink('null')
    for (let block = 0; block < 50; block += 1) {
      await seal(block % 7 === 0 ? 1 : 0)
      await advance(5_000)
    }
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('with a single lost log now and then is not silent', async () => {
    const { seal, statuses } = await openWithLiveLink('null')
    for (let block = 0; block < 50; block += 1) await seal(1, { announced: block % 3 === 2 })
    expect(statuses()).toEqual(['pendingLogs ok'])
  })
})

describe('a stream is not distrusted for logs', () => {
  it('in the block that was being built when it began', async () => {
    const { chain, emit, head, seal, statuses, advance } = openSource()
    chain.pending = 'null'
    await emit(head())
    for (let log = 0; log < 5; log += 1) chain.addLog(HEAD + 1)
    await emit(liveSignal())
    await seal(0)
    await advance(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('in blocks sealed right before it began, with no head received yet', async () => {
    const { chain, emit, advance, statuses } = openSource()
    await advance(0)
    for (const block of [HEAD + 1, HEAD + 1, HEAD + 2, HEAD + 2]) chain.addLog(block)
    chain.head = HEAD + 2
    await emit(liveSignal())
    await advance(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('of tokens that were only just subscribed to', async () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, emit, head, advance, statuses } = openSource({ addresses })
    await emit(liveSignal(), head())
    await advance(POLL_MS)
    addresses.next([apple, tesla])
    for (const block of [HEAD + 1, HEAD + 2]) {
      for (let log = 0; log < 2; log += 1) chain.addLog(block, tesla)
      chain.head = block
      await emit(head())
    }
    await emit(liveSignal([apple, tesla]))
    await advance(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('in blocks sealed during an outage', async () => {
    const { chain, emit, head, advance, statuses } = openSource({ cursor: { number: HEAD - 50, hash: null } })
    for (let block = HEAD - 40; block <= HEAD; block += 1) chain.addLog(block)
    await emit(liveSignal(), head())
    await advance(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('that are settled again after a reorganisation', async () => {
    const { chain, advance, seal, emit, head, statuses } = await openWithLiveLink('null')
    for (let block = 0; block < 5; block += 1) await seal(2)
    const first = chain.reorganise(4)
    for (let block = first; block <= chain.head; block += 1) chain.addLog(block)
    await emit(head())
    await advance(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('and is not trusted for logs of other addresses', async () => {
    const { chain, seal, emit, statuses } = await openWithLiveLink('shown')
    for (let block = 0; block < 3; block += 1) {
      await emit(pendingLogSignal(pendingLog({ block: chain.head + 1, address: tesla })))
      await seal(2, unpushed)
    }
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
  })
})

import { BehaviorSubject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { apple, keyOf, pendingLog, tesla } from '../node-json.ts'
import { HEAD, liveSignal, openSource, POLL_MS, pendingLogSignal } from './source-fixture.ts'

/** A source with a pushing link. By default the node shows no pending block, so pushed logs are the only evidence. */
const openWithLiveLink = async (pending: 'null' | 'shown' = 'null') => {
  const opened = openSource()
  opened.chain.pending = pending
  await opened.emit(liveSignal(), opened.head())
  await opened.advance(POLL_MS)
  return opened
}
const unpushed = { announced: false }

it('a silent node with another one beside it is left at once and not again, and the other is the source with its first timely log', async () => {
  const { emit, head, seal, advance, statuses, reconnectTimes } = openSource({ linkCount: 2 })
  await emit({ type: 'heads_live' }, liveSignal(), head())
  for (const logs of [2, 1]) await seal(logs, unpushed)
  await advance(POLL_MS)
  await emit({ type: 'heads_live' }, liveSignal(), head())
  await advance(20_000)
  expect(reconnectTimes).toHaveLength(1)
  expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
  await seal(1)
  expect(statuses()).toEqual(['pendingLogs ok', 'poll silent', 'pendingLogs ok'])
})

describe('a subscription that is accepted and never delivers', () => {
  it('is silent after three missed logs, though it pushes one of an impossible block, and is replaced by polling', async () => {
    const { chain, emit, advance, seal, statuses, pendingLogs } = await openWithLiveLink('shown')
    await emit(pendingLogSignal(pendingLog({ block: HEAD + 9_000_000 })))
    for (const logs of [1, 1]) await seal(logs, unpushed)
    expect(statuses()).toEqual(['pendingLogs ok'])
    await seal(1, unpushed)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
    const log = chain.addLog(chain.head + 1)
    await advance(POLL_MS)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
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
})

describe('a stream that lags behind', () => {
  it.each([
    ['is detected by its late logs, and replaced by polling', 2, 'behind'],
    ['is not assumed because logs arrive while their block is sealed', 1, 'silent'],
  ])('%s', async (_, lateBlocks, reason) => {
    const { chain, seal, emit, statuses } = await openWithLiveLink('shown')
    for (const logs of [2, 2]) {
      await emit(pendingLogSignal(pendingLog({ block: chain.head - lateBlocks })))
      await seal(logs, unpushed)
    }
    expect(statuses()).toEqual(['pendingLogs ok', `poll ${reason}`])
    await emit(pendingLogSignal(pendingLog({ block: chain.head + 1 })))
    expect(statuses()).toEqual(['pendingLogs ok', `poll ${reason}`, 'pendingLogs ok'])
  })
})

describe('a stream is not distrusted for logs', () => {
  it('of tokens that were only just subscribed to', async () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, emit, head, advance, statuses } = openSource({ addresses })
    await emit(liveSignal(), head())
    await advance(POLL_MS)
    addresses.next([apple, tesla])
    for (const block of [HEAD + 1, HEAD + 2]) {
      for (const _ of [1, 2]) chain.addLog(block, tesla)
      chain.head = block
      await emit(head())
    }
    await emit(liveSignal([apple, tesla]))
    await advance(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('that are settled again after a reorganisation', async () => {
    const { chain, advance, seal, emit, head, statuses } = await openWithLiveLink('null')
    // Without logs, so that no push vouches for these blocks.
    for (const logs of [0, 0, 0, 0, 0]) await seal(logs)
    const first = chain.reorganise(4)
    for (let block = first; block <= chain.head; block += 1) chain.addLog(block)
    await emit(head())
    await advance(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('and is not trusted for logs of other addresses', async () => {
    const { chain, seal, emit, statuses } = await openWithLiveLink('shown')
    for (const logs of [2, 2]) {
      await emit(pendingLogSignal(pendingLog({ block: chain.head + 1, address: tesla })))
      await seal(logs, unpushed)
    }
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
  })
})

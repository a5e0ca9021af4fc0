import { BehaviorSubject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { apple, keyOf, pendingLog, tesla } from '../node-json.ts'
import { downSignal, HEAD, liveSignal, MINUTE_MS, openSource, POLL_MS, pendingLogSignal } from './source-fixture.ts'

/** A source with a pushing link. By default the node shows no pending block, so pushed logs are the only evidence. */
const openWithLiveLink = (pending: 'null' | 'shown' | 'latest' = 'null') => {
  const opened = openSource()
  opened.chain.pending = pending
  opened.emit(liveSignal(), opened.head())
  opened.advance(POLL_MS)
  return opened
}
const unpushed = { announced: false }

describe('a subscription that is accepted and never delivers', () => {
  it('is silent after three missed logs in two blocks, and is replaced by polling', () => {
    const { chain, advance, seal, statuses, pendingLogs } = openWithLiveLink('shown')
    seal(2, unpushed)
    expect(statuses()).toEqual(['pendingLogs ok'])
    seal(1, unpushed)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
    const log = chain.addLog(chain.head + 1)
    advance(POLL_MS)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
  })

  it('is silent after three missed logs in one block, ten seconds later', () => {
    const { advance, seal, statuses } = openWithLiveLink('shown')
    seal(3, unpushed)
    advance(9_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
    advance(1_500)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
  })

  it('is silent even if its node shows no pending block to poll', () => {
    const { seal, statuses } = openWithLiveLink('null')
    for (let block = 0; block < 15; block += 1) seal(1, unpushed)
    expect(statuses()).toEqual(['pendingLogs ok', 'sealed no_pending'])
  })

  it('is detected without any log if the node shows the latest block as pending', () => {
    const { advance, seal, statuses, sealedBlocks } = openWithLiveLink('latest')
    advance(3_000)
    expect(statuses()).toEqual(['pendingLogs ok', 'sealed no_pending'])
    seal(1, unpushed)
    expect(sealedBlocks().map(({ logs }) => logs.length)).toEqual([1])
  })

  it('is not trusted again because it is accepted again', () => {
    const { advance, seal, emit, statuses } = openWithLiveLink('shown')
    for (const logs of [2, 2]) seal(logs, unpushed)
    emit(liveSignal())
    advance(1_000)
    emit(downSignal)
    advance(1_000)
    emit(liveSignal())
    advance(1_000)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent', 'poll unreachable', 'poll silent'])
  })

  it('is trusted again when it delivers in time', () => {
    const { chain, advance, seal, emit, statuses } = openWithLiveLink('shown')
    for (const logs of [2, 2]) seal(logs, unpushed)
    emit(pendingLogSignal(pendingLog({ block: chain.head - 5 })))
    expect(statuses().at(-1)).toBe('poll silent')
    emit(pendingLogSignal(pendingLog({ block: chain.head + 1 })))
    advance(250)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent', 'pendingLogs ok'])
  })

  it('is probed every minute', () => {
    const { advance, seal, probeTimes, clock } = openWithLiveLink('shown')
    advance(MINUTE_MS)
    expect(probeTimes).toEqual([])
    for (const logs of [2, 2]) seal(logs, unpushed)
    const since = clock.now()
    advance(3 * MINUTE_MS)
    expect(probeTimes).toHaveLength(4)
    expect(probeTimes[0]).toBeLessThanOrEqual(since)
    expect((probeTimes[3] ?? 0) - (probeTimes[0] ?? 0)).toBe(3 * MINUTE_MS)
  })

  it('is not probed while it is lost, nor once it delivers', () => {
    const { chain, advance, seal, emit, probeTimes } = openWithLiveLink('shown')
    for (const logs of [2, 2]) seal(logs, unpushed)
    advance(POLL_MS)
    emit(downSignal)
    advance(3 * MINUTE_MS)
    expect(probeTimes).toHaveLength(1)
    emit(liveSignal(), pendingLogSignal(pendingLog({ block: chain.head + 1 })))
    advance(3 * MINUTE_MS)
    expect(probeTimes).toHaveLength(1)
  })
})

describe('a stream that lags behind', () => {
  it('is detected by its late logs, and replaced by polling', () => {
    const { chain, advance, seal, emit, statuses } = openWithLiveLink('shown')
    for (let block = 0; block < 3; block += 1) {
      emit(pendingLogSignal(pendingLog({ block: chain.head - 450 + block })))
      seal(2, unpushed)
    }
    advance(250)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll behind'])
  })

  it('is not assumed because logs arrive while their block is sealed', () => {
    const { chain, seal, emit, statuses } = openWithLiveLink('shown')
    for (let block = 0; block < 20; block += 1) {
      seal(2, { announced: block % 2 === 0 })
      emit(pendingLogSignal(pendingLog({ block: chain.head - 1 })))
    }
    expect(statuses()).toEqual(['pendingLogs ok'])
  })
})

describe('a quiet market', () => {
  it('is never taken for a dead stream', () => {
    const { advance, seal, statuses, probeTimes } = openWithLiveLink('null')
    for (let block = 0; block < 300; block += 1) {
      seal(0)
      advance(1_800)
    }
    expect(statuses()).toEqual(['pendingLogs ok'])
    expect(probeTimes).toEqual([])
  })

  it('with a pushed log now and then is never taken for a dead stream', () => {
    const { advance, seal, statuses } = openWithLiveLink('null')
    for (let block = 0; block < 50; block += 1) {
      seal(block % 7 === 0 ? 1 : 0)
      advance(5_000)
    }
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('with a single lost log now and then is not silent', () => {
    const { seal, statuses } = openWithLiveLink('null')
    for (let block = 0; block < 50; block += 1) seal(1, { announced: block % 3 === 2 })
    expect(statuses()).toEqual(['pendingLogs ok'])
  })
})

describe('a stream is not distrusted for logs', () => {
  it('in the block that was being built when it began', () => {
    const { chain, emit, head, seal, statuses, advance } = openSource()
    chain.pending = 'null'
    emit(head())
    for (let log = 0; log < 5; log += 1) chain.addLog(HEAD + 1)
    emit(liveSignal())
    seal(0)
    advance(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('in blocks sealed right before it began, with no head received yet', () => {
    const { chain, emit, advance, statuses } = openSource()
    advance(0)
    for (const block of [HEAD + 1, HEAD + 1, HEAD + 2, HEAD + 2]) chain.addLog(block)
    chain.head = HEAD + 2
    emit(liveSignal())
    advance(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('of tokens that were only just subscribed to', () => {
    const addresses = new BehaviorSubject<readonly Hex[]>([apple])
    const { chain, emit, head, advance, statuses } = openSource({ addresses })
    emit(liveSignal(), head())
    advance(POLL_MS)
    addresses.next([apple, tesla])
    for (const block of [HEAD + 1, HEAD + 2]) {
      for (let log = 0; log < 2; log += 1) chain.addLog(block, tesla)
      chain.head = block
      emit(head())
    }
    emit(liveSignal([apple, tesla]))
    advance(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('in blocks sealed during an outage', () => {
    const { chain, emit, head, advance, statuses } = openSource({ cursor: { number: HEAD - 50, hash: null } })
    for (let block = HEAD - 40; block <= HEAD; block += 1) chain.addLog(block)
    emit(liveSignal(), head())
    advance(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('that are settled again after a reorganisation', () => {
    const { chain, advance, seal, emit, head, statuses } = openWithLiveLink('null')
    for (let block = 0; block < 5; block += 1) seal(2)
    const first = chain.reorganise(4)
    for (let block = first; block <= chain.head; block += 1) chain.addLog(block)
    emit(head())
    advance(20_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('and is not trusted for logs of other addresses', () => {
    const { chain, seal, emit, statuses } = openWithLiveLink('shown')
    for (let block = 0; block < 3; block += 1) {
      emit(pendingLogSignal(pendingLog({ block: chain.head + 1, address: tesla })))
      seal(2, unpushed)
    }
    expect(statuses()).toEqual(['pendingLogs ok', 'poll silent'])
  })
})

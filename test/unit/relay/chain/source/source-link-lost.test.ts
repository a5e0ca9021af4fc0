import { describe, expect, it } from 'vitest'
import { apple, keyOf } from '../node-json.ts'
import { downSignal, HEAD, liveSignal, MINUTE_MS, openSource, POLL_MS } from './source-fixture.ts'

/** A source whose link pushes since the first head. */
const openWithLiveLink = async () => {
  const opened = openSource()
  await opened.emit(liveSignal(), opened.head())
  await opened.advance(POLL_MS)
  return opened
}

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
})

describe('heads', () => {
  it('are reported as stale once after half a minute without a new one', async () => {
    const { advance, seal, statuses } = await openWithLiveLink()
    await advance(29_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
    await advance(MINUTE_MS)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs stale_head'])
    await seal(1)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs stale_head', 'pendingLogs ok'])
  })

  it('are emitted once each as they rise', async () => {
    const { chain, emit, head, seal, ofType } = await openWithLiveLink()
    for (const logs of [0, 0]) await seal(logs)
    await emit(head(HEAD + 1), head(chain.head))
    expect(ofType('head').flatMap(({ sealed }) => sealed ?? [])).toEqual([HEAD, HEAD + 1, HEAD + 2])
  })
})

describe('a node that refuses pendingLogs', () => {
  it('is probed every minute, and is the source once it accepts', async () => {
    const { advance, emit, head, probeTimes, statuses, seal } = openSource()
    const refused = liveSignal([apple], 'logs')
    await emit(refused, head())
    await advance(2 * MINUTE_MS + POLL_MS)
    expect(probeTimes).toHaveLength(3)
    expect(statuses()).toEqual(['poll refused', 'poll stale_head'])
    await emit(liveSignal(), refused)
    await seal(1)
    expect(statuses().at(-1)).toBe('pendingLogs ok')
  })
})

describe('finality', () => {
  it('reveals a reorganisation that no head revealed, and is emitted only when its block is settled', async () => {
    const { chain, advance, seal, ofType, received } = openSource({ finalityPollMs: 1_000 })
    await advance(0)
    for (let block = 0; block < 5; block += 1) await seal(0)
    chain.safe = HEAD + 2
    await advance(1_000)
    expect(ofType('finality').map(({ stage, block }) => [stage, block.number])).toEqual([['safe', HEAD + 2]])
    chain.reorganise(2)
    chain.safe = HEAD + 4
    await advance(1_000)
    const settledAt = received.findIndex(
      (event) => event.type === 'sealed' && event.blocks.some(({ hash }) => hash === chain.hashOf(HEAD + 4)),
    )
    expect(settledAt).toBeGreaterThan(0)
    expect(received.findLastIndex(({ type }) => type === 'finality')).toBe(settledAt + 1)
  })
})

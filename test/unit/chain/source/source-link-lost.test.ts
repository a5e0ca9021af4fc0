import { describe, expect, it } from 'vitest'
import type { LinkSignal } from '../../../../src/chain/link/socket.ts'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { apple, keyOf, pendingLog, word } from '../node-json.ts'
import {
  downSignal,
  HEAD,
  liveSignal,
  MINUTE_MS,
  openSource,
  POLL_MS,
  pendingLogSignal,
  SILENCE_MS,
} from './source-fixture.ts'

const unreachable = new UpstreamError('unreachable', 'ECONNREFUSED')

/** One whose link pushes since the head was told. */
const openWithLiveLink = () => {
  const opened = openSource()
  opened.emit(liveSignal(), opened.head())
  opened.advance(POLL_MS)
  return opened
}
const blocksAfterHead = (sealed: readonly { readonly number: number }[]) => sealed.map(({ number }) => number - HEAD)

describe('a link that is lost', () => {
  it('gives way to polling at once, from the newest head on', () => {
    const { chain, advance, emit, seal, pendingLogs, statuses } = openWithLiveLink()
    seal(0)
    emit(downSignal)
    const log = chain.addLog(HEAD + 2)
    advance(POLL_MS)
    expect(chain.requestedRanges().at(-1)).toEqual([HEAD + 1, 'pending'])
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable'])
  })

  it('again and again never interrupts the polling that stands in', () => {
    const { chain, advance, emit, pendingLogs } = openSource()
    advance(0)
    chain.delayMs = 60
    const log = chain.addLog(HEAD + 1)
    // Were polling begun anew each time, no question would ever be answered.
    for (let times = 0; times < 20; times += 1) {
      advance(50)
      emit(downSignal)
    }
    expect(pendingLogs()).toContain(`${keyOf(log)} poll`)
  })

  it('and cannot be opened leaves polling to be the source', () => {
    const { advance, emit, statuses } = openSource()
    advance(0)
    emit(downSignal)
    advance(POLL_MS * 2)
    expect(statuses()).toEqual(['poll unreachable'])
  })

  it('with the rest of the upstream is down when the silence is too long', () => {
    const { chain, advance, emit, statuses } = openWithLiveLink()
    chain.failure = unreachable
    emit(downSignal)
    advance(SILENCE_MS)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable'])
    advance(500)
    expect(statuses()).toEqual(['pendingLogs ok', 'poll unreachable', 'down unreachable'])
  })

  it('comes back as the source, and what was sealed meanwhile is told', () => {
    const { chain, advance, emit, head, statuses, sealedBlocks, seal } = openWithLiveLink()
    emit(downSignal)
    chain.failure = unreachable
    advance(10_000)
    const logs = [chain.addLog(HEAD + 1), chain.addLog(HEAD + 3)]
    chain.head = HEAD + 4
    chain.failure = null
    emit(liveSignal(), head())
    advance(2_000)
    seal(1)
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

describe('a node that cannot be asked while the link pushes', () => {
  it('keeps nobody from hearing, is said to be unreachable, and settles all when it is back', () => {
    const { chain, advance, seal, statuses, sealedBlocks, pendingLogs } = openWithLiveLink()
    chain.failure = unreachable
    for (let block = 0; block < 40; block += 1) seal(1)
    expect(pendingLogs()).toHaveLength(40)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs unreachable'])
    expect(sealedBlocks()).toEqual([])
    chain.failure = null
    advance(5_000)
    expect(blocksAfterHead(sealedBlocks())).toEqual(Array.from({ length: 40 }, (_, index) => index + 1))
    expect(sealedBlocks().every(({ logs }) => logs.length === 1)).toBe(true)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs unreachable', 'pendingLogs ok'])
  })

  it('from the beginning on lets what is pushed begin all the same', () => {
    const { chain, emit, head, statuses, pendingLogs } = openSource()
    chain.failure = unreachable
    emit(liveSignal(), head(), pendingLogSignal(pendingLog({ block: HEAD + 1 })))
    expect(statuses()).toEqual(['pendingLogs ok'])
    expect(pendingLogs()).toEqual([`${keyOf({ block: HEAD + 1 })} pendingLogs`])
  })
})

describe('heads', () => {
  it('that are pushed no more are asked for within the silence, and then with every poll', () => {
    const { chain, advance, seal, sealedBlocks, statuses } = openWithLiveLink()
    seal(1)
    chain.head += 1
    advance(SILENCE_MS + POLL_MS)
    expect(blocksAfterHead(sealedBlocks())).toEqual([1, 2])
    for (let block = 0; block < 5; block += 1) {
      chain.head += 1
      advance(SILENCE_MS + POLL_MS)
    }
    chain.head += 1
    advance(POLL_MS)
    expect(blocksAfterHead(sealedBlocks())).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(statuses()).toEqual(['pendingLogs ok'])
  })

  it('that were never pushed are asked for with every poll', () => {
    const { chain, advance, emit, sealedBlocks } = openSource()
    emit(liveSignal())
    advance(POLL_MS)
    for (let block = 0; block < 10; block += 1) {
      chain.head += 1
      advance(POLL_MS)
    }
    advance(POLL_MS)
    expect(blocksAfterHead(sealedBlocks())).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })

  it('that are pushed by a node that is behind are asked for within the silence', () => {
    const { chain, advance, emit, head, sealedBlocks } = openWithLiveLink()
    for (let block = 0; block < 40; block += 1) {
      chain.head += 1
      emit(head(chain.head - 20))
      advance(POLL_MS)
    }
    // By then its own heads tell of no more than the first 20.
    expect(blocksAfterHead(sealedBlocks()).at(-1)).toBeGreaterThanOrEqual(40 - SILENCE_MS / POLL_MS)
  })

  it('that rest for half a minute are said to be stale, once, and nothing else changes', () => {
    const { advance, seal, statuses } = openWithLiveLink()
    advance(29_000)
    expect(statuses()).toEqual(['pendingLogs ok'])
    advance(MINUTE_MS)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs stale_head'])
    seal(1)
    expect(statuses()).toEqual(['pendingLogs ok', 'pendingLogs stale_head', 'pendingLogs ok'])
  })

  it('are told as they rise, each once', () => {
    const { chain, emit, head, seal, ofType } = openWithLiveLink()
    seal(0)
    seal(0)
    emit(head(HEAD + 1), head(chain.head))
    expect(ofType('head').flatMap(({ sealed }) => sealed ?? [])).toEqual([HEAD, HEAD + 1, HEAD + 2])
  })
})

describe('a node that refuses every subscription', () => {
  const refusing: LinkSignal = { type: 'down', reason: 'logs refused: method not found', isRefused: true }

  it('is polled and says so, until it cannot even be reached, or can be listened to again', () => {
    const { advance, emit, head, statuses } = openSource()
    emit(refusing)
    advance(POLL_MS)
    expect(statuses()).toEqual(['poll refused'])
    emit(refusing)
    advance(POLL_MS)
    emit(downSignal)
    advance(POLL_MS)
    expect(statuses()).toEqual(['poll refused', 'poll unreachable'])
    emit(liveSignal(), head())
    advance(POLL_MS)
    emit(refusing)
    advance(POLL_MS)
    expect(statuses().slice(2)).toEqual(['pendingLogs ok', 'poll refused'])
  })
})

describe('a node that refuses pendingLogs', () => {
  const refused = liveSignal([apple], 'logs')

  it('is polled and says so; its blocks are settled as their heads are pushed', () => {
    const { chain, advance, emit, head, seal, pendingLogs, sealedBlocks, statuses } = openSource()
    emit(refused, head())
    const log = chain.addLog(HEAD + 1)
    advance(POLL_MS)
    expect(pendingLogs()).toEqual([`${keyOf(log)} poll`])
    expect(statuses()).toEqual(['poll refused'])
    seal(0)
    expect(sealedBlocks().map(({ logs }) => logs.length)).toEqual([1])
  })

  it('and pre-confirms nothing is heard by what is sealed, without being asked all the time', () => {
    const { chain, advance, emit, head, seal, statuses, sealedBlocks } = openSource()
    chain.pending = 'latest'
    emit(refused, head())
    advance(POLL_MS)
    expect(statuses()).toEqual(['sealed no_pending'])
    const before = chain.requests.length
    for (let block = 0; block < 50; block += 1) seal(0)
    expect(sealedBlocks()).toHaveLength(50)
    const others = chain.requests.slice(before).filter(({ method }) => method !== 'eth_getLogs')
    expect(others.length).toBeLessThan(5)
  })

  it('is asked every minute whether it does by now, and is the source as soon as it does', () => {
    const { advance, emit, head, probeTimes, statuses, seal } = openSource()
    emit(refused, head())
    advance(2 * MINUTE_MS + POLL_MS)
    expect(probeTimes).toHaveLength(3)
    expect(statuses()).toEqual(['poll refused', 'poll stale_head'])
    emit(liveSignal(), refused)
    seal(1)
    expect(statuses().at(-1)).toBe('pendingLogs ok')
  })

  it('finds pre-confirmations again within a minute where there were none', () => {
    const { chain, advance, emit, head, seal, statuses, pendingLogs } = openSource()
    chain.pending = 'latest'
    emit(refused, head())
    advance(POLL_MS)
    chain.pending = 'shown'
    for (let block = 0; block < 300; block += 1) seal(0)
    expect(statuses()).toEqual(['sealed no_pending', 'poll refused'])
    const log = chain.addLog(chain.head + 1)
    advance(POLL_MS)
    expect(pendingLogs().at(-1)).toBe(`${keyOf(log)} poll`)
  })
})

describe('finality', () => {
  it('is told, and shows a reorganisation that no head showed', () => {
    const { chain, advance, seal, ofType, sealedBlocks } = openSource({ finalityPollMs: 1_000 })
    advance(0)
    for (let block = 0; block < 5; block += 1) seal(0)
    chain.safe = HEAD + 2
    advance(1_000)
    expect(ofType('finality').map(({ stage, block }) => [stage, block.number])).toEqual([['safe', HEAD + 2]])
    chain.reorganise(2)
    chain.safe = HEAD + 4
    advance(1_000)
    expect(sealedBlocks().at(-1)?.hash).toBe(chain.hashOf(HEAD + 5))
  })

  it('is told only when that very block is settled', () => {
    const { chain, advance, seal, received } = openSource({ finalityPollMs: 1_000 })
    advance(0)
    for (let block = 0; block < 5; block += 1) seal(1)
    chain.reorganise(2)
    chain.safe = HEAD + 4
    advance(1_000)
    const settledAt = received.findIndex(
      (one) => one.type === 'sealed' && one.blocks.some(({ hash }) => hash === chain.hashOf(HEAD + 4)),
    )
    expect(settledAt).toBeGreaterThan(0)
    expect(received.findIndex(({ type }) => type === 'finality')).toBe(settledAt + 1)
  })

  it('after a restart is told only once it is known that what was settled still stands', () => {
    const { chain, advance, received, emit, head } = openSource({
      finalityPollMs: 1_000,
      cursor: { number: HEAD - 2, hash: word(77) },
    })
    chain.safe = HEAD - 3
    advance(500)
    emit(head(HEAD))
    advance(2_000)
    const types = received.map(({ type }) => type)
    expect(types).toContain('finality')
    expect(types.indexOf('sealed')).toBeLessThan(types.indexOf('finality'))
  })
})

import { describe, expect, it } from 'vitest'
import { formatKey } from '../../../../../src/protocol/fields.ts'
import type { Log } from '../../../../../src/relay/chain/logs/log-parser.ts'
import { headEvent, openLogNotifier, pendingLogEvent, readNodeLog, sealedEvent } from './log-notifier-fixture.ts'

const at = (block: number, raw: bigint, index = 0): Log => readNodeLog({ block, raw, index })

describe('a reorganisation', () => {
  it('removes of the pre-confirmed logs only those that the new block lacks, as they were sent', () => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(10))
    const subscriber = subscribe()
    const [kept, gone, late] = [at(11, 1n), at(11, 2n, 1), at(11, 3n, 2)]
    receive(pendingLogEvent(kept), pendingLogEvent(gone), sealedEvent({ number: 11, logs: [kept, gone, late] }))
    receive({ type: 'reorg', from: 11 }, sealedEvent({ number: 11, fork: 'b', logs: [kept] }))
    expect(subscriber.summaries.slice(2)).toEqual(['+11.2=3 a', '-11.1=2 pending', '-11.2=3 a'])
    receive(sealedEvent({ number: 11, fork: 'a', logs: [kept, gone] }))
    expect(subscriber.summaries.slice(5)).toEqual(['+11.1=2 a'])
  })

  it('removes all sealed logs under the old hash and sends all under the new one', () => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(10))
    const subscriber = subscribe('logs')
    const logs = [at(11, 1n), at(11, 2n, 1)]
    receive(sealedEvent({ number: 11, logs }), sealedEvent({ number: 12, logs: [at(12, 9n)] }))
    receive({ type: 'reorg', from: 11 }, sealedEvent({ number: 11, fork: 'b', logs }))
    expect(subscriber.summaries.slice(3)).toEqual(['-11.0=1 a', '-11.1=2 a', '-12.0=9 a', '+11.0=1 b', '+11.1=2 b'])
    receive(sealedEvent({ number: 12, fork: 'b' }), sealedEvent({ number: 13, fork: 'b', logs: [at(13, 9n)] }))
    expect(subscriber.summaries.slice(8)).toEqual(['+13.0=9 b'])
  })

  it('leaves a block settled since then, also if many later ones are announced', () => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(9))
    const subscriber = subscribe('logs')
    for (const number of [10, 11]) receive(sealedEvent({ number, logs: [at(number, 1n)] }))
    receive({ type: 'reorg', from: 10 }, sealedEvent({ number: 11, fork: 'b', logs: [at(11, 1n)] }))
    for (let nth = 0; nth < 100; nth += 1) receive({ type: 'reorg', from: 15 })
    receive(sealedEvent({ number: 10, fork: 'b', logs: [at(10, 1n)] }))
    expect(subscriber.summaries).toEqual(['+10.0=1 a', '+11.0=1 a', '-11.0=1 a', '+11.0=1 b', '-10.0=1 a', '+10.0=1 b'])
  })

  it('that is suspected and does not happen removes no block that was settled before', () => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(9))
    const subscriber = subscribe('logs')
    for (const number of [10, 12]) receive(sealedEvent({ number, logs: [at(number, 1n)] }))
    receive({ type: 'reorg', from: 10 }, sealedEvent({ number: 12, fork: 'b', logs: [at(12, 1n)] }))
    receive({ type: 'reorg', from: 11, isSuspected: true }, sealedEvent({ number: 10, fork: 'b', logs: [at(10, 1n)] }))
    expect(subscriber.summaries).toEqual(['+10.0=1 a', '+12.0=1 a', '-12.0=1 a', '+12.0=1 b', '-10.0=1 a', '+10.0=1 b'])
  })

  it('that returns to the old chain sends it once more', () => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(10))
    const subscriber = subscribe('logs')
    for (const fork of ['a', 'b', 'a'] as const) {
      receive({ type: 'reorg', from: 11 })
      for (const number of [11, 12]) receive(sealedEvent({ number, fork, logs: [at(number, 1n)] }))
    }
    expect(subscriber.summaries).toEqual([
      ...['+11.0=1 a', '+12.0=1 a', '-11.0=1 a', '-12.0=1 a', '+11.0=1 b', '+12.0=1 b'],
      ...['-11.0=1 b', '-12.0=1 b', '+11.0=1 a', '+12.0=1 a'],
    ])
  })

  it('removes nothing for a subscription that opened after the block was sealed', () => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(11), sealedEvent({ number: 11, logs: [at(11, 1n)] }))
    const [pending, logs] = [subscribe(), subscribe('logs')]
    receive({ type: 'reorg', from: 11 }, sealedEvent({ number: 11, fork: 'b' }))
    expect([...pending.summaries, ...logs.summaries]).toEqual([])
  })

  it.each(['held logs', 'was empty'])('of a block that %s is sent to a subscription that opened at it', (before) => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(10), headEvent(11), sealedEvent({ number: 11, logs: before === 'held logs' ? [at(11, 1n)] : [] }))
    const [pending, logs] = [subscribe(), subscribe('logs')]
    receive({ type: 'reorg', from: 11 }, sealedEvent({ number: 11, fork: 'b', logs: [at(11, 2n, 1)] }))
    expect(logs.summaries).toEqual(['+11.1=2 b'])
    expect(pending.summaries).toEqual(['+11.1=2 b'])
  })
})

describe('a chain in reorg', () => {
  it('is sent as it is settled to a subscription that opened meanwhile', () => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(12), { type: 'reorg', from: 11 })
    const subscriber = subscribe('logs')
    for (const number of [11, 12]) receive(sealedEvent({ number, fork: 'b', logs: [at(number, 1n)] }))
    expect(subscriber.summaries).toEqual(['+11.0=1 b', '+12.0=1 b'])
  })
})

describe('a log from before a subscription', () => {
  it('is not removed for it either', () => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(15))
    const subscriber = subscribe('logs')
    receive(sealedEvent({ number: 15, logs: [at(15, 1n)] }), { type: 'reorg', from: 15 })
    receive(sealedEvent({ number: 15, fork: 'b', logs: [at(15, 2n)] }))
    expect(subscriber.summaries).toEqual(['+15.0=2 b'])
  })
})

describe('blocks of a backfill', () => {
  it('remove nothing for a doubt above them', () => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(10))
    const subscriber = subscribe('logs')
    receive(sealedEvent({ number: 11, logs: [at(11, 1n)] }), { type: 'reorg', from: 11 })
    receive(sealedEvent({ number: 200, fork: 'b', logs: [at(200, 2n)] }), { type: 'reorg', from: 201 })
    receive(sealedEvent({ number: 11, fork: 'b', logs: [at(11, 1n)], newest: 200 }))
    expect(subscriber.summaries).toEqual(['+11.0=1 a', '+200.0=2 b', '-11.0=1 a', '+11.0=1 b'])
  })

  it('remove nothing that was settled since the doubt', () => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(10))
    const subscriber = subscribe('logs')
    const blocks = [11, 12, 13, 14].map((number) => ({ number, logs: [at(number, 1n)] }))
    receive(...blocks.map(sealedEvent), { type: 'reorg', from: 11 })
    for (const number of [13, 14, 11, 12]) receive(sealedEvent({ number, fork: 'b', logs: [at(number, 1n)], newest: 14 }))
    expect(subscriber.summaries.slice(4).toSorted()).toEqual(
      [11, 12, 13, 14].flatMap((number) => [`-${number}.0=1 a`, `+${number}.0=1 b`]).toSorted(),
    )
  })
})

describe('the bound of the log notifier', () => {
  const LATELY = 1_024

  it.each([
    ['remembers', LATELY, ['-11.0=1 a']],
    ['forgets', LATELY + 1, []],
  ])('%s a block that was settled %i blocks ago', (_, depth, removals) => {
    const { receive, subscribe } = openLogNotifier()
    const subscriber = subscribe('logs')
    receive(headEvent(10), sealedEvent({ number: 11, logs: [at(11, 1n)] }), sealedEvent({ number: 11 + depth }))
    receive(sealedEvent({ number: 11, fork: 'b', newest: 11 + depth }))
    expect(subscriber.summariesFrom(1)).toEqual(removals)
  })

  it('keeps everything that is not settled yet', () => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(10))
    const subscriber = subscribe()
    receive(pendingLogEvent(at(5_000, 1n)), sealedEvent({ number: 4_999 }), sealedEvent({ number: 5_000 }))
    expect(subscriber.summaries).toEqual(['+5000.0=1 pending', '-5000.0=1 pending'])
  })

  it.each([
    ['few long logs', 20, `0x${'11'.repeat(2 ** 20)}`],
    ['many short logs', 50_001, `0x${'11'.repeat(32)}`],
  ] as const)('limits %s, and logs beyond it are sent when they are sealed', (_, count, data) => {
    const { receive, subscribe } = openLogNotifier()
    receive(headEvent(10))
    const subscriber = subscribe()
    const log = { ...at(11, 1n), data }
    const logs = Array.from({ length: count }, (_, logIndex) => ({
      ...{ ...log, logIndex },
      key: formatKey(11, log.transactionHash, logIndex),
    }))
    receive(...logs.map(pendingLogEvent))
    const sentCount = subscriber.count
    expect(sentCount).toBeGreaterThan(count / 2)
    expect(sentCount).toBeLessThan(count)
    const [last] = logs.slice(-1)
    receive(sealedEvent({ number: 11, logs: last ? [last] : [], addresses: [] }), pendingLogEvent(at(12, 2n)))
    expect(subscriber.summariesFrom(sentCount).map((text) => text.replace(/=.* /, ' '))).toEqual([
      `+11.${count - 1} a`,
      '+12.0 pending',
    ])
  })
})

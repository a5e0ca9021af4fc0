import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../../../../src/lib/turns.ts'
import { parseLogs } from '../../../../../src/relay/chain/logs/log-parser.ts'
import { apple, pendingLog, sealedLog, tesla, txHash, ZERO_WORD } from '../../chain/node-json.ts'
import { hashOf, headEvent, openLogNotifier, pendingLogEvent, readNodeLog, sealedEvent } from './log-notifier-fixture.ts'

const one = readNodeLog({ block: 11, index: 0, raw: 1n })
const two = readNodeLog({ block: 11, index: 1, raw: 2n })

/** A feed that received the head 10. */
function openStarted() {
  const world = openLogNotifier()
  world.receive(headEvent(10))
  return world
}

describe('a pre-confirmed log', () => {
  it('is sent field by field as the node sends it, with a zero block hash', () => {
    const { receive, subscribe } = openStarted()
    const subscriber = subscribe()
    const sent = pendingLog({ block: 11 })
    for (const [index, blockHash] of [ZERO_WORD, null, undefined].entries())
      receive(pendingLogEvent(readNodeLog({ block: 11, index }, { blockHash })))
    expect(subscriber.results[0]).toEqual(sent)
    expect(subscriber.results.map((result) => (result as typeof sent).blockHash)).toEqual([ZERO_WORD, ZERO_WORD, ZERO_WORD])
  })

  it('keeps further fields of the node and adds no missing time', () => {
    const { receive, subscribe } = openStarted()
    const subscriber = subscribe()
    receive(pendingLogEvent(readNodeLog({ block: 11 }, { blockTimestampMs: '0x18', blockTimestamp: undefined })))
    const { blockTimestamp: _, ...rest } = pendingLog({ block: 11 })
    expect(subscriber.results).toEqual([{ ...rest, blockTimestampMs: '0x18' }])
  })

  it('is sent once, however often and in whichever shape the node repeats it', () => {
    const { receive, subscribe } = openStarted()
    const subscriber = subscribe()
    const all = parseLogs([pendingLog({ block: 11, raw: 1n }), pendingLog({ block: 11, index: 1, raw: 2n })]).logs
    receive(pendingLogEvent(one), pendingLogEvent(one), ...all.map(pendingLogEvent), pendingLogEvent(two))
    expect(subscriber.summaries).toEqual(['+11.0=1 pending', '+11.1=2 pending'])
  })

  it('is not sent for an unlisted contract, a settled block, or a block far above the chain', () => {
    const { receive, subscribe } = openStarted()
    const subscriber = subscribe()
    receive(pendingLogEvent(readNodeLog({ block: 11, address: `0x${'99'.repeat(20)}` })))
    receive(sealedEvent({ number: 11 }), pendingLogEvent(one), pendingLogEvent(readNodeLog({ block: 11 + 100_001 })))
    expect(subscriber.summaries).toEqual([])
    receive(pendingLogEvent(readNodeLog({ block: 11 + 100_000, raw: 5n })))
    expect(subscriber.summaries).toEqual(['+100011.0=5 pending'])
  })

  it('is not sent to subscriptions of sealed logs until it is sealed', () => {
    const { receive, subscribe } = openStarted()
    const subscriber = subscribe('logs')
    receive(pendingLogEvent(one))
    expect(subscriber.summaries).toEqual([])
    receive(sealedEvent({ number: 11, logs: [one] }))
    expect(subscriber.results).toEqual([{ ...sealedLog({ block: 11 }), blockHash: hashOf(11) }])
  })
})

describe('a sealed block', () => {
  it('repeats no log, and removes those that it lacks, as they were sent', () => {
    const { receive, subscribe } = openStarted()
    const subscriber = subscribe()
    receive(pendingLogEvent(one), pendingLogEvent(two), sealedEvent({ number: 11, logs: [one] }))
    expect(subscriber.summaries).toEqual(['+11.0=1 pending', '+11.1=2 pending', '-11.1=2 pending'])
    expect(subscriber.results[2]).toEqual({ ...(subscriber.results[1] as object), removed: true })
    receive(sealedEvent({ number: 11, logs: [one] }))
    expect(subscriber.summaries).toHaveLength(3)
  })

  it('removes a log only for subscriptions that received it', () => {
    const { receive, subscribe } = openStarted()
    const early = subscribe()
    receive(pendingLogEvent(one))
    const late = subscribe()
    const other = subscribe('pendingLogs', { address: tesla })
    receive(pendingLogEvent(two), sealedEvent({ number: 11 }))
    expect(early.summaries).toEqual(['+11.0=1 pending', '+11.1=2 pending', '-11.0=1 pending', '-11.1=2 pending'])
    expect(late.summaries).toEqual(['+11.1=2 pending', '-11.1=2 pending'])
    expect(other.summaries).toEqual([])
  })

  it('replaces a log with other content under the same key', () => {
    const { receive, subscribe } = openStarted()
    const subscriber = subscribe()
    receive(pendingLogEvent(one), sealedEvent({ number: 11, logs: [readNodeLog({ block: 11, raw: 7n })] }))
    expect(subscriber.summaries).toEqual(['+11.0=1 pending', '-11.0=1 pending', '+11.0=7 a'])
  })

  it('removes a log that moved to another index and sends it there', () => {
    const { receive, subscribe } = openStarted()
    const subscriber = subscribe()
    const moved = readNodeLog({ block: 11, raw: 2n }, { transactionHash: txHash(11, 1) })
    receive(pendingLogEvent(one), pendingLogEvent(two), sealedEvent({ number: 11, logs: [moved] }))
    expect(subscriber.summaries.slice(2)).toEqual(['-11.0=1 pending', '-11.1=2 pending', '+11.0=2 a'])
  })

  it('sends once what was never pre-confirmed, with its real hash, in the order of the block', () => {
    const { receive, subscribe } = openStarted()
    const [subscriber, sealedEar] = [subscribe(), subscribe('logs')]
    const three = readNodeLog({ block: 11, index: 2, raw: 3n })
    const settled = sealedEvent({ number: 11, logs: [one, two, three] })
    receive(pendingLogEvent(two), settled, settled, pendingLogEvent(three))
    expect(subscriber.summaries).toEqual(['+11.1=2 pending', '+11.0=1 a', '+11.2=3 a'])
    expect(sealedEar.summaries).toEqual(['+11.0=1 a', '+11.1=2 a', '+11.2=3 a'])
  })

  it('changes nothing for a token that was not part of the query', () => {
    const { receive, subscribe } = openStarted()
    const subscriber = subscribe()
    receive(pendingLogEvent(one), sealedEvent({ number: 11, addresses: [tesla] }))
    expect(subscriber.summaries).toEqual(['+11.0=1 pending'])
    receive(sealedEvent({ number: 11, addresses: [apple] }))
    expect(subscriber.summaries).toEqual(['+11.0=1 pending', '-11.0=1 pending'])
  })

  it('removes nothing because a token is no longer listed', () => {
    const { receive, subscribe, listedAddresses } = openStarted()
    const subscriber = subscribe()
    receive(pendingLogEvent(one), pendingLogEvent(two))
    listedAddresses.delete(apple)
    receive(sealedEvent({ number: 11, logs: [one] }))
    expect(subscriber.summaries).toEqual(['+11.0=1 pending', '+11.1=2 pending', '-11.1=2 pending'])
    receive(pendingLogEvent(readNodeLog({ block: 12 })), sealedEvent({ number: 12, logs: [readNodeLog({ block: 12 })] }))
    expect(subscriber.summaries).toHaveLength(3)
  })

  it.each(['pendingLogs', 'logs'] as const)('from before a subscription to %s is not sent to it', (kind) => {
    const world = openLogNotifier()
    const first = world.subscribe(kind)
    world.receive(headEvent(10), sealedEvent({ number: 10, logs: [readNodeLog({ block: 10 })] }), headEvent(11))
    const second = world.subscribe(kind)
    world.receive(sealedEvent({ number: 11, logs: [one] }), headEvent(12))
    world.receive(sealedEvent({ number: 12, logs: [readNodeLog({ block: 12 })] }))
    expect(first.summaries).toEqual(['+11.0=1 a', '+12.0=1 a'])
    expect(second.summaries).toEqual(['+12.0=1 a'])
  })

  it('is sent in order with others that were sealed during an outage, each log once', () => {
    const { receive, subscribe } = openStarted()
    const [pending, logs] = [subscribe(), subscribe('logs')]
    receive(pendingLogEvent(one), headEvent(14))
    for (const number of [11, 12, 13, 14]) {
      const held = number === 11 ? [one, two] : [readNodeLog({ block: number, raw: BigInt(number) })]
      receive(sealedEvent({ number, logs: held }))
    }
    expect(pending.summaries).toEqual(['+11.0=1 pending', '+11.1=2 a', '+12.0=12 a', '+13.0=13 a', '+14.0=14 a'])
    expect(logs.summaries).toEqual(['+11.0=1 a', '+11.1=2 a', '+12.0=12 a', '+13.0=13 a', '+14.0=14 a'])
  })
})

describe('a block of many logs', () => {
  it('is sent in turns of the event loop, and what follows waits for it', async () => {
    const { receive, subscribe } = openStarted()
    const subscriber = subscribe('pendingLogs', {}, () => {
      for (const end = performance.now() + 0.1; performance.now() < end; );
    })
    const logs = Array.from({ length: 500 }, (_, index) => readNodeLog({ block: 11, index }))
    receive({ type: 'logs', logs, via: 'pendingLogs', receivedAt: 0 }, sealedEvent({ number: 11 }), pendingLogEvent(one))
    const counts = [subscriber.count]
    while (subscriber.count < 1_000) {
      await nextTurn()
      counts.push(subscriber.count)
    }
    await nextTurn()
    expect(counts).toEqual(Array.from({ length: 10 }, (_, turn) => 100 * (turn + 1)))
    const signs = subscriber.summaries.map((summary) => summary.slice(0, 1))
    expect(signs).toEqual([...logs.map(() => '+'), ...logs.map(() => '-')])
  })
})

import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../../../../src/lib/turns.ts'
import { formatKey } from '../../../../../src/protocol/fields.ts'
import { type Log, parseLogs } from '../../../../../src/relay/chain/logs/log-parser.ts'
import type { ChainEvent } from '../../../../../src/relay/chain/source/source.ts'
import type { SubscriptionName } from '../../../../../src/relay/gateway/subscriptions/subscription-groups.ts'
import { apple, pendingLog, sealedLog, tesla, txHash, ZERO_WORD } from '../../chain/node-json.ts'
import { type Fork, hashOf, headEvent, openLogNotifier, pendingLogEvent, readNodeLog, sealedEvent } from './log-notifier-fixture.ts'

const at = (block: number, raw = 1n, index = 0): Log => readNodeLog({ block, raw, index })
const [one, two, three] = [at(11, 1n), at(11, 2n, 1), at(11, 3n, 2)]
const seal = (number: number, logs: readonly Log[] = [], fork: Fork = 'a', newest = number) =>
  sealedEvent({ number, logs, fork, newest })
const reorg = (from: number): ChainEvent => ({ type: 'reorg', from })

/** A notifier that received a head. */
function openAfter(head = 10) {
  const world = openLogNotifier()
  world.receive(headEvent(head))
  return world
}

/** What happens, and what a subscription of each kind receives. */
type Scenario = readonly [
  name: string,
  events: readonly ChainEvent[],
  expected: { readonly [Kind in SubscriptionName]?: readonly string[] },
]

function expectScenario([, events, expected]: Scenario): void {
  const { receive, subscribe } = openAfter(9)
  const subscribers = Object.keys(expected).map((kind) => [kind, subscribe(kind as SubscriptionName)] as const)
  receive(...events)
  expect(Object.fromEntries(subscribers.map(([kind, { summaries }]) => [kind, summaries]))).toEqual(expected)
}

describe('a pre-confirmed log', () => {
  it('is sent field by field as the node sends it, with a zero block hash, further fields, and no missing time', () => {
    const { receive, subscribe } = openAfter()
    const subscriber = subscribe()
    for (const [index, blockHash] of [ZERO_WORD, null, undefined].entries())
      receive(pendingLogEvent(readNodeLog({ block: 11, index }, { blockHash })))
    receive(pendingLogEvent(readNodeLog({ block: 11, index: 3 }, { blockTimestampMs: '0x18', blockTimestamp: undefined })))
    const { blockTimestamp: _, ...untimed } = pendingLog({ block: 11, index: 3 })
    const sent = [0, 1, 2].map((index) => pendingLog({ block: 11, index }))
    expect(subscriber.results).toEqual([...sent, { ...untimed, blockTimestampMs: '0x18' }])
    expect(sent[0]?.blockHash).toBe(ZERO_WORD)
  })

  it('is sent to subscriptions of sealed logs once it is sealed, with the hash of its block', () => {
    const { receive, subscribe } = openAfter()
    const subscriber = subscribe('logs')
    receive(pendingLogEvent(one))
    expect(subscriber.summaries).toEqual([])
    receive(seal(11, [one]))
    expect(subscriber.results).toEqual([{ ...sealedLog({ block: 11 }), blockHash: hashOf(11) }])
  })

  it.each<Scenario>([
    [
      'once, however often and in whichever shape the node repeats it',
      [
        ...[one, one].map(pendingLogEvent),
        ...parseLogs([pendingLog({ block: 11, raw: 1n }), pendingLog({ block: 11, index: 1, raw: 2n })]).logs.map(pendingLogEvent),
        pendingLogEvent(two),
      ],
      { pendingLogs: ['+11.0=1 pending', '+11.1=2 pending'], logs: [] },
    ],
    [
      'not for an unlisted contract, a settled block, or a block far above the chain',
      [
        pendingLogEvent(readNodeLog({ block: 11, address: `0x${'99'.repeat(20)}` })),
        ...[seal(11), pendingLogEvent(one), pendingLogEvent(at(11 + 100_001)), pendingLogEvent(at(11 + 100_000, 5n))],
      ],
      { pendingLogs: ['+100011.0=5 pending'] },
    ],
  ])('is sent %s', (...scenario) => expectScenario(scenario))
})

describe('a sealed block', () => {
  it.each<Scenario>([
    [
      'repeats no log, and removes those that it lacks',
      [pendingLogEvent(one), pendingLogEvent(two), seal(11, [one]), seal(11, [one])],
      { pendingLogs: ['+11.0=1 pending', '+11.1=2 pending', '-11.1=2 pending'] },
    ],
    [
      'replaces a log with other content under the same key',
      [pendingLogEvent(one), seal(11, [at(11, 7n)])],
      { pendingLogs: ['+11.0=1 pending', '-11.0=1 pending', '+11.0=7 a'] },
    ],
    [
      'removes a log that moved to another index and sends it there',
      [
        pendingLogEvent(one),
        pendingLogEvent(two),
        seal(11, [readNodeLog({ block: 11, raw: 2n }, { transactionHash: txHash(11, 1) })]),
      ],
      { pendingLogs: ['+11.0=1 pending', '+11.1=2 pending', '-11.0=1 pending', '-11.1=2 pending', '+11.0=2 a'] },
    ],
    [
      'sends once what was never pre-confirmed, with its real hash, in the order of the block',
      [pendingLogEvent(two), seal(11, [one, two, three]), seal(11, [one, two, three]), pendingLogEvent(three)],
      { pendingLogs: ['+11.1=2 pending', '+11.0=1 a', '+11.2=3 a'], logs: ['+11.0=1 a', '+11.1=2 a', '+11.2=3 a'] },
    ],
    [
      'changes nothing for a token that was not part of the query',
      [pendingLogEvent(one), sealedEvent({ number: 11, addresses: [tesla] })],
      { pendingLogs: ['+11.0=1 pending'] },
    ],
    [
      'removes what a later query finds missing',
      [pendingLogEvent(one), sealedEvent({ number: 11, addresses: [tesla] }), sealedEvent({ number: 11, addresses: [apple] })],
      { pendingLogs: ['+11.0=1 pending', '-11.0=1 pending'] },
    ],
    [
      'is sent in order with others that were sealed during an outage, each log once',
      [
        pendingLogEvent(one),
        headEvent(14),
        seal(11, [one, two]),
        ...[12, 13, 14].map((number) => seal(number, [at(number, BigInt(number))])),
      ],
      {
        pendingLogs: ['+11.0=1 pending', '+11.1=2 a', '+12.0=12 a', '+13.0=13 a', '+14.0=14 a'],
        logs: ['+11.0=1 a', '+11.1=2 a', '+12.0=12 a', '+13.0=13 a', '+14.0=14 a'],
      },
    ],
    [
      'removes what is not settled yet, however far above the chain',
      [pendingLogEvent(at(5_000)), seal(4_999), seal(5_000)],
      { pendingLogs: ['+5000.0=1 pending', '-5000.0=1 pending'] },
    ],
  ])('%s', (...scenario) => expectScenario(scenario))

  it('removes a log as it was sent, only for subscriptions that received it', () => {
    const { receive, subscribe } = openAfter()
    const early = subscribe()
    receive(pendingLogEvent(one))
    const [late, other] = [subscribe(), subscribe('pendingLogs', { address: tesla })]
    receive(pendingLogEvent(two), seal(11))
    expect(early.summaries).toEqual(['+11.0=1 pending', '+11.1=2 pending', '-11.0=1 pending', '-11.1=2 pending'])
    expect(early.results[2]).toEqual({ ...(early.results[0] as object), removed: true })
    expect([late.summaries, other.summaries]).toEqual([['+11.1=2 pending', '-11.1=2 pending'], []])
  })

  it('removes nothing because a token is no longer listed', () => {
    const { receive, subscribe, listedAddresses } = openAfter()
    const subscriber = subscribe()
    receive(pendingLogEvent(one), pendingLogEvent(two))
    listedAddresses.delete(apple)
    receive(seal(11, [one]), pendingLogEvent(at(12)), seal(12, [at(12)]))
    expect(subscriber.summaries).toEqual(['+11.0=1 pending', '+11.1=2 pending', '-11.1=2 pending'])
  })

  it.each(['pendingLogs', 'logs'] as const)('from before a subscription to %s is not sent to it', (kind) => {
    const { receive, subscribe } = openLogNotifier()
    const first = subscribe(kind)
    receive(headEvent(10), seal(10, [at(10)]), headEvent(11))
    const second = subscribe(kind)
    receive(seal(11, [one]), headEvent(12), seal(12, [at(12)]))
    expect([first.summaries, second.summaries]).toEqual([['+11.0=1 a', '+12.0=1 a'], ['+12.0=1 a']])
  })

  it('of many logs is sent in turns of the event loop, and what follows waits for it', async () => {
    const { receive, subscribe } = openAfter()
    const subscriber = subscribe('pendingLogs', {}, () => {
      for (const end = performance.now() + 0.1; performance.now() < end; );
    })
    const logs = Array.from({ length: 500 }, (_, index) => readNodeLog({ block: 11, index }))
    receive({ type: 'logs', logs, via: 'pendingLogs', receivedAt: 0 }, seal(11), pendingLogEvent(one))
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

describe('a reorganisation', () => {
  const late = seal(11, [one, two, three])

  it.each<Scenario>([
    [
      'removes of the pre-confirmed logs only those that the new block lacks, as they were sent',
      [pendingLogEvent(one), pendingLogEvent(two), late, reorg(11), seal(11, [one], 'b'), seal(11, [one, two])],
      { pendingLogs: ['+11.0=1 pending', '+11.1=2 pending', '+11.2=3 a', '-11.1=2 pending', '-11.2=3 a', '+11.1=2 a'] },
    ],
    [
      'removes all sealed logs under the old hash and sends all under the new one',
      [
        ...[seal(11, [one, two]), seal(12, [at(12, 9n)]), reorg(11), seal(11, [one, two], 'b')],
        ...[seal(12, [], 'b'), seal(13, [at(13, 9n)], 'b')],
      ],
      {
        logs: [
          ...['+11.0=1 a', '+11.1=2 a', '+12.0=9 a', '-11.0=1 a', '-11.1=2 a', '-12.0=9 a'],
          ...['+11.0=1 b', '+11.1=2 b', '+13.0=9 b'],
        ],
      },
    ],
    [
      'leaves a block settled since then, also if many later ones are announced',
      [
        ...[seal(10, [at(10)]), seal(11, [one]), reorg(10), seal(11, [one], 'b')],
        ...[...Array.from({ length: 100 }, () => reorg(15)), seal(10, [at(10)], 'b')],
      ],
      { logs: ['+10.0=1 a', '+11.0=1 a', '-11.0=1 a', '+11.0=1 b', '-10.0=1 a', '+10.0=1 b'] },
    ],
    [
      'that is suspected and does not happen removes no block that was settled before',
      [
        ...[seal(10, [at(10)]), seal(12, [at(12)]), reorg(10), seal(12, [at(12)], 'b')],
        ...[{ type: 'reorg', from: 11, isSuspected: true } as const, seal(10, [at(10)], 'b')],
      ],
      { logs: ['+10.0=1 a', '+12.0=1 a', '-12.0=1 a', '+12.0=1 b', '-10.0=1 a', '+10.0=1 b'] },
    ],
    [
      'that returns to the old chain sends it once more',
      (['a', 'b', 'a'] as const).flatMap((fork) => [reorg(11), seal(11, [one], fork), seal(12, [at(12)], fork)]),
      {
        logs: [
          ...['+11.0=1 a', '+12.0=1 a', '-11.0=1 a', '-12.0=1 a', '+11.0=1 b', '+12.0=1 b'],
          ...['-11.0=1 b', '-12.0=1 b', '+11.0=1 a', '+12.0=1 a'],
        ],
      },
    ],
    [
      'removes nothing below it when a backfill settles a block again',
      [seal(11, [one]), reorg(11), seal(200, [at(200, 2n)], 'b'), reorg(201), seal(11, [one], 'b', 200)],
      { logs: ['+11.0=1 a', '+200.0=2 b', '-11.0=1 a', '+11.0=1 b'] },
    ],
    [
      'removes nothing that a backfill settled since, in any order',
      [
        ...[11, 12, 13, 14].map((number) => seal(number, [at(number)])),
        ...[reorg(11), ...[13, 14, 11, 12].map((number) => seal(number, [at(number)], 'b', 14))],
      ],
      {
        logs: [
          ...['+11.0=1 a', '+12.0=1 a', '+13.0=1 a', '+14.0=1 a', '-13.0=1 a', '-14.0=1 a', '+13.0=1 b', '+14.0=1 b'],
          ...['-11.0=1 a', '-12.0=1 a', '+11.0=1 b', '+12.0=1 b'],
        ],
      },
    ],
  ])('%s', (...scenario) => expectScenario(scenario))

  it.each<[string, readonly ChainEvent[], readonly ChainEvent[], readonly string[]]>([
    [
      'removes nothing for a subscription that opened after the block was sealed',
      [headEvent(11), seal(11, [one])],
      [reorg(11), seal(11, [], 'b')],
      [],
    ],
    ...[[one], []].map((logs): [string, readonly ChainEvent[], readonly ChainEvent[], readonly string[]] => [
      `of a block with ${logs.length} logs is sent to a subscription that opened at it`,
      [headEvent(10), headEvent(11), seal(11, logs)],
      [reorg(11), seal(11, [two], 'b')],
      ['+11.1=2 b'],
    ]),
    [
      'is sent as it is settled to a subscription that opened meanwhile',
      [headEvent(12), reorg(11)],
      [seal(11, [one], 'b'), seal(12, [at(12)], 'b')],
      ['+11.0=1 b', '+12.0=1 b'],
    ],
    [
      'does not remove a log from before a subscription',
      [headEvent(15)],
      [seal(15, [at(15)]), reorg(15), seal(15, [at(15, 2n)], 'b')],
      ['+15.0=2 b'],
    ],
  ])('%s', (_, before, after, expected) => {
    const { receive, subscribe } = openLogNotifier()
    receive(...before)
    const [pending, logs] = [subscribe(), subscribe('logs')]
    receive(...after)
    expect([pending.summaries, logs.summaries]).toEqual([expected, expected])
  })
})

describe('the bound of the log notifier', () => {
  const LATELY = 1_024

  it.each<Scenario>([
    ['remembers', [seal(11, [one]), seal(11 + LATELY), seal(11, [], 'b', 11 + LATELY)], { logs: ['+11.0=1 a', '-11.0=1 a'] }],
    ['forgets', [seal(11, [one]), seal(12 + LATELY), seal(11, [], 'b', 12 + LATELY)], { logs: ['+11.0=1 a'] }],
  ])('%s a block that was settled long ago', (...scenario) => expectScenario(scenario))

  it.each([
    ['few long logs', 20, `0x${'11'.repeat(2 ** 20)}`],
    ['many short logs', 50_001, `0x${'11'.repeat(32)}`],
  ] as const)('limits %s, and logs beyond it are sent when they are sealed', (_, count, data) => {
    const { receive, subscribe } = openAfter()
    const subscriber = subscribe()
    const logs = Array.from({ length: count }, (_, logIndex) => {
      const log = { ...one, data, logIndex }
      return { ...log, key: formatKey(11, log.transactionHash, logIndex) }
    })
    receive(...logs.map(pendingLogEvent))
    const sentCount = subscriber.count
    expect(sentCount).toBeGreaterThan(count / 2)
    expect(sentCount).toBeLessThan(count)
    receive(sealedEvent({ number: 11, logs: logs.slice(-1), addresses: [] }), pendingLogEvent(at(12, 2n)))
    const rest = subscriber.summariesFrom(sentCount).map((text) => text.replace(/=.* /, ' '))
    expect(rest).toEqual([`+11.${count - 1} a`, '+12.0 pending'])
  })
})

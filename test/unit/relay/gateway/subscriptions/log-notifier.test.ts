import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../../../../src/lib/turns.ts'
import { formatKey } from '../../../../../src/protocol/fields.ts'
import { type Log, parseLogs } from '../../../../../src/relay/chain/logs/log-parser.ts'
import type { ChainEvent } from '../../../../../src/relay/chain/source/source.ts'
import { apple, pendingLog, sealedLog, tesla, txHash, ZERO_WORD } from '../../chain/node-json.ts'
import { type Fork, hashOf, headEvent, openLogNotifier, pendingLogEvent, readNodeLog, sealedEvent } from './log-notifier-fixture.ts'

const at = (block: number, raw = 1n, index = 0): Log => readNodeLog({ block, raw, index })
const [one, two] = [at(11, 1n), at(11, 2n, 1)]
const amountOf = (index: string, amount = `${Number(index) + 1}`) => BigInt(amount)

/**
 * A step in words: `11.0=5` is a pre-confirmed log of block 11 with an amount, by default one more than its index;
 * `11a [0 1=5]` settles that block of the chain a with these logs, `11a/13 []` after block 13; `head 11`; `reorg 11`.
 */
function readStep(step: string): ChainEvent {
  const [, word = '', number = '', more = ''] = /^(\D*)(\d+)(.*)$/.exec(step) ?? []
  const block = Number(number)
  if (word === 'head ') return headEvent(block)
  if (word !== '') return { type: 'reorg', from: block, ...(word === 'suspect ' && { isSuspected: true }) }
  const [, fork = 'a', newest = block, indexes = ''] = /^([ab])(?:\/(\d+))? \[(.*)\]$/.exec(more) ?? []
  if (more.startsWith('.')) {
    const [index = '', amount] = more.slice(1).split('=')
    return pendingLogEvent(at(block, amountOf(index, amount), Number(index)))
  }
  const logs = [...indexes.matchAll(/(\d+)(?:=(\d+))?/g)].map(([, index = '', amount]) =>
    at(block, amountOf(index, amount), Number(index)),
  )
  return sealedEvent({ number: block, logs, fork: fork as Fork, newest: Number(newest) })
}
type Steps = string | readonly (string | ChainEvent)[]
const readSteps = (steps: Steps): readonly ChainEvent[] =>
  [steps].flat().flatMap((step) => (typeof step === 'string' ? step.split(', ').map(readStep) : step))

/** A notifier that received a head. */
function openAfter(head = 10) {
  const world = openLogNotifier()
  world.receive(headEvent(head))
  return world
}

/** What happens, and what subscriptions to pending logs and to sealed ones receive: null if it does not matter. */
type Scenario = [name: string, steps: Steps, pending: string | null, logs?: string]

function expectScenario([, steps, ...expected]: Scenario): void {
  const { receive, subscribe } = openAfter(9)
  const subscribers = [subscribe(), subscribe('logs')]
  receive(...readSteps(steps))
  for (const [index, text] of expected.entries()) if (text !== null) expect(subscribers[index]?.summaries.join(' ')).toBe(text)
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
    receive(readStep('11a [0]'))
    expect(subscriber.results).toEqual([{ ...sealedLog({ block: 11 }), blockHash: hashOf(11) }])
  })

  it.each<Scenario>([
    [
      'once, however often and in whichever shape the node repeats it',
      [
        '11.0, 11.0',
        ...parseLogs([pendingLog({ block: 11 }), pendingLog({ block: 11, index: 1, raw: 2n })]).logs.map(pendingLogEvent),
        '11.1',
      ],
      '+11.0=1? +11.1=2?',
      '',
    ],
    ['not for an unlisted contract', [pendingLogEvent(readNodeLog({ block: 11, address: `0x${'99'.repeat(20)}` }))], ''],
    ['not for a settled block, or one far above the chain', '11a [], 11.0, 100012.0, 100011.0=5', '+100011.0=5?'],
  ])('is sent %s', (...scenario) => expectScenario(scenario))
})

describe('a sealed block', () => {
  const ofTesla = sealedEvent({ number: 11, addresses: [tesla] })
  const moved = sealedEvent({ number: 11, logs: [readNodeLog({ block: 11, raw: 2n }, { transactionHash: txHash(11, 1) })] })

  it.each<Scenario>([
    ['repeats no log, and removes those that it lacks', '11.0, 11.1, 11a [0], 11a [0]', '+11.0=1? +11.1=2? -11.1=2?'],
    ['replaces a log with other content under the same key', '11.0, 11a [0=7]', '+11.0=1? -11.0=1? +11.0=7a'],
    [
      'removes a log that moved to another index and sends it there',
      ['11.0, 11.1', moved],
      '+11.0=1? +11.1=2? -11.0=1? -11.1=2? +11.0=2a',
    ],
    [
      'sends once what was never pre-confirmed, with its real hash, in the order of the block',
      '11.1, 11a [0 1 2], 11a [0 1 2], 11.2',
      '+11.1=2? +11.0=1a +11.2=3a',
      '+11.0=1a +11.1=2a +11.2=3a',
    ],
    ['changes nothing for a token that was not part of the query', ['11.0', ofTesla], '+11.0=1?'],
    ['removes what a later query finds missing', ['11.0', ofTesla, '11a []'], '+11.0=1? -11.0=1?'],
    [
      'is sent in order with others that were sealed during an outage, each log once',
      '11.0, head 14, 11a [0 1], 12a [0=12], 13a [0=13], 14a [0=14]',
      '+11.0=1? +11.1=2a +12.0=12a +13.0=13a +14.0=14a',
      '+11.0=1a +11.1=2a +12.0=12a +13.0=13a +14.0=14a',
    ],
    ['removes what is not settled yet, however far', '5000.0, 4999a [], 5000a []', '+5000.0=1? -5000.0=1?'],
  ])('%s', (...scenario) => expectScenario(scenario))

  it('removes a log as it was sent, only for subscriptions that received it', () => {
    const { receive, subscribe } = openAfter()
    const early = subscribe()
    receive(pendingLogEvent(one))
    const [late, other] = [subscribe(), subscribe('pendingLogs', { address: tesla })]
    receive(pendingLogEvent(two), readStep('11a []'))
    expect(early.summaries.join(' ')).toBe('+11.0=1? +11.1=2? -11.0=1? -11.1=2?')
    expect(early.results[2]).toEqual({ ...(early.results[0] as object), removed: true })
    expect([late.summaries, other.summaries]).toEqual([['+11.1=2?', '-11.1=2?'], []])
  })

  it('removes nothing because a token is no longer listed', () => {
    const { receive, subscribe, listedAddresses } = openAfter()
    const subscriber = subscribe()
    receive(pendingLogEvent(one), pendingLogEvent(two))
    listedAddresses.delete(apple)
    receive(...readSteps('11a [0], 12.0, 12a [0]'))
    expect(subscriber.summaries).toEqual(['+11.0=1?', '+11.1=2?', '-11.1=2?'])
  })

  it.each(['pendingLogs', 'logs'] as const)('from before a subscription to %s is not sent to it', (kind) => {
    const { receive, subscribe } = openLogNotifier()
    const first = subscribe(kind)
    receive(...readSteps('head 10, 10a [0], head 11'))
    const second = subscribe(kind)
    receive(...readSteps('11a [0], head 12, 12a [0]'))
    expect([first.summaries, second.summaries]).toEqual([['+11.0=1a', '+12.0=1a'], ['+12.0=1a']])
  })

  it('that moved in a reorg is sent to a subscription from before the first head', () => {
    const { receive, subscribe } = openLogNotifier()
    const logs = subscribe('logs')
    receive(...readSteps('head 11, 11a [], 12a [0], reorg 11, 11b [0=7], 12b []'))
    expect(logs.summaries).toEqual(['+12.0=1a', '-12.0=1a', '+11.0=7b'])
  })

  it('of many logs is sent in turns of the event loop, and what follows waits for it', async () => {
    const { receive, subscribe } = openAfter()
    const subscriber = subscribe('pendingLogs', {}, () => {
      for (const end = performance.now() + 0.1; performance.now() < end; );
    })
    const logs = Array.from({ length: 500 }, (_, index) => readNodeLog({ block: 11, index }))
    receive({ type: 'logs', logs, via: 'pendingLogs', receivedAt: 0 }, ...readSteps('11a [], 11.0'))
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
  it.each<Scenario>([
    [
      'removes of the pre-confirmed logs only those that the new block lacks, as they were sent',
      '11.0, 11.1, 11a [0 1 2], reorg 11, 11b [0], 11a [0 1]',
      '+11.0=1? +11.1=2? +11.2=3a -11.1=2? -11.2=3a +11.1=2a',
    ],
    [
      'removes all sealed logs under the old hash and sends all under the new one',
      '11a [0 1], 12a [0=9], reorg 11, 11b [0 1], 12b [], 13b [0=9]',
      null,
      '+11.0=1a +11.1=2a +12.0=9a -11.0=1a -11.1=2a -12.0=9a +11.0=1b +11.1=2b +13.0=9b',
    ],
    [
      'leaves a block settled since then, also if many later ones are announced',
      ['10a [0], 11a [0], reorg 10, 11b [0]', ...Array<string>(100).fill('reorg 15'), '10b [0]'],
      null,
      '+10.0=1a +11.0=1a -11.0=1a +11.0=1b -10.0=1a +10.0=1b',
    ],
    [
      'that is suspected and does not happen removes no block that was settled before',
      '10a [0], 12a [0], reorg 10, 12b [0], suspect 11, 10b [0]',
      null,
      '+10.0=1a +12.0=1a -12.0=1a +12.0=1b -10.0=1a +10.0=1b',
    ],
    [
      'removes the old logs before it sends new ones, also if the first replaced block was empty',
      '11a [], 12a [0], reorg 11, 11b [1], 12b []',
      null,
      '+12.0=1a -12.0=1a +11.1=2b',
    ],
    [
      'that returns to the old chain sends it once more',
      ['a', 'b', 'a'].map((fork) => `reorg 11, 11${fork} [0], 12${fork} [0]`),
      null,
      '+11.0=1a +12.0=1a -11.0=1a -12.0=1a +11.0=1b +12.0=1b -11.0=1b -12.0=1b +11.0=1a +12.0=1a',
    ],
    [
      'removes nothing below it when a backfill settles a block again',
      '11a [0], reorg 11, 200b [0=2], reorg 201, 11b/200 [0]',
      null,
      '+11.0=1a +200.0=2b -11.0=1a +11.0=1b',
    ],
    [
      'removes nothing that a backfill settled since, in any order',
      [...[11, 12, 13, 14].map((number) => `${number}a [0]`), 'reorg 11', ...[13, 14, 11, 12].map((number) => `${number}b/14 [0]`)],
      null,
      `+11.0=1a +12.0=1a +13.0=1a +14.0=1a -13.0=1a -14.0=1a +13.0=1b +14.0=1b -11.0=1a -12.0=1a +11.0=1b +12.0=1b`,
    ],
  ])('%s', (...scenario) => expectScenario(scenario))

  it.each<[string, string, string, string[]]>([
    ['removes nothing for a subscription from after the block was sealed', 'head 11, 11a [0]', 'reorg 11, 11b []', []],
    ['of a block is sent to a subscription that opened at it', 'head 10, head 11, 11a [0]', 'reorg 11, 11b [1]', ['+11.1=2b']],
    ['of an empty block is sent to it too', 'head 10, head 11, 11a []', 'reorg 11, 11b [1]', ['+11.1=2b']],
    [
      'is sent as it is settled to a subscription that opened meanwhile',
      'head 12, reorg 11',
      '11b [0], 12b [0]',
      ['+11.0=1b', '+12.0=1b'],
    ],
    [
      'removes nothing that a subscription did not receive, also after two of them',
      'head 20',
      'reorg 19, 12a/20 [0], reorg 10, 12b [0=9]',
      ['+12.0=9b'],
    ],
    ['does not remove a log from before a subscription', 'head 15', '15a [0], reorg 15, 15b [0=2]', ['+15.0=2b']],
  ])('%s', (_, before, after, expected) => {
    const { receive, subscribe } = openLogNotifier()
    receive(...readSteps(before))
    const [pending, logs] = [subscribe(), subscribe('logs')]
    receive(...readSteps(after))
    expect([pending.summaries, logs.summaries]).toEqual([expected, expected])
  })
})

describe('the bound of the log notifier', () => {
  it.each<Scenario>([
    ['remembers', '11a [0], 1035a [], 11b/1035 []', null, '+11.0=1a -11.0=1a'],
    ['forgets', '11a [0], 1036a [], 11b/1036 []', null, '+11.0=1a'],
  ])('%s a block that was settled 1,024 blocks ago', (...scenario) => expectScenario(scenario))

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
    const rest = subscriber.summariesFrom(sentCount).map((text) => text.replace(/=\d+/, ''))
    expect(rest).toEqual([`+11.${count - 1}a`, '+12.0?'])
  })
})

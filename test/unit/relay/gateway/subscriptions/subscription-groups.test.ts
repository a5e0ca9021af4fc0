import { describe, expect, it } from 'vitest'
import { runAtOnce } from '../../../../../src/lib/turns.ts'
import type { LogFilter } from '../../../../../src/protocol/json-rpc-methods.ts'
import { RpcError } from '../../../../../src/relay/gateway/rpc-error.ts'
import { SubscriptionGroups, type SubscriptionName } from '../../../../../src/relay/gateway/subscriptions/subscription-groups.ts'
import { SubscriptionNotice } from '../../../../../src/relay/gateway/subscriptions/subscription-notice.ts'
import { alice, apple, bob, TRANSFER, tesla, word } from '../../chain/node-json.ts'
import { RecordingSubscriber, readNodeLog } from './log-notifier-fixture.ts'

const APPROVAL = word(0xa99)
const logs = [
  readNodeLog({ block: 11, index: 0, address: apple, from: alice, to: bob }),
  readNodeLog({ block: 11, index: 1, address: tesla, from: alice, to: bob }),
  readNodeLog({ block: 11, index: 2, address: tesla }, { topics: [APPROVAL, word(alice)] }),
  readNodeLog({ block: 11, index: 3, address: tesla }, { topics: [] }),
]

const subscription = (subscriber: RecordingSubscriber, kind: SubscriptionName = 'pendingLogs') => ({
  kind,
  subscriber,
  firstIndex: 0,
  head: null,
  formerHeads: [],
})
const toUpperHex = (hex: string) => `0x${hex.slice(2).toUpperCase()}`
const notifyAll = (subscribers: SubscriptionGroups) => {
  for (const log of logs)
    runAtOnce(
      subscribers.publishLog(
        'pendingLogs',
        log,
        () => new SubscriptionNotice(`{"logIndex":"${log.logIndex}"}`, false),
        () => true,
      ),
    )
}
const logIndexes = ({ results }: RecordingSubscriber) => results.map((result) => Number((result as { logIndex: string }).logIndex))

// What a filter matches is proved by the tests of the protocol.
describe('a filter', () => {
  it('is the same in every spelling', () => {
    const subscribers = new SubscriptionGroups()
    const written: LogFilter[] = [
      { address: [apple, tesla], topics: [[TRANSFER, APPROVAL], null] },
      { address: [tesla, toUpperHex(apple), tesla], topics: [[APPROVAL, toUpperHex(TRANSFER)], []] },
    ]
    // More than there may be different filters.
    const subscribersOfAll = Array.from({ length: 3_000 }, (_, at) => {
      const subscriber = new RecordingSubscriber()
      subscribers.add(subscription(subscriber), written[at % 2] ?? {})
      return subscriber
    })
    notifyAll(subscribers)
    expect(new Set(subscribersOfAll.map((subscriber) => logIndexes(subscriber).join()))).toEqual(new Set(['0,1,2']))
  })
})

describe('subscribers', () => {
  it('receive notices of their kind, each subscription by itself, until it ends', () => {
    const subscribers = new SubscriptionGroups()
    const subscribersOfAll = [new RecordingSubscriber(), new RecordingSubscriber()]
    const [first, second] = subscribersOfAll.map((subscriber) => subscription(subscriber))
    if (!first || !second) throw new Error('unreachable')
    const heads = subscription(new RecordingSubscriber(), 'newHeads')
    expect(subscribers.has('newHeads')).toBe(false)
    for (const one of [first, second, heads]) subscribers.add(one, {})
    expect(subscribers.has('newHeads')).toBe(true)
    subscribers.publishHead('{"number":"0x1"}')
    notifyAll(subscribers)
    expect(heads.subscriber.results).toEqual([{ number: '0x1' }])
    subscribers.remove(first)
    subscribers.remove(first)
    subscribers.remove(heads)
    expect(subscribers.has('newHeads')).toBe(false)
    subscribers.publishHead('{"number":"0x2"}')
    notifyAll(subscribers)
    expect(subscribersOfAll.map((subscriber) => subscriber.results.length)).toEqual([4, 8])
    expect(heads.subscriber.results).toHaveLength(1)
  })

  it('with the same id get the same bytes', () => {
    const subscribers = new SubscriptionGroups()
    const given: Buffer[] = []
    const encode = (text: string) => Buffer.from(text)
    for (const id of ['0x1', '0x1', '0x2']) {
      const notify = (notice: SubscriptionNotice) => given.push(notice.bytes(id, encode))
      subscribers.add({ kind: 'newHeads', subscriber: { id, notify }, firstIndex: 0, head: null, formerHeads: [] }, {})
    }
    subscribers.publishHead('{}')
    expect(given[0]).toBe(given[1])
    expect(given.map(String)).toEqual(
      ['0x1', '0x1', '0x2'].map(
        (id) => `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${id}","result":{}}}`,
      ),
    )
  })
})

describe('filters in use', () => {
  const refusal = expect.objectContaining({ code: -32005, message: expect.stringMatching(/^too many different filters/) })
  const refused = (add: () => void): unknown => {
    try {
      add()
    } catch (failure) {
      expect(failure).toBeInstanceOf(RpcError)
      return failure
    }
    return null
  }

  it('are at most 2,000 different ones, and one that ends makes room', () => {
    const subscribers = new SubscriptionGroups()
    const all = Array.from({ length: 2_000 }, (_, at) => {
      const one = subscription(new RecordingSubscriber())
      subscribers.add(one, { topics: [word(at)] })
      return one
    })
    const subscriber = new RecordingSubscriber()
    expect(refused(() => subscribers.add(subscription(subscriber), { address: apple }))).toEqual(refusal)
    // The empty filter is one more, shared by all.
    subscribers.add(subscription(new RecordingSubscriber()), {})
    subscribers.add(subscription(new RecordingSubscriber()), { topics: [word(1)] })
    const [first] = all
    if (first) subscribers.remove(first)
    subscribers.add(subscription(subscriber), {})
    notifyAll(subscribers)
    expect(subscriber.results).toHaveLength(4)
  })

  it('name at most 100,000 addresses and topics together', () => {
    const subscribers = new SubscriptionGroups()
    const long = (of: number): LogFilter => ({ topics: [Array.from({ length: 10_000 }, (_, at) => word(of * 10_000 + at))] })
    const first = subscription(new RecordingSubscriber())
    subscribers.add(first, long(0))
    for (let of = 1; of < 10; of += 1) subscribers.add(subscription(new RecordingSubscriber()), long(of))
    expect(refused(() => subscribers.add(subscription(new RecordingSubscriber()), { address: apple }))).toEqual(refusal)
    subscribers.add(subscription(new RecordingSubscriber()), {})
    subscribers.remove(first)
    subscribers.add(subscription(new RecordingSubscriber()), { address: apple })
  })
})

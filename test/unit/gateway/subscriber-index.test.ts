import { describe, expect, it } from 'vitest'
import type { LogFilter } from '../../../src/chain/rpc/methods.ts'
import { Fault } from '../../../src/gateway/rpc-error.ts'
import { type Kind, Notice, Subscribers } from '../../../src/gateway/subscriber-index.ts'
import { alice, apple, bob, TRANSFER, tesla, word } from '../chain/node-json.ts'
import { Listener, logOf } from './log-feed-fixture.ts'

const APPROVAL = word(0xa99)
/** Every way in which two tokens and two holders make a log. */
const logs = [
  logOf({ block: 11, index: 0, address: apple, from: alice, to: bob }),
  logOf({ block: 11, index: 1, address: apple, from: bob, to: alice }),
  logOf({ block: 11, index: 2, address: tesla, from: alice, to: bob }),
  logOf({ block: 11, index: 3, address: tesla }, { topics: [APPROVAL, word(alice)] }),
  logOf({ block: 11, index: 4, address: tesla }, { topics: [] }),
]

const subscription = (subscriber: Listener, kind: Kind = 'pendingLogs') => ({
  kind,
  subscriber,
  since: 0,
  head: null,
  before: null,
})
const upper = (hex: string) => `0x${hex.slice(2).toUpperCase()}`
const tellAll = (subscribers: Subscribers) => {
  for (const log of logs)
    subscribers.tellLog('pendingLogs', log, new Notice(`{"logIndex":"${log.logIndex}"}`, false), () => true)
}
const places = ({ results }: Listener) => results.map((result) => Number((result as { logIndex: string }).logIndex))

describe('a filter', () => {
  it.each<[string, LogFilter, readonly number[]]>([
    ['nothing', {}, [0, 1, 2, 3, 4]],
    ['an empty list of addresses', { address: [], topics: [] }, [0, 1, 2, 3, 4]],
    ['nulls', { address: null, topics: null }, [0, 1, 2, 3, 4]],
    ['one address', { address: apple }, [0, 1]],
    ['an address in capitals', { address: upper(tesla) }, [2, 3, 4]],
    ['several addresses', { address: [apple, tesla, apple] }, [0, 1, 2, 3, 4]],
    ['one topic', { topics: [TRANSFER] }, [0, 1, 2]],
    ['a topic in capitals', { topics: [upper(APPROVAL)] }, [3]],
    ['alternatives', { topics: [[APPROVAL, TRANSFER]] }, [0, 1, 2, 3]],
    ['no alternatives in particular', { topics: [[], []] }, [0, 1, 2, 3, 4]],
    ['any topic and then one', { topics: [null, word(alice)] }, [0, 2, 3]],
    ['the last position', { topics: [null, null, word(bob)] }, [0, 2]],
    ['a topic that stands elsewhere', { topics: [word(alice)] }, []],
    ['any in a position that a log may not have', { topics: [null, null, null, null] }, [0, 1, 2, 3, 4]],
    ['address and topics', { address: tesla, topics: [TRANSFER, word(alice)] }, [2]],
  ])('of %s lets through what it names', (_, filter, expected) => {
    const subscribers = new Subscribers()
    const ear = new Listener()
    subscribers.add(subscription(ear), filter)
    tellAll(subscribers)
    expect(places(ear)).toEqual(expected)
  })

  it('that is written in another way is the same', () => {
    const subscribers = new Subscribers()
    const written: LogFilter[] = [
      { address: [apple, tesla], topics: [[TRANSFER, APPROVAL], null] },
      { address: [tesla, upper(apple), tesla], topics: [[APPROVAL, upper(TRANSFER)], []] },
    ]
    const ears = written
      .flatMap((filter) => Array.from({ length: 1_500 }, () => filter))
      .map((filter) => {
        const ear = new Listener()
        subscribers.add(subscription(ear), filter)
        return ear
      })
    tellAll(subscribers)
    expect(new Set(ears.map((ear) => places(ear).join()))).toEqual(new Set(['0,1,2,3']))
  })
})

describe('subscribers', () => {
  it('hear what is of their kind, each subscription by itself, until it ends', () => {
    const subscribers = new Subscribers()
    const ears = [new Listener(), new Listener()]
    const [first, second] = ears.map((ear) => subscription(ear))
    if (!first || !second) throw new Error('unreachable')
    const heads = subscription(new Listener(), 'newHeads')
    expect(subscribers.has('newHeads')).toBe(false)
    for (const one of [first, second, heads]) subscribers.add(one, {})
    expect(subscribers.has('newHeads')).toBe(true)
    subscribers.tellHead('{"number":"0x1"}')
    tellAll(subscribers)
    expect(heads.subscriber.results).toEqual([{ number: '0x1' }])
    subscribers.remove(first)
    subscribers.remove(first)
    subscribers.remove(heads)
    expect(subscribers.has('newHeads')).toBe(false)
    subscribers.tellHead('{"number":"0x2"}')
    tellAll(subscribers)
    expect(ears.map((ear) => ear.results.length)).toEqual([5, 10])
    expect(heads.subscriber.results).toHaveLength(1)
  })

  it('who know theirs by the same id are told in the same bytes', () => {
    const subscribers = new Subscribers()
    const given: Buffer[] = []
    const encode = (text: string) => Buffer.from(text)
    for (const id of ['0x1', '0x1', '0x2']) {
      const notify = (notice: Notice) => given.push(notice.bytes(id, encode))
      subscribers.add({ kind: 'newHeads', subscriber: { id, notify }, since: 0, head: null, before: null }, {})
    }
    subscribers.tellHead('{}')
    expect(given[0]).toBe(given[1])
    expect(given.map(String)).toEqual(
      ['0x1', '0x1', '0x2'].map(
        (id) => `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${id}","result":{}}}`,
      ),
    )
  })
})

describe('filters in use', () => {
  const refusal = expect.objectContaining({
    code: -32005,
    message: expect.stringMatching(/^too many different filters/),
  })
  const refused = (add: () => void): unknown => {
    try {
      add()
    } catch (failure) {
      expect(failure).toBeInstanceOf(Fault)
      return failure
    }
    return null
  }

  it('are up to 2,000 different ones; there is room again once one is not in use', () => {
    const subscribers = new Subscribers()
    const all = Array.from({ length: 2_000 }, (_, at) => {
      const one = subscription(new Listener())
      subscribers.add(one, { topics: [word(at)] })
      return one
    })
    const ear = new Listener()
    expect(refused(() => subscribers.add(subscription(ear), { address: apple }))).toEqual(refusal)
    // All that there is, is one filter more, whoever asks for it.
    subscribers.add(subscription(new Listener()), {})
    subscribers.add(subscription(new Listener()), { topics: [word(1)] })
    const [first] = all
    if (first) subscribers.remove(first)
    subscribers.add(subscription(ear), {})
    tellAll(subscribers)
    expect(ear.results).toHaveLength(5)
  })

  it('name up to 100,000 addresses and topics in all', () => {
    const subscribers = new Subscribers()
    const long = (of: number): LogFilter => ({
      topics: [Array.from({ length: 10_000 }, (_, at) => word(of * 10_000 + at))],
    })
    const first = subscription(new Listener())
    subscribers.add(first, long(0))
    for (let of = 1; of < 10; of += 1) subscribers.add(subscription(new Listener()), long(of))
    expect(refused(() => subscribers.add(subscription(new Listener()), { address: apple }))).toEqual(refusal)
    subscribers.add(subscription(new Listener()), {})
    subscribers.remove(first)
    subscribers.add(subscription(new Listener()), { address: apple })
  })
})

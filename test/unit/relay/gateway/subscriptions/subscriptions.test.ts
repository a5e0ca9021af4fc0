import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { RpcError } from '../../../../../src/relay/gateway/rpc-error.ts'
import { Subscriptions } from '../../../../../src/relay/gateway/subscriptions/subscriptions.ts'
import { apple, tesla } from '../../chain/node-json.ts'
import { hashOf, headEvent, pendingLogEvent, RecordingSubscriber, readNodeLog, sealedEvent } from './log-notifier-fixture.ts'

const other: Hex = `0x${'07'.repeat(20)}`
const manyAddresses = (count: number): Hex[] =>
  Array.from({ length: count }, (_, at): Hex => `0x${(at + 1).toString(16).padStart(40, '0')}`)

/** Subscriptions with two listed tokens, after the head 10. */
function openSubscriptions({ listed = [apple, tesla] }: { listed?: Hex[] } = {}) {
  const blockAt = (number: number) => ({ number: `0x${number.toString(16)}`, hash: hashOf(number), parentHash: hashOf(number - 1) })
  const subscriptions = new Subscriptions({
    isListed: (address) => listed.includes(address),
    hasList: () => listed.length > 0,
    readBlock: async (number) => blockAt(number),
    delay: async () => {},
  })
  subscriptions.receive(headEvent(10))
  const open = (...params: unknown[]) => {
    const subscriber = new RecordingSubscriber()
    return { subscriber, end: subscriptions.open(params, subscriber) }
  }
  /** Why a subscription is refused. */
  const refusalOf = (params: unknown): string => {
    try {
      subscriptions.open(params, new RecordingSubscriber())
    } catch (failure) {
      expect(failure).toBeInstanceOf(RpcError)
      const { code, message } = failure as RpcError
      return `${code} ${message}`
    }
    throw new Error('the subscription is accepted')
  }
  const transferEvent = (address: Hex, index = 0, block = 11) => pendingLogEvent(readNodeLog({ block, index, address }))
  return { subscriptions, open, refusalOf, transferEvent, blockAt }
}

describe('a subscriber', () => {
  it.each([
    ['nothing', []],
    ['null', [null]],
    ['the tokens in capitals', [{ address: [`0x${'AA'.repeat(20)}`, `0x${'7E'.repeat(20)}`] }]],
    ['a range, which means nothing here', [{ fromBlock: '0x1', toBlock: 'latest' }]],
  ])('with %s receives all listed tokens, and nothing else', (_, filter) => {
    const { subscriptions, open, transferEvent } = openSubscriptions()
    const { subscriber } = open('pendingLogs', ...filter)
    for (const [index, address] of [apple, tesla, other].entries()) subscriptions.receive(transferEvent(address, index))
    expect(subscriber.summaries).toEqual(['+11.0=1?', '+11.1=1?'])
  })

  it('receives each kind under its own name', async () => {
    const { subscriptions, open, transferEvent, blockAt } = openSubscriptions()
    const [pending, logs, heads] = [open('pendingLogs'), open('logs'), open('newHeads')]
    subscriptions.receive(transferEvent(apple))
    subscriptions.receive(headEvent(11))
    subscriptions.receive(sealedEvent({ number: 11, logs: [readNodeLog({ block: 11 })] }))
    await new Promise(setImmediate)
    expect(pending.subscriber.summaries).toEqual(['+11.0=1?'])
    expect(logs.subscriber.summaries).toEqual(['+11.0=1a'])
    expect(heads.subscriber.results).toEqual([blockAt(11)])
  })
})

describe('a subscription that is refused gets a message', () => {
  it.each<[unknown, RegExp]>([
    [[], /^-32602 invalid params: params\[0\] must be one of pendingLogs, logs, newHeads$/],
    [{ kind: 'logs' }, /^-32602 .*must be one of/],
    [['logs', {}, {}], /^-32602 invalid params: a kind and a filter, and nothing else$/],
    [['logs', 'all'], /^-32602 invalid params: params\[1\] must be /],
    [['logs', { address: '0x1' }], /^-32602 invalid params: params\[1\]\.address must be a 20-byte address/],
    [['logs', { topics: [null, '0x1'] }], /^-32602 invalid params: params\[1\]\.topics\[1\] must be .*32-byte word/],
    [['pendingLogs', { address: other }], new RegExp(`^-32602 .*not a listed tokenized stock: ${other}\\. .*eth_getLogs`)],
    [['logs', { address: [apple, other] }], new RegExp(`: ${other}\\. `)],
    [['logs', { address: manyAddresses(4) }], /0{39}1, 0x0{39}2, 0x0{39}3, …\. /],
  ])('for %j', (params, sentence) => {
    expect(openSubscriptions().refusalOf(params)).toMatch(sentence)
  })

  it('to try again if it names a contract before any list is read', () => {
    const { refusalOf, open } = openSubscriptions({ listed: [] })
    expect(refusalOf(['logs', { address: apple }])).toMatch(/^-32000 .*has not been read yet; try again/)
    open('logs', {})
  })
})

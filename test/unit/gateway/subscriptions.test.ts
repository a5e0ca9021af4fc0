import { describe, expect, it } from 'vitest'
import { Fault } from '../../../src/gateway/rpc-error.ts'
import { Exchange } from '../../../src/gateway/subscriptions.ts'
import { Foreign } from '../../../src/gateway/unlisted-contracts.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { apple, pendingLog, tesla, word } from '../chain/node-json.ts'
import { hashOf, headed, Listener, logOf, preconfirmed, sealed } from './log-feed-fixture.ts'

const other: Hex = `0x${'07'.repeat(20)}`
const many = (count: number): Hex[] =>
  Array.from({ length: count }, (_, at): Hex => `0x${(at + 1).toString(16).padStart(40, '0')}`)

/** An exchange of two listed tokens, that has heard of the head 10. */
function openExchange({ foreign = null, listed = [apple, tesla] }: { foreign?: Foreign | null; listed?: Hex[] } = {}) {
  const blockAt = (number: number) => ({
    number: `0x${number.toString(16)}`,
    hash: hashOf(number),
    parentHash: hashOf(number - 1),
  })
  const exchange = new Exchange({
    lists: (address) => listed.includes(address),
    hasList: () => listed.length > 0,
    foreign,
    block: async (number) => blockAt(number),
    rest: async () => {},
  })
  exchange.hear(headed(10))
  const open = (...params: unknown[]) => {
    const ear = new Listener()
    return { ear, end: exchange.open(params, ear) }
  }
  /** Why it may not be subscribed to. */
  const refusal = (params: unknown): string => {
    try {
      exchange.open(params, new Listener())
    } catch (failure) {
      expect(failure).toBeInstanceOf(Fault)
      const { code, message } = failure as Fault
      return `${code} ${message}`
    }
    throw new Error('it may')
  }
  const transfer = (address: Hex, index = 0, block = 11) => preconfirmed(logOf({ block, index, address }))
  return { exchange, open, refusal, transfer, blockAt }
}

describe('whoever subscribes', () => {
  it.each([
    ['nothing', []],
    ['an empty filter', [{}]],
    ['no address', [{ address: [] }]],
    ['null', [null]],
    ['the tokens in capitals', [{ address: [`0x${'AA'.repeat(20)}`, `0x${'7E'.repeat(20)}`] }]],
    ['a range, which means nothing here', [{ fromBlock: '0x1', toBlock: 'latest' }]],
  ])('with %s hears all listed tokens, and nothing else', (_, filter) => {
    const { exchange, open, transfer } = openExchange()
    const { ear } = open('pendingLogs', ...filter)
    for (const [index, address] of [apple, tesla, other].entries()) exchange.hear(transfer(address, index))
    expect(ear.told).toEqual(['+11.0=1 pending', '+11.1=1 pending'])
  })

  it('hears of its token alone, until it ends', () => {
    const { exchange, open, transfer } = openExchange()
    const { ear, end } = open('pendingLogs', { address: tesla })
    exchange.hear(transfer(apple, 0))
    exchange.hear(transfer(tesla, 1))
    end()
    end()
    exchange.hear(transfer(tesla, 2))
    expect(ear.results).toEqual([pendingLog({ block: 11, index: 1, address: tesla })])
  })

  it('hears each kind under its own name', async () => {
    const { exchange, open, transfer, blockAt } = openExchange()
    const [pending, logs, heads] = [open('pendingLogs'), open('logs'), open('newHeads')]
    exchange.hear(transfer(apple))
    exchange.hear(headed(11))
    exchange.hear(sealed({ number: 11, logs: [logOf({ block: 11 })] }))
    await new Promise(setImmediate)
    expect(pending.ear.told).toEqual(['+11.0=1 pending'])
    expect(logs.ear.told).toEqual(['+11.0=1 a'])
    expect(heads.ear.results).toEqual([blockAt(11)])
  })
})

describe('a subscription that is not served is refused with a sentence', () => {
  it.each<[unknown, RegExp]>([
    [[], /^-32602 invalid params: params\[0\] must be one of pendingLogs, logs, newHeads$/],
    [['newPendingTransactions'], /^-32602 .*must be one of pendingLogs, logs, newHeads$/],
    [{ kind: 'logs' }, /^-32602 .*must be one of/],
    [['logs', {}, {}], /^-32602 invalid params: a kind and a filter, and nothing else$/],
    [['logs', 'all'], /^-32602 invalid params: params\[1\] must be /],
    [['logs', { address: '0x1' }], /^-32602 invalid params: params\[1\]\.address must be a 20-byte address/],
    [['logs', { address: [apple, 7] }], /^-32602 invalid params: params\[1\]\.address.* must be a 20-byte address/],
    [['logs', { topics: 'x' }], /^-32602 invalid params: params\[1\]\.topics must be a list of topics$/],
    [['logs', { topics: [null, '0x1'] }], /^-32602 invalid params: params\[1\]\.topics\[1\] must be .*32-byte word/],
    [
      ['logs', { topics: Array(5).fill(null) }],
      /^-32602 invalid params: params\[1\]\.topics must be at most 4 topics$/,
    ],
    [['logs', { topics: [Array(10_001).fill(word(1))] }], /^-32602 /],
    [
      ['pendingLogs', { address: other }],
      new RegExp(`^-32602 .*not a listed tokenized stock: ${other}\\. .*eth_getLogs`),
    ],
    [['logs', { address: [apple, other] }], new RegExp(`: ${other}\\. `)],
    [['logs', { address: many(4) }], /0{39}1, 0x0{39}2, 0x0{39}3, …\. /],
  ])('%j', (params, sentence) => {
    expect(openExchange().refusal(params)).toMatch(sentence)
  })

  it('that names a contract before any list is known, as one to try again', () => {
    const { refusal, open } = openExchange({ listed: [] })
    expect(refusal(['logs', { address: apple }])).toMatch(/^-32000 .*has not been read yet; try again/)
    open('logs', {})
  })
})

describe('contracts that are not listed, where they are served', () => {
  it('are heard from their own source beside the listed ones, in one subscription', () => {
    const foreign = new Foreign()
    const { exchange, open, transfer } = openExchange({ foreign })
    const { ear, end } = open('pendingLogs', { address: [apple, other] })
    foreign.wire.hear(headed(10))
    exchange.hear(transfer(apple, 0))
    exchange.hear(transfer(other, 1))
    foreign.wire.hear(transfer(other, 2))
    foreign.wire.hear(transfer(apple, 3))
    expect(ear.told).toEqual(['+11.0=1 pending', '+11.2=1 pending'])
    end()
    exchange.hear(transfer(apple, 4))
    foreign.wire.hear(transfer(other, 5))
    expect(ear.results).toHaveLength(2)
  })

  it('are none of an empty filter', () => {
    const foreign = new Foreign()
    const { open, transfer } = openExchange({ foreign })
    const [all] = [open('pendingLogs'), open('pendingLogs', { address: other })]
    foreign.wire.hear(transfer(other))
    expect(all?.ear.told).toEqual([])
  })

  it('of which there are too many leave nothing behind of the subscription that named them', () => {
    const foreign = new Foreign()
    const { exchange, open, refusal, transfer } = openExchange({ foreign })
    const { end } = open('logs', { address: many(250) })
    expect(refusal(['pendingLogs', { address: [apple, ...many(257)] }])).toMatch(/^-32005 too many contracts/)
    const { ear } = open('pendingLogs')
    exchange.hear(transfer(apple))
    expect(ear.results).toHaveLength(1)
    end()
    open('pendingLogs', { address: many(256) })
  })
})

import { describe, expect, it } from 'vitest'
import { ChainState } from '../../../../src/relay/gateway/chain-state.ts'
import { readCall } from '../../../../src/relay/gateway/validated-call.ts'
import { alice, apple, TRANSFER, word } from '../chain/node-json.ts'
import { chainEvents } from './shared-answers-fixture.ts'

const WORD = word(0xb0b)
/** A chain that is sealed up to 10,000 and builds one more block. */
const knownChainState = new ChainState()
for (const event of [
  ...[chainEvents.head(10_000), chainEvents.pendingHead(10_001)],
  ...[chainEvents.finality('safe', 9_000), chainEvents.finality('finalized', 8_000)],
])
  knownChainState.receive(event)

type Call = readonly [method: string, ...params: unknown[]]
const read = ([method, ...params]: Call, chainState = knownChainState) => readCall(method, params, chainState)
const logs = (filter: object): Call => ['eth_getLogs', filter]
const balance = (block: unknown): Call => ['eth_getBalance', alice, block]
const capitals = (hex: string) => `0x${hex.slice(2).toUpperCase()}`

describe('the scope of a call', () => {
  const atNumber = (number: number, several = false) => ({ at: 'number', number, several })

  it.each<[Call, object]>([
    [['eth_chainId'], { at: 'chain' }],
    [['eth_blockNumber'], { at: 'head' }],
    [balance('pending'), { at: 'pending' }],
    ...['latest', 'safe', 'finalized'].map((tag): [Call, object] => [balance(tag), { at: 'head' }]),
    [balance('earliest'), atNumber(0)],
    [balance('0x1F'), atNumber(31)],
    [balance({ blockNumber: '0x1f' }), atNumber(31)],
    [balance(WORD), { at: 'hash' }],
    [balance({ blockHash: WORD, requireCanonical: true }), { at: 'hash' }],
    [['eth_getStorageAt', apple, '0x0', 'pending'], { at: 'pending' }],
    [['eth_getTransactionCount', alice, '0x1'], atNumber(1)],
    [['eth_getBlockReceipts', WORD], { at: 'hash' }],
    [['eth_getBlockByNumber', '0x1f', true], atNumber(31)],
    [['eth_getBlockByNumber', `0x${'1'.repeat(64)}`, true], { at: 'head' }],
    [logs({ fromBlock: '0x2700', toBlock: 'pending' }), { at: 'pending' }],
    [logs({ fromBlock: '0x2700' }), { at: 'head' }],
    [logs({ address: apple }), { at: 'head' }],
    [logs({ fromBlock: '0x1', toBlock: '0x1' }), atNumber(1)],
    [logs({ fromBlock: '0x1', toBlock: '0x5' }), atNumber(5, true)],
    [logs({ fromBlock: 'earliest', toBlock: '0x5' }), atNumber(5, true)],
    [logs({ blockHash: WORD, fromBlock: '0x0', toBlock: 'latest' }), { at: 'hash' }],
  ])('is read from %j', (call, expected) => {
    expect(read(call).scope).toEqual(expected)
  })
})

describe('the key of a call', () => {
  it.each<[string, Call, Call]>([
    ['an address in capitals', balance('latest'), ['eth_getBalance', capitals(alice), 'latest']],
    ['a topic in capitals', logs({ topics: [TRANSFER] }), logs({ topics: [capitals(TRANSFER)] })],
    ['another order of criteria', logs({ address: apple, topics: [null] }), logs({ topics: [null], address: apple })],
    ['null and unknown criteria', logs({ address: apple }), logs({ address: apple, topics: null, blockHash: null, more: 1 })],
    ['a range beside a hash', logs({ blockHash: WORD }), logs({ toBlock: '0x1', blockHash: WORD, fromBlock: '0x0' })],
    ...[
      ...['eth_getBalance', 'eth_getTransactionCount', 'eth_getCode'].map((method) => [method, alice]),
      ...[['eth_getStorageAt', alice, '0x0'], ['eth_getBlockReceipts']],
    ].map((call): [string, Call, Call] => [`the latest block, omitted: ${call}`, [...call, 'latest'] as never, call as never]),
  ])('is the same with %s', (_, one, other) => {
    expect(read(one).key).toBe(read(other).key)
    expect(read(one).scope).toEqual(read(other).scope)
  })

  it.each<[string, Call, Call]>([
    ['another order of topics', logs({ topics: [TRANSFER, null] }), logs({ topics: [null, TRANSFER] })],
    ['another end of the range', logs({ fromBlock: '0x1' }), logs({ toBlock: '0x1', fromBlock: '0x0' })],
    ['a canonical block', balance({ blockHash: WORD }), balance({ blockHash: WORD, requireCanonical: true })],
    ['whole transactions', ['eth_getBlockByNumber', '0x1', false], ['eth_getBlockByNumber', '0x1', true]],
    ['another method', balance('latest'), ['eth_getTransactionCount', alice, 'latest']],
  ])('differs by %s', (_, one, other) => {
    expect(read(one, new ChainState()).key).not.toBe(read(other, new ChainState()).key)
  })
})

it.each([
  [
    { blockHash: WORD, fromBlock: '0x0', toBlock: 'latest', address: apple },
    { blockHash: WORD, address: apple },
  ],
  [{ fromBlock: '0x2700', toBlock: null, topics: null, blockHash: null, other: 'x' }, { fromBlock: '0x2700' }],
])('a filter is sent upstream without null fields, and without a range beside a hash: %j', (filter, expected) => {
  expect(read(logs(filter)).params).toEqual([expected])
})

describe('a range', () => {
  it.each([
    ['0x0', '0x7cf'],
    ['earliest', '0x7cf'],
    ['0x1f41', 'latest'],
    ['0x1f42', 'pending'],
    ['latest', '0x0'],
  ])('of at most 2,000 blocks is accepted: %s to %s', (fromBlock, toBlock) => {
    expect(read(logs({ fromBlock, toBlock })).method).toBe('eth_getLogs')
  })

  it.each([
    ['0x0', '0x7d0', '2001'],
    ['earliest', '0x7d0', '2001'],
    ['0x1f40', 'latest', '2001'],
    ['0x1f41', 'pending', '2001'],
    ['finalized', 'latest', '2001'],
    ['0x0', undefined, '10001'],
  ])('of more is refused with the bound: %s to %s', (fromBlock, toBlock, count) => {
    const message = expect.stringMatching(`holds ${count}.*at most 2,000`)
    expect(() => read(logs({ fromBlock, toBlock }))).toThrow(expect.objectContaining({ code: -32602, message }))
  })

  it('with an end that is unknown yet is accepted', () => {
    expect(read(logs({ fromBlock: '0x0', toBlock: 'latest' }), new ChainState()).scope).toEqual({ at: 'head' })
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { methods } from '../../../../src/protocol/json-rpc-methods.ts'
import { ChainState } from '../../../../src/relay/gateway/chain-state.ts'
import { RpcError } from '../../../../src/relay/gateway/rpc-error.ts'
import { readCall } from '../../../../src/relay/gateway/validated-call.ts'
import { chainEvents } from './shared-answers-fixture.ts'

const ADDRESS = `0x${'a1'.repeat(20)}`
const WORD = `0x${'0b'.repeat(32)}`

/** A chain that is sealed up to 10,000 and builds one more block. */
function knownChainState(): ChainState {
  const chainState = new ChainState()
  for (const one of [chainEvents.head(10_000), chainEvents.pendingHead(10_001), chainEvents.finality('safe', 9_000)])
    chainState.receive(one)
  chainState.receive(chainEvents.finality('finalized', 8_000))
  return chainState
}

const validityOf = (method: string, ...params: unknown[]) => readCall(method, params, knownChainState()).scope
const keyOf = (method: string, ...params: unknown[]) => readCall(method, params, knownChainState()).key

const rpcErrorOf = (method: string, params: unknown, chainState = knownChainState()): RpcError => {
  try {
    readCall(method, params, chainState)
  } catch (failure) {
    if (failure instanceof RpcError) return failure
    throw failure
  }
  throw new Error(`${method} was read`)
}

describe('the scope of a call', () => {
  it.each([
    [['eth_chainId'], { at: 'chain' }],
    [['eth_blockNumber'], { at: 'head' }],
    [['eth_getBalance', ADDRESS, 'pending'], { at: 'pending' }],
    [['eth_getBalance', ADDRESS, 'latest'], { at: 'head' }],
    [['eth_getBalance', ADDRESS, 'safe'], { at: 'head' }],
    [['eth_getBalance', ADDRESS, 'finalized'], { at: 'head' }],
    [['eth_getBalance', ADDRESS, 'earliest'], { at: 'number', number: 0, several: false }],
    [['eth_getBalance', ADDRESS, '0x1F'], { at: 'number', number: 31, several: false }],
    [['eth_getCode', ADDRESS, WORD], { at: 'hash' }],
    [['eth_getCode', ADDRESS, { blockHash: WORD }], { at: 'hash' }],
    [['eth_getCode', ADDRESS, { blockHash: WORD, requireCanonical: true }], { at: 'hash' }],
    [['eth_getCode', ADDRESS, { blockNumber: '0x1f' }], { at: 'number', number: 31, several: false }],
    [['eth_getStorageAt', ADDRESS, '0x0', 'pending'], { at: 'pending' }],
    [['eth_getTransactionCount', ADDRESS, '0x1'], { at: 'number', number: 1, several: false }],
    [['eth_getBlockReceipts', WORD], { at: 'hash' }],
    [['eth_getBlockByNumber', '0x1f', true], { at: 'number', number: 31, several: false }],
    [['eth_getBlockByNumber', `0x${'1'.repeat(64)}`, true], { at: 'head' }],
    [['eth_getLogs', { fromBlock: 'pending', toBlock: 'pending' }], { at: 'pending' }],
    [['eth_getLogs', { fromBlock: '0x2700', toBlock: 'pending' }], { at: 'pending' }],
    [['eth_getLogs', { fromBlock: '0x2700' }], { at: 'head' }],
    [['eth_getLogs', { address: ADDRESS }], { at: 'head' }],
    [['eth_getLogs', { fromBlock: '0x1', toBlock: '0x1' }], { at: 'number', number: 1, several: false }],
    [['eth_getLogs', { fromBlock: '0x1', toBlock: '0x5' }], { at: 'number', number: 5, several: true }],
    [['eth_getLogs', { fromBlock: 'earliest', toBlock: '0x5' }], { at: 'number', number: 5, several: true }],
    [['eth_getLogs', { blockHash: WORD, fromBlock: 'pending' }], { at: 'hash' }],
  ])('is read from %j', ([method, ...params], expected) => {
    expect(validityOf(String(method), ...params)).toEqual(expected)
  })
})

describe('the key of a call', () => {
  it.each([
    ['eth_getBalance', [ADDRESS, 'latest'], [ADDRESS.replaceAll('a', 'A'), 'latest']],
    ['eth_getBalance', [ADDRESS, '0x1f'], [ADDRESS, '0x1F']],
    ['eth_getLogs', [{ address: ADDRESS }], [{ address: ADDRESS, topics: null, fromBlock: null, more: 1 }]],
    ['eth_getLogs', [{ blockHash: WORD }], [{ toBlock: '0x1', blockHash: WORD, fromBlock: '0x0' }]],
    [
      'eth_getLogs',
      [{ address: ADDRESS, toBlock: '0x1', fromBlock: '0x1' }],
      [{ fromBlock: '0x1', toBlock: '0x1', address: ADDRESS }],
    ],
  ])('of %s is the same for every spelling (%#)', (method, one, other) => {
    expect(keyOf(method, ...one)).toBe(keyOf(method, ...other))
  })

  it.each([
    ['eth_getBalance', [ADDRESS, 'latest'], [ADDRESS, 'pending']],
    ['eth_getBalance', [ADDRESS, '0x1'], [ADDRESS, '0x10']],
    ['eth_getBlockByNumber', ['latest', true], ['latest', false]],
    ['eth_getLogs', [{ fromBlock: '0x1' }], [{ toBlock: '0x1', fromBlock: '0x0' }]],
    ['eth_getLogs', [{ address: ADDRESS, topics: [WORD] }], [{ address: ADDRESS, topics: [null, WORD] }]],
    ['eth_getCode', [ADDRESS, { blockHash: WORD }], [ADDRESS, { blockHash: WORD, requireCanonical: true }]],
  ])('of %s differs (%#)', (method, one, other) => {
    const chainState = new ChainState()
    const keys = [one, other].map((params) => readCall(method, params, chainState).key)
    expect(keys[0]).not.toBe(keys[1])
  })

  it('differs by method', () => {
    expect(keyOf('eth_getBalance', ADDRESS, 'latest')).not.toBe(keyOf('eth_getCode', ADDRESS, 'latest'))
  })
})

describe('the filter sent upstream', () => {
  const filterOf = (filter: object) => readCall('eth_getLogs', [filter], knownChainState()).params[0]

  it('has no range beside a hash', () => {
    expect(filterOf({ blockHash: WORD, fromBlock: '0x0', toBlock: 'latest', address: ADDRESS })).toEqual({
      blockHash: WORD,
      address: ADDRESS,
    })
  })

  it('leaves out null fields', () => {
    expect(filterOf({ fromBlock: '0x2700', toBlock: null, topics: null, blockHash: null, other: 'x' })).toEqual({
      fromBlock: '0x2700',
    })
  })
})

describe('a range', () => {
  const range = (fromBlock: unknown, toBlock: unknown, chainState = knownChainState()) =>
    readCall('eth_getLogs', [{ fromBlock, toBlock }], chainState)

  it.each([
    ['0x0', '0x7cf'],
    ['earliest', '0x7cf'],
    ['0x1f41', 'latest'],
    ['0x1f42', 'pending'],
    ['safe', 'latest'],
    ['finalized', '0x270f'],
    ['latest', '0x0'],
    ['0x5', '0x1'],
  ])('of at most 2,000 blocks is accepted: %s to %s', (from, to) => {
    expect(range(from, to).method).toBe('eth_getLogs')
  })

  it.each([
    ['0x0', '0x7d0', '2001'],
    ['earliest', '0x7d0', '2001'],
    ['0x1f40', 'latest', '2001'],
    ['0x1f41', 'pending', '2001'],
    ['finalized', 'latest', '2001'],
    ['0x0', undefined, '10001'],
    ['0x0', `0x${'f'.repeat(64)}`, ''],
  ])('of more is refused with the bound: %s to %s', (fromBlock, toBlock, count) => {
    const error = rpcErrorOf('eth_getLogs', [{ fromBlock, toBlock }])
    expect(error.code).toBe(-32602)
    expect(error.message).toContain('2,000')
    expect(error.message).toContain(count)
  })

  it('with an end that is unknown yet is accepted', () => {
    expect(range('0x0', 'latest', new ChainState()).scope).toEqual({ at: 'head' })
  })

  it('is ignored beside a hash', () => {
    const filter = { blockHash: WORD, fromBlock: '0x0', toBlock: 'latest' }
    expect(readCall('eth_getLogs', [filter], knownChainState()).scope).toEqual({ at: 'hash' })
  })
})

describe('a refused call', () => {
  it.each(['', 'eth_call', 'eth_sendRawTransaction', 'toString', '__proto__', 'ETH_CHAINID'])('has the method %j', (method) => {
    const error = rpcErrorOf(method, [])
    expect(error.code).toBe(-32601)
    expect(error.message).toContain(JSON.stringify(method))
  })

  it.each(['eth_subscribe', 'eth_unsubscribe'])('is %s without a WebSocket', (method) => {
    expect(rpcErrorOf(method, ['newHeads'])).toMatchObject({ code: -32601, message: expect.stringContaining('ws://') })
  })

  it('has named parameters', () => {
    for (const method of Object.keys(methods)) expect(rpcErrorOf(method, {}).code).toBe(-32602)
  })

  it('gets the path of the wrong value', () => {
    const messages = [
      ['eth_getBalance', []],
      ['eth_getBalance', ['0x12', 'latest']],
      ['eth_getBalance', [ADDRESS, 'newest']],
      ['eth_getBlockByNumber', ['latest', 'yes']],
      ['eth_getLogs', [{}]],
      ['eth_getLogs', [{ address: [ADDRESS, 'AAPLc'] }]],
      ['eth_getLogs', [{ topics: [null, ['0x1']] }]],
      ['eth_blockNumber', ['latest']],
    ] as const
    expect(messages.map(([method, params]) => rpcErrorOf(method, params).message)).toEqual([
      expect.stringMatching(/eth_getBalance takes 2 parameters, this call has 0/),
      expect.stringMatching(/params\[0\] .*address/),
      expect.stringMatching(/params\[1\] .*block/),
      expect.stringMatching(/params\[1\]/),
      expect.stringMatching(/params\[0\] .*criterion/),
      expect.stringMatching(/params\[0\]\.address.* .*address/),
      expect.stringMatching(/params\[0\]\.topics\[1\].* .*word/),
      expect.stringMatching(/eth_blockNumber takes 0 parameters, this call has 1/),
    ])
  })

  it.each([
    ['eth_getBalance', [ADDRESS], [ADDRESS, 'latest']],
    ['eth_getTransactionCount', [ADDRESS], [ADDRESS, 'latest']],
    ['eth_getCode', [ADDRESS], [ADDRESS, 'latest']],
    ['eth_getStorageAt', [ADDRESS, '0x0'], [ADDRESS, '0x0', 'latest']],
    ['eth_getBlockReceipts', [], ['latest']],
  ])('that leaves out its block means the latest one: %s %j', (method, params, full) => {
    expect(readCall(method, params, knownChainState())).toEqual(readCall(method, full, knownChainState()))
  })

  it('gets a short error for any input', () => {
    fc.assert(
      fc.property(fc.oneof(fc.constantFrom(...Object.keys(methods)), fc.string()), fc.jsonValue(), (method, params) => {
        try {
          readCall(method, params, knownChainState())
        } catch (failure) {
          expect(failure).toBeInstanceOf(RpcError)
          expect((failure as RpcError).message.length).toBeLessThan(600)
          expect([-32601, -32602]).toContain((failure as RpcError).code)
        }
      }),
    )
  })
})

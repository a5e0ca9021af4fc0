import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Devnet, startDevnet } from '../../../../src/devnet/devnet.ts'
import { supplyKey } from '../../../../src/devnet/tokens/token-storage.ts'
import { type Hex, quantity, toWord } from '../../../../src/lib/hex.ts'
import { ALICE, BlockSchema, BOB, getLogs, post, rpcCall, rpcResult, startManualDevnet, ZERO, ZERO_HASH } from '../devnet-client.ts'

// keccak256(abi.encode(ALICE, 0)), computed with viem.
const SLOT_OF_ALICE = '0x8b7a0cb75d1e00bc88ffbc81ec4d79f4290d4d3c1b3abe974cade75a77755251'

// Shared by the tests that only read: two transfers are sealed, one is pre-confirmed.
let devnet: Devnet
let token: string
beforeAll(async () => {
  devnet = await startDevnet({ pace: 'manual', receipts: true })
  token = devnet.list.addressOf('AAPLc')
  devnet.transfer({ symbol: 'AAPLc', from: ZERO, to: ALICE, raw: 500n })
  devnet.makeFlashblock()
  devnet.transfer({ symbol: 'AAPLc', from: ALICE, to: BOB, raw: 200n })
  devnet.makeFlashblock()
  devnet.seal()
  devnet.transfer({ symbol: 'AAPLc', from: ALICE, to: BOB, raw: 50n })
  devnet.makeFlashblock()
})
afterAll(() => devnet.stop())

const number = (above = 0) => quantity(devnet.chain.head.number + above)
const block = async (at: string) => BlockSchema.parse(await rpcResult(devnet, 'eth_getBlockByNumber', at, false))

describe('a JSON-RPC request', () => {
  const call = { jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }

  it.each([7, 'seven', null])('gets an answer with jsonrpc 2.0 and its id %s', async (id) => {
    expect((await post(devnet, { ...call, id })).json).toEqual({ jsonrpc: '2.0', id, result: quantity(devnet.chainId) })
  })

  it('is accepted on / as on /rpc', async () => {
    expect((await post({ ...devnet, rpcUrl: devnet.url }, call)).json).toMatchObject({ result: quantity(devnet.chainId) })
  })

  it('gets its own result or error in a batch', async () => {
    const { status, json } = await post(devnet, [call, { ...call, id: 2, method: 'eth_nothing' }, { id: 3 }, 'garbage'])
    expect(status).toBe(200)
    expect(json).toMatchObject([
      { id: 1, result: quantity(devnet.chainId) },
      { id: 2, error: { code: -32601 } },
      { id: 3, error: { code: -32600 } },
      { id: null, error: { code: -32600 } },
    ])
  })

  it.each<[string, unknown, number, number, Record<string, string>?]>([
    ['text that is not JSON', '{"jsonrpc":', -32700, 400],
    ['a request without jsonrpc', { ...call, jsonrpc: undefined }, -32600, 400],
    ['jsonrpc 1.0', { ...call, jsonrpc: '1.0' }, -32600, 400],
    ['a request without an id', { ...call, id: undefined }, -32600, 400],
    ['a method that is no string', { ...call, method: 5 }, -32600, 400],
    ['parameters that are no array', { ...call, params: { block: 'latest' } }, -32600, 400],
    ['an empty batch', [], -32600, 400],
    ['a batch of 101', Array.from({ length: 101 }, () => call), -32014, 413],
    ['a request over 1 MiB', { ...call, params: ['x'.repeat(1_100_000)] }, -32021, 413],
    ['an unknown method', { ...call, method: 'eth_sendTransaction' }, -32601, 200],
    ['a subscription without a socket', { ...call, method: 'eth_subscribe', params: ['logs'] }, -32601, 200],
    ['a property that every object has', { ...call, method: 'constructor' }, -32601, 200],
    ['another content type than application/json', call, -32600, 415, { 'content-type': 'text/plain' }],
  ])('is refused for %s', async (_, body, code, status, headers) => {
    const answer = await post(devnet, body, headers)
    expect(answer.status).toBe(status)
    expect(answer.json).toMatchObject({ jsonrpc: '2.0', error: { code } })
  })

  // The relay and the devnet share the schemas, which test/unit/protocol tests.
  it.each<[string, unknown[]]>([
    ['eth_getBlockByNumber', ['newest', false]],
    ['eth_getBlockByNumber', ['latest']],
    ['eth_getLogs', [{}]],
    ['eth_getLogs', [{ address: '0x12' }]],
    ['eth_getBlockReceipts', []],
    ['eth_getStorageAt', [ALICE, 'two', 'latest']],
    ['eth_getTransactionCount', [ALICE]],
    ['eth_getCode', [ALICE]],
    ['eth_getBalance', ['latest', 'latest']],
  ])('is refused with -32602 for the parameters of %s %j', async (method, params) => {
    expect((await rpcCall(devnet, method, ...params)).error?.code).toBe(-32602)
  })
})

// test/e2e/gateway compares every method at every tag, every filter and every field with what is sent here, through a relay.
describe('a block', () => {
  it('at pending has latest as its parent and neither a hash nor a state root', async () => {
    const [latest, pending] = [await block('latest'), await block('pending')]
    expect(pending).toMatchObject({ number: number(1), hash: ZERO_HASH, stateRoot: ZERO_HASH, parentHash: latest.hash })
    expect(Number(pending.timestamp)).toBe(Number(latest.timestamp) + 2)
  })

  it('is 100 back at finalized, and 30 back at safe', async () => {
    expect([(await block('finalized')).number, (await block('safe')).number]).toEqual([number(-100), number(-30)])
  })

  it('links to its parent by hash', async () => {
    for (let above = 0; above > -20; above--) {
      expect((await block(number(above))).parentHash).toBe((await block(number(above - 1))).hash)
    }
  })

  it('sets three bits of the bloom for the address and each topic', async () => {
    const bitsOf = async (at: string) => [...BigInt((await block(at)).logsBloom).toString(2)].filter((bit) => bit === '1').length
    // The token, the event, and Alice, Bob and zero.
    expect([await bitsOf('latest'), await bitsOf('safe')]).toEqual([15, 0])
  })

  it('has receipts that sum up its gas', async () => {
    const Receipts = z.array(z.object({ gasUsed: z.string(), cumulativeGasUsed: z.string() }))
    const [first, second] = Receipts.parse(await rpcResult(devnet, 'eth_getBlockReceipts', 'latest'))
    expect(first?.cumulativeGasUsed).toBe(first?.gasUsed)
    expect(second?.cumulativeGasUsed).toBe(quantity(Number(first?.gasUsed) + Number(second?.gasUsed)))
    expect(second?.cumulativeGasUsed).toBe((await block('latest')).gasUsed)
  })
})

describe('the state of an account', () => {
  it.each([
    ['latest', 300n],
    ['pending', 250n],
    ['safe', 0n],
  ])('has a balance at %s in the slot of a Solidity mapping', async (tag, raw) => {
    expect(await rpcResult(devnet, 'eth_getStorageAt', token, SLOT_OF_ALICE, tag)).toBe(toWord(raw))
  })

  it('has the total supply in slot 2, which may be written short or in 32 bytes', async () => {
    const supply = devnet.chain.valueAt(supplyKey(devnet.list.addressOf('AAPLc')), 'pending')
    for (const slot of ['0x2', toWord(2n)])
      expect(await rpcResult(devnet, 'eth_getStorageAt', token, slot, 'latest')).toBe(toWord(supply))
  })

  it('is known from before the oldest block on, because that block can be undone', async () => {
    const codeAt = async (block: number) => (await rpcCall(devnet, 'eth_getBalance', ALICE, quantity(block))).error?.code
    const { oldest, head } = devnet.chain
    expect([await codeAt(oldest - 1), await codeAt(oldest - 2), await codeAt(head.number + 1)]).toEqual([undefined, -32000, -32001])
  })
})

describe('eth_getLogs', () => {
  it.each<[string, () => Record<string, unknown>, number]>([
    ['pending to latest', () => ({ fromBlock: 'pending', toBlock: 'latest' }), 0],
    ['only from pending', () => ({ fromBlock: 'pending' }), 0],
    ['only to pending', () => ({ toBlock: 'pending' }), 3],
    ['from above the head to pending', () => ({ fromBlock: number(1), toBlock: 'pending' }), 1],
    ['a block by its hash in capitals', () => ({ blockHash: devnet.chain.head.hash.toUpperCase().replace('0X', '0x') }), 2],
    [
      'a block by its hash, ignoring the range',
      () => ({ blockHash: devnet.chain.head.hash, fromBlock: number(-5), toBlock: 'pending' }),
      2,
    ],
    ['one receiver in a block by its hash', () => ({ blockHash: devnet.chain.head.hash, topics: [[], [], toWord(BOB as Hex)] }), 1],
  ])('reads %s', async (_, filter, count) => {
    expect(await getLogs(devnet, filter())).toHaveLength(count)
  })

  it.each<[string, () => Record<string, unknown>, number, string]>([
    ['2,001 blocks', () => ({ fromBlock: number(-2000), toBlock: number() }), -32602, 'block range greater than 2000 max'],
    ['the whole chain', () => ({ fromBlock: 'earliest', toBlock: 'pending' }), -32602, 'block range greater than 2000 max'],
    ['a range that ends before it starts', () => ({ fromBlock: 'latest', toBlock: 'safe' }), -32602, 'invalid block range params'],
    ['an unknown block hash', () => ({ blockHash: ZERO_HASH }), -32001, `block not found: hash ${ZERO_HASH}`],
    ['pruned blocks', () => ({ fromBlock: number(-1999), toBlock: number() }), -32000, 'pruned history unavailable'],
  ])('refuses %s', async (_, filter, code, message) => {
    expect(await rpcCall(devnet, 'eth_getLogs', filter())).toMatchObject({ status: 200, error: { code, message } })
  })

  it('answers a range of exactly 2,000 blocks once the chain has them, and the chain keeps a few more', async () => {
    const fresh = await startManualDevnet()
    for (let more = 0; more < 1_600; more++) fresh.seal()
    const { head, oldest } = fresh.chain
    expect(await getLogs(fresh, { fromBlock: quantity(head.number - 1_999), toBlock: 'pending' })).toEqual([])
    expect(head.number - oldest).toBe(2_047)
    expect(fresh.chain.block(oldest - 1)).toBeUndefined()
  })
})

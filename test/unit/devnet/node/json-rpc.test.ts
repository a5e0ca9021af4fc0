import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Devnet, startDevnet } from '../../../../src/devnet/devnet.ts'
import { quantity, toWord } from '../../../../src/lib/hex.ts'
import { ALICE, BlockSchema, BOB, post, rpcCall, rpcResult, startManualDevnet, ZERO, ZERO_HASH } from '../devnet-client.ts'

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

  // The relay and the devnet share the schemas of the parameters, which test/unit/protocol tests.
  it.each<[string, unknown, number, number, Record<string, string>?]>([
    ['text that is not JSON', '{"jsonrpc":', -32700, 400],
    ['jsonrpc 1.0', { ...call, jsonrpc: '1.0' }, -32600, 400],
    ['a request without an id', { ...call, id: undefined }, -32600, 400],
    ['parameters that are no array', { ...call, params: { block: 'latest' } }, -32600, 400],
    ['an empty batch', [], -32600, 400],
    ['a batch of 101', Array(101).fill(call), -32014, 413],
    ['a request over 1 MiB', { ...call, params: ['x'.repeat(1_100_000)] }, -32021, 413],
    ['a subscription without a socket', { ...call, method: 'eth_subscribe', params: ['logs'] }, -32601, 200],
    ['a property that every object has', { ...call, method: 'constructor' }, -32601, 200],
    ['parameters of another form', { ...call, method: 'eth_getBlockByNumber', params: ['newest', false] }, -32602, 200],
    ['another content type than application/json', call, -32600, 415, { 'content-type': 'text/plain' }],
  ])('is refused for %s', async (_, body, code, status, headers) => {
    const answer = await post(devnet, body, headers)
    expect(answer.status).toBe(status)
    expect(answer.json).toMatchObject({ jsonrpc: '2.0', error: { code } })
  })
})

// test/e2e/gateway compares every method at every tag, every filter and every field with what is sent here, through a relay.
describe('a block', () => {
  it('at pending is one block time after latest, without a state root', async () => {
    const [latest, pending] = [await block('latest'), await block('pending')]
    expect(pending).toMatchObject({ stateRoot: ZERO_HASH, timestamp: quantity(Number(latest.timestamp) + 2) })
  })

  it('sets three bits of the bloom for the address and each topic', async () => {
    const bitsOf = async (at: string) => [...BigInt((await block(at)).logsBloom).toString(2)].filter((bit) => bit === '1').length
    // The token, the event, and Alice, Bob and zero.
    expect([await bitsOf('latest'), await bitsOf('safe')]).toEqual([15, 0])
  })

  it('has receipts that sum up its gas', async () => {
    const Receipts = z.array(z.object({ gasUsed: z.string().transform(Number), cumulativeGasUsed: z.string() }))
    const receipts = Receipts.parse(await rpcResult(devnet, 'eth_getBlockReceipts', 'latest'))
    const [first = 0, second = 0] = receipts.map(({ gasUsed }) => gasUsed)
    expect(receipts.map(({ cumulativeGasUsed }) => cumulativeGasUsed)).toEqual([quantity(first), quantity(first + second)])
    expect((await block('latest')).gasUsed).toBe(quantity(first + second))
  })

  it('is kept until it is one of 2,048, and its state is known from before the oldest one on, because that can be undone', async () => {
    const fresh = await startManualDevnet()
    for (let more = 0; more < 1_600; more++) fresh.seal()
    const { head, oldest } = fresh.chain
    expect(head.number - oldest).toBe(2_047)
    expect(fresh.chain.block(oldest - 1)).toBeUndefined()
    const codeAt = async (number: number) => (await rpcCall(fresh, 'eth_getBalance', ALICE, quantity(number))).error?.code
    expect([await codeAt(oldest - 1), await codeAt(oldest - 2), await codeAt(head.number + 1)]).toEqual([undefined, -32000, -32001])
    const logsCodeAt = async (at: number) =>
      (await rpcCall(fresh, 'eth_getLogs', { fromBlock: quantity(at), toBlock: quantity(at) })).error?.code
    expect([await logsCodeAt(oldest), await logsCodeAt(oldest - 1)]).toEqual([undefined, -32000])
  })
})

it.each([
  ['latest', 300n],
  ['pending', 250n],
  ['safe', 0n],
])('a balance at %s is in the slot of a Solidity mapping', async (tag, raw) => {
  expect(await rpcResult(devnet, 'eth_getStorageAt', token, SLOT_OF_ALICE, tag)).toBe(toWord(raw))
})

it.each<[string, () => Record<string, unknown>, number, string]>([
  ['2,001 blocks', () => ({ fromBlock: number(-2000), toBlock: number() }), -32602, 'block range greater than 2000 max'],
  ['the whole chain', () => ({ fromBlock: 'earliest', toBlock: 'pending' }), -32602, 'block range greater than 2000 max'],
  ['pruned blocks', () => ({ fromBlock: number(-1999), toBlock: number() }), -32000, 'pruned history unavailable'],
])('eth_getLogs refuses %s', async (_, filter, code, message) => {
  expect(await rpcCall(devnet, 'eth_getLogs', filter())).toMatchObject({ status: 200, error: { code, message } })
})

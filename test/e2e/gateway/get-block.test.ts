import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blockTags } from '../../../src/chain/rpc/methods.ts'
import { BlockSchema, rpcCall, ZERO_HASH } from '../../unit/devnet/devnet-client.ts'
import {
  expectSameAnswer,
  type GatewayStack,
  openGatewayForTest,
  openGatewayStack,
  quantity,
} from './node-and-gateway.ts'

let stack: GatewayStack
beforeAll(async () => {
  stack = await openGatewayStack()
})
afterAll(() => stack.stop())

const block = async (at: string, full = false) =>
  BlockSchema.parse(await expectSameAnswer(stack, 'eth_getBlockByNumber', at, full))

describe('a block parameter', () => {
  it.each(blockTags)('may be the tag %s', async (tag) => {
    const { head } = stack.devnet.chain
    const heights = {
      latest: head.number,
      pending: head.number + 1,
      safe: head.number - 30,
      finalized: head.number - 100,
      earliest: 0,
    }
    expect((await block(tag)).number).toBe(quantity(heights[tag]))
  })

  it('may be a block number in hex, of either case', async () => {
    const { number, hash } = stack.devnet.chain.head
    for (const written of [quantity(number), `0x${number.toString(16).toUpperCase()}`])
      expect(await block(written)).toMatchObject({ number: quantity(number), hash })
  })

  it('is no number that JSON writes, no number with zeros in front, and no other word', async () => {
    for (const wrong of [1, '1', '0x01', '0x', 'newest', 'LATEST', '', null, {}, ['latest']]) {
      const answer = await rpcCall(stack.node, 'eth_getBlockByNumber', wrong, false)
      expect(answer).toMatchObject({ status: 200, error: { code: -32602 } })
      expect(answer.error?.message).toContain('params[0]')
    }
  })
})

describe('eth_getBlockByNumber through the relay', () => {
  const fields = [
    'number',
    'hash',
    'parentHash',
    'nonce',
    'sha3Uncles',
    'logsBloom',
    'transactionsRoot',
    'stateRoot',
    'receiptsRoot',
    'miner',
    'difficulty',
    'mixHash',
    'extraData',
    'size',
    'gasLimit',
    'gasUsed',
    'timestamp',
    'transactions',
    'uncles',
    'withdrawals',
    'withdrawalsRoot',
    'baseFeePerGas',
    'blobGasUsed',
    'excessBlobGas',
    'parentBeaconBlockRoot',
    'requestsHash',
  ]

  describe.each(blockTags)('at %s', (tag) => {
    it.each(fields)("has the node's own %s", async (field) => {
      expect((await block(tag))[field]).toEqual(expect.anything())
    })

    it('has these fields and no others', async () => {
      expect(Object.keys(await block(tag)).toSorted()).toEqual(fields.toSorted())
    })

    it('has the nonce, the difficulty, the uncles and the withdrawals that all blocks of this chain have', async () => {
      expect(await block(tag)).toMatchObject({
        nonce: '0x0000000000000000',
        difficulty: '0x0',
        uncles: [],
        withdrawals: [],
      })
    })
  })

  it('answers hashes where fullTransactions is false, and whole transactions where it is true', async () => {
    for (const [tag, count] of [
      ['latest', 2],
      ['pending', 1],
    ] as const) {
      const hashes = (await block(tag)).transactions
      const { transactions } = await block(tag, true)
      expect(hashes).toHaveLength(count)
      expect(transactions).toMatchObject(hashes.map((hash, at) => ({ hash, transactionIndex: quantity(at) })))
    }
  })

  it('needs fullTransactions, a boolean, and takes no third parameter', async () => {
    for (const params of [['latest'], ['latest', 'true'], ['latest', 1], ['latest', null], ['latest', false, 1], []]) {
      const { status, error } = await rpcCall(stack.node, 'eth_getBlockByNumber', ...params)
      expect({ status, code: error?.code }).toEqual({ status: 200, code: -32602 })
    }
  })

  it.each<[string, () => string]>([
    ['above what is being built', () => quantity(stack.devnet.chain.head.number + 2)],
    ['of the far future', () => `0x${'f'.repeat(64)}`],
    ['of a block that the node no longer has', () => '0x5'],
  ])('answers null for a number %s', async (_, at) => {
    expect(await expectSameAnswer(stack, 'eth_getBlockByNumber', at(), false)).toBeNull()
  })

  it('answers a number that was above the head once it is sealed', async () => {
    const { devnet, node } = await openGatewayForTest()
    const next = quantity(devnet.chain.head.number + 1)
    expect((await rpcCall(node, 'eth_getBlockByNumber', next, false)).result).toBeNull()
    const { hash } = devnet.seal()
    expect((await rpcCall(node, 'eth_getBlockByNumber', next, false)).result).toMatchObject({ hash })
  })
})

describe('a pending block', () => {
  it('has a number and the hash that the node gives it', async () => {
    expect((await block('pending')).hash).toBe(ZERO_HASH)
    const own = await openGatewayForTest()
    own.devnet.faults.pending = 'partial'
    const { hash, number } = BlockSchema.parse(await expectSameAnswer(own, 'eth_getBlockByNumber', 'pending', false))
    expect(number).toBe(quantity(own.devnet.chain.head.number + 1))
    expect([ZERO_HASH, own.devnet.chain.head.hash]).not.toContain(hash)
  })

  it('has neither number nor hash where the node gives it none', async () => {
    const own = await openGatewayForTest()
    own.devnet.faults.pending = 'numberless'
    expect(await expectSameAnswer(own, 'eth_getBlockByNumber', 'pending', false)).toMatchObject({
      number: null,
      hash: null,
    })
  })

  it('is null where the node has none', async () => {
    const own = await openGatewayForTest()
    own.devnet.faults.pending = 'null'
    expect(await expectSameAnswer(own, 'eth_getBlockByNumber', 'pending', false)).toBeNull()
  })
})

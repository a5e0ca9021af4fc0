import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Devnet, startDevnet } from '../../../../src/devnet/devnet.ts'
import {
  ALICE,
  BlockSchema,
  BOB,
  getLogs,
  LogSchema,
  post,
  rpcCall,
  rpcResult,
  startManualDevnet,
  ZERO,
  ZERO_HASH,
} from '../devnet-client.ts'

const hex = (digits: number) => new RegExp(`^0x[0-9a-f]{${digits}}$`)
const QUANTITY = /^0x(0|[1-9a-f][0-9a-f]*)$/
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const quantity = (amount: number) => `0x${amount.toString(16)}`

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

const block = async (at: string, full = false) => BlockSchema.parse(await rpcResult(devnet, 'eth_getBlockByNumber', at, full))

describe('a JSON-RPC request', () => {
  it('gets an answer with jsonrpc 2.0 and its id', async () => {
    for (const id of [7, 'seven', null]) {
      const { json } = await post(devnet, { jsonrpc: '2.0', id, method: 'eth_chainId', params: [] })
      expect(json).toEqual({ jsonrpc: '2.0', id, result: quantity(devnet.chainId) })
    }
  })

  it('is accepted on / as on /rpc', async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_blockNumber' })
    const response = await fetch(devnet.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    expect(await response.json()).toMatchObject({ result: quantity(devnet.chain.head.number) })
  })

  it('gets its own result or error in a batch', async () => {
    const { status, json } = await post(devnet, [
      { jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] },
      { jsonrpc: '2.0', id: 2, method: 'eth_nothing', params: [] },
      'garbage',
    ])
    expect(status).toBe(200)
    expect(json).toMatchObject([
      { id: 1, result: quantity(devnet.chainId) },
      { id: 2, error: { code: -32601 } },
      { id: null, error: { code: -32600 } },
    ])
  })

  const call = { jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }
  it.each<[string, unknown, number, number]>([
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
  ])('is refused for %s', async (_, body, code, status) => {
    const answer = await post(devnet, body)
    expect(answer.status).toBe(status)
    expect(answer.json).toMatchObject({ jsonrpc: '2.0', error: { code } })
  })

  it('is refused with another content type than application/json', async () => {
    expect((await post(devnet, call, { 'content-type': 'text/plain' })).status).toBe(415)
  })
})

describe('parameters', () => {
  it.each<[string, string, unknown[]]>([
    ['a block that is neither number nor tag', 'eth_getBlockByNumber', ['newest', false]],
    ['a block number with a leading zero', 'eth_getBlockByNumber', ['0x01', false]],
    ['a block number that is a number', 'eth_getBlockByNumber', [1, false]],
    ['a missing fullTransactions', 'eth_getBlockByNumber', ['latest']],
    ['a missing block', 'eth_getBlockByNumber', []],
    ['a missing filter', 'eth_getLogs', []],
    ['a filter without any criterion', 'eth_getLogs', [{}]],
    ['an address that is too short', 'eth_getLogs', [{ address: '0x12' }]],
    ['a topic that is too short', 'eth_getLogs', [{ topics: ['0x12'] }]],
    ['five topics', 'eth_getLogs', [{ topics: [null, null, null, null, null] }]],
    ['receipts of no block', 'eth_getBlockReceipts', []],
    ['a slot that is not hex', 'eth_getStorageAt', [ALICE, 'two', 'latest']],
    ['a slot at no block', 'eth_getStorageAt', [ALICE, '0x2']],
    ['a count at no block', 'eth_getTransactionCount', [ALICE]],
    ['code at no block', 'eth_getCode', [ALICE]],
    ['a balance of no address', 'eth_getBalance', ['latest', 'latest']],
  ])('are refused with -32602 for %s', async (_, method, params) => {
    expect((await rpcCall(devnet, method, ...params)).error?.code).toBe(-32602)
  })
})

describe('eth_getBlockByNumber', () => {
  const fields: Record<string, RegExp> = {
    number: QUANTITY,
    hash: hex(64),
    parentHash: hex(64),
    nonce: /^0x0000000000000000$/,
    sha3Uncles: /^0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347$/,
    logsBloom: hex(512),
    transactionsRoot: hex(64),
    stateRoot: hex(64),
    receiptsRoot: hex(64),
    miner: hex(40),
    difficulty: /^0x0$/,
    mixHash: hex(64),
    extraData: /^0x[0-9a-f]*$/,
    size: QUANTITY,
    gasLimit: QUANTITY,
    gasUsed: QUANTITY,
    timestamp: QUANTITY,
    withdrawalsRoot: hex(64),
    baseFeePerGas: QUANTITY,
    blobGasUsed: QUANTITY,
    excessBlobGas: QUANTITY,
    parentBeaconBlockRoot: hex(64),
    requestsHash: hex(64),
  }
  describe.each(['latest', 'pending', 'safe', 'finalized', 'earliest'])('at %s', (tag) => {
    it.each(Object.entries(fields))('has the field %s', async (field, pattern) => {
      expect((await block(tag))[field]).toMatch(pattern)
    })

    it('has a list of transactions, no uncles and no withdrawals', async () => {
      const answer = await block(tag)
      expect(answer).toMatchObject({ uncles: [], withdrawals: [] })
      expect(Object.keys(answer).toSorted()).toEqual([...Object.keys(fields), 'transactions', 'uncles', 'withdrawals'].toSorted())
    })
  })

  it('answers hashes, or full transactions when fullTransactions is true', async () => {
    const { transactions: hashes, number, hash } = await block('latest')
    const { transactions } = await block('latest', true)
    expect(hashes).toHaveLength(2)
    expect(transactions).toMatchObject(
      hashes.map((name, index) => ({
        hash: name,
        blockHash: hash,
        blockNumber: number,
        transactionIndex: quantity(index),
        to: token,
        value: '0x0',
        type: '0x2',
        chainId: quantity(devnet.chainId),
      })),
    )
  })

  it('answers pending one above latest, with latest as its parent and without a hash or a state root', async () => {
    const [latest, pending] = [await block('latest'), await block('pending')]
    expect(Number(pending.number)).toBe(Number(latest.number) + 1)
    expect(pending).toMatchObject({ hash: ZERO_HASH, stateRoot: ZERO_HASH, parentHash: latest.hash })
    expect(Number(pending.timestamp)).toBe(Number(latest.timestamp) + 2)
  })

  it('answers the pre-confirmed transactions, gas and data in pending, and the sealed ones in latest', async () => {
    const freshDevnet = await startManualDevnet()
    const blockAt = async (tag: string) => BlockSchema.parse(await rpcResult(freshDevnet, 'eth_getBlockByNumber', tag, false))
    const sizes: unknown[] = []
    for (let made = 0; made < 3; made++) {
      const { transactions, gasUsed, blobGasUsed } = await blockAt('pending')
      sizes.push([transactions.length, Number(gasUsed) > made, Number(blobGasUsed) > made])
      freshDevnet.transfer({ symbol: 'TSLAc', raw: 1n, to: BOB })
      freshDevnet.makeFlashblock()
    }
    expect(sizes).toEqual([
      [0, false, false],
      [1, true, true],
      [2, true, true],
    ])
    const before = await blockAt('pending')
    freshDevnet.seal()
    const after = await blockAt('latest')
    expect(after).toMatchObject({ transactions: before.transactions, gasUsed: before.gasUsed, number: before.number })
    expect(after.hash).not.toBe(ZERO_HASH)
    expect((await blockAt('pending')).transactions).toEqual([])
  })

  it('links blocks by parent hash', async () => {
    const head = devnet.chain.head.number
    for (let number = head; number > head - 20; number--) {
      expect((await block(quantity(number))).parentHash).toBe((await block(quantity(number - 1))).hash)
    }
  })

  it('sets the bloom bits of the address and the topics', async () => {
    const { logsBloom } = await block('latest')
    expect(BigInt(logsBloom)).not.toBe(0n)
    expect(BigInt((await block('safe')).logsBloom)).toBe(0n)
  })

  it('answers safe behind latest, and finalized behind safe', async () => {
    const numbers = await Promise.all(['finalized', 'safe', 'latest'].map(async (tag) => Number((await block(tag)).number)))
    const head = devnet.chain.head.number
    expect(numbers).toEqual([head - 100, head - 30, head])
  })

  it('answers block 0 for earliest', async () => {
    expect((await block('earliest')).number).toBe('0x0')
  })

  it.each([
    ['a number above the head', () => quantity(devnet.chain.head.number + 1)],
    ['a number far above the head', () => `0x${'f'.repeat(64)}`],
    ['a block that is no longer kept', () => '0x5'],
  ])('is null for %s', async (_, at) => {
    expect(await rpcResult(devnet, 'eth_getBlockByNumber', at(), false)).toBeNull()
  })
})

describe('eth_getLogs', () => {
  const number = (above = 0) => quantity(devnet.chain.head.number + above)

  it.each(Object.entries(LogSchema.shape))('answers logs with the field %s', async (field, schema) => {
    for (const log of [
      ...(await getLogs(devnet, { address: token })),
      ...(await getLogs(devnet, { fromBlock: 'pending', toBlock: 'pending' })),
    ]) {
      expect(() => schema.parse(log[field as keyof typeof log])).not.toThrow()
    }
  })

  it('answers a sealed log with its block and indexes', async () => {
    const { hash, timestamp } = await block('latest')
    expect(await getLogs(devnet, { fromBlock: 'latest', toBlock: 'latest' })).toMatchObject([
      { blockHash: hash, blockNumber: number(), blockTimestamp: timestamp, transactionIndex: '0x0', logIndex: '0x0' },
      { blockHash: hash, blockNumber: number(), blockTimestamp: timestamp, transactionIndex: '0x1', logIndex: '0x1' },
    ])
  })

  it('answers a pre-confirmed log with its indexes and a zero block hash', async () => {
    expect(await getLogs(devnet, { fromBlock: 'pending', toBlock: 'pending' })).toMatchObject([
      { blockHash: ZERO_HASH, blockNumber: number(1), transactionIndex: '0x0', logIndex: '0x0', removed: false },
    ])
  })

  it.each<[string, Record<string, unknown>, number]>([
    ['latest by default', { address: [] }, 2],
    ['latest to latest', { fromBlock: 'latest', toBlock: 'latest' }, 2],
    ['latest to pending', { fromBlock: 'latest', toBlock: 'pending' }, 3],
    ['pending to pending', { fromBlock: 'pending', toBlock: 'pending' }, 1],
    ['pending to latest', { fromBlock: 'pending', toBlock: 'latest' }, 0],
    ['only from pending', { fromBlock: 'pending' }, 0],
    ['only to pending', { toBlock: 'pending' }, 3],
    ['safe to latest', { fromBlock: 'safe', toBlock: 'latest' }, 2],
    ['finalized to safe', { fromBlock: 'finalized', toBlock: 'safe' }, 0],
    ['earliest to earliest', { fromBlock: 'earliest', toBlock: 'earliest' }, 0],
  ])('reads %s', async (_, filter, count) => {
    expect(await getLogs(devnet, filter)).toHaveLength(count)
  })

  it.each<[string, () => Record<string, unknown>, number]>([
    ['from a number to pending, first sealed and then pre-confirmed logs', () => ({ fromBlock: number(), toBlock: 'pending' }), 3],
    ['from a number to a number', () => ({ fromBlock: number(-5), toBlock: number() }), 2],
    ['to a number above the head, up to the head', () => ({ fromBlock: number(), toBlock: number(9) }), 2],
    ['from above the head, which finds nothing', () => ({ fromBlock: number(1), toBlock: number(5) }), 0],
    ['from above the head to pending', () => ({ fromBlock: number(1), toBlock: 'pending' }), 1],
    ['a block by its hash', () => ({ blockHash: devnet.chain.head.hash }), 2],
    [
      'a block by its hash, ignoring fromBlock and toBlock',
      () => ({ blockHash: devnet.chain.head.hash, fromBlock: number(-5), toBlock: 'pending' }),
      2,
    ],
  ])('reads %s', async (_, filter, count) => {
    expect(await getLogs(devnet, filter())).toHaveLength(count)
  })

  const padded = (address: string) => `0x${address.slice(2).padStart(64, '0')}`
  it.each<[string, () => Record<string, unknown>, number]>([
    ['one address, in any case', () => ({ address: token.toUpperCase().replace('0X', '0x') }), 2],
    ['a list of addresses', () => ({ address: [ALICE, token] }), 2],
    ['an address without logs', () => ({ address: ALICE }), 0],
    ['the first topic', () => ({ topics: [TRANSFER] }), 2],
    ['null for any', () => ({ topics: [null, padded(ALICE)] }), 1],
    [
      'one of several topics',
      () => ({
        topics: [
          [TRANSFER, ZERO_HASH],
          [padded(ALICE), padded(ZERO)],
        ],
      }),
      2,
    ],
    ['an empty list for any', () => ({ topics: [[], [], padded(BOB)] }), 1],
    ['another event', () => ({ topics: [ZERO_HASH] }), 0],
    ['a topic where the log has none', () => ({ topics: [TRANSFER, null, null, ZERO_HASH] }), 0],
  ])('filters by %s', async (_, filter, count) => {
    expect(await getLogs(devnet, filter())).toHaveLength(count)
  })

  it.each<[string, () => Record<string, unknown>, number, string]>([
    ['2,001 blocks', () => ({ fromBlock: number(-2000), toBlock: number() }), -32602, 'block range greater than 2000 max'],
    [
      'the whole chain from earliest',
      () => ({ fromBlock: 'earliest', toBlock: 'pending' }),
      -32602,
      'block range greater than 2000 max',
    ],
    ['a range that ends before it starts', () => ({ fromBlock: 'latest', toBlock: 'safe' }), -32602, 'invalid block range params'],
    ['an unknown block hash', () => ({ blockHash: ZERO_HASH }), -32001, `block not found: hash ${ZERO_HASH}`],
    [
      'blocks that are no longer kept',
      () => ({ fromBlock: number(-1999), toBlock: number() }),
      -32000,
      'pruned history unavailable',
    ],
  ])('refuses %s', async (_, filter, code, message) => {
    const { status, error } = await rpcCall(devnet, 'eth_getLogs', filter())
    expect({ status, error }).toEqual({ status: 200, error: { code, message } })
  })

  it('answers a range of exactly 2,000 blocks once the chain has them', async () => {
    const freshDevnet = await startManualDevnet()
    for (let more = 0; more < 1_600; more++) freshDevnet.seal()
    const head = freshDevnet.chain.head.number
    expect(await getLogs(freshDevnet, { fromBlock: quantity(head - 1_999), toBlock: 'pending' })).toEqual([])
    expect(freshDevnet.chain.head.number - freshDevnet.chain.oldest).toBe(2_047)
    expect(freshDevnet.chain.block(freshDevnet.chain.oldest - 1)).toBeUndefined()
  })

  it.each<[string, 'rangeBound' | 'resultsBound', string]>([
    ['a smaller range', 'rangeBound', 'block range greater than 1 max'],
    ['fewer results', 'resultsBound', 'query exceeds max results 1'],
  ])('allows only %s with a lower bound', async (_, bound, message) => {
    const freshDevnet = await startManualDevnet()
    freshDevnet.transfer({ symbol: 'TSLAc', raw: 1n })
    freshDevnet.transfer({ symbol: 'TSLAc', raw: 2n })
    freshDevnet.makeFlashblock()
    freshDevnet.seal()
    freshDevnet.faults[bound] = 1
    const from = quantity(freshDevnet.chain.head.number - 1)
    expect((await rpcCall(freshDevnet, 'eth_getLogs', { fromBlock: from, toBlock: 'latest' })).error).toEqual({
      code: -32602,
      message,
    })
  })
})

const Receipts = z.array(
  z.looseObject({
    transactionHash: z.string().regex(hex(64)),
    blockNumber: z.string().regex(QUANTITY),
    status: z.literal('0x1'),
    gasUsed: z.string().regex(QUANTITY),
    type: z.literal('0x2'),
    logs: z.array(LogSchema),
  }),
)

describe('eth_getBlockReceipts', () => {
  it.each(['transactionHash', 'blockNumber', 'status', 'gasUsed', 'type'])('answers receipts with the field %s', async (field) => {
    for (const receipt of Receipts.parse(await rpcResult(devnet, 'eth_getBlockReceipts', 'latest'))) {
      expect(receipt[field]).toMatch(field === 'transactionHash' ? hex(64) : QUANTITY)
    }
  })

  it.each([
    ['latest', 2],
    ['pending', 1],
    ['safe', 0],
    ['finalized', 0],
    ['earliest', 0],
  ])('answers one receipt for each transaction of %s', async (tag, count) => {
    const receipts = Receipts.parse(await rpcResult(devnet, 'eth_getBlockReceipts', tag))
    expect(receipts).toHaveLength(count)
    expect(receipts.map((receipt) => receipt.transactionHash)).toEqual((await block(tag)).transactions)
  })

  it('sums up the gas of the block, and has the logs of the block', async () => {
    const receipts = Receipts.parse(await rpcResult(devnet, 'eth_getBlockReceipts', 'latest'))
    expect(receipts.at(-1)?.cumulativeGasUsed).toBe((await block('latest')).gasUsed)
    expect(receipts.flatMap((receipt) => receipt.logs)).toEqual(await getLogs(devnet, { fromBlock: 'latest' }))
  })

  it('is null for an unknown block', async () => {
    expect(await rpcResult(devnet, 'eth_getBlockReceipts', quantity(devnet.chain.head.number + 9))).toBeNull()
  })

  it('is refused with 403 on a public endpoint, which is the default', async () => {
    const freshDevnet = await startManualDevnet()
    const { status, error } = await rpcCall(freshDevnet, 'eth_getBlockReceipts', 'latest')
    expect({ status, error }).toEqual({ status: 403, error: { code: -32601, message: 'rpc method is not whitelisted' } })
  })
})

describe('account state', () => {
  const tags = ['earliest', 'finalized', 'safe', 'latest', 'pending']

  it.each([
    ['earliest', '0x0'],
    ['finalized', '0x0'],
    ['safe', '0x0'],
    ['latest', '0x1'],
    ['pending', '0x2'],
  ])('counts the transactions of a sender at %s', async (tag, count) => {
    expect(await rpcResult(devnet, 'eth_getTransactionCount', ALICE, tag)).toBe(count)
  })

  it('has the total supply at slot 2, pre-confirmed or sealed', async () => {
    const freshDevnet = await startManualDevnet()
    const supplyAt = async (tag: string) =>
      BigInt(z.string().parse(await rpcResult(freshDevnet, 'eth_getStorageAt', token, '0x2', tag)))
    const before = await supplyAt('latest')
    freshDevnet.transfer({ symbol: 'AAPLc', from: ZERO, raw: 70n })
    freshDevnet.makeFlashblock()
    expect([await supplyAt('latest'), await supplyAt('pending')]).toEqual([before, before + 70n])
    freshDevnet.seal()
    expect([await supplyAt('safe'), await supplyAt('latest')]).toEqual([before, before + 70n])
  })

  it.each(['0x2', `0x${'2'.padStart(64, '0')}`])('accepts the slot as %s', async (slot) => {
    expect(await rpcResult(devnet, 'eth_getStorageAt', token, slot, 'latest')).toMatch(hex(64))
  })

  it.each(tags)('answers an untouched slot at %s with zeros', async (tag) => {
    expect(await rpcResult(devnet, 'eth_getStorageAt', BOB, '0x7', tag)).toBe(ZERO_HASH)
  })

  it.each(tags)('has 0xef as the code of a token at %s, and none for an account', async (tag) => {
    expect(await rpcResult(devnet, 'eth_getCode', token, tag)).toBe('0xef')
    expect(await rpcResult(devnet, 'eth_getCode', ALICE, tag)).toBe('0x')
  })

  it('shows the code of a new token before the block is sealed', async () => {
    const freshDevnet = await startManualDevnet()
    const fresh = `0xb2${'0'.repeat(36)}99`
    freshDevnet.transfer({ address: fresh, from: ZERO, to: ALICE, raw: 1n })
    freshDevnet.makeFlashblock()
    expect(await rpcResult(freshDevnet, 'eth_getCode', fresh, 'latest')).toBe('0x')
    expect(await rpcResult(freshDevnet, 'eth_getCode', fresh, 'pending')).toBe('0xef')
    freshDevnet.seal()
    expect(await rpcResult(freshDevnet, 'eth_getCode', fresh, 'latest')).toBe('0xef')
  })

  it.each(tags)('answers a balance at %s in wei', async (tag) => {
    expect(await rpcResult(devnet, 'eth_getBalance', devnet.custodian, tag)).toMatch(QUANTITY)
    expect(await rpcResult(devnet, 'eth_getBalance', BOB, tag)).toBe('0x0')
  })

  it('charges the gas to the sender, first pre-confirmed and then sealed', async () => {
    const freshDevnet = await startManualDevnet({ receipts: true })
    const etherAt = async (tag: string) =>
      BigInt(z.string().parse(await rpcResult(freshDevnet, 'eth_getBalance', freshDevnet.custodian, tag)))
    const before = await etherAt('latest')
    freshDevnet.transfer({ symbol: 'AAPLc', to: BOB, raw: 1n })
    freshDevnet.makeFlashblock()
    const [receipt] = Receipts.parse(await rpcResult(freshDevnet, 'eth_getBlockReceipts', 'pending'))
    const fee = BigInt(receipt?.gasUsed ?? 0) * BigInt(String(receipt?.effectiveGasPrice))
    expect([await etherAt('latest'), await etherAt('pending')]).toEqual([before, before - fee])
    freshDevnet.seal()
    expect([await etherAt('safe'), await etherAt('latest')]).toEqual([before, before - fee])
  })

  it.each<[string, unknown[]]>([
    ['eth_getStorageAt', [ALICE, '0x0']],
    ['eth_getTransactionCount', [ALICE]],
    ['eth_getCode', [ALICE]],
    ['eth_getBalance', [ALICE]],
  ])('is refused by %s above the head and for pruned blocks', async (method, params) => {
    const above = quantity(devnet.chain.head.number + 1)
    expect((await rpcCall(devnet, method, ...params, above)).error?.code).toBe(-32001)
    expect((await rpcCall(devnet, method, ...params, '0x5')).error?.code).toBe(-32000)
  })
})

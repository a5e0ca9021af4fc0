import { describe, expect, it } from 'vitest'
import { blockTags } from '../../../src/protocol/json-rpc-methods.ts'
import { ALICE, BlockSchema, BOB, LogSchema, rpcCall, rpcResult, ZERO_HASH } from '../../unit/devnet/devnet-client.ts'
import { expectSameAnswer, gatewayWithTransfers, openGatewayForTest, quantity } from './node-and-gateway.ts'

const gateway = gatewayWithTransfers({ receipts: true })
const head = () => gateway().devnet.chain.head
const token = () => gateway().devnet.list.addressOf('AAPLc')
const upperCase = (hex: string) => hex.toUpperCase().replace('0X', '0x')

type Call = readonly [method: string, ...params: unknown[]]
/** What a client asks, and the node's answer, which the relay must pass on. */
type Read = readonly [name: string, call: () => Call, result: unknown]
type Refusal = readonly [name: string, call: () => Call, code: number]

const blockFields = [
  ...['number', 'hash', 'parentHash', 'nonce', 'sha3Uncles', 'logsBloom', 'transactionsRoot', 'stateRoot'],
  ...['receiptsRoot', 'miner', 'difficulty', 'mixHash', 'extraData', 'size', 'gasLimit', 'gasUsed', 'timestamp'],
  ...['transactions', 'uncles', 'withdrawals', 'withdrawalsRoot', 'baseFeePerGas', 'blobGasUsed', 'excessBlobGas'],
  ...['parentBeaconBlockRoot', 'requestsHash'],
]
const wholeBlock = {
  ...Object.fromEntries(blockFields.map((field) => [field, expect.anything()])),
  ...{ nonce: '0x0000000000000000', difficulty: '0x0', uncles: [], withdrawals: [] },
}
const blockNumberAt = {
  latest: () => head().number,
  pending: () => head().number + 1,
  safe: () => head().number - 30,
  finalized: () => head().number - 100,
  earliest: () => 0,
}
const blockReferences: readonly (readonly [string, () => unknown])[] = [
  ['a number', () => quantity(head().number)],
  ['a hash', () => head().hash],
  ['a hash in an object', () => ({ blockHash: head().hash })],
]
const missingBlocks: readonly (readonly [string, () => string, number])[] = [
  ['above the head', () => quantity(head().number + 1), -32001],
  ['of an unknown hash', () => ZERO_HASH, -32001],
  ['whose state is pruned', () => '0x5', -32000],
]

type Results = Record<(typeof blockTags)[number], RegExp>
type StateRead = readonly [method: string, params: () => readonly string[], results: Results]
const always = (result: RegExp) => ({ earliest: result, finalized: result, safe: result, latest: result, pending: result })
const stateReads: readonly StateRead[] = [
  ['eth_getTransactionCount', () => [ALICE], { ...always(/^0x0$/), latest: /^0x1$/, pending: /^0x2$/ }],
  ['eth_getStorageAt', () => [BOB, '0x7'], always(/^0x0{64}$/)],
  ['eth_getCode', () => [token()], always(/^0xef$/)],
  ['eth_getCode', () => [ALICE], always(/^0x$/)],
  ['eth_getBalance', () => [BOB], always(/^0x0$/)],
  ['eth_getBalance', () => [gateway().devnet.custodian], always(/^0x[1-9a-f][0-9a-f]*$/)],
]

const reads: readonly Read[] = [
  ...['0x5', `0x${'f'.repeat(64)}`].map((at): Read => [`no block ${at}`, () => ['eth_getBlockByNumber', at, false], null]),
  ['no block above the pending one', () => ['eth_getBlockByNumber', quantity(head().number + 2), false], null],
  ['no receipts above the pending block', () => ['eth_getBlockReceipts', quantity(head().number + 9)], null],
  ...stateReads.flatMap(([method, params, results], row) =>
    blockTags.map(
      (tag): Read => [`${method} (${row}) at ${tag}`, () => [method, ...params(), tag], expect.stringMatching(results[tag])],
    ),
  ),
  ...stateReads.flatMap(([method, params, results], row) => [
    ...[...blockReferences, ['a number in an object', () => ({ blockNumber: quantity(head().number) })] as const].map(
      ([name, at]): Read => [
        `${method} (${row}) at ${name}`,
        () => [method, ...params(), at()],
        expect.stringMatching(results.latest),
      ],
    ),
    [
      `${method} (${row}) of an address in capitals`,
      () => [method, ...params().map((param, at) => (at === 0 ? upperCase(param) : param)), 'latest'],
      expect.stringMatching(results.latest),
    ] satisfies Read,
  ]),
  ...['0x2', `0x${'2'.padStart(64, '0')}`].map(
    (slot): Read => [
      `eth_getStorageAt of the slot ${slot}, a word of 32 bytes that is not zero`,
      () => ['eth_getStorageAt', token(), slot, 'latest'],
      expect.stringMatching(/^0x(?!0{64})[0-9a-f]{64}$/),
    ],
  ),
]

const refusals: readonly Refusal[] = [
  ['receipts of an unknown hash', () => ['eth_getBlockReceipts', ZERO_HASH], -32001],
  ['logs of an unknown hash', () => ['eth_getLogs', { blockHash: ZERO_HASH }], -32001],
  ['logs of a range that ends before it begins', () => ['eth_getLogs', { fromBlock: 'latest', toBlock: 'safe' }], -32602],
  ['logs that are pruned', () => ['eth_getLogs', { fromBlock: '0x5', toBlock: '0x6' }], -32000],
  ...stateReads.flatMap(([method, params], row) =>
    missingBlocks.map(
      ([name, at, code]): Refusal => [`${method} (${row}) at a block ${name}`, () => [method, ...params(), at()], code],
    ),
  ),
]

describe('the relay passes on the answer of the node', () => {
  it.each(reads)('%s', async (_, call, result) => {
    expect((await expectSameAnswer(gateway(), ...call())).result).toEqual(result)
  })

  it.each(refusals)('refused: %s', async (_, call, code) => {
    expect((await expectSameAnswer(gateway(), ...call())).error?.code).toBe(code)
  })

  it('the chain id and the newest sealed block', async () => {
    expect((await expectSameAnswer(gateway(), 'eth_chainId')).result).toBe(quantity(gateway().devnet.chainId))
    expect((await expectSameAnswer(gateway(), 'eth_blockNumber')).result).toBe(quantity(head().number))
  })

  it('a slot that pending transactions change', async () => {
    const supplyAt = async (tag: string) => (await expectSameAnswer(gateway(), 'eth_getStorageAt', token(), '0x2', tag)).result
    expect(await supplyAt('latest')).not.toBe(await supplyAt('safe'))
  })
})

describe('a block', () => {
  const block = async (at: string, full = false) =>
    BlockSchema.parse((await expectSameAnswer(gateway(), 'eth_getBlockByNumber', at, full)).result)
  const receipts = async (at: unknown) =>
    (await expectSameAnswer(gateway(), 'eth_getBlockReceipts', at)).result as { [field: string]: unknown }[]

  it.each(blockTags)('at %s has the fields of the node and no others', async (tag) => {
    expect(await block(tag)).toEqual({ ...wholeBlock, number: quantity(blockNumberAt[tag]()) })
  })

  it.each([(hex: string) => hex, upperCase])('is found by its number, in small letters or capitals (%#)', async (write) => {
    const { number, hash } = head()
    expect(await block(write(quantity(number)))).toMatchObject({ number: quantity(number), hash })
  })

  it.each([
    ['latest', 2],
    ['pending', 1],
  ])('at %s lists hashes, or whole transactions on request', async (tag, count) => {
    const hashes = (await block(tag)).transactions
    expect(hashes).toHaveLength(count)
    const { transactions } = await block(tag, true)
    expect(transactions).toMatchObject(hashes.map((hash, at) => ({ hash, transactionIndex: quantity(at) })))
  })

  it.each([
    ['latest', 2],
    ['pending', 1],
    ['safe', 0],
    ['finalized', 0],
    ['earliest', 0],
  ])('at %s has one receipt for each transaction', async (tag, count) => {
    const { transactions } = await block(tag)
    expect(transactions).toHaveLength(count)
    expect((await receipts(tag)).map(({ transactionHash }) => transactionHash)).toEqual(transactions)
    for (const receipt of await receipts(tag))
      for (const field of ['transactionHash', 'blockNumber', 'status', 'gasUsed', 'type'])
        expect(receipt[field], field).toMatch(/^0x[0-9a-f]+$/)
  })

  it.each(blockReferences)('has its receipts under %s', async (_, at) => {
    expect(await receipts(at())).toHaveLength(2)
  })

  it('has the logs of eth_getLogs in its receipts', async () => {
    const logs = (await receipts('latest')).flatMap((receipt) => receipt.logs)
    expect(logs).toEqual(await rpcResult(gateway().node, 'eth_getLogs', { fromBlock: 'latest' }))
  })

  it('above the head is found once it is sealed', async () => {
    const { devnet, node } = await openGatewayForTest()
    const next = quantity(devnet.chain.head.number + 1)
    expect((await rpcCall(node, 'eth_getBlockByNumber', next, false)).result).toBeNull()
    const { hash } = devnet.seal()
    expect((await rpcCall(node, 'eth_getBlockByNumber', next, false)).result).toMatchObject({ hash })
  })

  it.each([
    ['null', null],
    ['numberless', { number: null, hash: null }],
    ['partial', { hash: expect.stringMatching(/^0x(?!0{64})/) }],
  ] as const)('that is pending is what the node answers: %s', async (pending, expected) => {
    const { devnet, node } = await openGatewayForTest()
    devnet.faults.pending = pending
    const { result } = await expectSameAnswer({ devnet, node }, 'eth_getBlockByNumber', 'pending', false)
    if (expected === null) expect(result).toBeNull()
    else expect(result).toMatchObject(expected)
    if (pending !== 'partial') return
    const { number, hash } = devnet.chain.head
    expect(result).toMatchObject({ number: quantity(number + 1), hash: expect.not.stringContaining(hash) })
    expect((await block('pending')).hash).toBe(ZERO_HASH)
  })
})

describe('a log', () => {
  it('has all its fields, and the hash of its block once that is sealed', async () => {
    const { result } = await expectSameAnswer(gateway(), 'eth_getLogs', { fromBlock: 'latest', toBlock: 'pending' })
    const { hash } = head()
    expect(
      LogSchema.array()
        .parse(result)
        .map(({ blockHash }) => blockHash),
    ).toEqual([hash, hash, ZERO_HASH])
  })
})

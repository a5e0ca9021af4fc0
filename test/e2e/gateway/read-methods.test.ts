import { describe, expect, it } from 'vitest'
import { blockTags } from '../../../src/protocol/json-rpc-methods.ts'
import { callsOfAllMethods } from '../../support/rpc-scenarios.ts'
import {
  ALICE,
  BlockSchema,
  BOB,
  getLogs,
  LogSchema,
  rpcCall,
  rpcResult,
  ZERO,
  ZERO_HASH,
} from '../../unit/devnet/devnet-client.ts'
import { expectSameAnswer, gatewayWithTransfers, openGatewayForTest, quantity } from './node-and-gateway.ts'

const gateway = gatewayWithTransfers({ receipts: true })
const head = () => gateway().devnet.chain.head
const number = (above = 0) => quantity(head().number + above)
const token = () => gateway().devnet.list.addressOf('AAPLc')
const upperCase = (hex: string) => hex.toUpperCase().replace('0X', '0x')
const word = (address: string) => `0x${address.slice(2).padStart(64, '0')}`
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

type Call = readonly [method: string, ...params: unknown[]]
/** What a client asks, and the node's answer, which the relay must pass on. */
type Read = readonly [name: string, call: () => Call, result: () => unknown]
type Refusal = readonly [name: string, call: () => Call, code: number]

const blockFields = [
  ...['number', 'hash', 'parentHash', 'nonce', 'sha3Uncles', 'logsBloom', 'transactionsRoot', 'stateRoot'],
  ...['receiptsRoot', 'miner', 'difficulty', 'mixHash', 'extraData', 'size', 'gasLimit', 'gasUsed', 'timestamp'],
  ...['transactions', 'uncles', 'withdrawals', 'withdrawalsRoot', 'baseFeePerGas', 'blobGasUsed', 'excessBlobGas'],
  ...['parentBeaconBlockRoot', 'requestsHash'],
]
const wholeBlock = Object.fromEntries(blockFields.map((field) => [field, expect.anything()]))
const blockAt = {
  latest: () => ({ number: number(), hash: head().hash, transactions: Array(2).fill(expect.any(String)) }),
  pending: () => ({ number: number(1), hash: ZERO_HASH, parentHash: head().hash, transactions: [expect.any(String)] }),
  safe: () => ({ number: number(-30), transactions: [] }),
  finalized: () => ({ number: number(-100), transactions: [] }),
  earliest: () => ({ number: '0x0', transactions: [] }),
}
const countOfLogs = (count: number) => expect.objectContaining({ length: count })

/** The node's state reads, and what they give at the latest block. */
const stateReads: readonly (readonly [method: string, params: () => readonly string[], latest: RegExp])[] = [
  ['eth_getTransactionCount', () => [ALICE], /^0x1$/],
  ['eth_getStorageAt', () => [BOB, '0x7'], /^0x0{64}$/],
  ['eth_getStorageAt', () => [token(), `0x${'2'.padStart(64, '0')}`], /^0x(?!0{64})[0-9a-f]{64}$/],
  ['eth_getCode', () => [token()], /^0xef$/],
  ['eth_getCode', () => [ALICE], /^0x$/],
  ['eth_getBalance', () => [BOB], /^0x0$/],
  ['eth_getBalance', () => [gateway().devnet.custodian], /^0x[1-9a-f][0-9a-f]*$/],
]

const reads: readonly Read[] = [
  ['the chain', () => ['eth_chainId'], () => quantity(gateway().devnet.chainId)],
  ['the newest block', () => ['eth_blockNumber'], () => number()],
  ...blockTags.map(
    (tag): Read =>
      [`the ${tag} block`, () => ['eth_getBlockByNumber', tag, false], () => ({ ...wholeBlock, ...blockAt[tag]() })] as const,
  ),
  [
    'a block by its number in capitals',
    () => ['eth_getBlockByNumber', upperCase(number()), false],
    () => expect.objectContaining({ hash: head().hash }),
  ],
  ...['0x5', `0x${'f'.repeat(64)}`, () => number(2)].map(
    (at): Read =>
      [`no block ${at}`, () => ['eth_getBlockByNumber', typeof at === 'string' ? at : at(), false], () => null] as const,
  ),
  ['no receipts above the pending block', () => ['eth_getBlockReceipts', number(9)], () => null],
  ...stateReads.flatMap(([method, params, latest], row) =>
    [
      ['latest', () => 'latest'] as const,
      ['a number', () => number()] as const,
      ['a hash', () => head().hash] as const,
      ['a hash in an object', () => ({ blockHash: head().hash })] as const,
      ['a number in an object', () => ({ blockNumber: number() })] as const,
    ].map(
      ([name, at]): Read =>
        [`${method} (${row}) at ${name}`, () => [method, ...params(), at()], () => expect.stringMatching(latest)] as const,
    ),
  ),
  ['an account in capitals', () => ['eth_getTransactionCount', upperCase(ALICE), 'latest'], () => '0x1'],
  ...(
    [
      ['latest where it names no block', () => ({ address: token() }), 2],
      ['latest to pending', () => ({ fromBlock: 'latest', toBlock: 'pending' }), 3],
      ['pending to pending', () => ({ fromBlock: 'pending', toBlock: 'pending', topics: [TRANSFER, word(ALICE)] }), 1],
      ['from safe alone', () => ({ fromBlock: 'safe' }), 2],
      ['finalized to safe', () => ({ fromBlock: 'finalized', toBlock: 'safe' }), 0],
      ['earliest to earliest', () => ({ fromBlock: 'earliest', toBlock: 'earliest' }), 0],
      ['from a number to pending', () => ({ fromBlock: number(-5), toBlock: 'pending' }), 3],
      ['to a number above the head', () => ({ fromBlock: number(), toBlock: number(9) }), 2],
      ['one block by its hash', () => ({ blockHash: head().hash }), 2],
      ['an address in capitals', () => ({ address: upperCase(token()) }), 2],
      ['a list of addresses', () => ({ address: [ALICE, token()] }), 2],
      ['an address without logs', () => ({ address: ALICE }), 0],
      ['one of several topics', () => ({ topics: [[TRANSFER, ZERO_HASH], [], word(BOB)] }), 1],
      ['a topic that the log lacks', () => ({ topics: [TRANSFER, null, null, ZERO_HASH] }), 0],
    ] as const
  ).map(([name, filter, count]): Read => [`logs: ${name}`, () => ['eth_getLogs', filter()], () => countOfLogs(count)]),
]

const refusals: readonly Refusal[] = [
  ['receipts of an unknown hash', () => ['eth_getBlockReceipts', ZERO_HASH], -32001],
  ['logs of an unknown hash', () => ['eth_getLogs', { blockHash: ZERO_HASH }], -32001],
  ['logs of a range that ends before it begins', () => ['eth_getLogs', { fromBlock: 'latest', toBlock: 'safe' }], -32602],
  ['logs that are pruned', () => ['eth_getLogs', { fromBlock: '0x5', toBlock: '0x6' }], -32000],
  ...stateReads.flatMap(([method, params], row) =>
    (
      [
        ['above the head', () => number(1), -32001],
        ['of an unknown hash', () => ZERO_HASH, -32001],
        ['whose state is pruned', () => '0x5', -32000],
      ] as const
    ).map(([name, at, code]): Refusal => [`${method} (${row}) at a block ${name}`, () => [method, ...params(), at()], code]),
  ),
]

describe('the relay passes on the answer of the node', () => {
  it.each(reads)('%s', async (_, call, result) => {
    expect((await expectSameAnswer(gateway(), ...call())).result).toEqual(result())
  })

  it.each(refusals)('refused: %s', async (_, call, code) => {
    expect((await expectSameAnswer(gateway(), ...call())).error?.code).toBe(code)
  })

  it('each method at every block, uncached and cached', async () => {
    const { number: at, hash } = head()
    const calls = callsOfAllMethods({ account: ALICE as never, token: token() as never, slot: '0x2', block: { number: at, hash } })
    for (let time = 0; time < 2; time += 1)
      for (const { method, params } of calls) expect((await expectSameAnswer(gateway(), method, ...params)).error).toBeUndefined()
  })

  it.each([
    ['null', null],
    ['numberless', expect.objectContaining({ number: null, hash: null })],
    ['partial', expect.objectContaining({ hash: expect.stringMatching(/^0x(?!0{64})/) })],
  ] as const)('a pending block that is %s', async (pending, expected) => {
    const { devnet, node } = await openGatewayForTest()
    devnet.faults.pending = pending
    expect((await expectSameAnswer({ devnet, node }, 'eth_getBlockByNumber', 'pending', false)).result).toEqual(expected)
  })

  it.each<['rangeBound' | 'resultsBound', string]>([
    ['rangeBound', 'block range greater than 1 max'],
    ['resultsBound', 'query exceeds max results 1'],
  ])('a lower %s of the node', async (bound, message) => {
    const { devnet, node } = await openGatewayForTest()
    for (const raw of [1n, 2n]) devnet.transfer({ symbol: 'TSLAc', raw })
    devnet.makeFlashblock()
    devnet.seal()
    devnet.faults[bound] = 1
    const fromBlock = quantity(devnet.chain.head.number - 1)
    const { status, error } = await rpcCall(node, 'eth_getLogs', { fromBlock, toBlock: 'latest' })
    expect({ status, error }).toEqual({ status: 200, error: { code: -32602, message } })
  })
})

describe('logs', () => {
  it('have all their fields, and the hash of their block once that is sealed', async () => {
    const logs = LogSchema.array().parse(
      await rpcResult(gateway().node, 'eth_getLogs', { fromBlock: 'latest', toBlock: 'pending' }),
    )
    expect(logs.map(({ blockHash }) => blockHash)).toEqual([head().hash, head().hash, ZERO_HASH])
  })
})

describe('what is pre-confirmed', () => {
  it('is in each answer at pending with its flashblock, and at latest once it is sealed', async () => {
    const { devnet, node } = await openGatewayForTest()
    const supply = () => [devnet.list.addressOf('AAPLc'), '0x2']
    const stateAt = async (tag: string) => {
      const block = BlockSchema.parse(await rpcResult(node, 'eth_getBlockByNumber', tag, false))
      const logs = await getLogs(node, { fromBlock: tag, toBlock: tag })
      return {
        transactions: block.transactions,
        logs: logs.map(({ transactionHash }) => transactionHash),
        gas: Number(block.gasUsed) > 0,
        nonce: await rpcResult(node, 'eth_getTransactionCount', ALICE, tag),
        supply: BigInt(String(await rpcResult(node, 'eth_getStorageAt', ...supply(), tag))),
      }
    }
    const before = await stateAt('latest')
    const sent: string[] = []
    const stateAfter = (transactions: readonly string[]) => ({
      ...{ transactions, logs: transactions, gas: transactions.length > 0 },
      ...{ nonce: quantity(sent.length / 2), supply: before.supply + BigInt(sent.length / 2) },
    })
    for (let round = 1; round <= 3; round += 1) {
      sent.push(
        devnet.transfer({ symbol: 'AAPLc', from: ZERO, raw: 1n }),
        devnet.transfer({ symbol: 'AAPLc', from: ALICE, to: BOB, raw: 1n }),
      )
      devnet.makeFlashblock()
      await expect.poll(() => stateAt('pending')).toEqual(stateAfter(sent))
      expect(await stateAt('latest')).toEqual(before)
    }
    devnet.seal()
    await expect.poll(() => stateAt('latest')).toEqual(stateAfter(sent))
    await expect.poll(() => stateAt('pending')).toEqual(stateAfter([]))
  })
})

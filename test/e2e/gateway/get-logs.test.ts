import { describe, expect, it } from 'vitest'
import { openRelayFor } from '../../support/test-stack.ts'
import {
  ALICE,
  BOB,
  getLogs,
  LogSchema,
  rpcCall,
  sendTransfer,
  startManualDevnet,
  ZERO,
  ZERO_HASH,
} from '../../unit/devnet/devnet-client.ts'
import {
  expectSameAnswer,
  gatewayWithTransfers,
  highLimits,
  openGatewayForTest,
  quantity,
  throughRelay,
  waitUntilCaughtUp,
} from './node-and-gateway.ts'

const gateway = gatewayWithTransfers()
const token = () => gateway().devnet.list.addressOf('AAPLc')
const hash = () => gateway().devnet.chain.head.hash
const number = (above = 0) => quantity(gateway().devnet.chain.head.number + above)

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const word = (address: string) => `0x${address.slice(2).padStart(64, '0')}`
const pending = { fromBlock: 'pending', toBlock: 'pending' }

type Filter = Record<string, unknown>

describe('a filter of eth_getLogs', () => {
  it.each<[string, () => Filter, number]>([
    ['latest where it names no block', () => ({ address: token() }), 2],
    ['latest to latest', () => ({ fromBlock: 'latest', toBlock: 'latest' }), 2],
    ['latest to pending', () => ({ fromBlock: 'latest', toBlock: 'pending' }), 3],
    ['pending to pending, which is pre-confirmed', () => pending, 1],
    ['from safe alone', () => ({ fromBlock: 'safe' }), 2],
    ['to pending alone', () => ({ toBlock: 'pending' }), 3],
    ['finalized to safe', () => ({ fromBlock: 'finalized', toBlock: 'safe' }), 0],
    ['earliest to earliest', () => ({ fromBlock: 'earliest', toBlock: 'earliest' }), 0],
    ['from a number to a number', () => ({ fromBlock: number(-5), toBlock: number() }), 2],
    ['from a number to pending', () => ({ fromBlock: number(-5), toBlock: 'pending' }), 3],
    ['to a number above the head', () => ({ fromBlock: number(), toBlock: number(9) }), 2],
    ['from above the head', () => ({ fromBlock: number(1), toBlock: number(5) }), 0],
    ['one block by its hash', () => ({ blockHash: hash() }), 2],
    ['one address', () => ({ address: token() }), 2],
    ['an address in any case', () => ({ address: token().toUpperCase().replace('0X', '0x') }), 2],
    ['a list of addresses', () => ({ address: [ALICE, token()] }), 2],
    ['an empty list of addresses, which is any', () => ({ address: [] }), 2],
    ['an address without logs', () => ({ address: ALICE }), 0],
    ['an event', () => ({ topics: [TRANSFER] }), 2],
    ['another event', () => ({ topics: [ZERO_HASH] }), 0],
    ['a later topic, null for any before it', () => ({ topics: [null, word(ALICE)] }), 1],
    ['one of several topics', () => ({ topics: [[TRANSFER, ZERO_HASH], [ALICE, ZERO].map(word)] }), 2],
    ['an empty list of topics, which is any', () => ({ topics: [[], [], word(BOB)] }), 1],
    ['no topics at all', () => ({ topics: [] }), 2],
    ['a topic that the log lacks', () => ({ topics: [TRANSFER, null, null, ZERO_HASH] }), 0],
    ['address and topics together', () => ({ address: token(), topics: [TRANSFER, null, word(BOB)] }), 1],
    ['a topic of a pre-confirmed log', () => ({ ...pending, topics: [TRANSFER, word(ALICE)] }), 1],
    ['a topic that the pre-confirmed log lacks', () => ({ ...pending, topics: [TRANSFER, word(BOB)] }), 0],
  ])('matches as at the node: %s', async (_, filter, count) => {
    const { result } = await expectSameAnswer(gateway(), 'eth_getLogs', filter())
    expect(LogSchema.array().parse(result)).toHaveLength(count)
  })

  it.each<[string, () => Filter, () => Filter]>([
    [
      'null for an absent field',
      () => ({ address: token(), topics: null, fromBlock: null, toBlock: null, blockHash: null }),
      () => ({ address: token() }),
    ],
    ...[{ fromBlock: '0x5', toBlock: 'pending' }, { fromBlock: 'earliest' }, { toBlock: '0x0' }].map(
      (range): [string, () => Filter, () => Filter] => [
        `a hash beside ${JSON.stringify(range)}`,
        () => ({ blockHash: hash(), ...range }),
        () => ({ blockHash: hash() }),
      ],
    ),
  ])('may hold %s, which the relay ignores', async (_, filter, plain) => {
    expect(await getLogs(gateway().node, filter())).toEqual(await getLogs(gateway().devnet, plain()))
  })

  it('with a hash reaches the node without a range, which the node may refuse', async () => {
    const { devnet, node } = await openGatewayForTest()
    devnet.faults.strictFilters = true
    const filter = { blockHash: devnet.chain.head.hash, fromBlock: 'latest', toBlock: 'latest' }
    expect((await rpcCall(devnet, 'eth_getLogs', filter)).error?.code).toBe(-32602)
    expect(await getLogs(node, filter)).toEqual([])
  })
})

describe('eth_getLogs over many blocks', () => {
  it.each<[string, () => Filter]>([
    ['2,001 blocks', () => ({ fromBlock: number(-2_000), toBlock: number() })],
    ['2,001 blocks up to latest', () => ({ fromBlock: number(-2_000) })],
    ['2,001 blocks with the pending one', () => ({ fromBlock: number(-1_999), toBlock: 'pending' })],
    ['numbers far above the head', () => ({ fromBlock: number(), toBlock: number(2_000) })],
    ['all since a number', () => ({ fromBlock: '0x1', toBlock: `0x${'f'.repeat(16)}` })],
  ])('refuses %s and names the bound', async (_, filter) => {
    expect(await rpcCall(gateway().node, 'eth_getLogs', filter())).toMatchObject({
      status: 200,
      error: { code: -32602, message: expect.stringMatching(/at most 2,000/) },
    })
  })

  it('reads exactly 2,000', async () => {
    const devnet = await startManualDevnet()
    while (devnet.chain.head.number - devnet.chain.oldest < 2_000) devnet.seal()
    sendTransfer(devnet, 1n)
    devnet.makeFlashblock()
    devnet.seal()
    const relay = await openRelayFor(devnet, highLimits)
    await waitUntilCaughtUp(relay)
    const node = throughRelay(devnet, relay)
    const head = devnet.chain.head.number
    for (const toBlock of [quantity(head), 'latest']) {
      const filter = { fromBlock: quantity(head - 1_999), toBlock }
      expect((await expectSameAnswer({ devnet, node }, 'eth_getLogs', filter)).result).toHaveLength(1)
      const { error } = await rpcCall(node, 'eth_getLogs', { ...filter, fromBlock: quantity(head - 2_000) })
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('2,000') })
    }
  })

  it.each<['rangeBound' | 'resultsBound', string]>([
    ['rangeBound', 'block range greater than 1 max'],
    ['resultsBound', 'query exceeds max results 1'],
  ])('passes on a lower %s of the node', async (bound, message) => {
    const { devnet, node } = await openGatewayForTest()
    for (const raw of [1n, 2n]) devnet.transfer({ symbol: 'TSLAc', raw })
    devnet.makeFlashblock()
    devnet.seal()
    devnet.faults[bound] = 1
    const fromBlock = quantity(devnet.chain.head.number - 1)
    expect(await rpcCall(node, 'eth_getLogs', { fromBlock, toBlock: 'latest' })).toMatchObject({
      status: 200,
      error: { code: -32602, message },
    })
  })
})

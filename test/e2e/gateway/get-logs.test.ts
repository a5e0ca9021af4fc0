import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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
  type GatewayStack,
  highRpcRateSettings,
  openGatewayForTest,
  openGatewayStack,
  quantity,
  throughRelay,
  waitUntilCaughtUp,
} from './node-and-gateway.ts'

let stack: GatewayStack
let token: string
beforeAll(async () => {
  stack = await openGatewayStack()
  token = stack.devnet.list.addressOf('AAPLc')
})
afterAll(() => stack.stop())

const number = (above = 0) => quantity(stack.devnet.chain.head.number + above)
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const paddedAddress = (address: string) => `0x${address.slice(2).padStart(64, '0')}`

type Filter = Record<string, unknown>
const findLogs = async (filter: Filter) => LogSchema.array().parse(await expectSameAnswer(stack, 'eth_getLogs', filter))
const errorFor = async (...params: unknown[]) => (await rpcCall(stack.node, 'eth_getLogs', ...params)).error

describe('a log through the relay', () => {
  it.each(Object.entries(LogSchema.shape))("has the node's own %s, sealed or pre-confirmed", async (field, schema) => {
    const all = await findLogs({ fromBlock: 'latest', toBlock: 'pending' })
    expect(all).toHaveLength(3)
    for (const log of all) expect(() => schema.parse(log[field as keyof typeof log])).not.toThrow()
  })

  it('names its block once it is sealed, and a hash of zeros before', async () => {
    const { hash } = stack.devnet.chain.head
    const hashes = (await findLogs({ fromBlock: 'latest', toBlock: 'pending' })).map(({ blockHash }) => blockHash)
    expect(hashes).toEqual([hash, hash, ZERO_HASH])
  })
})

describe('a filter of eth_getLogs', () => {
  it.each<[string, () => Filter, number]>([
    ['latest where it says nothing of blocks', () => ({ address: token }), 2],
    ['latest to latest', () => ({ fromBlock: 'latest', toBlock: 'latest' }), 2],
    ['latest to pending', () => ({ fromBlock: 'latest', toBlock: 'pending' }), 3],
    ['pending to pending: what is pre-confirmed', () => ({ fromBlock: 'pending', toBlock: 'pending' }), 1],
    ['from safe alone', () => ({ fromBlock: 'safe' }), 2],
    ['to pending alone', () => ({ toBlock: 'pending' }), 3],
    ['finalized to safe', () => ({ fromBlock: 'finalized', toBlock: 'safe' }), 0],
    ['earliest to earliest', () => ({ fromBlock: 'earliest', toBlock: 'earliest' }), 0],
    ['from a number to a number', () => ({ fromBlock: number(-5), toBlock: number() }), 2],
    ['from a number to pending', () => ({ fromBlock: number(-5), toBlock: 'pending' }), 3],
    ['to a number above the head', () => ({ fromBlock: number(), toBlock: number(9) }), 2],
    ['from above the head', () => ({ fromBlock: number(1), toBlock: number(5) }), 0],
    ['one block by its hash', () => ({ blockHash: stack.devnet.chain.head.hash }), 2],
  ])('reads %s', async (_, filter, count) => {
    expect(await findLogs(filter())).toHaveLength(count)
  })

  it.each<[string, () => Filter, number]>([
    ['one address', () => ({ address: token }), 2],
    ['an address in any case', () => ({ address: token.toUpperCase().replace('0X', '0x') }), 2],
    ['a list of addresses', () => ({ address: [ALICE, token] }), 2],
    ['an empty list of addresses, which is any', () => ({ address: [] }), 2],
    ['an address that did nothing', () => ({ address: ALICE }), 0],
    ['an event', () => ({ topics: [TRANSFER] }), 2],
    ['another event', () => ({ topics: [ZERO_HASH] }), 0],
    ['a later topic, null for any before it', () => ({ topics: [null, paddedAddress(ALICE)] }), 1],
    [
      'one of several at a position',
      () => ({
        topics: [
          [TRANSFER, ZERO_HASH],
          [paddedAddress(ALICE), paddedAddress(ZERO)],
        ],
      }),
      2,
    ],
    ['an empty list at a position, which is any', () => ({ topics: [[], [], paddedAddress(BOB)] }), 1],
    ['no topics at all', () => ({ topics: [] }), 2],
    ['a topic where the log has none', () => ({ topics: [TRANSFER, null, null, ZERO_HASH] }), 0],
    ['address and topics at once', () => ({ address: token, topics: [TRANSFER, null, paddedAddress(BOB)] }), 1],
  ])('asks for %s', async (_, filter, count) => {
    expect(await findLogs(filter())).toHaveLength(count)
  })

  it('holds every log against it while pre-confirmed as when sealed', async () => {
    const at = { fromBlock: 'pending', toBlock: 'pending' }
    expect(await findLogs({ ...at, topics: [TRANSFER, paddedAddress(ALICE)] })).toHaveLength(1)
    expect(await findLogs({ ...at, topics: [TRANSFER, paddedAddress(BOB)] })).toHaveLength(0)
  })

  it('may hold nulls where it says nothing', async () => {
    const filter = { address: token, topics: null, fromBlock: null, toBlock: null, blockHash: null }
    expect(await getLogs(stack.node, filter)).toEqual(await getLogs(stack.devnet, { address: token }))
  })

  it.each<[string, Filter]>([
    ['nothing', {}],
    ['null for everything', { address: null, topics: null, fromBlock: null }],
  ])('that holds %s is refused: there is at least one criterion', async (_, filter) => {
    expect(await errorFor(filter)).toMatchObject({
      code: -32602,
      message: expect.stringContaining('at least one criterion'),
    })
  })

  it.each<[string, unknown[]]>([
    ['no filter', []],
    ['null for a filter', [null]],
    ['a filter that is a list', [['latest']]],
    ['two filters', [{ address: ZERO }, { address: ZERO }]],
    ['an address that is too short', [{ address: '0x12' }]],
    ['an address in a list that is none', [{ address: [ZERO, 'AAPLc'] }]],
    ['a topic that is no word', [{ topics: ['0x12'] }]],
    ['topics that are no list', [{ topics: TRANSFER }]],
    ['five topics', [{ topics: [null, null, null, null, null] }]],
    ['a block that is a number', [{ fromBlock: 1 }]],
    ['an unknown tag', [{ toBlock: 'newest' }]],
    ['a block hash that is none', [{ blockHash: '0x12' }]],
  ])('is refused with -32602 for %s', async (_, params) => {
    expect(await errorFor(...params)).toMatchObject({
      code: -32602,
      message: expect.stringContaining('invalid params'),
    })
  })
})

describe('eth_getLogs by the hash of a block', () => {
  it('ignores fromBlock and toBlock, whatever they span', async () => {
    const { hash } = stack.devnet.chain.head
    for (const range of [{ fromBlock: number(-5), toBlock: 'pending' }, { fromBlock: 'earliest' }, { toBlock: '0x0' }])
      expect(await getLogs(stack.node, { blockHash: hash, ...range })).toEqual(await findLogs({ blockHash: hash }))
  })

  it('says nothing of them upstream, where they may be refused', async () => {
    const { devnet, node } = await openGatewayForTest()
    devnet.faults.strictFilters = true
    const filter = { blockHash: devnet.chain.head.hash, fromBlock: 'latest', toBlock: 'latest' }
    expect((await rpcCall(devnet, 'eth_getLogs', filter)).error?.code).toBe(-32602)
    expect(await getLogs(node, filter)).toEqual([])
  })

  it('passes on that there is no such block', async () => {
    await expectSameAnswer(stack, 'eth_getLogs', { blockHash: ZERO_HASH })
    expect(await errorFor({ blockHash: ZERO_HASH })).toEqual({
      code: -32001,
      message: `block not found: hash ${ZERO_HASH}`,
    })
  })
})

describe('eth_getLogs over many blocks', () => {
  it.each<[string, () => Filter]>([
    ['2,001 blocks', () => ({ fromBlock: number(-2_000), toBlock: number() })],
    ['2,001 blocks up to latest', () => ({ fromBlock: number(-2_000) })],
    ['2,001 blocks with the one that is being built', () => ({ fromBlock: number(-1_999), toBlock: 'pending' })],
    ['numbers far above the head', () => ({ fromBlock: number(), toBlock: number(2_000) })],
    ['all since a number', () => ({ fromBlock: '0x1', toBlock: `0x${'f'.repeat(16)}` })],
  ])('refuses %s in a sentence that says the bound', async (_, filter) => {
    const published = await rpcCall(stack.node, 'eth_getLogs', filter())
    expect(published).toMatchObject({
      status: 200,
      error: { code: -32602, message: expect.stringMatching(/at most 2,000/) },
    })
  })

  it('asks the node for exactly 2,000', async () => {
    const devnet = await startManualDevnet()
    while (devnet.chain.head.number - devnet.chain.oldest < 2_000) devnet.seal()
    sendTransfer(devnet, 1n)
    devnet.makeFlashblock()
    devnet.seal()
    const relay = await openRelayFor(devnet, highRpcRateSettings)
    await waitUntilCaughtUp(relay)
    const own = { devnet, node: throughRelay(devnet, relay) }
    const head = devnet.chain.head.number
    for (const toBlock of [quantity(head), 'latest']) {
      const filter = { fromBlock: quantity(head - 1_999), toBlock }
      expect(await expectSameAnswer(own, 'eth_getLogs', filter)).toHaveLength(1)
      const above = await rpcCall(own.node, 'eth_getLogs', { ...filter, fromBlock: quantity(head - 2_000) })
      expect(above.error).toMatchObject({ code: -32602, message: expect.stringContaining('2,000') })
    }
  })

  it.each<[string, () => Filter, number]>([
    ['ends before it begins', () => ({ fromBlock: 'latest', toBlock: 'safe' }), -32602],
    ['is no longer kept', () => ({ fromBlock: '0x5', toBlock: '0x6' }), -32000],
  ])("passes on the node's own refusal of a range that %s", async (_, filter, code) => {
    await expectSameAnswer(stack, 'eth_getLogs', filter())
    expect((await errorFor(filter()))?.code).toBe(code)
  })

  it.each<[string, 'rangeBound' | 'resultsBound', string]>([
    ['of fewer blocks', 'rangeBound', 'block range greater than 1 max'],
    ['of fewer logs', 'resultsBound', 'query exceeds max results 1'],
  ])("passes on the node's own bound %s", async (_, bound, message) => {
    const { devnet, node } = await openGatewayForTest()
    devnet.transfer({ symbol: 'TSLAc', raw: 1n })
    devnet.transfer({ symbol: 'TSLAc', raw: 2n })
    devnet.makeFlashblock()
    devnet.seal()
    devnet.faults[bound] = 1
    const fromBlock = quantity(devnet.chain.head.number - 1)
    const published = await rpcCall(node, 'eth_getLogs', { fromBlock, toBlock: 'latest' })
    expect(published).toMatchObject({ status: 200, error: { code: -32602, message } })
  })
})

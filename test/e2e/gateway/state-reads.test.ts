import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blockTags } from '../../../src/chain/rpc/methods.ts'
import { ALICE, BOB, rpcCall, ZERO_HASH } from '../../unit/devnet/devnet-client.ts'
import { expectSameAnswer, type GatewayStack, openGatewayStack, quantity } from './node-and-gateway.ts'

let stack: GatewayStack
let token: string
beforeAll(async () => {
  stack = await openGatewayStack()
  token = stack.devnet.list.addressOf('AAPLc')
})
afterAll(() => stack.stop())

type Tag = (typeof blockTags)[number]

/** What is asked of whom, and what it is at each tag. */
const methods: readonly [method: string, params: () => readonly string[], at: Readonly<Record<Tag, RegExp>>][] = [
  [
    'eth_getTransactionCount',
    () => [ALICE],
    { earliest: /^0x0$/, finalized: /^0x0$/, safe: /^0x0$/, latest: /^0x1$/, pending: /^0x2$/ },
  ],
  [
    'eth_getStorageAt',
    () => [BOB, '0x7'],
    { earliest: /^0x0{64}$/, finalized: /^0x0{64}$/, safe: /^0x0{64}$/, latest: /^0x0{64}$/, pending: /^0x0{64}$/ },
  ],
  [
    'eth_getCode',
    () => [token],
    { earliest: /^0xef$/, finalized: /^0xef$/, safe: /^0xef$/, latest: /^0xef$/, pending: /^0xef$/ },
  ],
  [
    'eth_getBalance',
    () => [BOB],
    { earliest: /^0x0$/, finalized: /^0x0$/, safe: /^0x0$/, latest: /^0x0$/, pending: /^0x0$/ },
  ],
]

describe.each(methods)('%s through the relay', (method, params, at) => {
  it.each(blockTags)("answers at %s in the node's own hex", async (tag) => {
    expect(await expectSameAnswer(stack, method, ...params(), tag)).toMatch(at[tag])
  })

  it('answers at a block number, and at a block hash', async () => {
    const { number, hash } = stack.devnet.chain.head
    for (const block of [quantity(number), hash, { blockHash: hash }, { blockNumber: quantity(number) }])
      expect(await expectSameAnswer(stack, method, ...params(), block)).toMatch(at.latest)
  })

  it('takes an address in any case', async () => {
    const [address = '', ...others] = params()
    const upper = address.toUpperCase().replace('0X', '0x')
    expect(await expectSameAnswer(stack, method, upper, ...others, 'latest')).toMatch(at.latest)
  })

  it('needs all its parameters, and no more', async () => {
    const all = [...params(), 'latest']
    for (const wrong of [all.slice(0, -1), all.slice(1), [...all, 'latest'], []])
      expect(await rpcCall(stack.node, method, ...wrong)).toMatchObject({ status: 200, error: { code: -32602 } })
  })

  it('refuses an address that is not of 20 bytes, and a block that is none', async () => {
    const [address = '', ...others] = params()
    for (const wrong of [address.slice(0, -1), `${address}0`, address.slice(2), 'AAPLc', null])
      expect((await rpcCall(stack.node, method, wrong, ...others, 'latest')).error?.code).toBe(-32602)
    for (const wrong of ['newest', '0x01', 1, null, {}])
      expect((await rpcCall(stack.node, method, address, ...others, wrong)).error?.code).toBe(-32602)
  })

  it.each<[string, () => string, number]>([
    ['above the head', () => quantity(stack.devnet.chain.head.number + 1), -32001],
    ['of a hash that no block has', () => ZERO_HASH, -32001],
    ['whose state is pruned', () => '0x5', -32000],
  ])("passes on the node's refusal of a block %s", async (_, block, code) => {
    await expectSameAnswer(stack, method, ...params(), block())
    expect((await rpcCall(stack.node, method, ...params(), block())).error?.code).toBe(code)
  })
})

describe('eth_getStorageAt through the relay', () => {
  it.each(['0x2', `0x${'2'.padStart(64, '0')}`])('answers the slot %s as a word of 32 bytes', async (slot) => {
    const supply = await expectSameAnswer(stack, 'eth_getStorageAt', token, slot, 'latest')
    expect(supply).toMatch(/^0x[0-9a-f]{64}$/)
    expect(supply).not.toBe(ZERO_HASH)
  })

  it('tells what is pre-confirmed from what is sealed', async () => {
    const holding = (tag: Tag) => expectSameAnswer(stack, 'eth_getStorageAt', token, '0x2', tag)
    expect(await holding('latest')).not.toBe(await holding('safe'))
  })

  it('refuses a slot that is not in hex', async () => {
    for (const slot of ['two', '2', 2, '0x', `0x${'f'.repeat(65)}`, null])
      expect((await rpcCall(stack.node, 'eth_getStorageAt', token, slot, 'latest')).error?.code).toBe(-32602)
  })
})

describe('eth_getCode through the relay', () => {
  it.each(blockTags)('answers 0x at %s for an account without code', async (tag) => {
    expect(await expectSameAnswer(stack, 'eth_getCode', ALICE, tag)).toBe('0x')
  })
})

describe('eth_getBalance through the relay', () => {
  it.each(blockTags)('answers wei at %s', async (tag) => {
    expect(await expectSameAnswer(stack, 'eth_getBalance', stack.devnet.custodian, tag)).toMatch(
      /^0x[1-9a-f][0-9a-f]*$/,
    )
  })
})

describe('what every Ethereum client asks first', () => {
  it('is the chain, which is that of the node', async () => {
    expect(await expectSameAnswer(stack, 'eth_chainId')).toBe(quantity(stack.devnet.chainId))
  })

  it('is the newest sealed block', async () => {
    expect(await expectSameAnswer(stack, 'eth_blockNumber')).toBe(quantity(stack.devnet.chain.head.number))
  })

  it.each(['eth_chainId', 'eth_blockNumber'])('takes no parameters: %s', async (method) => {
    expect((await rpcCall(stack.node, method, 'latest')).error?.code).toBe(-32602)
  })
})

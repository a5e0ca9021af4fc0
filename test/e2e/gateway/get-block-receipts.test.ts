import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openRelayFor } from '../../support/test-stack.ts'
import { rawResponder } from '../../unit/chain/rpc/fake-endpoint.ts'
import {
  BlockSchema,
  getLogs,
  post,
  rpcCall,
  rpcResult,
  startManualDevnet,
  ZERO_HASH,
} from '../../unit/devnet/devnet-client.ts'
import {
  expectSameAnswer,
  type GatewayStack,
  nodeWithOverrides,
  openGatewayForTest,
  openGatewayStack,
  produceTransfers,
  quantity,
  request,
  throughRelay,
} from './node-and-gateway.ts'

// The node and who serves receipts are of one chain.
const seconds = Date.UTC(2026, 10, 20, 15)
const chain = { now: () => seconds }

let stack: GatewayStack
beforeAll(async () => {
  stack = await openGatewayStack({ ...chain, receipts: true })
})
afterAll(() => stack.stop())

const Receipts = z.array(z.looseObject({ transactionHash: z.string() }))
const receipts = async (at: unknown) => Receipts.parse(await expectSameAnswer(stack, 'eth_getBlockReceipts', at))

describe('eth_getBlockReceipts through the relay', () => {
  it.each(['transactionHash', 'blockNumber', 'status', 'gasUsed', 'type'])(
    "has the node's own %s in every receipt",
    async (field) => {
      for (const tag of ['latest', 'pending'])
        for (const receipt of await receipts(tag)) expect(receipt[field]).toMatch(/^0x[0-9a-f]+$/)
    },
  )

  it.each([
    ['latest', 2],
    ['pending', 1],
    ['safe', 0],
    ['finalized', 0],
    ['earliest', 0],
  ])('has one for each transaction of %s', async (tag, count) => {
    const { transactions } = BlockSchema.parse(await rpcResult(stack.node, 'eth_getBlockByNumber', tag, false))
    expect(transactions).toHaveLength(count)
    expect((await receipts(tag)).map(({ transactionHash }) => transactionHash)).toEqual(transactions)
  })

  it('is asked by number and by hash', async () => {
    const { number, hash } = stack.devnet.chain.head
    for (const block of [quantity(number), hash, { blockHash: hash }]) expect(await receipts(block)).toHaveLength(2)
  })

  it('has the logs that eth_getLogs has', async () => {
    const all = (await receipts('latest')).flatMap((receipt) => receipt.logs)
    expect(all).toEqual(await getLogs(stack.node, { fromBlock: 'latest' }))
  })

  it("passes on the node's null for a block that it does not know", async () => {
    expect(
      await expectSameAnswer(stack, 'eth_getBlockReceipts', quantity(stack.devnet.chain.head.number + 9)),
    ).toBeNull()
  })

  it("passes on the node's refusal of a hash that no block has", async () => {
    await expectSameAnswer(stack, 'eth_getBlockReceipts', ZERO_HASH)
    expect((await rpcCall(stack.node, 'eth_getBlockReceipts', ZERO_HASH)).error?.code).toBe(-32001)
  })

  it('needs a block', async () => {
    for (const params of [[], [null], ['newest'], ['latest', 'latest'], [1]])
      expect(await rpcCall(stack.node, 'eth_getBlockReceipts', ...params)).toMatchObject({
        status: 200,
        error: { code: -32602 },
      })
  })
})

describe('eth_getBlockReceipts where the upstream refuses it', () => {
  it('is refused as the upstream refuses it: HTTP 403', async () => {
    const own = await openGatewayForTest()
    await expectSameAnswer(own, 'eth_getBlockReceipts', 'latest')
    const { status, error } = await rpcCall(own.node, 'eth_getBlockReceipts', 'latest')
    expect({ status, error }).toEqual({
      status: 403,
      error: { code: -32601, message: 'rpc method is not whitelisted' },
    })
  })

  it('is refused again and again, and keeps nothing else from being answered', async () => {
    const { node } = await openGatewayForTest()
    for (let time = 0; time < 5; time += 1) {
      expect((await rpcCall(node, 'eth_getBlockReceipts', 'latest')).status).toBe(403)
      expect(await rpcResult(node, 'eth_getBalance', `0x${'0'.repeat(39)}${time}`, 'latest')).toBe('0x0')
    }
  })

  it('is -32601 inside a batch, whose other requests are answered', async () => {
    const { node, devnet } = await openGatewayForTest()
    const { status, json } = await post(node, [
      request('eth_getBlockReceipts', ['latest'], 1),
      request('eth_chainId', [], 2),
    ])
    expect(status).toBe(200)
    expect(json).toEqual([
      { jsonrpc: '2.0', id: 1, error: { code: -32601, message: 'rpc method is not whitelisted' } },
      { jsonrpc: '2.0', id: 2, result: quantity(devnet.chainId) },
    ])
  })

  it('is -32601 with HTTP 403 too where the refusal is no JSON-RPC', async () => {
    const devnet = await startManualDevnet()
    const upstream = await nodeWithOverrides(devnet, ({ method }) =>
      method === 'eth_getBlockReceipts'
        ? rawResponder(403, '<html>Forbidden</html>', { 'content-type': 'text/html' })
        : null,
    )
    const relay = await openRelayFor({ ...devnet, rpcUrl: upstream.url })
    const single = await rpcCall(throughRelay(devnet, relay), 'eth_getBlockReceipts', 'latest')
    expect(single).toMatchObject({ status: 403, error: { code: -32601 } })
    const { status, json } = await post(throughRelay(devnet, relay), [request('eth_getBlockReceipts', ['latest'])])
    expect({ status, json }).toMatchObject({ status: 200, json: [{ id: 1, error: { code: -32601 } }] })
  })
})

describe('eth_getBlockReceipts with RECEIPTS_RPC_URL', () => {
  const open = async () => {
    const [upstream, provider] = [await startManualDevnet(chain), await startManualDevnet({ ...chain, receipts: true })]
    for (const devnet of [upstream, provider]) produceTransfers(devnet)
    return {
      upstream,
      provider,
      node: throughRelay(upstream, await openRelayFor(upstream, { RECEIPTS_RPC_URL: provider.rpcUrl })),
    }
  }

  it('is answered by that provider, alone and inside a batch', async () => {
    const { provider, node } = await open()
    for (const tag of ['latest', 'pending']) {
      const expected = await rpcResult(provider, 'eth_getBlockReceipts', tag)
      expect(expected).not.toEqual([])
      expect(await rpcResult(node, 'eth_getBlockReceipts', tag)).toEqual(expected)
      const { json } = await post(node, [request('eth_getBlockReceipts', [tag])])
      expect(json).toEqual([{ jsonrpc: '2.0', id: 1, result: expected }])
    }
  })

  it('is all that this provider is asked for', async () => {
    const { provider, node } = await open()
    await rpcCall(node, 'eth_getBlockReceipts', 'latest')
    await rpcCall(node, 'eth_getBlockByNumber', 'latest', true)
    await rpcCall(node, 'eth_getLogs', { fromBlock: 'latest' })
    const { eth_getBlockReceipts, eth_chainId, post: posts } = provider.requests
    expect({ eth_getBlockReceipts, posts }).toEqual({ eth_getBlockReceipts: 1, posts: 1 + eth_chainId })
  })

  it('passes on what that provider refuses', async () => {
    const { provider, node } = await open()
    provider.faults.rpc = { status: 403 }
    expect(await rpcCall(node, 'eth_getBlockReceipts', 'latest')).toMatchObject({
      status: 403,
      error: { code: -32601 },
    })
    provider.faults.clear()
    await expect.poll(async () => (await rpcCall(node, 'eth_getBlockReceipts', 'latest')).status).toBe(200)
  })

  it('is not answered by a provider of another chain', async () => {
    const [upstream, provider] = [await startManualDevnet(), await startManualDevnet({ receipts: true, chainId: 1 })]
    const node = throughRelay(upstream, await openRelayFor(upstream, { RECEIPTS_RPC_URL: provider.rpcUrl }))
    expect(await rpcCall(node, 'eth_getBlockReceipts', 'latest')).toMatchObject({
      status: 200,
      error: { code: -32000 },
    })
  })
})

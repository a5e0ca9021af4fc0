import { describe, expect, it } from 'vitest'
import { openRelayFor } from '../../support/test-stack.ts'
import { post, rpcCall, rpcResult, startManualDevnet } from '../../unit/devnet/devnet-client.ts'
import { rawResponder } from '../../unit/relay/chain/rpc/fake-endpoint.ts'
import {
  expectSameAnswer,
  openGatewayForTest,
  openGatewayWithOverrides,
  overrideMethod,
  produceTransfers,
  quantity,
  request,
  throughRelay,
} from './node-and-gateway.ts'

const receiptsOfLatest = ['eth_getBlockReceipts', 'latest'] as const
const notAllowed = { code: -32601, message: 'rpc method is not whitelisted' }

describe('eth_getBlockReceipts where the upstream refuses it', () => {
  it('fails with the error and the HTTP 403 of the upstream, each time, and other methods still work', async () => {
    const { devnet, node } = await openGatewayForTest()
    for (let time = 0; time < 5; time += 1) {
      const { status, error } = await expectSameAnswer({ devnet, node }, ...receiptsOfLatest)
      expect({ status, error }).toEqual({ status: 403, error: notAllowed })
      expect(await rpcResult(node, 'eth_getBalance', `0x${'0'.repeat(39)}${time}`, 'latest')).toBe('0x0')
    }
  })

  it('fails alone in a batch', async () => {
    const { node, devnet } = await openGatewayForTest()
    const batch = [request('eth_getBlockReceipts', ['latest'], 1), request('eth_chainId', [], 2)]
    const { status, json } = await post(node, batch)
    expect({ status, json }).toEqual({
      status: 200,
      json: [
        { jsonrpc: '2.0', id: 1, error: notAllowed },
        { jsonrpc: '2.0', id: 2, result: quantity(devnet.chainId) },
      ],
    })
  })

  it('fails with -32601 where the refusal is not JSON-RPC', async () => {
    const forbidden = rawResponder(403, '<html>Forbidden</html>', { 'content-type': 'text/html' })
    const { node } = await openGatewayWithOverrides(overrideMethod('eth_getBlockReceipts', forbidden))
    expect(await rpcCall(node, ...receiptsOfLatest)).toMatchObject({ status: 403, error: { code: -32601 } })
    const { status, json } = await post(node, [request('eth_getBlockReceipts', ['latest'])])
    expect({ status, json }).toMatchObject({ status: 200, json: [{ id: 1, error: { code: -32601 } }] })
  })
})

describe('eth_getBlockReceipts with RECEIPTS_RPC_URL', () => {
  const open = async () => {
    // Both are nodes of one chain.
    const seconds = Date.UTC(2026, 10, 20, 15)
    const upstream = await startManualDevnet({ now: () => seconds })
    const provider = await startManualDevnet({ now: () => seconds, receipts: true })
    for (const devnet of [upstream, provider]) produceTransfers(devnet)
    const relay = await openRelayFor(upstream, { RECEIPTS_RPC_URL: provider.rpcUrl })
    return { upstream, provider, node: throughRelay(upstream, relay) }
  }

  it('comes from that provider, alone and in a batch', async () => {
    const { provider, node } = await open()
    for (const tag of ['latest', 'pending']) {
      const expected = await rpcResult(provider, 'eth_getBlockReceipts', tag)
      expect(expected).not.toEqual([])
      expect(await rpcResult(node, 'eth_getBlockReceipts', tag)).toEqual(expected)
      const { json } = await post(node, [request('eth_getBlockReceipts', [tag])])
      expect(json).toEqual([{ jsonrpc: '2.0', id: 1, result: expected }])
    }
  })

  it('is all that the provider receives', async () => {
    const { provider, node } = await open()
    await rpcCall(node, ...receiptsOfLatest)
    await rpcCall(node, 'eth_getBlockByNumber', 'latest', true)
    await rpcCall(node, 'eth_getLogs', { fromBlock: 'latest' })
    const { eth_getBlockReceipts, eth_chainId, post: posts } = provider.requests
    expect({ eth_getBlockReceipts, posts }).toEqual({ eth_getBlockReceipts: 1, posts: 1 + eth_chainId })
  })

  it('fails where the provider refuses it, until it no longer does', async () => {
    const { provider, node } = await open()
    provider.faults.rpc = { status: 403 }
    expect(await rpcCall(node, ...receiptsOfLatest)).toMatchObject({ status: 403, error: { code: -32601 } })
    provider.faults.clear()
    await expect.poll(async () => (await rpcCall(node, ...receiptsOfLatest)).status).toBe(200)
  })

  it('fails where the provider is a node of another chain', async () => {
    const [upstream, provider] = [await startManualDevnet(), await startManualDevnet({ receipts: true, chainId: 1 })]
    const node = throughRelay(upstream, await openRelayFor(upstream, { RECEIPTS_RPC_URL: provider.rpcUrl }))
    expect(await rpcCall(node, ...receiptsOfLatest)).toMatchObject({ status: 200, error: { code: -32000 } })
  })
})

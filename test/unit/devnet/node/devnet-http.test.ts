import { describe, expect, it } from 'vitest'
import { post, rpcResult, startManualDevnet } from '../devnet-client.ts'

const chainIdCall = { jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }

describe('HTTP', () => {
  it.each([
    [429, -32016],
    [403, -32601],
    [503, -32011],
  ])('is refused with %i for every call, while the list is served', async (status, code) => {
    const devnet = await startManualDevnet()
    devnet.faults.rpc = { status }
    expect(await post(devnet, chainIdCall)).toMatchObject({ status, json: { error: { code } } })
    expect((await fetch(devnet.stocksUrl)).status).toBe(200)
    expect(devnet.requests).toMatchObject({ post: 1, eth_chainId: 0, list: 1 })
  })

  it('answers late', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.delayMs = 30
    const before = performance.now()
    await rpcResult(devnet, 'eth_chainId')
    expect(performance.now() - before).toBeGreaterThan(25)
  })
})

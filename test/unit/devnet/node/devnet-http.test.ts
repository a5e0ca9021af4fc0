import { describe, expect, it } from 'vitest'
import { openSocket, post, rpcResult, startManualDevnet } from '../devnet-client.ts'

const chainIdCall = { jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }

describe('HTTP', () => {
  it.each([
    [429, -32016],
    [403, -32601],
    [503, -32011],
  ])('is refused with %i for every call, or with another body, while the list is served', async (status, code) => {
    const devnet = await startManualDevnet()
    devnet.faults.rpc = { status, retryAfterSeconds: 2 }
    const { json, headers, ...answer } = await post(devnet, chainIdCall)
    expect([answer.status, headers.get('retry-after')]).toEqual([status, '2'])
    expect(json).toMatchObject({ error: { code } })
    devnet.faults.rpc = { status, body: '"bad gateway"' }
    expect((await post(devnet, chainIdCall)).json).toBe('bad gateway')
    expect((await fetch(devnet.stocksUrl)).status).toBe(200)
    expect(devnet.requests).toMatchObject({ post: 2, eth_chainId: 0, list: 1 })
  })

  it('answers late', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.delayMs = 30
    const before = performance.now()
    await rpcResult(devnet, 'eth_chainId')
    expect(performance.now() - before).toBeGreaterThan(25)
  })

  it('hangs without an answer, while sockets and later requests are answered', async () => {
    const devnet = await startManualDevnet()
    const link = await openSocket(devnet)
    devnet.faults.hangs = true
    const abort = new AbortController()
    const ends: unknown[] = []
    const hanging = [devnet.stocksUrl, devnet.rpcUrl].map(async (url) => {
      const init = url === devnet.rpcUrl ? { method: 'POST', body: '{}' } : {}
      ends.push(await fetch(url, { ...init, signal: abort.signal }).catch(({ name }: Error) => name))
    })
    await devnet.until(() => devnet.requests.post === 1 && devnet.requests.list === 1)
    expect((await link.call('eth_blockNumber')).error).toBeUndefined()
    devnet.faults.clear()
    await rpcResult(devnet, 'eth_chainId')
    expect(ends).toEqual([])
    abort.abort()
    await Promise.all(hanging)
    expect(ends).toEqual(['AbortError', 'AbortError'])
  })

  it('breaks off in the middle of a body', async () => {
    const devnet = await startManualDevnet()
    devnet.faults.cutBody = true
    const { length } = devnet.list.body()
    const response = await fetch(devnet.stocksUrl)
    expect([response.status, response.headers.get('content-length')]).toEqual([200, String(length)])
    await expect(response.text()).rejects.toThrow('terminated')
    await expect(rpcResult(devnet, 'eth_getBlockByNumber', 'latest', true)).rejects.toThrow('terminated')
    devnet.faults.clear()
    expect(await (await fetch(devnet.stocksUrl)).text()).toHaveLength(length)
  })
})

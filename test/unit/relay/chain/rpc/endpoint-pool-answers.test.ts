import { describe, expect, it } from 'vitest'
import { errorResponder, failureOf, openEndpoint, openEndpointPool, resultResponder } from './fake-endpoint.ts'

describe('an answer about one request', () => {
  it('that refuses one method causes no backoff', async () => {
    const node = await openEndpoint((request, response) =>
      request.method === 'eth_getBlockReceipts'
        ? errorResponder(403, -32601, 'rpc method is not whitelisted')(request, response)
        : resultResponder('0x64')(request, response),
    )
    const { rpc, blockNumber } = openEndpointPool([node.url])
    const failure = await failureOf(rpc.request('eth_getBlockReceipts', ['latest']))
    expect(failure.kind).toBe('forbidden')
    expect(await blockNumber()).toBe('0x64')
  })

  it('that lacks a block makes the next endpoint answer, without backoff of the first', async () => {
    const first = await openEndpoint(errorResponder(200, -32000, 'header not found'))
    const second = await openEndpoint(resultResponder('0x65'))
    const { rpc, warnings, blockNumber } = openEndpointPool([first.url, second.url])
    expect(await blockNumber()).toBe('0x65')
    expect(await blockNumber()).toBe('0x65')
    expect(first.methods()).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_blockNumber'])
    expect(warnings).toEqual([])
    second.respond = errorResponder(200, -32000, 'unknown block')
    const failure = await failureOf(rpc.request('eth_blockNumber', []))
    expect(failure).toMatchObject({ kind: 'behind', message: '-32000 unknown block' })
  })
})

import { describe, expect, it } from 'vitest'
import {
  errorResponder,
  failureOf,
  openEndpoint,
  openRpcClient,
  type Responder,
  resultResponder,
  sendJson,
} from './fake-endpoint.ts'

describe('an answer', () => {
  const kindOf = async (answering: Responder) =>
    (await failureOf(openRpcClient([(await openEndpoint(answering)).url]).blockNumber())).kind

  it.each<[string, Responder, string]>([
    [
      'an answer with neither result nor error',
      ({ id }, response) => sendJson(response, { jsonrpc: '2.0', id }),
      'unreadable',
    ],
  ])('that is %s is an error of its kind', async (_, answering, kind) => {
    expect(await kindOf(answering)).toBe(kind)
  })

  it('that refuses one method says nothing about the others', async () => {
    const node = await openEndpoint((question, response) =>
      question.method === 'eth_getBlockReceipts'
        ? errorResponder(403, -32601, 'rpc method is not whitelisted')(question, response)
        : resultResponder('0x64')(question, response),
    )
    const { rpc, blockNumber } = openRpcClient([node.url])
    const failure = await failureOf(
      new Promise((resolve, reject) =>
        rpc.request('eth_getBlockReceipts', ['latest']).subscribe({ next: resolve, error: reject }),
      ),
    )
    expect(failure.kind).toBe('forbidden')
    expect(await blockNumber()).toBe('0x64')
  })

  it('that knows no such block yet is asked of the next endpoint, and says nothing against the first', async () => {
    const first = await openEndpoint(errorResponder(200, -32000, 'header not found'))
    const second = await openEndpoint(resultResponder('0x65'))
    const { rpc, warnings, blockNumber } = openRpcClient([first.url, second.url])
    expect(await blockNumber()).toBe('0x65')
    expect(await blockNumber()).toBe('0x65')
    expect(first.methods()).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_blockNumber'])
    expect(warnings).toEqual([])
    second.respond = errorResponder(200, -32000, 'unknown block')
    const failure = await failureOf(
      new Promise((resolve, reject) => rpc.request('eth_blockNumber', []).subscribe({ next: resolve, error: reject })),
    )
    expect(failure).toMatchObject({ kind: 'behind', message: '-32000 unknown block' })
  })
})

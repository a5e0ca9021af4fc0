import { describe, expect, it } from 'vitest'
import { apple, word } from '../node-json.ts'
import {
  errorResponder,
  failureOf,
  openEndpoint,
  openEndpointPool,
  type Responder,
  rawResponder,
  resultResponder,
  sendJson,
} from './fake-endpoint.ts'

/** An endpoint with this answer to eth_call, and a good one to all else. */
const openContractEndpoint = (answering: Responder) =>
  openEndpoint((request, response) =>
    request.method === 'eth_call' ? answering(request, response) : resultResponder('0x64')(request, response),
  )

describe('an eth_call', () => {
  const callContract = ({ rpc }: ReturnType<typeof openEndpointPool>) =>
    rpc.request('eth_call', [{ to: apple, data: '0xa60bf13d' }, '0x64'])

  it('carries the contract and the selector', async () => {
    const node = await openContractEndpoint(resultResponder(word(1)))
    expect(await callContract(openEndpointPool([node.url]))).toBe(word(1))
    expect(node.requests.at(-1)).toMatchObject({ method: 'eth_call', params: [{ to: apple, data: '0xa60bf13d' }, '0x64'] })
  })

  it.each<[string, Responder, string]>([
    ['reverts', errorResponder(200, 3, 'execution reverted'), 'reverted'],
    ['reverts with a generic error code', errorResponder(200, -32000, 'execution reverted'), 'reverted'],
    ['has an unknown method', errorResponder(200, -32601, 'the method eth_call does not exist'), 'unknown_method'],
    ['has a method that is not whitelisted', errorResponder(403, -32601, 'rpc method is not whitelisted'), 'forbidden'],
    ['gets a bare refusal', rawResponder(403, 'Forbidden'), 'forbidden'],
    ['is invalid', errorResponder(200, -32602, 'invalid params'), 'invalid'],
    ['gets an unknown error', errorResponder(200, -32000, 'unexplained failure'), 'unknown'],
    ['hits the rate limit', rawResponder(429, '', { 'retry-after': '60' }), 'busy'],
    ['gets an unreadable answer', rawResponder(200, '<html>'), 'unreadable'],
    ['loses the connection', (_, response) => response.destroy(), 'unreachable'],
    ['gets another id', (_, response) => sendJson(response, { id: 999, result: '0x' }), 'unreadable'],
  ])('that %s causes no backoff of the endpoint', async (_, answering, kind) => {
    const node = await openContractEndpoint(answering)
    const client = openEndpointPool([node.url])
    const failure = await failureOf(callContract(client))
    expect(failure.kind).toBe(kind)
    expect(await client.blockNumber()).toBe('0x64')
    expect(client.warnings).toEqual([])
    expect(node.methods()).toEqual(['eth_chainId', 'eth_call', 'eth_blockNumber'])
  })

  it('that one endpoint refuses goes to the next', async () => {
    const first = await openContractEndpoint(errorResponder(403, -32601, 'rpc method is not whitelisted'))
    const second = await openContractEndpoint(resultResponder(word(1)))
    expect(await callContract(openEndpointPool([first.url, second.url]))).toBe(word(1))
  })

  it('that reverts goes to no other endpoint', async () => {
    const first = await openContractEndpoint(errorResponder(200, 3, 'execution reverted'))
    const second = await openContractEndpoint(resultResponder(word(1)))
    expect((await failureOf(callContract(openEndpointPool([first.url, second.url])))).kind).toBe('reverted')
    expect(second.requests).toEqual([])
  })

  it('is not sent to an endpoint of another chain', async () => {
    const node = await openEndpoint(resultResponder(word(1)), { chain: 1 })
    const client = openEndpointPool([node.url])
    expect((await failureOf(callContract(client))).kind).toBe('wrong_chain')
    expect(client.warnings.map(({ kind }) => kind)).toEqual(['upstream wrong_chain'])
    expect(node.methods()).toEqual(['eth_chainId'])
  })
})

import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { BatchRequest } from '../../../../src/chain/rpc/client.ts'
import type { BatchAnswer } from '../../../../src/chain/rpc/rpc-answer.ts'
import { errorResponder, failureOf, openEndpoint, openRpcClient, rawResponder, resultResponder, sendJson } from './fake-endpoint.ts'

type Call = { readonly id: number; readonly method: string }

const batch: readonly BatchRequest[] = [
  { method: 'eth_getBlockByNumber', params: ['latest', false] },
  { method: 'eth_blockNumber', params: [] },
  { method: 'eth_chainId', params: [] },
]
const textOf = (answer: BatchAnswer) => (answer.ok ? answer.result : answer.error.message)

/** Answers batches like this, and single requests with their method. */
const openBatchNode = (respond: (calls: readonly Call[], response: ServerResponse) => void) =>
  openEndpoint((call: unknown, response) => {
    if (Array.isArray(call)) return respond(call, response)
    const { id, method } = call as Call
    sendJson(response, { jsonrpc: '2.0', id, result: method })
  })
const answersOf = (calls: readonly Call[]) => calls.map(({ id, method }) => ({ jsonrpc: '2.0', id, result: method }))

describe('a batch', () => {
  const methods = batch.map(({ method }) => method)

  it.each<[string, Parameters<typeof openBatchNode>[0], readonly unknown[]]>([
    ['in order', (calls, response) => sendJson(response, answersOf(calls)), methods],
    ['in another order', (calls, response) => sendJson(response, answersOf(calls).reverse()), methods],
    [
      'without one answer',
      (calls, response) => sendJson(response, answersOf(calls).slice(1)),
      ['a request of the batch has no answer', ...methods.slice(1)],
    ],
    [
      'with an error among them',
      (calls, response) =>
        sendJson(
          response,
          answersOf(calls).map((answer, index) =>
            index === 1 ? { ...answer, result: undefined, error: { code: -32601, message: 'no such method' } } : answer,
          ),
        ),
      [methods[0], '-32601 no such method', methods[2]],
    ],
  ])('is one request, answered %s', async (_, respond, expected) => {
    const node = await openBatchNode(respond)
    const { rpc } = openRpcClient([node.url])
    expect((await rpc.requestBatch(batch)).map(textOf)).toEqual(expected)
    expect(node.requests.length).toBe(2)
  })

  it.each<[string, ReturnType<typeof rawResponder>]>([
    ['with an error', errorResponder(200, -32600, 'batches are not supported')],
    ['with HTTP 403', rawResponder(403)],
    ['as one request', resultResponder('0x64')],
  ])('that is refused %s is sent one by one for ten minutes, first and last request apart', async (_, refuse) => {
    let open = 0
    const sent: string[] = []
    const node = await openEndpoint((call, response) => {
      if (Array.isArray(call)) return refuse({ ...call, id: call[0]?.id }, response)
      sent.push(`${call.method} beside ${open}`)
      open += 1
      setImmediate(() => {
        open -= 1
        sendJson(response, { jsonrpc: '2.0', id: call.id, result: call.method })
      })
    })
    const { rpc, clock, warnings } = openRpcClient([node.url])
    const calls = [...batch.slice(0, 2), ...batch.slice(0, 1)]
    expect((await rpc.requestBatch(calls)).map(textOf)).toEqual(calls.map(({ method }) => method))
    expect(sent).toEqual(calls.map(({ method }) => `${method} beside 0`))
    expect(warnings.map(({ kind }) => kind)).toEqual(['upstream refuses batches'])
    const batches = () => node.requests.filter((call) => Array.isArray(call)).length
    clock.now += 599_999
    await rpc.requestBatch(calls)
    expect(batches()).toBe(1)
    clock.now += 1
    await rpc.requestBatch(calls)
    expect(batches()).toBe(2)
  })

  it('that gets no answer fails as a whole, and leaves its endpoint to required reads', async () => {
    const node = await openBatchNode((_, response) => response.destroy())
    const { rpc, blockNumber } = openRpcClient([node.url])
    expect((await failureOf(rpc.requestBatch(batch))).kind).toBe('unreachable')
    expect(await blockNumber()).toBe('eth_blockNumber')
  })
})

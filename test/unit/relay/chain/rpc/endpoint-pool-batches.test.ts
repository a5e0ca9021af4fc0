import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { BatchAnswer } from '../../../../../src/relay/chain/rpc/answer-envelope.ts'
import type { BatchRequest } from '../../../../../src/relay/chain/rpc/endpoint-pool.ts'
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
/** Answers a whole batch with an answer to its first request. */
const asOne =
  (respond: Responder) =>
  ([first]: readonly Call[], response: ServerResponse) =>
    respond({ id: first?.id ?? 0, method: '', params: [] }, response)
const batchesTo = ({ requests }: { readonly requests: readonly unknown[] }) => requests.filter(Array.isArray).length

describe('a batch', () => {
  const methods = batch.map(({ method }) => method)

  const error = { code: -32601, message: 'no such method' }
  it.each<[string, (answers: ReturnType<typeof answersOf>) => readonly unknown[], readonly unknown[]]>([
    ['in another order', (answers) => answers.toReversed(), methods],
    ['without one answer', (answers) => answers.slice(1), ['a request of the batch has no answer', ...methods.slice(1)]],
    [
      'with an error among them',
      (answers) => answers.map(({ id, ...answer }, index) => (index === 1 ? { id, error } : { id, ...answer })),
      [methods[0], '-32601 no such method', methods[2]],
    ],
  ])('is one request, answered %s', async (_, change, expected) => {
    const node = await openBatchNode((calls, response) => sendJson(response, change(answersOf(calls))))
    const { rpc } = openEndpointPool([node.url])
    expect((await rpc.requestBatch(batch)).map(textOf)).toEqual(expected)
    expect(node.requests.length).toBe(2)
  })

  it.each<[string, Responder]>([
    ['with an error', errorResponder(200, -32600, 'batches are not supported')],
    ['as one request', resultResponder('0x64')],
  ])('that is refused %s is sent one by one for ten minutes, first and last request apart', async (_, refuse) => {
    let open = 0
    const sent: string[] = []
    const node = await openEndpoint((call, response) => {
      if (Array.isArray(call)) return asOne(refuse)(call, response)
      sent.push(`${call.method} beside ${open}`)
      open += 1
      setImmediate(() => {
        open -= 1
        sendJson(response, { jsonrpc: '2.0', id: call.id, result: call.method })
      })
    })
    const { rpc, clock, warnings } = openEndpointPool([node.url])
    const calls = [...batch.slice(0, 2), ...batch.slice(0, 1)]
    expect((await rpc.requestBatch(calls)).map(textOf)).toEqual(calls.map(({ method }) => method))
    expect(sent).toEqual(calls.map(({ method }) => `${method} beside 0`))
    expect(warnings.map(({ kind }) => kind)).toEqual(['batches_refused'])
    clock.now += 599_999
    await rpc.requestBatch(calls)
    expect(batchesTo(node)).toBe(1)
    clock.now += 1
    await rpc.requestBatch(calls)
    expect(batchesTo(node)).toBe(2)
  })

  it('that is sent one by one asks one endpoint alone, which stays in use after any answer', async () => {
    const sent: string[] = []
    const openSingles = (name: string, failing: readonly string[]) =>
      openEndpoint((call, response) => {
        if (Array.isArray(call)) return asOne(errorResponder(200, -32014, 'maximum 10 calls in 1 batch'))(call, response)
        sent.push(`${name} ${call.method}`)
        if (failing.includes(call.method)) return rawResponder(429)(call, response)
        sendJson(response, { jsonrpc: '2.0', id: call.id, result: name })
      })
    const [first, second] = [await openSingles('first', ['eth_blockNumber', 'eth_chainId']), await openSingles('second', [])]
    const { rpc } = openEndpointPool([first.url, second.url])
    const storage: BatchRequest = { method: 'eth_getStorageAt', params: [`0x${'1'.repeat(40)}`, '0x0', 'latest'] }
    const answers = await rpc.requestBatch([...batch.slice(0, 2), storage, ...batch.slice(1, 2)])
    expect(answers.map(textOf)).toEqual(['first', 'HTTP 429', 'first', 'HTTP 429'])
    expect(await rpc.request('eth_getBlockByNumber', ['latest', false])).toBe('first')
    expect(sent.filter((text) => text.startsWith('second'))).toEqual([])
  })

  it('that is answered with garbage is no refusal', async () => {
    let garbage = true
    const node = await openBatchNode((calls, response) => {
      if (garbage) response.end('<html>')
      else sendJson(response, answersOf(calls))
    })
    const { rpc, warnings } = openEndpointPool([node.url])
    expect((await failureOf(rpc.requestBatch(batch))).kind).toBe('unreadable')
    garbage = false
    expect((await rpc.requestBatch(batch)).map(textOf)).toEqual(methods)
    expect(warnings).toEqual([])
  })
})

import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { classify, UpstreamError } from '../../../../src/relay/chain/rpc/upstream-error.ts'
import { alice } from '../chain/node-json.ts'
import { openAnswers, rpcErrorOf } from './shared-answers-fixture.ts'

const KEY = 'k-9f8e7d6c5b4a'
const HOST = 'node.example.com:8545'
const URL = `https://${HOST}/v2/${KEY}`
type RpcErrorBody = { readonly code: number; readonly message: string; readonly data?: unknown }

/** The error that a client gets for this failure of the node. */
async function rpcErrorFor(failure: Error) {
  const { request, upstreamCalls } = openAnswers({ urls: [URL] })
  const rpcError = rpcErrorOf(request('eth_getBalance', alice, 'latest'))
  await yieldToEventLoop()
  await upstreamCalls[0]?.fail(failure)
  return await rpcError
}

/** The error class for an answer of the upstream. */
const upstreamErrorFor = (errorBody: RpcErrorBody | null, status = 200): UpstreamError =>
  classify(new Response(null, { status }), errorBody)

describe('an error of the upstream', () => {
  it.each<[string, RpcErrorBody, number]>([
    ['an error of a contract', { code: 3, message: 'execution reverted: no', data: '0x08c379a0' }, 200],
    ['too many logs', { code: -32005, message: 'query returned more than 10000 results', data: { to: '0x5' } }, 200],
    ['a busy node', { code: -32016, message: 'over rate limit' }, 429],
    ['an unhealthy node', { code: -32011, message: 'no backend is currently healthy to serve traffic' }, 503],
    ['a server error', { code: -32603, message: 'internal error', data: ['a', 1, null, true] }, 500],
    ['null data', { code: -32000, message: 'it is so', data: null }, 200],
    ['an empty message', { code: 1, message: '' }, 200],
    ['a method that is not allowed', { code: -32601, message: 'rpc method is not whitelisted' }, 403],
  ])('is forwarded with code, message and data, and HTTP 200 or 403: %s', async (_, errorBody, status) => {
    const rpcError = await rpcErrorFor(upstreamErrorFor(errorBody, status))
    expect(JSON.parse(rpcError.json)).toEqual(errorBody)
    expect(rpcError.status).toBe(status === 403 ? 403 : 200)
  })

  it('never reveals an address or a key of the upstream', async () => {
    const data = { url: URL, seen: [HOST, { [KEY]: KEY }], at: 5 }
    const { json } = await rpcErrorFor(upstreamErrorFor({ code: -32000, message: `${URL} refused ${KEY} at ${HOST}`, data }))
    const redacted = { url: '…', seen: ['…', { '…': '…' }], at: 5 }
    expect(JSON.parse(json)).toEqual({ code: -32000, message: '… refused … at …', data: redacted })
  })
})

describe('a failure without an error of the upstream gets a message of ours', () => {
  const noAnswer = [-32000, 200, 'the upstream does not answer now; try again in a moment'] as const

  it.each<[string, UpstreamError, number, number, string]>([
    ['it does not answer in time', new UpstreamError('unreachable', `connect ECONNREFUSED ${HOST}`), ...noAnswer],
    ['its answer is unreadable', new UpstreamError('unreadable', 'the answer is not JSON-RPC'), ...noAnswer],
    ['it is of another chain', new UpstreamError('wrong_chain', `chain 7 at ${URL}`), ...noAnswer],
    ['it answers 502', upstreamErrorFor(null, 502), ...noAnswer],
    ['it is busy', upstreamErrorFor(null, 429), -32005, 200, 'the upstream is over its rate limit now; come back in a moment'],
    ['it does not answer a method', upstreamErrorFor(null, 403), -32601, 403, 'the upstream does not answer this method'],
    [
      'its answer is too long',
      new UpstreamError('too_large', `the answer from ${URL} is too long`),
      ...([-32000, 200, 'the answer is longer than 16777216 bytes; ask for less'] as const),
    ],
  ])('if %s', async (_, failure, code, status, message) => {
    expect(await rpcErrorFor(failure)).toMatchObject({ code, status, message, data: undefined })
  })
})

it('a complaint of the provider of receipts does not slow down calls to the other', async () => {
  const { request, callsUpstream, receiptsCalls } = openAnswers({ hasReceipts: true })
  const refused = rpcErrorOf(request('eth_getBlockReceipts', 'latest'))
  await yieldToEventLoop()
  await receiptsCalls[0]?.fail(new UpstreamError('busy', 'HTTP 429', 5_000))
  expect(await refused).toMatchObject({ code: -32005 })
  expect(await rpcErrorOf(request('eth_getBlockReceipts', 'latest'))).toMatchObject({ code: -32005 })
  expect(receiptsCalls).toHaveLength(1)
  expect(await callsUpstream(['eth_getBlockByNumber', 'latest', false], {})).toBe(true)
})

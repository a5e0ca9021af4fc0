import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { until } from '../../support/rpc-scenarios.ts'
import { listenToAll, openRelayFor, type TestStack, transfer } from '../../support/test-stack.ts'
import { BOB, post, rpcCall, rpcResult, startManualDevnet } from '../../unit/devnet/devnet-client.ts'
import { errorResponder, type Responder, rawResponder, sendJson } from '../../unit/relay/chain/rpc/fake-endpoint.ts'
import {
  expectSameAnswer,
  openGatewayForTest,
  openGatewayWithOverrides,
  overrideMethod,
  produceTransfers,
  request,
  throughRelay,
} from './node-and-gateway.ts'

const balance = ['eth_getBalance', BOB, 'latest'] as const
const code = ['eth_getCode', BOB, 'latest'] as const
const receiptsOfLatest = ['eth_getBlockReceipts', 'latest'] as const
const balanceRequest = (id: number) => request('eth_getBalance', [BOB, 'latest'], id)

const MIB = 2 ** 20
const answerText = (id: number, bytes: number): string => {
  const [start, end] = [`{"jsonrpc":"2.0","id":${id},"result":"0x`, '"}']
  return start + 'a'.repeat(bytes - start.length - end.length) + end
}
const respondAtLength =
  (bytes: number): Responder =>
  ({ id }, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(answerText(id, bytes))
const respondWithError =
  (status: number, error: unknown): Responder =>
  ({ id }, response) =>
    sendJson(response, { jsonrpc: '2.0', id, error }, status)
const neverResponds: Responder = () => {}
const respondsByHalf: Responder = (_, response) => void response.writeHead(200, { 'content-length': 99 }).end('{"jsonrpc":')

/** A relay whose first upstream answers `eth_getBalance` as given, and that asks the devnet second with `failover`. */
const openFailing = (respond: Responder, { failover = false } = {}) =>
  openGatewayWithOverrides(overrideMethod('eth_getBalance', respond), (upstreamUrl, { rpcUrl }) => ({
    UPSTREAM_RPC_URL: failover ? `${upstreamUrl},${rpcUrl}` : upstreamUrl,
  }))

/** What the relay publishes about its source from its start on. */
async function listenToSource(stack: Pick<TestStack, 'relay'>) {
  const received = await listenToAll(stack, 'start')
  await received.waitFor('status', ({ source }) => source === 'pendingLogs')
  const sources = () => received.messagesOf('status').map(({ source, reason }) => `${source} ${reason}`)
  return { received, sources }
}

describe('an error of the upstream', () => {
  it.each<[string, number, Record<string, unknown>]>([
    ['with an object', 200, { code: -32000, message: 'no', data: { from: 1, list: [null, 'ß', { a: true }] } }],
    ['with data that is null', 200, { code: 15, message: '', data: null }],
    ['that is long', 200, { code: 3, message: 'execution reverted', data: 'd'.repeat(MIB) }],
    ['with HTTP 503', 503, { code: -32011, message: 'no backend is currently healthy to serve traffic' }],
  ])('reaches the client with its code, message and data, alone and in a batch: %s', async (_, status, error) => {
    const { node } = await openFailing(respondWithError(status, error))
    const expected = { jsonrpc: '2.0', id: 5, error }
    const [single, batch] = [await post(node, balanceRequest(5)), await post(node, [balanceRequest(5)])]
    expect([single.status, single.json]).toEqual([200, expected])
    expect([batch.status, batch.json]).toEqual([200, [expected]])
  })
})

describe('an unreadable answer of the upstream', () => {
  it.each<[string, Responder]>([
    ['a page of HTML with HTTP 502', rawResponder(502, '<html>Bad Gateway</html>')],
    ['another id', (_, response) => sendJson(response, { jsonrpc: '2.0', id: 999_999, result: '0x1' })],
    ['a long answer with another id', ({ id }, response) => void response.end(answerText(id + 7, MIB))],
    [
      'a long answer that breaks off',
      ({ id }, response) => {
        response.writeHead(200, { 'content-length': MIB }).write(answerText(id, MIB).slice(0, -2))
        setImmediate(() => response.destroy())
      },
    ],
  ])('is -32000 with HTTP 200: %s', async (_, respond) => {
    const { node } = await openFailing(respond)
    const { status, result, error } = await rpcCall(node, ...balance)
    expect({ status, result, error }).toMatchObject({ status: 200, result: undefined, error: { code: -32000 } })
  })
})

describe('the second URL of UPSTREAM_RPC_URL', () => {
  it.each<[string, Responder]>([
    ['answers 502', rawResponder(502)],
    ['lacks the block', errorResponder(200, -32_000, 'header not found')],
  ])('serves where the first %s, and the source stays', async (_, respond) => {
    const { devnet, node, relay } = await openFailing(respond, { failover: true })
    const { sources } = await listenToSource({ relay })
    expect((await expectSameAnswer({ devnet, node }, 'eth_getBalance', devnet.custodian, 'latest')).error).toBeUndefined()
    expect(sources()).toEqual(['pendingLogs ok'])
  })
})

// All requests wait for the same deadline, so they wait together.
it('an upstream that does not answer is -32000 with HTTP 200, and affects nothing else', async () => {
  const isAbout = (params: unknown, address: string) => JSON.stringify(params).includes(address)
  const { devnet, node, relay } = await openGatewayWithOverrides(({ method, params }) => {
    if (method === 'eth_getCode' && isAbout(params, BOB)) return respondsByHalf
    return method === 'eth_getBalance' || (method === 'eth_getLogs' && isAbout(params, BOB)) ? neverResponds : null
  })
  const { received, sources } = await listenToSource({ relay })
  const logs = { fromBlock: 'finalized', toBlock: 'latest', address: BOB }
  const failing = [rpcCall(node, ...balance), rpcCall(node, ...code), rpcCall(node, 'eth_getLogs', logs)]
  const batch = post(node, [request('eth_getLogs', [{ ...logs, fromBlock: 'safe' }]), request('eth_chainId', [])])
  const nonce = ['eth_getTransactionCount', devnet.custodian, 'pending'] as const
  let isOver = false
  void Promise.all([...failing, batch]).finally(() => {
    isOver = true
  })
  for (let raw = 1n; !isOver || raw < 3n; raw += 1n) {
    transfer({ devnet }, 'AAPLc', 1, raw)
    devnet.seal()
    await received.waitFor('transfer', (message) => message.raw === String(raw))
    await until(async () => (await rpcResult(node, ...nonce)) === (await rpcResult(devnet, ...nonce)), 'the nonce')
  }
  for (const answer of failing) expect(await answer).toMatchObject({ status: 200, error: { code: -32000 } })
  expect(await batch).toMatchObject({ status: 200, json: [{ error: { code: -32000 } }, { result: expect.any(String) }] })
  expect(sources()).toEqual(['pendingLogs ok'])
  expect((await fetch(`${relay.url}/readyz`)).status).toBe(200)
})

describe('a long answer', () => {
  const digest = (text: string) => createHash('sha256').update(text).digest('hex')

  it('of 16 MiB reaches the client whole', async () => {
    let text = ''
    const { node } = await openFailing(({ id }, response) => {
      text = answerText(id, 16 * MIB)
      response.end(text)
    })
    const { status, result } = await rpcCall(node, ...balance)
    expect([status, digest(String(result))]).toEqual([200, digest(text.slice(text.indexOf('0x'), -2))])
  })

  it('over 16 MiB is -32000 with HTTP 200 and names the bound', async () => {
    const { node } = await openFailing(respondAtLength(16 * MIB + 1))
    const { status, error } = await rpcCall(node, ...balance)
    expect({ status, error }).toEqual({ status: 200, error: { code: -32000, message: expect.stringContaining('16777216') } })
    expect(await rpcResult(node, ...code)).toBe('0x')
  })
})

describe('eth_getBlockReceipts', () => {
  it('fails with the error and the HTTP 403 of the upstream, each time, and other methods still work', async () => {
    const { devnet, node } = await openGatewayForTest()
    const error = { code: -32601, message: 'rpc method is not whitelisted' }
    for (let time = 0; time < 5; time += 1) {
      const answer = await expectSameAnswer({ devnet, node }, ...receiptsOfLatest)
      expect({ status: answer.status, error: answer.error }).toEqual({ status: 403, error })
      expect(await rpcResult(node, 'eth_getBalance', `0x${'0'.repeat(39)}${time}`, 'latest')).toBe('0x0')
    }
  })

  it('comes from RECEIPTS_RPC_URL, where it is all that is asked', async () => {
    // Both are nodes of one chain.
    const seconds = Date.UTC(2026, 10, 20, 15)
    const upstream = await startManualDevnet({ now: () => seconds })
    const provider = await startManualDevnet({ now: () => seconds, receipts: true })
    for (const devnet of [upstream, provider]) produceTransfers(devnet)
    const node = throughRelay(upstream, await openRelayFor(upstream, { RECEIPTS_RPC_URL: provider.rpcUrl }))
    const result = await rpcResult(provider, ...receiptsOfLatest)
    expect(result).not.toEqual([])
    const before = provider.requests.post
    const { json } = await post(node, [
      request('eth_getBlockReceipts', ['latest']),
      request('eth_getBlockByNumber', ['latest', true]),
      request('eth_getLogs', [{ fromBlock: 'latest' }]),
    ])
    expect(json).toMatchObject([{ result }, { result: {} }, { result: expect.any(Array) }])
    expect(provider.requests.post - before).toBe(1 + provider.requests.eth_chainId)
  })

  it('fails where RECEIPTS_RPC_URL is a node of another chain', async () => {
    const [upstream, provider] = [await startManualDevnet(), await startManualDevnet({ receipts: true, chainId: 1 })]
    const node = throughRelay(upstream, await openRelayFor(upstream, { RECEIPTS_RPC_URL: provider.rpcUrl }))
    expect(await rpcCall(node, ...receiptsOfLatest)).toMatchObject({ status: 200, error: { code: -32000 } })
  })
})

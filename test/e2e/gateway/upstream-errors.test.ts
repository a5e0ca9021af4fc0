import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { freePort } from '../../support/child-program.ts'
import { until } from '../../support/rpc-scenarios.ts'
import { listenToAll, openRelayFor, type TestStack, transfer } from '../../support/test-stack.ts'
import { BOB, post, rpcCall, rpcResult, startManualDevnet } from '../../unit/devnet/devnet-client.ts'
import {
  errorResponder,
  type Responder,
  rawResponder,
  resultResponder,
  sendJson,
} from '../../unit/relay/chain/rpc/fake-endpoint.ts'
import {
  expectSameAnswer,
  highLimits,
  openGatewayForTest,
  openGatewayWithOverrides,
  overrideMethod,
  request,
  throughRelay,
} from './node-and-gateway.ts'

const balance = ['eth_getBalance', BOB, 'latest'] as const
const code = ['eth_getCode', BOB, 'latest'] as const
const balanceRequest = (id: number) => request('eth_getBalance', [BOB, 'latest'], id)
const sourcesOf = (received: Awaited<ReturnType<typeof listenToAll>>) =>
  received.messagesOf('status').map(({ source, reason }) => `${source} ${reason}`)

const respondWithError =
  (status: number, error: unknown): Responder =>
  ({ id }, response) =>
    sendJson(response, { jsonrpc: '2.0', id, error }, status)
const neverResponds: Responder = () => {}
const resetsConnection: Responder = (_, response) => response.destroy()
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
  return received
}

describe('an error of the upstream', () => {
  it.each<[string, Record<string, unknown>]>([
    ['of the node', { code: -32000, message: 'header not found' }],
    ['of a range that is too large', { code: -32602, message: 'query exceeds max results 20000' }],
    ['with data that is a text', { code: -32000, message: 'no such state', data: '0x08c379a0' }],
    ['with data that is an object', { code: -32000, message: 'no', data: { from: 1, list: [null, 'ß', { a: true }] } }],
    ['with data that is null', { code: -32000, message: 'no', data: null }],
    ['with the code of a provider', { code: 15, message: 'unheard of' }],
    ['without a message', { code: -32000, message: '' }],
    ['that is long', { code: 3, message: 'execution reverted', data: 'd'.repeat(2 ** 20) }],
  ])('reaches the client with its code, message and data, alone and in a batch: %s', async (_, error) => {
    const { node } = await openFailing(respondWithError(200, error))
    const expected = { jsonrpc: '2.0', id: 5, error }
    const [single, batch] = [await post(node, balanceRequest(5)), await post(node, [balanceRequest(5)])]
    expect([single.status, single.json]).toEqual([200, expected])
    expect([batch.status, batch.json]).toEqual([200, [expected]])
  })

  it.each([400, 404, 413, 500, 503])('reaches the client in JSON-RPC where it comes with HTTP %i', async (status) => {
    const error = { code: -32011, message: 'no backend is currently healthy to serve traffic' }
    const { node } = await openFailing(respondWithError(status, error))
    expect(await rpcCall(node, ...balance)).toMatchObject({ status: 200, error })
  })

  it('affects no other request, and is not cached', async () => {
    let respond = errorResponder(200, -32000, 'an unknown sentence')
    const { node } = await openFailing((call, response) => respond(call, response))
    for (const tag of ['latest', 'pending', 'safe', 'finalized']) {
      expect((await rpcCall(node, 'eth_getBalance', BOB, tag)).error?.message).toBe('an unknown sentence')
      expect(await rpcResult(node, 'eth_getCode', BOB, tag)).toBe('0x')
    }
    respond = resultResponder('0x7')
    expect(await rpcResult(node, ...balance)).toBe('0x7')
  })

  it('reaches the client without the key of the upstream', async () => {
    const { node } = await openFailing(errorResponder(429, -32_016, 'over rate limit of key-9f8e7d'))
    const { status, error } = await rpcCall(node, ...balance)
    expect({ status, error }).toEqual({ status: 200, error: { code: -32_016, message: 'over rate limit of …' } })
  })

  it('with 429 makes the relay wait as long as it asks for, and changes no source', async () => {
    let fails = true
    const busy = errorResponder(429, -32_016, 'over rate limit', { 'retry-after': '1' })
    const { upstream, node, relay } = await openGatewayWithOverrides(({ method }) =>
      fails && method === 'eth_getBalance' ? busy : null,
    )
    const received = await listenToSource({ relay })
    const requestCount = () => upstream.methods().filter((method) => method === 'eth_getBalance').length
    expect((await rpcCall(node, ...balance)).error).toMatchObject({ code: -32_016 })
    expect((await rpcCall(node, ...balance)).error).toMatchObject({ code: -32_005 })
    expect(requestCount()).toBe(1)
    fails = false
    const begin = performance.now()
    await until(async () => (await rpcCall(node, ...balance)).error === undefined, 'an answer')
    expect(performance.now() - begin).toBeGreaterThan(500)
    expect(requestCount()).toBe(2)
    expect(sourcesOf(received)).toEqual(['pendingLogs ok'])
  })
})

describe('an unreadable answer of the upstream', () => {
  it.each<[string, Responder]>([
    ['a page of HTML', rawResponder(200, '<html>', { 'content-type': 'text/html' })],
    ['a page of HTML with HTTP 502', rawResponder(502, '<html>Bad Gateway</html>')],
    ['no body', rawResponder(200)],
    ['no JSON-RPC', (_, response) => sendJson(response, { hello: 'world' })],
    ['another id', (_, response) => sendJson(response, { jsonrpc: '2.0', id: 999_999, result: '0x1' })],
    ['a long answer with another id', ({ id }, response) => void response.end(standardFormat(id + 7, longResult(MIB)))],
    ['a closed connection', resetsConnection],
    [
      'a long answer that breaks off',
      ({ id }, response) => {
        const text = standardFormat(id, longResult(MIB))
        response.writeHead(200, { 'content-length': text.length }).write(text.slice(0, -2))
        setImmediate(() => response.destroy())
      },
    ],
  ])('is -32000 with HTTP 200: %s', async (_, respond) => {
    const { node } = await openFailing(respond)
    const { status, result, error } = await rpcCall(node, ...balance)
    expect({ status, result, error }).toEqual({
      status: 200,
      result: undefined,
      error: { code: -32000, message: expect.stringMatching(/\S/) },
    })
  })
})

describe('the second URL of UPSTREAM_RPC_URL', () => {
  it.each<[string, Responder]>([
    ['answers 502', rawResponder(502)],
    ['answers 503', rawResponder(503)],
    ['answers 429', rawResponder(429)],
    ['is over its rate limit', errorResponder(429, -32_016, 'over rate limit')],
    ['is not healthy', errorResponder(200, -32_011, 'no backend is currently healthy to serve traffic')],
    ['lacks the block', errorResponder(200, -32_000, 'header not found')],
    ['answers garbage', rawResponder(200, '<html>')],
    ['closes the connection', resetsConnection],
  ])('serves where the first %s, and the source stays', async (_, respond) => {
    const { devnet, node, relay } = await openFailing(respond, { failover: true })
    const received = await listenToSource({ relay })
    expect((await expectSameAnswer({ devnet, node }, 'eth_getBalance', devnet.custodian, 'latest')).error).toBeUndefined()
    expect(sourcesOf(received)).toEqual(['pendingLogs ok'])
  })

  it('serves where the first refuses connections', async () => {
    const devnet = await startManualDevnet()
    const rpcUrl = `http://127.0.0.1:${await freePort()},${devnet.rpcUrl}`
    const node = throughRelay(devnet, await openRelayFor({ ...devnet, rpcUrl }, highLimits))
    expect((await expectSameAnswer({ devnet, node }, 'eth_getBalance', devnet.custodian, 'latest')).error).toBeUndefined()
  })
})

describe('an upstream that does not answer', () => {
  /** Seals transfers and reads them through the relay until a promise settles. */
  async function expectProgress(
    { devnet, node }: { readonly devnet: Devnet; readonly node: Devnet },
    received: Awaited<ReturnType<typeof listenToAll>>,
    end: Promise<unknown>,
  ): Promise<number> {
    let isOver = false
    void end.finally(() => {
      isOver = true
    })
    let raw = 0n
    const nonce = ['eth_getTransactionCount', devnet.custodian, 'pending'] as const
    while (!isOver) {
      raw += 1n
      transfer({ devnet }, 'AAPLc', 1, raw)
      devnet.seal()
      await received.waitFor('transfer', (message) => message.raw === String(raw))
      await until(async () => (await rpcResult(node, ...nonce)) === (await rpcResult(devnet, ...nonce)), 'the nonce')
    }
    return Number(raw)
  }

  // All requests wait for the same deadline, so they wait together.
  it('is -32000 with HTTP 200, affects nothing else, and a second upstream serves', async () => {
    const { devnet, node, relay } = await openGatewayWithOverrides(({ method, params }) => {
      if (method === 'eth_getStorageAt' || method === 'eth_getBalance') return neverResponds
      if (method === 'eth_getCode' && params[0] === BOB) return respondsByHalf
      return method === 'eth_getLogs' && JSON.stringify(params).includes(BOB) ? neverResponds : null
    })
    const second = await openFailing(neverResponds, { failover: true })
    const [received, receivedBySecond] = [await listenToSource({ relay }), await listenToSource(second)]
    const token = devnet.list.addressOf('AAPLc')
    const failing: Record<string, Promise<unknown>> = {
      'no answer': rpcCall(node, ...balance),
      'half an answer': rpcCall(node, ...code),
      'logs of many blocks': rpcCall(node, 'eth_getLogs', { fromBlock: 'finalized', toBlock: 'latest', address: BOB }),
    }
    for (const [index, slot] of ['0x1', '0x2', '0x1', '0x3'].entries())
      failing[`slot ${slot} (${index})`] = rpcCall(node, 'eth_getStorageAt', token, slot, 'latest')
    const batch = post(node, [request('eth_getLogs', [{ fromBlock: 'safe', address: BOB }]), request('eth_chainId', [])])
    const custodian = ['eth_getBalance', second.devnet.custodian, 'latest'] as const
    const served = rpcCall(second.node, ...custodian)
    const end = Promise.all([...Object.values(failing), batch, served])
    expect(await expectProgress({ devnet, node }, received, end)).toBeGreaterThan(1)
    for (const [name, answer] of Object.entries(failing))
      expect(await answer, name).toMatchObject({ status: 200, error: { code: -32000 } })
    expect(await batch).toMatchObject({ status: 200, json: [{ error: { code: -32000 } }, { result: expect.any(String) }] })
    expect(await served).toEqual(await rpcCall(second.devnet, ...custodian))
    for (const listener of [received, receivedBySecond]) expect(sourcesOf(listener)).toEqual(['pendingLogs ok'])
    expect((await fetch(`${relay.url}/readyz`)).status).toBe(200)
  })
})

const MIB = 2 ** 20
const BOUND_BYTES = 16 * MIB
type AnswerFormat = (id: number, result: string) => string
const standardFormat: AnswerFormat = (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`
const longResult = (digits: number) => `"0x${'a'.repeat(digits)}"`
/** Answers with this many bytes in all. */
const respondAtLength =
  (bytes: number, write: AnswerFormat = standardFormat): Responder =>
  ({ id }, response) => {
    const text = write(id, longResult(bytes - write(id, longResult(0)).length))
    response.writeHead(200, { 'content-type': 'application/json' }).end(text)
  }

describe('a long answer', () => {
  const digest = (text: string) => createHash('sha256').update(text).digest('hex')

  it.each<[string, AnswerFormat]>([
    ['the usual order of fields', standardFormat],
    ['another order of fields', (id, result) => `{"result":${result},"id":${id},"jsonrpc":"2.0"}`],
    ['white space', (id, result) => `{\n  "jsonrpc" : "2.0",\n  "id" : ${id},\n  "result" : ${result}\n}\n`],
    ['an unknown field', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result},"usage":{"cu":19}}`],
  ])('of 16 MiB reaches the client whole: %s', async (_, write) => {
    const { node } = await openFailing(respondAtLength(BOUND_BYTES, write))
    const { status, result } = await rpcCall(node, ...balance)
    expect(status).toBe(200)
    const expected = `0x${'a'.repeat(BOUND_BYTES - write(1, longResult(0)).length)}`
    // The id towards the node may have more digits than that of the client.
    expect(String(result).length).toBeGreaterThan(expected.length - 4)
    expect(String(result).length).toBeLessThanOrEqual(expected.length)
    expect(digest(String(result))).toBe(digest(expected.slice(0, String(result).length)))
  })

  it('over 16 MiB is -32000 with HTTP 200 and names the bound', async () => {
    const { node } = await openFailing(respondAtLength(BOUND_BYTES + 1))
    const { status, error } = await rpcCall(node, ...balance)
    expect({ status, error }).toEqual({
      status: 200,
      error: { code: -32000, message: expect.stringMatching(/16,?777,?216|16 MiB/) },
    })
    expect(await rpcResult(node, ...code)).toBe('0x')
  })

  it('that takes a batch over 16 MiB is refused alone', async () => {
    const { node } = await openFailing(respondAtLength(9 * MIB))
    const batch = [balanceRequest(1), request('eth_getBalance', [BOB, 'pending'], 2), request('eth_getCode', [BOB, 'latest'], 3)]
    const { status, json } = await post(node, batch)
    expect(status).toBe(200)
    const outcomes = [{ result: expect.any(String) }, { error: { code: -32000 } }]
    // The first of the two to arrive fits.
    if (!JSON.stringify(json).startsWith('[{"jsonrpc":"2.0","id":1,"result"')) outcomes.reverse()
    expect(json).toMatchObject([
      { id: 1, ...outcomes[0] },
      { id: 2, ...outcomes[1] },
      { id: 3, result: '0x' },
    ])
  })

  it('with thousands of logs is that of the node', async () => {
    const gateway = await openGatewayForTest()
    for (let raw = 1n; raw <= 5_000n; raw += 1n) gateway.devnet.transfer({ symbol: 'AAPLc', raw })
    gateway.devnet.makeFlashblock()
    const { hash } = gateway.devnet.seal()
    expect((await expectSameAnswer(gateway, 'eth_getLogs', { blockHash: hash })).result).toHaveLength(5_000)
    await expectSameAnswer(gateway, 'eth_getBlockByNumber', 'latest', true)
  })
})

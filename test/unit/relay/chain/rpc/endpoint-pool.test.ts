import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { failureReason, hostOf } from '../../../../../src/lib/http-fetch.ts'
import { ChainIdentity } from '../../../../../src/relay/chain/rpc/chain-identity.ts'
import { UnparsedLogs } from '../../../../../src/relay/chain/rpc/unparsed-logs.ts'
import { apple } from '../node-json.ts'
import {
  CHAIN_ID,
  errorResponder,
  failureOf,
  openEndpoint,
  openEndpointPool,
  openOne,
  openTwo,
  type Responder,
  rawResponder,
  resultResponder,
  sendJson,
} from './fake-endpoint.ts'

afterEach(() => vi.restoreAllMocks())

const MINUTE_MS = 60_000
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
const unknownMethod = errorResponder(200, -32601, 'no such method')

describe('a request', () => {
  it('goes to the first endpoint, after a chain check, and returns the answer', async () => {
    const { first, second, rpc, blockNumber } = await openTwo(resultResponder('0x64'), resultResponder('0x65'))
    expect(await blockNumber()).toBe('0x64')
    first.respond = resultResponder(null)
    expect(await rpc.request('eth_getBlockByNumber', ['latest', false])).toBeNull()
    expect(first.methods()).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_getBlockByNumber'])
    expect(first.requests.at(-1)).toMatchObject({ jsonrpc: '2.0', params: ['latest', false] })
    expect(new Set(first.requests.map(({ id }) => id)).size).toBe(3)
    expect(second.requests).toEqual([])
  })

  it('goes to the next endpoint after a failure, and to the first again after a backoff that grows up to a bound', async () => {
    const { first, clock, blockNumber } = await openTwo(rawResponder(503), resultResponder('0x65'))
    for (const rest of [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
      const before = first.requests.length
      expect(await blockNumber()).toBe('0x65')
      const resting = first.requests.length
      expect(resting).toBeGreaterThan(before)
      clock.now += rest - 1
      expect(await blockNumber()).toBe('0x65')
      expect(first.requests.length).toBe(resting)
      clock.now += 1
    }
  })

  it('backs off briefly again after an endpoint has answered', async () => {
    const { node, clock, blockNumber } = await openOne(rawResponder(503))
    await failureOf(blockNumber())
    const before = node.requests.length
    // Nothing is asked meanwhile, since every endpoint is in backoff.
    expect((await failureOf(blockNumber())).kind).toBe('unreachable')
    expect(node.requests.length).toBe(before)
    clock.now += 250
    await failureOf(blockNumber())
    clock.now += 500
    node.respond = resultResponder('0x64')
    await blockNumber()
    node.respond = rawResponder(503)
    await failureOf(blockNumber())
    clock.now += 250
    node.respond = resultResponder('0x65')
    expect(await blockNumber()).toBe('0x65')
  })

  it('that is invalid goes to no other endpoint and causes no backoff', async () => {
    const { first, second, blockNumber } = await openTwo(errorResponder(200, -32602, 'invalid argument'), resultResponder('0x65'))
    expect((await failureOf(blockNumber())).kind).toBe('invalid')
    expect((await failureOf(blockNumber())).kind).toBe('invalid')
    expect(first.methods()).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_blockNumber'])
    expect(second.requests).toEqual([])
  })

  it('for a block that the first endpoint lacks goes to the next one, without a backoff', async () => {
    const { first, second, warnings, blockNumber } = await openTwo(
      errorResponder(200, -32000, 'header not found'),
      resultResponder('0x65'),
    )
    expect(await blockNumber()).toBe('0x65')
    expect(await blockNumber()).toBe('0x65')
    expect(first.methods()).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_blockNumber'])
    expect(warnings).toEqual([])
    second.respond = errorResponder(200, -32000, 'unknown block')
    expect(await failureOf(blockNumber())).toMatchObject({ kind: 'behind', message: '-32000 unknown block' })
  })

  it('for a block that the first endpoint has deleted goes to the next one, which may have it', async () => {
    const deleted = errorResponder(200, -32000, 'missing trie node')
    const { first, second, clock, warnings, blockNumber } = await openTwo(deleted, resultResponder('0x65'))
    expect(await blockNumber()).toBe('0x65')
    expect(warnings).toEqual([])
    second.respond = rawResponder(503)
    expect((await failureOf(blockNumber())).kind).toBe('unreachable')
    // An endpoint that rests is not waited for.
    expect((await failureOf(blockNumber())).kind).toBe('gone')
    clock.now += 250
    second.respond = deleted
    expect((await failureOf(blockNumber())).kind).toBe('gone')
    expect(first.methods()).toEqual(['eth_chainId', ...Array(4).fill('eth_blockNumber')])
  })

  it('that is aborted during the chain check causes no backoff', async () => {
    const controller = new AbortController()
    const { node, rpc, warnings, blockNumber } = await openOne(resultResponder('0x64'), {
      chain: () => controller.abort(new Error('enough')),
    })
    await expect(rpc.request('eth_blockNumber', [], controller.signal)).rejects.toThrow('enough')
    node.chain = CHAIN_ID
    expect(await blockNumber()).toBe('0x64')
    expect(warnings).toEqual([])
  })
})

describe('an eth_call', () => {
  const callContract = ({ rpc }: ReturnType<typeof openEndpointPool>) =>
    rpc.request('eth_call', [{ to: apple, data: '0xa60bf13d' }, '0x64'])

  it.each<[string, Responder, string]>([
    ['gets a bare refusal', rawResponder(403, 'Forbidden'), 'forbidden'],
    ['hits the rate limit', rawResponder(429, '', { 'retry-after': '60' }), 'busy'],
    ['loses the connection', (_, response) => response.destroy(), 'unreachable'],
  ])('that %s causes no backoff of the endpoint', async (_, respond, kind) => {
    const client = await openOne(respond)
    expect((await failureOf(callContract(client))).kind).toBe(kind)
    client.node.respond = resultResponder('0x64')
    expect(await client.blockNumber()).toBe('0x64')
    expect(client.warnings).toEqual([])
    expect(client.node.methods()).toEqual(['eth_chainId', 'eth_call', 'eth_blockNumber'])
  })
})

describe('a request for logs', () => {
  it.each<[string, object, warnings: number]>([
    ['of a pool manager by topics concerns that filter alone', { address: [apple], topics: [['0x9']] }, 0],
    ['of whole contracts is the fault of the endpoint', { address: [apple] }, 1],
  ])('%s, if the node answers it with an error', async (_, filter, warnings) => {
    const client = await openOne(errorResponder(200, -32_000, 'the filter is not supported'))
    expect((await failureOf(client.rpc.request('eth_getLogs', [filter]))).kind).toBe('unknown')
    expect(client.warnings).toHaveLength(warnings)
    if (warnings > 0) return
    client.node.respond = (_request, response) => response.destroy()
    expect((await failureOf(client.rpc.request('eth_getLogs', [filter]))).kind).toBe('unreachable')
    expect(client.warnings).toHaveLength(1)
  })
})

describe('the chain behind answers', () => {
  const chainRequests = ({ methods }: { methods: () => readonly string[] }) =>
    methods().filter((method) => method === 'eth_chainId').length
  const confirmNow = ({ rpc, clock }: ReturnType<typeof openEndpointPool>) =>
    rpc.confirmChain({ answeredSince: clock.now, askedAfter: clock.now })

  it('is asked for again where it was asked for too early, once for all that wait', async () => {
    const client = await openOne(resultResponder('0x64'))
    const { node, rpc, clock, blockNumber } = client
    await blockNumber()
    const confirm = () => rpc.confirmChain({ answeredSince: clock.now, askedAfter: clock.now - MINUTE_MS })
    clock.now += MINUTE_MS - 1
    await blockNumber()
    await confirm()
    expect(chainRequests(node)).toBe(1)
    clock.now += 1
    // Nothing was answered since.
    await confirm()
    expect(chainRequests(node)).toBe(1)
    await blockNumber()
    await Promise.all(Array.from({ length: 8 }, confirm))
    expect(chainRequests(node)).toBe(2)
    await confirmNow(client)
    expect(chainRequests(node)).toBe(3)
  })

  it('is no longer asked for once the caller that began is aborted: its request ends, and another one tries again', async () => {
    const [arrived, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const { node, rpc, clock, warnings, blockNumber } = await openOne(resultResponder('0x64'))
    await blockNumber()
    node.chain = (_, response) => {
      response.on('close', closed.resolve)
      arrived.resolve()
    }
    const controller = new AbortController()
    const now = { answeredSince: clock.now, askedAfter: clock.now }
    const aborted = rpc.confirmChain(now, controller.signal).catch((reason: unknown) => reason)
    const other = failureOf(rpc.confirmChain(now, new AbortController().signal))
    await arrived.promise
    controller.abort('enough')
    await closed.promise
    expect(await aborted).toBe('enough')
    expect(await other).toMatchObject({ kind: 'unreachable', isRetryable: true })
    expect(warnings).toEqual([])
  })

  it('is another one now: its URL is of a wrong chain, and the next one is asked', async () => {
    const client = await openTwo(resultResponder('0x64'), resultResponder('0x65'))
    const { first, second, chain, clock, blockNumber } = client
    await blockNumber()
    first.chain = 1
    expect((await failureOf(confirmNow(client))).kind).toBe('wrong_chain')
    // The other one has answered nothing.
    expect(second.methods()).toEqual([])
    expect(chain.isWrong([first.url])).toBe(true)
    clock.now += 1
    expect(await blockNumber()).toBe('0x65')
    await confirmNow(client)
    first.chain = CHAIN_ID
    clock.now += MINUTE_MS
    expect(await blockNumber()).toBe('0x64')
    expect(chain.isWrong([first.url])).toBe(false)
  })

  it.each([
    ['fails', errorResponder(200, -32000, 'internal error'), 'unknown'],
    ['is refused', errorResponder(200, -32602, 'invalid params'), 'unreadable'],
    ['is no answer', rawResponder(502), 'unreachable'],
  ])('stays unknown where the request %s, and the endpoint is used', async (_, respond, kind) => {
    const client = await openOne(resultResponder('0x64'))
    const { node, blockNumber } = client
    await blockNumber()
    node.chain = respond
    expect((await failureOf(confirmNow(client))).kind).toBe(kind)
    expect(await blockNumber()).toBe('0x64')
    node.chain = CHAIN_ID
    await confirmNow(client)
    expect(node.methods()).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_chainId', 'eth_blockNumber', 'eth_chainId'])
  })

  it('cannot be asked for where a node does not know the method, which is used, even if it was another one before', async () => {
    const client = await openOne(resultResponder('0x64'), { chain: unknownMethod })
    const { node, chain, blockNumber } = client
    for (const _ of [1, 2]) expect(await blockNumber()).toBe('0x64')
    expect(node.methods()).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_blockNumber'])
    await confirmNow(client)
    expect(chainRequests(node)).toBe(2)
    chain.checkUrl(node.url, 1)
    expect(await blockNumber()).toBe('0x64')
  })

  it('is checked again where another part of the process finds it to be another one', async () => {
    const { node, chain, blockNumber } = await openOne(resultResponder('0x64'))
    await blockNumber()
    chain.checkUrl(node.url, 1)
    node.chain = 1
    expect((await failureOf(blockNumber())).kind).toBe('wrong_chain')
  })
})

describe('an endpoint of another chain', () => {
  it('is refused with a reason, and not used for a minute', async () => {
    const { first: wrong, clock, warnings, blockNumber } = await openTwo(resultResponder('0x1'), resultResponder('0x65'))
    wrong.chain = 1
    expect(await blockNumber()).toBe('0x65')
    expect(wrong.methods()).toEqual(['eth_chainId'])
    const detail = {
      endpoint: new URL(wrong.url).host,
      error: 'wrong_chain',
      reason: `it is of chain 1, but CHAIN_ID says ${CHAIN_ID}`,
      again_in_ms: MINUTE_MS,
    }
    expect(warnings).toEqual([{ kind: 'wrong_chain', detail }])
    clock.now += MINUTE_MS - 1
    await blockNumber()
    expect(wrong.methods()).toEqual(['eth_chainId'])
    clock.now += 1
    wrong.chain = CHAIN_ID
    expect(await blockNumber()).toBe('0x1')
  })

  it('is detected when it changes after a failure', async () => {
    const { node, clock, blockNumber } = await openOne(resultResponder('0x64'))
    await blockNumber()
    node.respond = rawResponder(502)
    await failureOf(blockNumber())
    node.respond = resultResponder('0x65')
    node.chain = 1
    clock.now += 10_000
    expect((await failureOf(blockNumber())).kind).toBe('wrong_chain')
  })

  it('is any that differs from the first, if no chain was configured', async () => {
    const chain = new ChainIdentity(null, '')
    const first = await openEndpoint(rawResponder(503))
    const second = await openEndpoint(resultResponder('0x65'), { chain: 1 })
    const { blockNumber, warnings } = openEndpointPool([first.url, second.url], chain)
    expect((await failureOf(blockNumber())).kind).toBe('wrong_chain')
    expect(chain.id).toBe(CHAIN_ID)
    expect(warnings.at(-1)?.detail).toMatchObject({ reason: `it is of chain 1, but the first endpoint says ${CHAIN_ID}` })
  })
})

describe('an answer', () => {
  it.each<[string, Responder, string]>([
    ['HTML with 200', rawResponder(200, '<html><body>maintenance</body></html>', { 'content-type': 'text/html' }), 'unreadable'],
    ['a cut body', rawResponder(200, '{"jsonrpc":"2.0","id":1,"resu'), 'unreadable'],
    ['JSON of another form', rawResponder(200, '[]'), 'unreadable'],
    ['an answer to another request', (_, response) => sendJson(response, { id: 999, result: '0x1' }), 'unreadable'],
    ['an answer with neither result nor error', ({ id }, response) => sendJson(response, { jsonrpc: '2.0', id }), 'unreadable'],
    ['an error without a code', ({ id }, response) => sendJson(response, { id, error: 'no' }), 'unreadable'],
    ['nested too deep', ({ id }, response) => response.end(`{"jsonrpc":"2.0","id":${id},"result":${nested(1_024)}}`), 'unreadable'],
    ['HTML with 503', rawResponder(503, '<html>'), 'unreachable'],
    [
      'an error without an id',
      (_, response) => sendJson(response, { id: null, error: { code: -32700, message: 'no' } }),
      'unknown',
    ],
    [
      'broken off',
      (_, response) => void response.writeHead(200, { 'content-length': '99' }).write('{', () => response.destroy()),
      'unreachable',
    ],
  ])('that is %s is an error of its kind', async (_, respond, kind) => {
    const { blockNumber } = await openOne(respond)
    expect((await failureOf(blockNumber())).kind).toBe(kind)
  })

  it('that redirects is refused, and the target gets no request', async () => {
    const elsewhere = await openEndpoint(resultResponder('0x666'))
    const { blockNumber } = await openOne(rawResponder(307, '', { location: elsewhere.url }))
    expect((await failureOf(blockNumber())).kind).toBe('unreachable')
    expect(elsewhere.requests).toEqual([])
  })

  it.each([
    ['over the size bound is dropped while it arrives, as too large', {}, 64],
    ['that announces more than the size bound is not read', { 'content-length': String(2 ** 26) }, 16],
  ])('%s', async (_, headers, chunks) => {
    const chunk = Buffer.alloc(2 ** 20, 0x20)
    let sent = 0
    const { blockNumber } = await openOne((_call, response) => {
      response.writeHead(200, headers)
      const pour = () => {
        for (let takesMore = true; takesMore && !response.destroyed && sent < 64; sent += 1) takesMore = response.write(chunk)
        if (sent >= 64) response.end()
      }
      response.on('drain', pour)
      pour()
    })
    const failure = await failureOf(blockNumber())
    expect(failure).toMatchObject({ kind: 'too_large', message: 'the answer is longer than 16777216 bytes' })
    expect(sent).toBeLessThan(chunks)
  })

  it('with a long list of logs, and no other long answer, is left to be read in parts', async () => {
    const logs = Array.from({ length: 300 }, (_, index) => ({ index, text: 'x'.repeat(300) }))
    const { node, rpc } = await openOne(resultResponder(logs))
    const answer = await rpc.request('eth_getLogs', [{ address: [], blockHash: '0x1' }])
    expect(answer).toBeInstanceOf(UnparsedLogs)
    expect((await Array.fromAsync((answer as UnparsedLogs).parts())).flat(1)).toEqual(logs)
    for (const other of [Array(30_000).fill('1').join(), { logs }, logs.slice(0, 9)]) {
      node.respond = resultResponder(other)
      expect(await rpc.request('eth_getLogs', [{ address: [], blockHash: '0x1' }])).toEqual(other)
    }
  })

  it('with a long list that is nested too deep is unreadable', async () => {
    const { rpc } = await openOne(({ id }, response) =>
      response.end(`{"jsonrpc":"2.0","id":${id},"result":[{},${nested(100_000)}]}`),
    )
    const answer = await rpc.request('eth_getLogs', [{ address: [], blockHash: '0x1' }])
    const failure = await failureOf(Array.fromAsync((answer as UnparsedLogs).parts()))
    expect(failure).toMatchObject({ kind: 'unreadable', message: 'the answer is nested deeper than 1024 levels' })
  })

  it('has to be complete before the deadline', async () => {
    const { blockNumber } = await openOne((_, response) => {
      response.writeHead(200).write('{')
      setImmediate(() => vi.advanceTimersByTime(5_000))
    })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const message = 'The operation was aborted due to timeout'
    expect(await failureOf(blockNumber())).toMatchObject({ kind: 'unreachable', message })
  })
})

describe('a Retry-After', () => {
  it.each<[string, Responder, number]>([
    ['is obeyed', rawResponder(429, '', { 'retry-after': '7' }), 7_000],
    ['is obeyed for five minutes at most', rawResponder(503, '', { 'retry-after': '86400' }), 300_000],
  ])('%s', async (_, busy, waitMs) => {
    const { first, clock, blockNumber } = await openTwo(busy, resultResponder('0x65'))
    await blockNumber()
    first.respond = resultResponder('0x64')
    clock.now += waitMs - 1
    expect(await blockNumber()).toBe('0x65')
    clock.now += 1
    expect(await blockNumber()).toBe('0x64')
  })
})

describe('an error of an endpoint', () => {
  it('contains the underlying reason, or the text that was thrown', () => {
    const cause = new Error('getaddrinfo ENOTFOUND')
    expect(failureReason(new TypeError('fetch failed', { cause }))).toBe('getaddrinfo ENOTFOUND')
    expect(failureReason('plain')).toBe('plain')
  })

  it('never contains the path, which may hold a key', async () => {
    const { warnings, blockNumber } = await openOne(rawResponder(500, 'key-9f8e7d'))
    const failure = await failureOf(blockNumber())
    expect(JSON.stringify([warnings, failure.message])).not.toContain('9f8e7d')
    expect(hostOf('wss://user:secret@base.example.com:8443/v2/key?apikey=key')).toBe('base.example.com:8443')
  })
})

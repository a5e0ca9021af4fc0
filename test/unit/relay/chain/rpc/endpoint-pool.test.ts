import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { failureReason, hostOf } from '../../../../../src/lib/http-fetch.ts'
import { ChainIdentity } from '../../../../../src/relay/chain/rpc/chain-identity.ts'
import { UnparsedLogs } from '../../../../../src/relay/chain/rpc/unparsed-logs.ts'
import {
  CHAIN_ID,
  errorResponder,
  failureOf,
  openEndpoint,
  openEndpointPool,
  type Responder,
  rawResponder,
  resultResponder,
  sendJson,
} from './fake-endpoint.ts'

afterEach(() => vi.restoreAllMocks())

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

describe('a request', () => {
  it('goes to the first endpoint, after a chain check, and returns the answer', async () => {
    const first = await openEndpoint(resultResponder('0x64'))
    const second = await openEndpoint(resultResponder('0x65'))
    const { rpc, blockNumber } = openEndpointPool([first.url, second.url])
    expect(await blockNumber()).toBe('0x64')
    expect(await rpc.request('eth_getBlockByNumber', ['latest', false])).toBe('0x64')
    expect(first.methods()).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_getBlockByNumber'])
    expect(first.requests.at(-1)).toMatchObject({ jsonrpc: '2.0', params: ['latest', false] })
    expect(new Set(first.requests.map(({ id }) => id)).size).toBe(3)
    expect(second.requests).toEqual([])
  })

  it('may have a null result', async () => {
    const node = await openEndpoint(resultResponder(null))
    expect(await openEndpointPool([node.url]).blockNumber()).toBeNull()
  })

  it('goes to the next endpoint after a failure, and back to the first after the backoff', async () => {
    const first = await openEndpoint(rawResponder(502, 'bad gateway'))
    const second = await openEndpoint(resultResponder('0x65'))
    const { clock, blockNumber } = openEndpointPool([first.url, second.url])
    expect(await blockNumber()).toBe('0x65')
    first.respond = resultResponder('0x64')
    clock.now += 249
    expect(await blockNumber()).toBe('0x65')
    clock.now += 1
    expect(await blockNumber()).toBe('0x64')
    expect(await blockNumber()).toBe('0x64')
  })

  it('backs off longer each time from an endpoint that keeps failing, up to a bound', async () => {
    const first = await openEndpoint(rawResponder(503))
    const second = await openEndpoint(resultResponder('0x65'))
    const { clock, blockNumber } = openEndpointPool([first.url, second.url])
    const rests: number[] = []
    for (let failures = 0; failures < 9; failures += 1) {
      const before = first.requests.length
      await blockNumber()
      expect(first.requests.length).toBeGreaterThan(before)
      const since = clock.now
      const rest = Math.min(30_000, 250 * 2 ** failures)
      clock.now = since + rest - 1
      const resting = first.requests.length
      await blockNumber()
      expect(first.requests.length).toBe(resting)
      clock.now = since + rest
      rests.push(rest)
    }
    expect(rests.slice(-2)).toEqual([30_000, 30_000])
  })

  it('backs off briefly again after an endpoint has answered', async () => {
    const node = await openEndpoint(rawResponder(503))
    const { clock, blockNumber } = openEndpointPool([node.url])
    await failureOf(blockNumber())
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

  it('fails at once while every endpoint is in backoff', async () => {
    const node = await openEndpoint(rawResponder(503))
    const { blockNumber } = openEndpointPool([node.url])
    await failureOf(blockNumber())
    const before = node.requests.length
    expect((await failureOf(blockNumber())).kind).toBe('unreachable')
    expect(node.requests.length).toBe(before)
  })

  it('fails with the error of the last endpoint', async () => {
    const first = await openEndpoint(rawResponder(503))
    const second = await openEndpoint(errorResponder(429, -32016, 'over rate limit'))
    const failure = await failureOf(openEndpointPool([first.url, second.url]).blockNumber())
    expect(failure).toMatchObject({ kind: 'busy', message: expect.stringContaining('over rate limit') })
  })

  it('that is invalid goes to no other endpoint and causes no backoff', async () => {
    const first = await openEndpoint(errorResponder(200, -32602, 'invalid argument'))
    const second = await openEndpoint(resultResponder('0x65'))
    const { blockNumber } = openEndpointPool([first.url, second.url])
    expect((await failureOf(blockNumber())).kind).toBe('invalid')
    expect((await failureOf(blockNumber())).kind).toBe('invalid')
    expect(first.methods()).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_blockNumber'])
    expect(second.requests).toEqual([])
  })

  it('that is too large fails, so that the caller requests less', async () => {
    const node = await openEndpoint(errorResponder(200, -32602, 'query exceeds max block range 100000'))
    expect((await failureOf(openEndpointPool([node.url]).blockNumber())).kind).toBe('too_large')
  })

  it('that is aborted during the chain check causes no backoff', async () => {
    const controller = new AbortController()
    const node = await openEndpoint(resultResponder('0x64'), { chain: () => controller.abort(new Error('enough')) })
    const { rpc, warnings, blockNumber } = openEndpointPool([node.url])
    await expect(rpc.request('eth_blockNumber', [], controller.signal)).rejects.toThrow('enough')
    node.chain = CHAIN_ID
    expect(await blockNumber()).toBe('0x64')
    expect(warnings).toEqual([])
  })

  it('fails without any endpoint', async () => {
    expect((await failureOf(openEndpointPool([]).blockNumber())).kind).toBe('unreachable')
  })
})

describe('the chain behind answers', () => {
  const MINUTE_MS = 60_000
  const chainRequests = ({ methods }: { methods: () => readonly string[] }) =>
    methods().filter((method) => method === 'eth_chainId').length

  it('is asked for again where it was asked for too early, once for all that wait', async () => {
    const node = await openEndpoint(resultResponder('0x64'))
    const { rpc, clock, blockNumber } = openEndpointPool([node.url])
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
    await rpc.confirmChain({ answeredSince: clock.now, askedAfter: clock.now })
    expect(chainRequests(node)).toBe(3)
  })

  it('is another one now: its URL is of a wrong chain, and the next one is asked', async () => {
    const [first, second] = [await openEndpoint(resultResponder('0x64')), await openEndpoint(resultResponder('0x65'))]
    const chain = new ChainIdentity(CHAIN_ID, 'CHAIN_ID')
    const { rpc, clock, blockNumber } = openEndpointPool([first.url, second.url], chain)
    await blockNumber()
    first.chain = 1
    const confirm = () => rpc.confirmChain({ answeredSince: clock.now, askedAfter: clock.now })
    expect((await failureOf(confirm())).kind).toBe('wrong_chain')
    // The other one has answered nothing.
    expect(second.methods()).toEqual([])
    expect(chain.isWrong([first.url])).toBe(true)
    clock.now += 1
    expect(await blockNumber()).toBe('0x65')
    await confirm()
    first.chain = CHAIN_ID
    clock.now += MINUTE_MS
    expect(await blockNumber()).toBe('0x64')
    expect(chain.isWrong([first.url])).toBe(false)
  })

  it('is another one while a request is under way: its answer is not used', async () => {
    const [arrived, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const first = await openEndpoint(resultResponder('0x64'))
    const second = await openEndpoint(resultResponder('0x65'))
    const { rpc, clock, blockNumber } = openEndpointPool([first.url, second.url])
    await blockNumber()
    first.chain = 1
    first.respond = async (call, response) => {
      arrived.resolve()
      await answered.promise
      resultResponder('0x1')(call, response)
    }
    const answer = blockNumber()
    await arrived.promise
    await failureOf(rpc.confirmChain({ answeredSince: clock.now, askedAfter: clock.now }))
    answered.resolve()
    expect(await answer).toBe('0x65')
  })

  it.each([
    ['fails', errorResponder(200, -32000, 'internal error'), 'unknown'],
    ['is refused', errorResponder(200, -32602, 'invalid params'), 'unreadable'],
    ['is no answer', rawResponder(502), 'unreachable'],
  ])('stays unknown where the request %s, and the endpoint is used', async (_, respond, kind) => {
    const node = await openEndpoint(resultResponder('0x64'))
    const { rpc, clock, blockNumber } = openEndpointPool([node.url])
    await blockNumber()
    node.chain = respond
    const confirm = () => rpc.confirmChain({ answeredSince: clock.now, askedAfter: clock.now })
    expect((await failureOf(confirm())).kind).toBe(kind)
    expect(await blockNumber()).toBe('0x64')
    node.chain = CHAIN_ID
    await confirm()
    expect(node.methods()).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_chainId', 'eth_blockNumber', 'eth_chainId'])
  })

  it('cannot be asked for where a node does not know the method', async () => {
    const mute = await openEndpoint(resultResponder('0x64'), { chain: errorResponder(200, -32601, 'no such method') })
    const { rpc, clock, blockNumber } = openEndpointPool([mute.url])
    await blockNumber()
    await rpc.confirmChain({ answeredSince: clock.now, askedAfter: clock.now })
    expect(chainRequests(mute)).toBe(2)
  })

  it('was another one, and cannot be asked for any more: the endpoint is used', async () => {
    const node = await openEndpoint(resultResponder('0x64'), { chain: errorResponder(200, -32601, 'no such method') })
    const chain = new ChainIdentity(CHAIN_ID, 'CHAIN_ID')
    chain.checkUrl(node.url, 1)
    expect(await openEndpointPool([node.url], chain).blockNumber()).toBe('0x64')
  })

  it('is checked again where another part of the process finds it to be another one', async () => {
    const node = await openEndpoint(resultResponder('0x64'))
    const chain = new ChainIdentity(CHAIN_ID, 'CHAIN_ID')
    const { blockNumber } = openEndpointPool([node.url], chain)
    await blockNumber()
    chain.checkUrl(node.url, 1)
    node.chain = 1
    expect((await failureOf(blockNumber())).kind).toBe('wrong_chain')
  })
})

describe('an endpoint of another chain', () => {
  it('is refused with a reason, and not used for a minute', async () => {
    const wrong = await openEndpoint(resultResponder('0x1'), { chain: 1 })
    const right = await openEndpoint(resultResponder('0x65'))
    const { clock, warnings, blockNumber } = openEndpointPool([wrong.url, right.url])
    expect(await blockNumber()).toBe('0x65')
    expect(wrong.methods()).toEqual(['eth_chainId'])
    expect(warnings).toEqual([
      {
        kind: 'upstream wrong_chain',
        detail: { endpoint: new URL(wrong.url).host, message: `it is of chain 1, but CHAIN_ID says ${CHAIN_ID}` },
      },
    ])
    clock.now += 59_999
    await blockNumber()
    expect(wrong.methods()).toEqual(['eth_chainId'])
    clock.now += 1
    wrong.chain = CHAIN_ID
    expect(await blockNumber()).toBe('0x1')
  })

  it('is detected when it changes after a failure', async () => {
    const node = await openEndpoint(resultResponder('0x64'))
    const { clock, blockNumber } = openEndpointPool([node.url])
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
    expect(warnings.at(-1)?.detail).toMatchObject({ message: `it is of chain 1, but the first endpoint says ${CHAIN_ID}` })
  })

  it('is not assumed when a node does not return its chain', async () => {
    const mute = await openEndpoint(resultResponder('0x64'), { chain: errorResponder(200, -32601, 'no such method') })
    const { blockNumber } = openEndpointPool([mute.url])
    expect(await blockNumber()).toBe('0x64')
    await blockNumber()
    expect(mute.methods()).toEqual(['eth_chainId', 'eth_blockNumber', 'eth_blockNumber'])
  })
})

describe('an answer', () => {
  const kindOf = async (answering: Responder) =>
    (await failureOf(openEndpointPool([(await openEndpoint(answering)).url]).blockNumber())).kind

  it.each<[string, Responder, string]>([
    ['HTML with 200', rawResponder(200, '<html><body>maintenance</body></html>', { 'content-type': 'text/html' }), 'unreadable'],
    ['an empty body', rawResponder(200), 'unreadable'],
    ['a cut body', rawResponder(200, '{"jsonrpc":"2.0","id":1,"resu'), 'unreadable'],
    ['JSON of another form', rawResponder(200, '[]'), 'unreadable'],
    ['null', rawResponder(200, 'null'), 'unreadable'],
    ['an answer to another request', (_, response) => sendJson(response, { id: 999, result: '0x1' }), 'unreadable'],
    ['an answer without an id', (_, response) => sendJson(response, { result: '0x1' }), 'unreadable'],
    ['an answer with neither result nor error', ({ id }, response) => sendJson(response, { jsonrpc: '2.0', id }), 'unreadable'],
    ['an error without a code', ({ id }, response) => sendJson(response, { id, error: 'no' }), 'unreadable'],
    ['nested too deep', ({ id }, response) => response.end(`{"jsonrpc":"2.0","id":${id},"result":${nested(1_024)}}`), 'unreadable'],
    ['HTML with 503', rawResponder(503, '<html>'), 'unreachable'],
    ['a refusal', rawResponder(403, 'Forbidden'), 'forbidden'],
    ['a refusal of the method', errorResponder(403, -32601, 'rpc method is not whitelisted'), 'forbidden'],
    ['HTTP 401', rawResponder(401), 'forbidden'],
    ['HTTP 429', rawResponder(429), 'busy'],
    ['a rate limit with HTTP 200', errorResponder(200, -32016, 'over rate limit'), 'busy'],
    [
      'an error without an id',
      (_, response) => sendJson(response, { id: null, error: { code: -32700, message: 'parse error' } }),
      'unknown',
    ],
  ])('that is %s is an error of its kind', async (_, answering, kind) => {
    expect(await kindOf(answering)).toBe(kind)
  })

  it('that redirects is refused, and the target gets no request', async () => {
    const elsewhere = await openEndpoint(resultResponder('0x666'))
    const node = await openEndpoint(rawResponder(307, '', { location: elsewhere.url }))
    expect((await failureOf(openEndpointPool([node.url]).blockNumber())).kind).toBe('unreachable')
    expect(elsewhere.requests).toEqual([])
  })

  it('over the size bound is dropped while it arrives, as too large', async () => {
    const chunk = Buffer.alloc(2 ** 20, 0x20)
    let sent = 0
    const node = await openEndpoint((_, response) => {
      response.writeHead(200)
      const pour = () => {
        while (!response.destroyed && sent < 64 && response.write(chunk)) sent += 1
        if (sent >= 64) response.end()
        else sent += 1
      }
      response.on('drain', pour)
      pour()
    })
    const failure = await failureOf(openEndpointPool([node.url]).blockNumber())
    expect(failure).toMatchObject({ kind: 'too_large', message: 'the answer is longer than 16777216 bytes' })
    expect(sent).toBeLessThan(64)
  })

  it('that announces more than the size bound is not read', async () => {
    let written = 0
    const node = await openEndpoint((_, response) => {
      response.writeHead(200, { 'content-length': String(2 ** 25) })
      const pour = () => {
        if (response.destroyed) return
        written += 1
        response.write(Buffer.alloc(2 ** 20, 0x20))
      }
      response.on('drain', pour)
      pour()
    })
    expect((await failureOf(openEndpointPool([node.url]).blockNumber())).kind).toBe('too_large')
    expect(written).toBeLessThan(16)
  })

  it.each([true, false])('of any length is read whole (length announced: %s)', async (isAnnounced) => {
    for (const length of [1, 4_000, 4_096, 5_000, 70_000, 3_000_000]) {
      const result = 'é'.repeat(length)
      const node = await openEndpoint(({ id }, response) => {
        const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result }))
        response.writeHead(200, isAnnounced ? { 'content-length': String(body.length) } : {})
        for (let from = 0; from < body.length; from += 50_001) response.write(body.subarray(from, from + 50_001))
        response.end()
      })
      expect((await openEndpointPool([node.url]).blockNumber()) === result).toBe(true)
    }
  })

  it('with a long list of logs, and no other long answer, is left to be read in parts', async () => {
    const logs = Array.from({ length: 300 }, (_, index) => ({ index, text: 'x'.repeat(300) }))
    const node = await openEndpoint(resultResponder(logs))
    const { rpc } = openEndpointPool([node.url])
    const answer = await rpc.request('eth_getLogs', [{ address: [], blockHash: '0x1' }])
    expect(answer).toBeInstanceOf(UnparsedLogs)
    expect((await Array.fromAsync((answer as UnparsedLogs).parts())).flat(1)).toEqual(logs)
    const text = Array(30_000).fill('1').join()
    node.respond = resultResponder(text)
    expect(await rpc.request('eth_getLogs', [{ address: [], blockHash: '0x1' }])).toBe(text)
    node.respond = resultResponder({ logs })
    expect(await rpc.request('eth_getLogs', [{ address: [], blockHash: '0x1' }])).toEqual({ logs })
    node.respond = resultResponder(logs.slice(0, 9))
    expect(await rpc.request('eth_getLogs', [{ address: [], blockHash: '0x1' }])).toEqual(logs.slice(0, 9))
  })

  it('with a long list that is nested too deep is unreadable', async () => {
    const node = await openEndpoint(({ id }, response) =>
      response.end(`{"jsonrpc":"2.0","id":${id},"result":[{},${nested(100_000)}]}`),
    )
    const answer = await openEndpointPool([node.url]).rpc.request('eth_getLogs', [{ address: [], blockHash: '0x1' }])
    const failure = await failureOf(Array.fromAsync((answer as UnparsedLogs).parts()))
    expect(failure).toMatchObject({ kind: 'unreadable', message: 'the answer is nested deeper than 1024 levels' })
  })

  it('that breaks off counts as unreachable', async () => {
    expect(
      await kindOf((_, response) => {
        response.writeHead(200, { 'content-length': '1000' }).write('{"jsonrpc"')
        response.destroy()
      }),
    ).toBe('unreachable')
  })

  it('has to be complete before the deadline', async () => {
    const node = await openEndpoint((_, response) => {
      response.writeHead(200).write('{')
      setImmediate(() => vi.advanceTimersByTime(5_000))
    })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const failure = await failureOf(openEndpointPool([node.url]).blockNumber())
    expect(failure).toMatchObject({ kind: 'unreachable', message: 'The operation was aborted due to timeout' })
  })

  it('that never comes names the refused connection', async () => {
    const gone = createServer().listen(0, '127.0.0.1')
    await once(gone, 'listening')
    const { port } = gone.address() as AddressInfo
    gone.close()
    await once(gone, 'close')
    const failure = await failureOf(openEndpointPool([`http://127.0.0.1:${port}`]).blockNumber())
    expect(failure.kind).toBe('unreachable')
    expect(failure.message).toContain('ECONNREFUSED')
  })
})

describe('a Retry-After', () => {
  it('is obeyed', async () => {
    const busy = await openEndpoint(rawResponder(429, '', { 'retry-after': '7' }))
    const other = await openEndpoint(resultResponder('0x65'))
    const { clock, blockNumber } = openEndpointPool([busy.url, other.url])
    await blockNumber()
    const before = busy.requests.length
    clock.now += 6_999
    await blockNumber()
    expect(busy.requests.length).toBe(before)
    clock.now += 1
    busy.respond = resultResponder('0x64')
    expect(await blockNumber()).toBe('0x64')
  })

  it('is obeyed for five minutes at most', async () => {
    const busy = await openEndpoint(rawResponder(503, '', { 'retry-after': '86400' }))
    const { clock, blockNumber } = openEndpointPool([busy.url])
    await failureOf(blockNumber())
    busy.respond = resultResponder('0x64')
    clock.now += 300_000
    expect(await blockNumber()).toBe('0x64')
  })
})

describe('an error of an endpoint', () => {
  it('never contains the path, which may hold a key', async () => {
    const node = await openEndpoint(rawResponder(500, 'key-9f8e7d'))
    const { warnings, blockNumber } = openEndpointPool([node.url])
    const failure = await failureOf(blockNumber())
    expect(JSON.stringify([warnings, failure.message])).not.toContain('9f8e7d')
    expect(hostOf('wss://user:secret@base.example.com:8443/v2/key?apikey=key')).toBe('base.example.com:8443')
  })

  it('contains the underlying reason', () => {
    expect(failureReason(new TypeError('fetch failed', { cause: new Error('getaddrinfo ENOTFOUND') }))).toBe(
      'getaddrinfo ENOTFOUND',
    )
    expect(failureReason('plain')).toBe('plain')
  })
})

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import type { BatchRequest } from '../../../../../src/relay/chain/rpc/endpoint-pool.ts'
import { RequestSocket } from '../../../../../src/relay/chain/rpc/request-socket.ts'
import { CHAIN_ID, failureOf, openEndpointPool } from './fake-endpoint.ts'

type NodeRequest = { readonly id: number; readonly method: string }
type Responder = (request: NodeRequest, socket: WebSocket) => void

const send = (socket: WebSocket, body: unknown) => socket.send(JSON.stringify({ jsonrpc: '2.0', ...Object(body) }))
const resultResponder =
  (result: unknown): Responder =>
  ({ id }, socket) =>
    send(socket, { id, result })

/** A node over WebSocket alone; `refusal` is the HTTP status of its handshake. */
const openSocketNode = async (respond: Responder, { refusal = 0 } = {}) => {
  const requests: NodeRequest[] = []
  const node = { url: '', respond, refusal, requests, openedCount: 0, sockets: new Set<WebSocket>() }
  const http = createServer().listen(0, '127.0.0.1')
  const server = new WebSocketServer({ noServer: true })
  http.on('upgrade', (request, socket, head) => {
    if (node.refusal > 0) return socket.end(`HTTP/1.1 ${node.refusal} Refused\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n`)
    server.handleUpgrade(request, socket, head, (webSocket) => {
      node.openedCount += 1
      node.sockets.add(webSocket)
      webSocket.on('message', (data) => {
        const call: NodeRequest = JSON.parse(String(data))
        requests.push(call)
        if (call.method === 'eth_chainId') return send(webSocket, { id: call.id, result: `0x${CHAIN_ID.toString(16)}` })
        node.respond(call, webSocket)
      })
    })
  })
  await once(http, 'listening')
  onTestFinished(() => {
    for (const socket of node.sockets) socket.terminate()
    http.close()
  })
  node.url = `ws://user:secret@127.0.0.1:${(http.address() as AddressInfo).port}/key-9f8e7d`
  return { node, ...openEndpointPool([node.url]) }
}
const call: BatchRequest = { method: 'eth_blockNumber', params: [] }
const tooDeep = `${'['.repeat(1_024)}${']'.repeat(1_024)}`

describe('a request over a WebSocket', () => {
  it('checks the chain first, and shares one socket with all others', async () => {
    const { node, rpc, blockNumber } = await openSocketNode(resultResponder('0x64'))
    expect(await blockNumber()).toBe('0x64')
    expect(await Promise.all([blockNumber(), rpc.request('eth_getBlockByNumber', ['latest', false])])).toEqual(['0x64', '0x64'])
    expect(node.requests.map(({ method }) => method).slice(0, 2)).toEqual(['eth_chainId', 'eth_blockNumber'])
    expect(node.openedCount).toBe(1)
  })

  it('may wait with many others until the socket is open', async () => {
    const warnings: unknown[] = []
    const collect = (warning: Error) => warnings.push(warning)
    process.on('warning', collect)
    onTestFinished(() => void process.off('warning', collect))
    const socket = new RequestSocket((await openSocketNode(resultResponder('0x64'))).node.url, 1_000)
    const { signal } = new AbortController()
    const requests = Array.from({ length: 20 }, (_, id) =>
      socket.exchange({ jsonrpc: '2.0', id, method: 'eth_blockNumber', params: [] }, signal),
    )
    expect((await Promise.all(requests)).map((answer) => JSON.parse(String(answer)).id)).toEqual([...requests.keys()])
    expect(warnings).toEqual([])
  })

  it('may be a batch, beside others', async () => {
    const { rpc, blockNumber } = await openSocketNode((request, socket) => {
      if (!Array.isArray(request)) return resultResponder('0x64')(request, socket)
      const answers = request.map(({ id }: NodeRequest) => ({ jsonrpc: '2.0', id, result: `0x${id}` }))
      socket.send(JSON.stringify(answers.reverse()))
    })
    await blockNumber()
    const answers = await Promise.all([rpc.requestBatch([call, call]), blockNumber(), rpc.requestBatch([call, call, call])])
    const results = answers.flatMap((answer) => (Array.isArray(answer) ? answer.map((item) => item.ok && item.result) : answer))
    expect(results).toEqual(['0x3', '0x4', '0x64', '0x6', '0x7', '0x8'])
  })

  it.each([
    [
      'an error without an id',
      { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no batches' } },
      ['eth_blockNumber', 'eth_blockNumber'],
    ],
    ['the second answer alone', [{ jsonrpc: '2.0', id: 5, result: '0x5' }], ['a request of the batch has no answer', '0x5']],
  ])('may be a batch that gets %s while another request waits', async (_, batchAnswer, expected) => {
    const held: (() => void)[] = []
    const { rpc, blockNumber } = await openSocketNode((request, socket) => {
      if (Array.isArray(request)) {
        socket.send(JSON.stringify(batchAnswer))
        for (const answer of held) answer()
      } else if (request.method === 'eth_getBlockByNumber') held.push(() => resultResponder('held')(request, socket))
      else resultResponder(request.method)(request, socket)
    })
    await blockNumber()
    const beside = rpc.request('eth_getBlockByNumber', ['latest', false])
    const batch = rpc.requestBatch([call, call])
    expect((await batch).map((item) => (item.ok ? item.result : item.error.message))).toEqual(expected)
    expect(await beside).toBe('held')
  })

  it('may have a long result, which is forwarded as it is', async () => {
    const result = { data: `0x${'ab'.repeat(100_000)}`, id: 5 }
    const { rpc } = await openSocketNode(resultResponder(result))
    expect(String(await rpc.requestRaw('eth_getBlockByNumber', ['latest', false]))).toBe(JSON.stringify(result))
  })

  it.each<[string, Responder, string]>([
    ['an error without an id', (_, socket) => send(socket, { id: null, error: { code: -32700, message: 'no' } }), 'unknown'],
    ['a result nested too deep', ({ id }, socket) => socket.send(`{"id":${id},"result":${tooDeep}}`), 'unreadable'],
    ['nesting before its id', ({ id }, socket) => socket.send(`{"result":{"x":${tooDeep}},"id":${id}}`), 'unreadable'],
    ['a lost socket', (_, socket) => socket.terminate(), 'unreachable'],
    ['more than 16 MiB', (_, socket) => socket.send(Buffer.alloc(16 * 2 ** 20 + 1, 0x20)), 'too_large'],
  ])('that is answered with %s fails as its kind', async (_, respond, kind) => {
    const { warnings, blockNumber } = await openSocketNode(respond)
    const failure = await failureOf(blockNumber())
    expect(failure.kind).toBe(kind)
    expect(JSON.stringify([warnings, failure.message])).not.toMatch(/9f8e7d|secret/)
  })

  it.each([
    [401, 'forbidden'],
    [429, 'busy'],
    [503, 'unreachable'],
  ])('fails after a handshake that is refused with %i as %s, and obeys Retry-After', async (refusal, kind) => {
    const { node, clock, blockNumber } = await openSocketNode(resultResponder('0x64'), { refusal })
    expect(await failureOf(blockNumber())).toMatchObject({ kind, retryAfterMs: 7_000 })
    node.refusal = 0
    clock.now += 7_000
    expect(await blockNumber()).toBe('0x64')
  })

  it('opens a new socket after a loss', async () => {
    const { node, clock, blockNumber } = await openSocketNode(resultResponder('0x64'))
    await blockNumber()
    for (const socket of node.sockets) socket.terminate()
    await blockNumber().catch(() => null)
    clock.now += 1_000
    expect(await blockNumber()).toBe('0x64')
    expect(node.openedCount).toBe(2)
  })

  it('that is not answered before the deadline gives the socket up', async () => {
    const { node, clock, blockNumber } = await openSocketNode(() => vi.advanceTimersByTime(5_000))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const message = 'The operation was aborted due to timeout'
    expect(await failureOf(blockNumber())).toMatchObject({ kind: 'unreachable', message })
    vi.useRealTimers()
    node.respond = resultResponder('0x64')
    clock.now += 1_000
    expect(await blockNumber()).toBe('0x64')
    expect(node.openedCount).toBe(2)
  })

  it('that is aborted fails at once and leaves the socket to others', async () => {
    const { node, rpc, blockNumber } = await openSocketNode(() => {})
    const controller = new AbortController()
    node.respond = () => controller.abort(new Error('enough'))
    await expect(rpc.request('eth_blockNumber', [], controller.signal)).rejects.toThrow('enough')
    node.respond = resultResponder('0x64')
    expect(await blockNumber()).toBe('0x64')
    expect(node.openedCount).toBe(1)
  })
})

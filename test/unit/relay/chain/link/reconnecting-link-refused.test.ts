import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { of } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ChainIdentity } from '../../../../../src/relay/chain/rpc/chain-identity.ts'
import { apple, header, sealedLog } from '../node-json.ts'
import { CHAIN_ID, openFakeNode, openLink } from './fake-socket-node.ts'

const addresses = of([apple])

/** A server that answers every handshake with this status, and asks for some seconds without another one. */
async function openRefusingServer(status: number, retryAfter: string) {
  const server = createServer().listen(0, '127.0.0.1')
  const refusals = { count: 0 }
  server.on('upgrade', (_, socket) => {
    refusals.count += 1
    socket.end(`HTTP/1.1 ${status} No\r\nretry-after: ${retryAfter}\r\ncontent-length: 0\r\n\r\n`)
  })
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { refusals, url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/key-9f8e7d` }
}

describe('a link to an unusable node', () => {
  it.each([401, 403, 404, 429, 503])('waits as long as a handshake asks for that is answered with %i', async (status) => {
    const { url, refusals } = await openRefusingServer(status, '20')
    const link = openLink([url], addresses)
    expect(await link.waitForSignal('down')).toEqual({ type: 'down', reason: `HTTP ${status}`, isRefused: false })
    const before = link.clock.now()
    link.retry()
    expect(link.clock.now() - before).toBe(20_000)
    await link.waitForSignal('down', 2)
    expect(refusals.count).toBe(2)
    expect(JSON.stringify(link.warnings)).not.toContain('9f8e7d')
  })

  it('opens at the next URL at once, however long the first one asks for', async () => {
    const [first, second] = [await openRefusingServer(429, '300'), await openFakeNode()]
    const link = openLink([first.url, second.url], addresses)
    await link.waitForSignal('down')
    link.retry(1_000)
    await link.waitForSignal('live')
    expect(second.openedCount).toBe(1)
  })

  it('refuses a node of another chain', async () => {
    const node = await openFakeNode()
    node.answer = () => ({ result: '0x1' })
    const link = openLink([node.url], addresses)
    expect((await link.waitForSignal('down')).reason).toBe(`wrong chain: it is of chain 1, but CHAIN_ID says ${CHAIN_ID}`)
    expect(node.methods()).toEqual(['eth_chainId'])
  })

  it('checks the chain again where another URL is of another one, and leaves a node that is', async () => {
    const node = await openFakeNode()
    const chain = new ChainIdentity(CHAIN_ID, 'CHAIN_ID')
    const link = openLink([node.url], addresses, { chain })
    await link.waitForSignal('live')
    chain.checkUrl('http://127.0.0.1:1', 1)
    await node.waitUntil(() => node.methods().filter((method) => method === 'eth_chainId').length === 2)
    const { answer } = node
    node.answer = (request) => (request.method === 'eth_chainId' ? { result: '0x1' } : answer(request))
    chain.checkUrl('http://127.0.0.1:1', 1)
    expect((await link.waitForSignal('down')).reason).toBe(`wrong chain: it is of chain 1, but CHAIN_ID says ${CHAIN_ID}`)
    expect(node.methods().filter((method) => method === 'eth_subscribe newHeads')).toHaveLength(1)
  })

  it('checks the chain at every opening', async () => {
    const node = await openFakeNode()
    const chain = new ChainIdentity(null, '')
    const link = openLink([node.url], addresses, { chain })
    await link.waitForSignal('live')
    expect(chain.id).toBe(CHAIN_ID)
    const { answer } = node
    node.answer = (request) => (request.method === 'eth_chainId' ? { result: '0x1' } : answer(request))
    node.socket?.close()
    await link.waitForSignal('down')
    link.retry()
    expect((await link.waitForSignal('down', 2)).reason).toContain('wrong chain')
  })

  it('ends when a subscription has no id', async () => {
    const node = await openFakeNode()
    const { answer } = node
    node.answer = (request) => (request.params[0] === 'pendingLogs' ? { result: null } : answer(request))
    const link = openLink([node.url], addresses)
    expect((await link.waitForSignal('down')).reason).toBe('a subscription was answered without an id')
  })

  it('ends when a message is too long', async () => {
    const node = await openFakeNode()
    const link = openLink([node.url], addresses)
    await link.waitForSignal('live')
    node.send(JSON.stringify({ filler: 'x'.repeat(9 * 2 ** 20) }))
    expect((await link.waitForSignal('down')).reason).toContain('Max payload size exceeded')
    link.retry()
    await link.waitForSignal('live', 2)
  })
})

describe('a link to a node that refuses requests', () => {
  const error = { code: -32602, message: 'invalid params: no subscription "pendingLogs"' }

  it('subscribes to sealed logs when pendingLogs is refused', async () => {
    const node = await openFakeNode()
    const { answer } = node
    node.answer = (request) => (request.params[0] === 'pendingLogs' ? { error } : answer(request))
    const link = openLink([node.url], addresses)
    expect(await link.waitForSignal('live')).toEqual({ type: 'live', subscription: 'logs', addresses: [apple] })
    expect(node.methods()).toEqual(['eth_chainId', 'eth_subscribe newHeads', 'eth_subscribe pendingLogs', 'eth_subscribe logs'])
    node.notify('0x2', sealedLog({ block: 5 }))
    expect(await link.waitForSignal('log')).toMatchObject({ subscription: 'logs', log: sealedLog({ block: 5 }) })
  })

  it('is down as refused when both kinds of logs are refused', async () => {
    const node = await openFakeNode()
    const { answer } = node
    node.answer = (request) =>
      request.params[0] === 'newHeads' ? answer(request) : request.method === 'eth_subscribe' ? { error } : answer(request)
    const link = openLink([node.url], addresses)
    expect(await link.waitForSignal('down')).toMatchObject({ reason: expect.stringContaining('logs refused'), isRefused: true })
  })

  it('uses a node without eth_chainId and newHeads', async () => {
    const node = await openFakeNode()
    const { answer } = node
    node.answer = (request) =>
      request.method === 'eth_chainId' || request.params[0] === 'newHeads'
        ? { error: { code: -32601, message: 'no' } }
        : answer(request)
    const link = openLink([node.url], addresses)
    await link.waitForSignal('live')
    node.notify('0x1', header(5))
    expect(await link.waitForSignal('log')).toMatchObject({ log: header(5) })
    expect(link.warnings.map(({ kind }) => kind)).toContain('upstream refuses newHeads')
  })
})

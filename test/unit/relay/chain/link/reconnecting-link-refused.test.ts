import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { BehaviorSubject } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { ReadFilter } from '../../../../../src/relay/chain/logs/log-filter.ts'
import { ChainIdentity } from '../../../../../src/relay/chain/rpc/chain-identity.ts'
import { apple, header, sealedLog, tesla } from '../node-json.ts'
import { CHAIN_ID, liveOn, openFakeNode, openLink, openLive } from './fake-socket-node.ts'

const wrongChain = `wrong chain: it is of chain 1, but CHAIN_ID says ${CHAIN_ID}`

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
    const link = openLink([url])
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
    const link = openLink([first.url, second.url])
    await link.waitForSignal('down')
    link.retry(1_000)
    await link.waitForSignal('live')
    expect(second.openedCount).toBe(1)
  })

  it('checks the chain again where another URL is of another one, and leaves a node that is', async () => {
    const chain = new ChainIdentity(CHAIN_ID, 'CHAIN_ID')
    const { node, link } = await openLive({}, chain)
    chain.checkUrl('http://127.0.0.1:1', 1)
    await node.waitUntil(() => node.methods().filter((method) => method === 'eth_chainId').length === 2)
    node.otherAnswers.set('eth_chainId', { result: '0x1' })
    chain.checkUrl('http://127.0.0.1:1', 1)
    expect((await link.waitForSignal('down')).reason).toBe(wrongChain)
    expect(node.methods().filter((method) => method === 'eth_subscribe newHeads')).toHaveLength(1)
  })

  it('checks the chain at every opening', async () => {
    const chain = new ChainIdentity(null, '')
    const { node, link } = await openLive({}, chain)
    expect(chain.id).toBe(CHAIN_ID)
    node.otherAnswers.set('eth_chainId', { result: '0x1' })
    node.socket?.close()
    await link.waitForSignal('down')
    link.retry()
    expect((await link.waitForSignal('down', 2)).reason).toContain('wrong chain')
    // It did not subscribe before that.
    expect(node.methods().slice(3)).toEqual(['eth_chainId'])
  })

  it('ends when a subscription has no id', async () => {
    const node = await openFakeNode()
    node.otherAnswers.set('pendingLogs', { result: null })
    expect((await openLink([node.url]).waitForSignal('down')).reason).toBe('a subscription was answered without an id')
  })

  it('ends when a message is too long', async () => {
    const { node, link } = await openLive()
    node.send(JSON.stringify({ filler: 'x'.repeat(9 * 2 ** 20) }))
    expect((await link.waitForSignal('down')).reason).toContain('Max payload size exceeded')
    link.retry()
    await link.waitForSignal('live', 2)
  })
})

describe('a link to a node that refuses requests', () => {
  const error = { code: -32602, message: 'invalid params: no subscription "pendingLogs"' }

  it('subscribes to the other logs when the filter of a pool manager is refused, and again when that filter changes', async () => {
    const node = await openFakeNode()
    const tokens = { addresses: [apple] }
    const pools = ['1', '2'].map((id) => ({ addresses: [tesla], topics: [[`0x${id}`] as Hex[]] }))
    const filters = new BehaviorSubject<readonly ReadFilter[]>([tokens, ...pools])
    const { answer } = node
    node.answer = (request) => (JSON.stringify(request.params).includes('0x2') ? { error } : answer(request))
    const link = openLink([node.url], filters)
    const [first, second] = pools
    expect(await link.waitForSignal('live')).toMatchObject({ filters: [tokens, first, second], pushed: [tokens, first] })
    expect(link.warnings).toEqual([
      {
        kind: 'subscription_refused',
        detail: { subscription: 'pendingLogs', code: -32602, reason: error.message, pool_manager: tesla },
      },
    ])
    filters.next([tokens, first ?? tokens])
    expect(await link.waitForSignal('live', 2)).toMatchObject({ pushed: [tokens, first] })
    await node.waitUntil(() => node.methods().filter((method) => method === 'eth_unsubscribe').length === 2)
    expect(link.signalsOfType('refused')).toEqual([])
  })

  it('subscribes to sealed logs when pendingLogs is refused', async () => {
    const node = await openFakeNode()
    node.otherAnswers.set('pendingLogs', { error })
    const link = openLink([node.url])
    expect(await link.waitForSignal('live')).toEqual(liveOn([apple], 'logs'))
    expect(node.methods()).toEqual(['eth_chainId', 'eth_subscribe newHeads', 'eth_subscribe pendingLogs', 'eth_subscribe logs'])
    node.notify('0x2', sealedLog({ block: 5 }))
    expect(await link.waitForSignal('log')).toMatchObject({ subscription: 'logs', log: sealedLog({ block: 5 }) })
  })

  it('is down as refused when both kinds of logs are refused', async () => {
    const node = await openFakeNode()
    for (const kind of ['pendingLogs', 'logs']) node.otherAnswers.set(kind, { error })
    const down = { reason: expect.stringContaining('logs refused'), isRefused: true }
    expect(await openLink([node.url]).waitForSignal('down')).toMatchObject(down)
  })

  it('uses a node without eth_chainId and newHeads', async () => {
    const node = await openFakeNode()
    for (const what of ['eth_chainId', 'newHeads']) node.otherAnswers.set(what, { error: { code: -32601, message: 'no' } })
    const link = openLink([node.url])
    await link.waitForSignal('live')
    node.notify('0x1', header(5))
    expect(await link.waitForSignal('log')).toMatchObject({ log: header(5) })
    expect(link.warnings.map(({ kind }) => kind)).toContain('subscription_refused')
  })
})

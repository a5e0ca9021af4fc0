import { once } from 'node:events'
import { createServer } from 'node:net'
import { NEVER, of, Subject } from 'rxjs'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { apple, header, pendingLog, tesla } from '../node-json.ts'
import { liveOn, openFakeNode, openLink, openLive } from './fake-socket-node.ts'

const log = (index: number) => pendingLog({ block: 5, index })

describe('a link', () => {
  it('checks the chain, then subscribes to heads and to logs of the tokens', async () => {
    const node = await openFakeNode()
    const link = openLink([node.url], of([apple, tesla]))
    expect(await link.waitForSignal('live')).toEqual(liveOn([apple, tesla]))
    expect(node.methods()).toEqual(['eth_chainId', 'eth_subscribe newHeads', 'eth_subscribe pendingLogs'])
    expect(node.requests.at(-1)?.params).toEqual(['pendingLogs', { address: [apple, tesla] }])
  })

  it('emits heads and logs with the time of arrival', async () => {
    const { node, link } = await openLive()
    link.clock.frame = 77
    node.notify('0x1', header(5))
    node.notify('0x2', log(0))
    await link.waitForSignal('log')
    node.notify('0x2', [log(0), log(1)])
    await link.waitForSignal('log', 2)
    expect(link.signalsOfType('head')).toEqual([{ type: 'head', header: header(5) }])
    expect(link.signalsOfType('log')).toEqual([
      { type: 'log', subscription: 'pendingLogs', log: log(0), receivedAt: 77 },
      { type: 'log', subscription: 'pendingLogs', log: [log(0), log(1)], receivedAt: 77 },
    ])
  })

  it('emits the logs of one read of the socket together, and before what follows them', async () => {
    const { node, link } = await openLive()
    node.inOneWrite(() => {
      for (const index of [0, 1]) node.notify('0x2', log(index))
      node.notify('0x1', header(5))
      node.notify('0x2', [log(2), log(3)])
      node.notify('0x2', log(4))
      node.send('no JSON')
    })
    await link.waitForSignal('unreadable')
    expect(link.signals.slice(2).map((signal) => (signal.type === 'log' ? signal.log : signal.type))).toEqual([
      [log(0), log(1)],
      'head',
      [log(2), log(3), log(4)],
      'unreadable',
    ])
  })

  it('emits what it has read before it reports a loss', async () => {
    const { node, link } = await openLive()
    node.inOneWrite(() => {
      node.notify('0x2', log(0))
      node.socket?.close()
    })
    await link.waitForSignal('down')
    expect(link.logs()).toEqual([log(0)])
  })

  it('keeps notifications that overtake the answer with their subscription id', async () => {
    const node = await openFakeNode()
    const { answer } = node
    node.answer = (request) => {
      const early = request.params[0] === 'pendingLogs' ? ['0x2', '0x2', '0x99'] : []
      for (const [index, subscription] of early.entries()) node.notify(subscription, log(index))
      return answer(request)
    }
    const link = openLink([node.url])
    await link.waitForSignal('log', 2)
    node.notify('0x2', log(3))
    await link.waitForSignal('log', 3)
    expect(link.signalsOfType('log').map((signal) => signal.log)).toEqual([log(0), log(1), log(3)])
    expect(link.signals.map(({ type }) => type)).toEqual(['heads_live', 'live', 'log', 'log', 'log'])
  })

  it('reads a message in fragments, and no binary one', async () => {
    const { node, link } = await openLive()
    const text = (index: number) =>
      JSON.stringify({ jsonrpc: '2.0', method: 'eth_subscription', params: { subscription: '0x2', result: log(index) } })
    node.socket?.send(Buffer.from(text(8)), { binary: true })
    for (let at = 0; at < text(1).length; at += 50)
      node.socket?.send(text(1).slice(at, at + 50), { fin: at + 50 >= text(1).length })
    await link.waitForSignal('log')
    expect(link.logs()).toEqual([log(1)])
    expect(link.signalsOfType('unreadable')).toEqual([])
  })

  it('counts unreadable messages and stays open', async () => {
    const { node, link } = await openLive()
    for (const nonsense of ['', '{', 'null', '[]', '7', '"log"', '{"jsonrpc":"2.0"}', '{"id":"1","result":"0x1"}']) {
      node.send(nonsense)
    }
    node.send({ jsonrpc: '2.0', method: 'eth_subscription', params: null })
    node.send({ jsonrpc: '2.0', method: 'node_gossip', params: [] })
    node.send({ jsonrpc: '2.0', id: 4_711, result: 'of another request' })
    const tooDeep = `${'['.repeat(1_024)}${']'.repeat(1_024)}`
    node.send(`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x2","result":${tooDeep}}}`)
    node.notify('0x2', log(1))
    await link.waitForSignal('log')
    expect(link.signalsOfType('unreadable')).toHaveLength(11)
    expect(link.signals.filter(({ type }) => type !== 'unreadable').map(({ type }) => type)).toEqual(['heads_live', 'live', 'log'])
    expect(link.warnings.filter(({ kind }) => kind === 'message_unreadable')).toHaveLength(11)
  })
})

describe('a link that ends', () => {
  it.each<[string, (socket: { close: (code?: number) => void; terminate: () => void }) => void, string]>([
    ['cleanly', (socket) => socket.close(1000), 'closed with 1000'],
    ['with a private close code', (socket) => socket.close(4001), 'closed with 4001'],
    ['without a close frame', (socket) => socket.terminate(), 'closed with 1006'],
  ])('%s is down, and opens again with the same subscriptions', async (_, end, reason) => {
    const { node, link } = await openLive()
    if (node.socket) end(node.socket)
    expect(await link.waitForSignal('down')).toEqual({ type: 'down', reason, isRefused: false })
    expect(node.openedCount).toBe(1)
    link.retry()
    await link.waitForSignal('live', 2)
    expect(node.openedCount).toBe(2)
    expect(node.methods().slice(3)).toEqual(['eth_chainId', 'eth_subscribe newHeads', 'eth_subscribe pendingLogs'])
    node.notify('0x4', log(1))
    expect((await link.waitForSignal('log')).log).toEqual(log(1))
  })

  it('opens at the next URL when it must leave its node', async () => {
    const [first, second] = [await openFakeNode(), await openFakeNode()]
    const reconnects = new Subject<void>()
    const link = openLink([first.url, second.url], of([apple]), { reconnects })
    await link.waitForSignal('live')
    reconnects.next()
    expect((await link.waitForSignal('down')).reason).toBe('node is not delivering logs')
    link.retry()
    await link.waitForSignal('live', 2)
    expect([first.openedCount, second.openedCount]).toEqual([1, 1])
    expect(link.signals.map(({ type }) => type)).toEqual(['heads_live', 'live', 'left', 'down', 'heads_live', 'live'])
  })

  it('returns to the first URL after an hour at another', async () => {
    const [first, second, third] = [await openFakeNode(), await openFakeNode(), await openFakeNode()]
    const link = openLink([first.url, second.url, third.url])
    await link.waitForSignal('live')
    first.socket?.terminate()
    await link.waitForSignal('down')
    link.retry()
    await link.waitForSignal('live', 2)
    link.retry(3_599_000)
    expect(link.signalsOfType('down')).toHaveLength(1)
    link.retry(3_601_000)
    await link.waitForSignal('live', 3)
    expect(link.signals.slice(-4).map(({ type }) => type)).toEqual(['left', 'down', 'heads_live', 'live'])
    expect([first.openedCount, second.openedCount, third.openedCount]).toEqual([2, 1, 0])
  })

  it('waits longer each time, up to a bound, and logs host and reason without the key', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const address = closed.address()
    const port = typeof address === 'object' ? address?.port : 0
    closed.close()
    await once(closed, 'close')
    const link = openLink([`ws://127.0.0.1:${port}/key-9f8e7d`], NEVER)
    const waits: number[] = []
    for (let attempt = 1; attempt <= 9; attempt += 1) {
      await link.waitForSignal('down', attempt)
      const before = link.clock.now()
      link.retry()
      waits.push(link.clock.now() - before)
    }
    expect(waits).toEqual([125, 250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000])
    expect(link.warnings[0]).toEqual({
      kind: 'link_down',
      detail: { endpoint: `127.0.0.1:${port}`, reason: expect.stringContaining('ECONNREFUSED') },
    })
    expect(JSON.stringify(link.warnings)).not.toContain('9f8e7d')
  })

  it('closes its socket and stays closed after the last unsubscribe', async () => {
    const { node, link } = await openLive()
    link.close()
    await node.waitUntil(() => node.closedCount === 1)
    link.retry()
    expect(node.openedCount).toBe(1)
    expect(link.signalsOfType('down')).toEqual([])
  })

  it('sends nothing if it is closed before it opens', async () => {
    const node = await openFakeNode()
    openLink([node.url]).close()
    await openLink([node.url]).waitForSignal('live')
    expect(node.requests).toHaveLength(3)
  })
})

describe('the ping of a link', () => {
  afterEach(() => vi.useRealTimers())
  const open = async () => {
    const node = await openFakeNode()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const link = openLink([node.url])
    await link.waitForSignal('live')
    return { node, link }
  }

  it('detects a dead socket that looks open', async () => {
    const { node, link } = await open()
    node.answersPings = false
    vi.advanceTimersByTime(10_000)
    await node.waitUntil(() => node.pingCount === 1)
    vi.advanceTimersByTime(4_999)
    expect(link.signalsOfType('down')).toEqual([])
    vi.advanceTimersByTime(1)
    expect((await link.waitForSignal('down')).reason).toBe('no pong within 5000 ms')
  })

  it('keeps a quiet socket open while pongs arrive', async () => {
    const { node, link } = await open()
    for (let ping = 1; ping <= 3; ping += 1) {
      vi.advanceTimersByTime(10_000)
      await node.waitUntil(() => node.pingCount === ping)
      // A pong arrives before any message that is sent after it.
      node.notify('0x2', log(ping))
      await link.waitForSignal('log', ping)
    }
    vi.advanceTimersByTime(9_999)
    expect(link.signalsOfType('down')).toEqual([])
  })
})

import { BehaviorSubject, NEVER, of, Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import { apple, header, pendingLog, sealedLog, tesla } from '../node-json.ts'
import { liveOn, openFakeNode, openLink, openLive } from './fake-socket-node.ts'

const tokensOf = (count: number) => Array.from({ length: count }, (_, nth): Hex => `0x${String(nth).padStart(40, '0')}`)
const tokens = tokensOf(5)
const log = (index: number) => pendingLog({ block: 5, index })

describe('the tokens of a link', () => {
  it('are never subscribed to as an empty list, which means every contract', async () => {
    const node = await openFakeNode()
    const lists = new BehaviorSubject<readonly Hex[]>([])
    const link = openLink([node.url], lists)
    await node.waitUntil(() => node.requests.length === 2)
    expect(node.methods()).toEqual(['eth_chainId', 'eth_subscribe newHeads'])
    lists.next([apple])
    await link.waitForSignal('live')
    lists.next([])
    lists.next([tesla])
    await link.waitForSignal('live', 2)
    const filters = node.requests.filter(({ params }) => params[0] === 'pendingLogs').map(({ params }) => params[1])
    expect(filters).toEqual([{ address: [apple] }, { address: [tesla] }])
  })

  it('are split where the node refuses a long filter, and reported once the last part is accepted', async () => {
    const { node, link, lists } = await openLive()
    const { answer } = node
    const sizes: number[] = []
    node.answer = (request) => {
      const { address = [] } = (request.params[1] ?? {}) as { address?: readonly Hex[] }
      if (request.params[0] === 'pendingLogs') sizes.push(address.length)
      return address.length > 2 ? { error: { code: -32_602, message: 'filter too long' } } : answer(request)
    }
    lists.next(tokens)
    expect((await link.waitForSignal('live', 2)).filters[0]?.addresses).toEqual(tokens)
    expect(sizes).toEqual([5, 3, 2, 2, 1])
    await node.waitUntil(() => node.requests.at(-1)?.method === 'eth_unsubscribe')
    expect(node.requests.at(-1)?.params).toEqual(['0x2'])
    // The ids of the three parts.
    for (const [index, id] of ['0x3', '0x4', '0x5'].entries()) node.notify(id, log(index))
    await link.waitUntil(() => link.logs().length === 3)
    lists.next([apple])
    await link.waitForSignal('live', 3)
    await node.waitUntil(() => node.methods().filter((method) => method.startsWith('eth_unsubscribe')).length === 4)
    expect(link.signalsOfType('refused')).toEqual([])
  })

  it('are subscribed to in parts where they are very many, since a long filter would hold the event loop', async () => {
    const node = await openFakeNode()
    const many = tokensOf(25_000)
    const link = openLink([node.url], of(many))
    expect((await link.waitForSignal('live')).filters[0]?.addresses).toEqual(many)
    const parts = node.requests.flatMap(({ params: [kind, filter] }) =>
      kind === 'pendingLogs' ? [(filter as { readonly address: readonly Hex[] }).address] : [],
    )
    expect(parts.map(({ length }) => length)).toEqual([10_000, 10_000, 5_000])
    expect(parts.flat()).toEqual(many)
  })

  it('are refused where the node takes no longer filter, while those from before are still pushed', async () => {
    const { node, link, lists } = await openLive()
    node.otherAnswers.set('pendingLogs', { error: { code: -32_000, message: 'no' } })
    lists.next([apple, tesla])
    await link.waitForSignal('refused')
    node.notify('0x2', log(1))
    await link.waitForSignal('log')
    node.otherAnswers.clear()
    lists.next([apple, tesla, tesla])
    await link.waitForSignal('live', 2)
    expect(link.signalsOfType('down')).toEqual([])
  })

  it('are resubscribed before the old subscription ends, without losing its logs', async () => {
    const { node, link, lists } = await openLive()
    const { answer } = node
    node.answer = (request) => {
      // The node pushes under the old id until it is unsubscribed.
      if (request.method === 'eth_subscribe') node.notify('0x2', log(0))
      return answer(request)
    }
    lists.next([apple, tesla])
    await link.waitForSignal('live', 2)
    await node.waitUntil(() => node.requests.length === 5)
    node.notify('0x2', log(1))
    node.notify('0x3', log(2))
    await link.waitUntil(() => link.logs().length === 3)
    expect(link.logs()).toEqual([log(0), log(1), log(2)])
    expect(node.requests.slice(3).map(({ method, params }) => [method, params])).toEqual([
      ['eth_subscribe', ['pendingLogs', { address: [apple, tesla] }]],
      ['eth_unsubscribe', ['0x2']],
    ])
    expect(link.signalsOfType('down')).toEqual([])
  })
})

describe('a subscription that is retried', () => {
  const refusal = { error: { code: -32602, message: 'invalid params: no subscription "pendingLogs"' } }
  const kinds = (node: Awaited<ReturnType<typeof openFakeNode>>) =>
    node.requests.slice(2).map(({ method, params }) => `${method} ${params[0]}`)
  const isRefusal = ({ kind }: { readonly kind: string }) => kind === 'subscription_refused'

  it('gets a new id, with sealed logs beside it, ends the old one, and keeps both kinds when the tokens change', async () => {
    const { node, link, lists, probes } = await openLive()
    probes.next()
    await link.waitForSignal('live', 3)
    await node.waitUntil(() => node.requests.length === 6)
    const begins = ['eth_subscribe pendingLogs', 'eth_subscribe pendingLogs', 'eth_subscribe logs', 'eth_unsubscribe 0x2']
    expect(kinds(node)).toEqual(begins)
    expect(link.signalsOfType('live').map(({ subscription }) => subscription)).toEqual(['pendingLogs', 'pendingLogs', 'logs'])
    node.notify('0x3', log(0))
    node.notify('0x4', sealedLog({ block: 5 }))
    await link.waitForSignal('log', 2)
    expect(link.signalsOfType('log').map((signal) => [signal.subscription, signal.log])).toEqual([
      ['pendingLogs', log(0)],
      ['logs', sealedLog({ block: 5 })],
    ])
    lists.next([apple, tesla])
    await link.waitForSignal('live', 5)
    await node.waitUntil(() => node.requests.length === 10)
    const ends = ['eth_subscribe pendingLogs', 'eth_subscribe logs', 'eth_unsubscribe 0x3', 'eth_unsubscribe 0x4']
    expect(kinds(node).slice(4)).toEqual(ends)
  })

  it('adds the subscription to sealed logs only once', async () => {
    const { node, link, probes } = await openLive()
    for (const lives of [3, 4, 5]) {
      probes.next()
      await link.waitForSignal('live', lives)
    }
    await node.waitUntil(() => kinds(node).filter((kind) => kind.startsWith('eth_unsubscribe')).length === 3)
    expect(kinds(node).filter((kind) => kind === 'eth_subscribe logs')).toHaveLength(1)
    const ended = ['0x2', '0x3', '0x5'].map((id) => `eth_unsubscribe ${id}`)
    expect(kinds(node).filter((kind) => kind.startsWith('eth_unsubscribe'))).toEqual(ended)
  })

  it('keeps the sealed logs when it is refused again', async () => {
    const { node, link, probes } = await openLive({ pendingLogs: refusal })
    expect(link.signalsOfType('live').map(({ subscription }) => subscription)).toEqual(['logs'])
    probes.next()
    await link.waitUntil(() => link.warnings.filter(isRefusal).length === 2)
    node.notify('0x2', sealedLog({ block: 5 }))
    await link.waitForSignal('log')
    expect(kinds(node)).toEqual(['eth_subscribe pendingLogs', 'eth_subscribe logs', 'eth_subscribe pendingLogs'])
    expect(link.signalsOfType('down')).toEqual([])
  })

  it('is live when the node accepts it now', async () => {
    const { node, link, probes } = await openLive({ pendingLogs: refusal })
    node.otherAnswers.clear()
    probes.next()
    expect(await link.waitForSignal('live', 2)).toEqual(liveOn([apple]))
    node.notify('0x3', log(0))
    expect(await link.waitForSignal('log')).toMatchObject({ subscription: 'pendingLogs', log: log(0) })
  })

  it('stays alone when the node refuses sealed logs beside it', async () => {
    const { node, link, probes } = await openLive({ logs: refusal })
    probes.next()
    await link.waitUntil(() => link.warnings.some(isRefusal))
    node.notify('0x3', log(0))
    expect(await link.waitForSignal('log')).toMatchObject({ subscription: 'pendingLogs', log: log(0) })
    expect(link.signalsOfType('down')).toEqual([])
  })

  it('sends nothing before the socket is ready or a token is known', async () => {
    const node = await openFakeNode()
    const probes = new Subject<void>()
    const link = openLink([node.url], NEVER, { probes })
    probes.next()
    await node.waitUntil(() => node.requests.length === 2)
    probes.next()
    node.notify('0x1', header(5))
    await link.waitForSignal('head')
    expect(node.methods()).toEqual(['eth_chainId', 'eth_subscribe newHeads'])
  })
})

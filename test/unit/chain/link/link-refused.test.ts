import { of } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { ChainIdentity } from '../../../../src/chain/rpc/chain-id.ts'
import { apple, header, sealedLog } from '../node-json.ts'
import { CHAIN_ID, openFakeNode, openLink } from './fake-socket-node.ts'

const wanted = of([apple])

describe('a node that must not be listened to', () => {
  it('is of another chain', async () => {
    const node = await openFakeNode()
    node.answer = () => ({ result: '0x1' })
    const link = openLink([node.url], wanted)
    expect((await link.waitForSignal('down')).reason).toBe(
      `wrong chain: it is of chain 1, but CHAIN_ID says ${CHAIN_ID}`,
    )
    expect(node.methods()).toEqual(['eth_chainId'])
  })

  it('is asked at every opening', async () => {
    const node = await openFakeNode()
    const chain = new ChainIdentity(null, '')
    const link = openLink([node.url], wanted, { chain })
    await link.waitForSignal('live')
    expect(chain.id).toBe(CHAIN_ID)
    const { answer } = node
    node.answer = (asked) => (asked.method === 'eth_chainId' ? { result: '0x1' } : answer(asked))
    node.socket?.close()
    await link.waitForSignal('down')
    link.retry()
    expect((await link.waitForSignal('down', 2)).reason).toContain('wrong chain')
  })

  it('accepts a subscription without naming it', async () => {
    const node = await openFakeNode()
    const { answer } = node
    node.answer = (asked) => (asked.params[0] === 'pendingLogs' ? { result: null } : answer(asked))
    const link = openLink([node.url], wanted)
    expect((await link.waitForSignal('down')).reason).toBe('a subscription was answered without an id')
  })

  it('says more in one message than anybody can mean', async () => {
    const node = await openFakeNode()
    const link = openLink([node.url], wanted)
    await link.waitForSignal('live')
    node.send(JSON.stringify({ filler: 'x'.repeat(9 * 2 ** 20) }))
    expect((await link.waitForSignal('down')).reason).toContain('Max payload size exceeded')
    link.retry()
    await link.waitForSignal('live', 2)
  })
})

describe('a node that refuses', () => {
  const error = { code: -32602, message: 'invalid params: no subscription "pendingLogs"' }

  it('pendingLogs is asked for the logs of sealed blocks', async () => {
    const node = await openFakeNode()
    const { answer } = node
    node.answer = (asked) => (asked.params[0] === 'pendingLogs' ? { error } : answer(asked))
    const link = openLink([node.url], wanted)
    expect(await link.waitForSignal('live')).toEqual({ type: 'live', subscription: 'logs', addresses: [apple] })
    expect(node.methods()).toEqual([
      'eth_chainId',
      'eth_subscribe newHeads',
      'eth_subscribe pendingLogs',
      'eth_subscribe logs',
    ])
    node.notify('0x2', sealedLog({ block: 5 }))
    expect(await link.waitForSignal('log')).toMatchObject({ subscription: 'logs', log: sealedLog({ block: 5 }) })
  })

  it('both kinds of logs is down', async () => {
    const node = await openFakeNode()
    const { answer } = node
    node.answer = (asked) =>
      asked.params[0] === 'newHeads' ? answer(asked) : asked.method === 'eth_subscribe' ? { error } : answer(asked)
    const link = openLink([node.url], wanted)
    expect(await link.waitForSignal('down')).toMatchObject({
      reason: expect.stringContaining('logs refused'),
      isRefused: true,
    })
  })

  it('to say its chain, or to tell heads, is listened to all the same', async () => {
    const node = await openFakeNode()
    const { answer } = node
    node.answer = (asked) =>
      asked.method === 'eth_chainId' || asked.params[0] === 'newHeads'
        ? { error: { code: -32601, message: 'no' } }
        : answer(asked)
    const link = openLink([node.url], wanted)
    await link.waitForSignal('live')
    node.notify('0x1', header(5))
    expect(await link.waitForSignal('log')).toMatchObject({ log: header(5) })
    expect(link.warnings.map(({ kind }) => kind)).toContain('upstream refuses newHeads')
  })
})

import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { waitOn } from '../../../../support/virtual-time.ts'
import type { RpcRequest } from '../fake-chain.ts'
import { apple, keyOf, tesla } from '../node-json.ts'
import { HEAD, openSealedBlocks, sealedHeader } from './sealed-chain-fixture.ts'

describe('a block without logs', () => {
  it('that lists the transaction of an open key is read again, and nothing is emitted meanwhile', async () => {
    const { chain, openKeys, settledEvents, seal, advance } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    openKeys.add(log)
    chain.hideLogs(HEAD + 1, 2)
    await seal(1)
    await advance(1_200)
    expect(settledEvents.all).toEqual([])
    await advance(300)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it.each([
    ['its header is confirmed', 1],
    ['the next block is read', 2],
  ])('is read again if a log of it is published while %s', async (_, blocks) => {
    const { chain, openKeys, settledEvents, sealed, clock, advance } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    chain.head = HEAD + blocks
    const isSlow = ({ method, params: [block] }: RpcRequest) => method !== 'eth_getLogs' && Number(block) === chain.head
    chain.override = (request) => (isSlow(request) ? waitOn(clock, 100).then(() => chain.headerOf(chain.head)) : undefined)
    sealed.receiveHead(sealedHeader(chain.headerOf(chain.head)), true)
    await advance(50)
    openKeys.add(log)
    await advance(1_000)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1, HEAD + 2].slice(0, blocks))
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('is finally believed, and no sooner because another one was, or because requests failed before', async () => {
    const { chain, openKeys, settledEvents, announceHead, advance } = openSealedBlocks()
    for (const block of [HEAD + 1, HEAD + 2]) openKeys.add(chain.addLog(block))
    chain.failure = new UpstreamError('unreachable', 'ECONNREFUSED')
    chain.head = HEAD + 2
    announceHead()
    await advance(5_000)
    chain.failure = null
    chain.hideLogs(HEAD + 1)
    await advance(1_499)
    expect(settledEvents.all).toEqual([])
    // Answers take long only now, until the second block is shown.
    chain.hideLogs(HEAD + 2, 1)
    await advance(5_000)
    expect(settledEvents.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([
      [HEAD + 1, 0],
      [HEAD + 2, 1],
    ])
  })

  it('is read again for the new list when the list changes meanwhile', async () => {
    const { chain, settledEvents, announceHead, advance, listAddresses } = openSealedBlocks()
    chain.delayMs = 100
    const log = chain.addLog(HEAD + 1, tesla)
    chain.head = HEAD + 1
    announceHead()
    await advance(50)
    listAddresses([apple, tesla])
    await advance(1_000)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(settledEvents.blocks().map(({ filters }) => filters)).toEqual([[{ addresses: [apple, tesla] }]])
  })
})

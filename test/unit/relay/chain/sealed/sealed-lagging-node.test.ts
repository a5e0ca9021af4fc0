import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { apple, keyOf, sealedLog, tesla } from '../node-json.ts'
import { HEAD, openSealedBlocks, range } from './sealed-chain-fixture.ts'

describe('settling on a lagging node', () => {
  it('waits, and loses nothing', async () => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks()
    const logs = range(HEAD + 1, HEAD + 4).map((block) => chain.addLog(block))
    chain.head = HEAD + 4
    chain.lagBlocks = 3
    for (const block of range(HEAD + 1, HEAD + 4)) announceHead(block)
    await advance(10_000)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1])
    chain.lagBlocks = 0
    await advance(2_000)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 4))
    expect(settledEvents.logKeys()).toEqual(logs.map(keyOf))
  })

  it('waits longer each time, up to two seconds', async () => {
    const { chain, warnings, announceHead, advance } = openSealedBlocks()
    chain.head = HEAD + 1
    chain.lagBlocks = 1
    announceHead()
    await advance(60_000)
    expect(warnings.length).toBeGreaterThan(25)
    expect(warnings.length).toBeLessThan(40)
    expect(new Set(warnings)).toEqual(new Set(['settling delayed, retrying']))
  })

  it('does not believe an empty answer by number', async () => {
    const { chain, openKeys, settledEvents, announceHead, advance } = openSealedBlocks()
    chain.supportsBlockHash = false
    const log = chain.addLog(HEAD + 1)
    openKeys.add(log)
    chain.head = HEAD + 1
    chain.lagBlocks = 1
    announceHead()
    await advance(30_000)
    expect(settledEvents.all).toEqual([])
    chain.lagBlocks = 0
    await advance(2_000)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('does not believe an empty answer by number even without open keys', async () => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks()
    chain.supportsBlockHash = false
    const log = chain.addLog(HEAD + 1)
    chain.head = HEAD + 1
    chain.lagBlocks = 1
    announceHead()
    await advance(30_000)
    expect(settledEvents.all).toEqual([])
    chain.lagBlocks = 0
    await advance(2_000)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('refuses logs of another block at that height by number', async () => {
    const { chain, settledEvents, seal, advance } = openSealedBlocks()
    chain.supportsBlockHash = false
    const log = chain.addLog(HEAD + 1)
    chain.override = ({ method }) => (method === 'eth_getLogs' ? [{ ...sealedLog(log), blockHash: other }] : undefined)
    const other = chain.hashOf(HEAD)
    await seal(1)
    await advance(5_000)
    expect(settledEvents.all).toEqual([])
    chain.override = () => undefined
    await advance(2_000)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('loses, repeats and retracts nothing when nodes behind one URL differ', async () => {
    await fc.assert(
      fc.asyncProperty(fc.infiniteStream(fc.nat(3)), async (lags) => {
        const { chain, openKeys, settledEvents, warnings, seal, advance } = openSealedBlocks()
        const logs = range(HEAD + 1, HEAD + 20).map((block) => chain.addLog(block))
        for (const log of logs) openKeys.add(log)
        chain.override = () => {
          chain.lagBlocks = lags.next().value
          return undefined
        }
        await seal(20)
        // Three answers of four lag behind the newest block, and after each of them the next try comes later.
        await advance(600_000)
        expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 20))
        expect(settledEvents.logKeys()).toEqual(logs.map(keyOf))
        expect(warnings).not.toContain('the chain was reorganised')
      }),
      { numRuns: 30 },
    )
  })
})

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

  it('that does not list it is believed at once', async () => {
    const { chain, openKeys, settledEvents, seal } = openSealedBlocks()
    openKeys.add({ block: HEAD + 1 })
    await seal(1)
    expect(settledEvents.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([[HEAD + 1, 0]])
    expect(chain.requestedHeaders()).toEqual([HEAD + 1])
  })

  it('that lists no transactions is read again', async () => {
    const { chain, openKeys, settledEvents, seal, advance } = openSealedBlocks()
    chain.listsTransactions = false
    const log = chain.addLog(HEAD + 1)
    openKeys.add(log)
    chain.hideLogs(HEAD + 1, 1)
    await seal(1)
    expect(settledEvents.all).toEqual([])
    await advance(500)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('is finally believed', async () => {
    const { chain, openKeys, settledEvents, seal, advance } = openSealedBlocks()
    openKeys.add(chain.addLog(HEAD + 1))
    chain.hideLogs(HEAD + 1)
    await seal(1)
    await advance(1_500)
    expect(settledEvents.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([[HEAD + 1, 0]])
  })

  it('is believed no sooner because requests failed before', async () => {
    const { chain, openKeys, settledEvents, announceHead, advance } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    openKeys.add(log)
    chain.head = HEAD + 1
    chain.failure = new UpstreamError('unreachable', 'ECONNREFUSED')
    announceHead()
    await advance(5_000)
    chain.failure = null
    chain.hideLogs(HEAD + 1, 1)
    await advance(5_000)
    expect(settledEvents.blocks().map(({ logs }) => logs.map(({ key }) => key))).toEqual([[keyOf(log)]])
  })

  it('is believed no sooner because another one was', async () => {
    const { chain, openKeys, settledEvents, announceHead, advance } = openSealedBlocks()
    const logs = [chain.addLog(HEAD + 1), chain.addLog(HEAD + 2)]
    for (const log of logs) openKeys.add(log)
    chain.hideLogs(HEAD + 1)
    chain.head = HEAD + 2
    announceHead()
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

  it('of one of two open keys is read again for both transactions', async () => {
    const { chain, openKeys, settledEvents, seal, advance } = openSealedBlocks()
    const [first, second] = [chain.addLog(HEAD + 1), chain.addLog(HEAD + 1)]
    openKeys.add(first)
    openKeys.add(second)
    chain.override = ({ method }) => {
      if (method !== 'eth_getLogs') return undefined
      chain.override = () => undefined
      return [sealedLog(first)]
    }
    await seal(1)
    await advance(500)
    expect(settledEvents.blocks().map(({ logs }) => logs.length)).toEqual([2])
    expect(settledEvents.logKeys()).toEqual([first, second].map(keyOf))
  })

  it('is read again for unlisted tokens with open keys', async () => {
    const { chain, openKeys, settledEvents, seal, list } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1, tesla)
    openKeys.add(log)
    list.addresses = [apple]
    await seal(1)
    expect(chain.requestedAddresses()).toEqual([[apple, tesla]])
    expect(settledEvents.blocks()[0]?.addresses).toEqual([apple, tesla])
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('is read again for the new list when the list changes meanwhile', async () => {
    const { chain, settledEvents, announceHead, advance, list } = openSealedBlocks()
    chain.delayMs = 100
    const log = chain.addLog(HEAD + 1, tesla)
    chain.head = HEAD + 1
    announceHead()
    await advance(50)
    list.addresses = [apple, tesla]
    await advance(1_000)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(settledEvents.blocks().map(({ addresses }) => addresses)).toEqual([[apple, tesla]])
  })
})

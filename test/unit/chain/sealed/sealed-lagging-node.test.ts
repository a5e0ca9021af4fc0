import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { apple, keyOf, sealedLog, tesla } from '../node-json.ts'
import { HEAD, range, walk } from './sealed-blocks-fixture.ts'

describe('a node that is behind', () => {
  it('is waited for, and loses nothing', () => {
    const { chain, told, raise, pass } = walk()
    const logs = range(HEAD + 1, HEAD + 4).map((block) => chain.put(block))
    chain.head = HEAD + 4
    chain.lag = 3
    for (const block of range(HEAD + 1, HEAD + 4)) raise(block)
    pass(10_000)
    expect(told.numbers()).toEqual([HEAD + 1])
    chain.lag = 0
    pass(2_000)
    expect(told.numbers()).toEqual(range(HEAD + 1, HEAD + 4))
    expect(told.logs()).toEqual(logs.map(keyOf))
  })

  it('is waited for longer each time, up to two seconds', () => {
    const { chain, said, raise, pass } = walk()
    chain.head = HEAD + 1
    chain.lag = 1
    raise()
    pass(60_000)
    expect(said.length).toBeGreaterThan(25)
    expect(said.length).toBeLessThan(40)
    expect(new Set(said)).toEqual(new Set(['settling waits']))
  })

  it('and can be asked by number alone is not believed that there are no logs', () => {
    const { chain, owed, told, raise, pass } = walk()
    chain.knowsHashes = false
    const log = chain.put(HEAD + 1)
    owed.owe(log)
    chain.head = HEAD + 1
    chain.lag = 1
    raise()
    pass(30_000)
    expect(told.all).toEqual([])
    chain.lag = 0
    pass(2_000)
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('and can be asked by number alone is not believed either where nothing had been told', () => {
    const { chain, told, raise, pass } = walk()
    chain.knowsHashes = false
    const log = chain.put(HEAD + 1)
    chain.head = HEAD + 1
    chain.lag = 1
    raise()
    pass(30_000)
    expect(told.all).toEqual([])
    chain.lag = 0
    pass(2_000)
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('asked by number, gives the logs of another block at that height to nobody', () => {
    const { chain, told, seal, pass } = walk()
    chain.knowsHashes = false
    const log = chain.put(HEAD + 1)
    chain.instead = ({ method }) => (method === 'eth_getLogs' ? [{ ...sealedLog(log), blockHash: other }] : undefined)
    const other = chain.hashOf(HEAD)
    seal(1)
    pass(5_000)
    expect(told.all).toEqual([])
    chain.instead = () => undefined
    pass(2_000)
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('among others of the same name loses nothing, tells nothing twice, and takes nothing back', () => {
    fc.assert(
      fc.property(fc.infiniteStream(fc.nat(3)), (lags) => {
        const { chain, owed, told, said, seal, pass } = walk()
        const logs = range(HEAD + 1, HEAD + 20).map((block) => chain.put(block))
        for (const log of logs) owed.owe(log)
        chain.instead = () => {
          chain.lag = lags.next().value
          return undefined
        }
        seal(20)
        pass(60_000)
        expect(told.numbers()).toEqual(range(HEAD + 1, HEAD + 20))
        expect(told.logs()).toEqual(logs.map(keyOf))
        expect(said).not.toContain('the chain was reorganised')
      }),
      { numRuns: 30 },
    )
  })
})

describe('a block that is said to have no logs', () => {
  it('and lists the transaction of what was told is asked for again, and nothing is told meanwhile', () => {
    const { chain, owed, told, seal, pass } = walk()
    const log = chain.put(HEAD + 1)
    owed.owe(log)
    chain.hide(HEAD + 1, 2)
    seal(1)
    pass(1_200)
    expect(told.all).toEqual([])
    pass(300)
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('and does not list it is believed at once', () => {
    const { chain, owed, told, seal } = walk()
    owed.owe({ block: HEAD + 1 })
    seal(1)
    expect(told.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([[HEAD + 1, 0]])
    expect(chain.headers()).toEqual([HEAD + 1])
  })

  it('and shows no transactions at all is asked for again', () => {
    const { chain, owed, told, seal, pass } = walk()
    chain.showsTransactions = false
    const log = chain.put(HEAD + 1)
    owed.owe(log)
    chain.hide(HEAD + 1, 1)
    seal(1)
    expect(told.all).toEqual([])
    pass(500)
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('is believed in the end', () => {
    const { chain, owed, told, seal, pass } = walk()
    owed.owe(chain.put(HEAD + 1))
    chain.hide(HEAD + 1)
    seal(1)
    pass(1_500)
    expect(told.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([[HEAD + 1, 0]])
  })

  it('is not believed sooner because the node could not be asked before', () => {
    const { chain, owed, told, raise, pass } = walk()
    const log = chain.put(HEAD + 1)
    owed.owe(log)
    chain.head = HEAD + 1
    chain.trouble = new UpstreamError('unreachable', 'ECONNREFUSED')
    raise()
    pass(5_000)
    chain.trouble = null
    chain.hide(HEAD + 1, 1)
    pass(5_000)
    expect(told.blocks().map(({ logs }) => logs.map(({ key }) => key))).toEqual([[keyOf(log)]])
  })

  it('is believed no sooner because another one was', () => {
    const { chain, owed, told, raise, pass } = walk()
    const logs = [chain.put(HEAD + 1), chain.put(HEAD + 2)]
    for (const log of logs) owed.owe(log)
    chain.hide(HEAD + 1)
    chain.head = HEAD + 2
    raise()
    pass(1_499)
    expect(told.all).toEqual([])
    // Only now it takes a while until the second is shown.
    chain.hide(HEAD + 2, 1)
    pass(5_000)
    expect(told.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([
      [HEAD + 1, 0],
      [HEAD + 2, 1],
    ])
  })

  it('lacks one of two that were told: both transactions are looked for', () => {
    const { chain, owed, told, seal, pass } = walk()
    const [first, second] = [chain.put(HEAD + 1), chain.put(HEAD + 1)]
    owed.owe(first)
    owed.owe(second)
    chain.instead = ({ method }) => {
      if (method !== 'eth_getLogs') return undefined
      chain.instead = () => undefined
      return [sealedLog(first)]
    }
    seal(1)
    pass(500)
    expect(told.blocks().map(({ logs }) => logs.length)).toEqual([2])
    expect(told.logs()).toEqual([first, second].map(keyOf))
  })

  it('of tokens that are listed no more is asked for what was told of them', () => {
    const { chain, owed, told, seal, list } = walk()
    const log = chain.put(HEAD + 1, tesla)
    owed.owe(log)
    list.addresses = [apple]
    seal(1)
    expect(chain.addresses()).toEqual([[apple, tesla]])
    expect(told.blocks()[0]?.asked).toEqual([apple, tesla])
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('while the list changes is asked for once more, for the new list', () => {
    const { chain, told, raise, pass, list } = walk()
    chain.delayMs = 100
    const log = chain.put(HEAD + 1, tesla)
    chain.head = HEAD + 1
    raise()
    pass(50)
    list.addresses = [apple, tesla]
    pass(1_000)
    expect(told.logs()).toEqual([keyOf(log)])
    expect(told.blocks().map(({ asked }) => asked)).toEqual([[apple, tesla]])
  })
})

import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { keyOf, tesla, word } from '../node-json.ts'
import { HEAD, openSealedBlocks, sealedHeader } from './sealed-blocks-fixture.ts'

describe('the audit of what was settled', () => {
  it('settles again what turns out to hold more', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    seal(1)
    expect(settledEvents.blocks().map(({ logs }) => logs.length)).toEqual([0])
    seal(1)
    expect(settledEvents.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([
      [HEAD + 1, 0],
      [HEAD + 2, 0],
      [HEAD + 1, 1],
    ])
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    // Nothing went back by it.
    expect(settledEvents.ofType('sealed').map(({ newest, cursor }) => [newest, cursor.number])).toEqual([
      [HEAD + 1, HEAD + 1],
      [HEAD + 2, HEAD + 2],
      [HEAD + 2, HEAD + 2],
    ])
  })

  it('looks once a second at what was settled, until three seconds after it was', () => {
    const { chain, seal } = openSealedBlocks()
    seal(26)
    expect(chain.requestedRanges()).toEqual([
      [HEAD + 1, HEAD + 1],
      [HEAD + 1, HEAD + 7],
      [HEAD + 1, HEAD + 13],
      [HEAD + 1, HEAD + 19],
      [HEAD + 6, HEAD + 25],
    ])
  })

  it('that fails leaves what it would have looked at to the next', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    seal(8)
    const log = chain.addLog(HEAD + 2)
    chain.override = (asked) => {
      if (JSON.stringify(asked.params).includes('fromBlock')) throw new UpstreamError('busy', 'HTTP 429')
      return undefined
    }
    seal(40)
    expect(settledEvents.logKeys()).toEqual([])
    chain.override = () => undefined
    seal(8)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('looks at the last four blocks, however slowly they come', () => {
    const { chain, seal, advance } = openSealedBlocks()
    for (let block = 0; block < 8; block += 1) {
      seal(1)
      advance(2_000)
    }
    expect(chain.requestedRanges().slice(-2)).toEqual([
      [HEAD + 2, HEAD + 5],
      [HEAD + 4, HEAD + 7],
    ])
  })

  it('asks a node that gives only some blocks at a time for the oldest four that are due', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.rangeBound = 5
    seal(7)
    const log = chain.addLog(HEAD + 3)
    seal(1)
    expect(chain.requestedRanges().slice(-2)).toEqual([
      [HEAD + 1, HEAD + 7],
      [HEAD + 1, HEAD + 4],
    ])
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it.each([3, 2, 1])('asks a node that gives only %i at a time for those in parts', (rangeBound) => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.rangeBound = rangeBound
    seal(7)
    const logs = [HEAD + 1, HEAD + 2, HEAD + 3, HEAD + 4].map((block) => chain.addLog(block))
    seal(1)
    expect(settledEvents.logKeys().toSorted()).toEqual(logs.map(keyOf).toSorted())
  })

  it('keeps up with a chain that is faster than that', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.rangeBound = 2
    const logs = Array.from({ length: 400 }, () => {
      seal(1)
      return chain.addLog(chain.head - 9)
    })
    seal(30)
    expect(settledEvents.logKeys()).toEqual(logs.slice(9).map(keyOf))
  })

  describe('of a block that is too large by itself', () => {
    /** A chain whose third block no range may hold. */
    const crowded = () => {
      const life = openSealedBlocks()
      const { chain } = life
      const questions: unknown[] = []
      chain.override = ({ params }) => {
        const [filter] = params as readonly { readonly fromBlock?: string; readonly toBlock?: string }[]
        if (filter?.fromBlock === undefined) return undefined
        const [from, to] = [Number(filter.fromBlock), Number(filter.toBlock)]
        if (from > HEAD + 3 || to < HEAD + 3) return undefined
        if (from === to) questions.push(filter)
        throw new UpstreamError('too_large', 'query exceeds max results')
      }
      return { ...life, questions }
    }

    it('looks at the others all the same, and is over', () => {
      const { chain, settledEvents, seal, questions } = crowded()
      const held = chain.addLog(HEAD + 3)
      seal(7)
      const late = [HEAD + 2, HEAD + 4].map((block) => chain.addLog(block))
      seal(40)
      expect(settledEvents.logKeys()).toEqual([held, ...late].map(keyOf))
      expect(questions.length).toBeGreaterThan(0)
      expect(questions.length).toBeLessThan(10)
    })

    it('settles it again where it had seemed empty', () => {
      const { chain, settledEvents, seal, questions } = crowded()
      const log = chain.addLog(HEAD + 3)
      chain.hideLogs(HEAD + 3, 1)
      seal(40)
      expect(settledEvents.logKeys()).toEqual([keyOf(log)])
      expect(questions.length).toBeLessThan(10)
    })
  })

  it('takes nothing back because an answer has less', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.addLog(HEAD + 1)
    seal(1)
    chain.hideLogs(HEAD + 1)
    seal(6)
    expect(settledEvents.blocks().filter(({ number }) => number === HEAD + 1)).toHaveLength(1)
  })

  it('misses nothing of tokens that were not listed yet when a block was settled', () => {
    const { chain, settledEvents, list, seal } = openSealedBlocks()
    chain.addLog(HEAD + 1, tesla)
    seal(1)
    list.addresses = [...list.addresses, tesla]
    seal(7)
    expect(settledEvents.logKeys()).toEqual([])
    expect(settledEvents.blockNumbers()).toEqual([...new Set(settledEvents.blockNumbers())])
  })

  it('counts none of those who are listed no more', () => {
    const { chain, openKeys, settledEvents, seal } = openSealedBlocks()
    const [gone, log] = [chain.addLog(HEAD + 1, tesla), chain.addLog(HEAD + 1)]
    openKeys.add(gone)
    chain.override = ({ method }) => {
      if (method !== 'eth_getLogs') return undefined
      chain.override = () => undefined
      return [chain.nodeLogOf(gone)]
    }
    seal(1)
    expect(settledEvents.logKeys()).toEqual([keyOf(gone)])
    seal(1)
    expect(settledEvents.logKeys().slice(1)).toEqual([gone, log].map(keyOf))
  })

  it('says nothing of the logs of another block at that height', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    seal(1)
    chain.addLog(HEAD + 1)
    chain.override = ({ params }) => {
      if (!JSON.stringify(params).includes('fromBlock')) return undefined
      const { blockHash: _, ...log } = { ...chain.headerOf(HEAD + 1), blockHash: word(77) }
      return [log]
    }
    seal(1)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1, HEAD + 2])
  })

  it('may fail, and finds it the next time', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    const refuse = ({ params }: { readonly params: readonly unknown[] }) => {
      if (!JSON.stringify(params).includes('fromBlock')) return undefined
      throw new UpstreamError('busy', 'over rate limit')
    }
    chain.override = refuse
    seal(2)
    chain.override = () => undefined
    expect(settledEvents.logKeys()).toEqual([])
    seal(6)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('is not kept from settling again by a head that never became part of the chain', () => {
    const { chain, settledEvents, seal, sealed, advance } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    seal(1)
    sealed.receiveHead(sealedHeader({ ...chain.headerOf(HEAD + 1), hash: word(77) }))
    advance(0)
    seal(2)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('of a block that is no more finds the block that took its place', () => {
    const { chain, settledEvents, seal, announceHead, advance } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    seal(1)
    chain.delayMs = 30
    chain.head += 1
    announceHead()
    advance(70)
    chain.reorganise(2)
    advance(5_000)
    seal(1)
    advance(1_000)
    expect(settledEvents.blocks().at(-1)?.hash).toBe(chain.hashOf(HEAD + 3))
    const last = new Map(settledEvents.blocks().map((block) => [block.number, block]))
    expect(last.get(HEAD + 1)?.hash).toBe(chain.hashOf(HEAD + 1))
    expect(last.get(HEAD + 1)?.logs).toEqual([])
    expect(settledEvents.logKeys().filter((key) => key === keyOf(log)).length).toBeLessThanOrEqual(1)
  })
})

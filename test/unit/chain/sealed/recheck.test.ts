import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { keyOf, tesla, word } from '../node-json.ts'
import { HEAD, sealedHeader, walk } from './sealed-blocks-fixture.ts'

describe('the audit of what was settled', () => {
  it('settles again what turns out to hold more', () => {
    const { chain, told, seal } = walk()
    const log = chain.put(HEAD + 1)
    chain.hide(HEAD + 1, 1)
    seal(1)
    expect(told.blocks().map(({ logs }) => logs.length)).toEqual([0])
    seal(1)
    expect(told.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([
      [HEAD + 1, 0],
      [HEAD + 2, 0],
      [HEAD + 1, 1],
    ])
    expect(told.logs()).toEqual([keyOf(log)])
    // Nothing went back by it.
    expect(told.of('sealed').map(({ newest, cursor }) => [newest, cursor.number])).toEqual([
      [HEAD + 1, HEAD + 1],
      [HEAD + 2, HEAD + 2],
      [HEAD + 2, HEAD + 2],
    ])
  })

  it('looks once a second at what was settled, until three seconds after it was', () => {
    const { chain, seal } = walk()
    seal(26)
    expect(chain.ranges()).toEqual([
      [HEAD + 1, HEAD + 1],
      [HEAD + 1, HEAD + 7],
      [HEAD + 1, HEAD + 13],
      [HEAD + 1, HEAD + 19],
      [HEAD + 6, HEAD + 25],
    ])
  })

  it('that fails leaves what it would have looked at to the next', () => {
    const { chain, told, seal } = walk()
    seal(8)
    const log = chain.put(HEAD + 2)
    chain.instead = (asked) => {
      if (JSON.stringify(asked.params).includes('fromBlock')) throw new UpstreamError('busy', 'HTTP 429')
      return undefined
    }
    seal(40)
    expect(told.logs()).toEqual([])
    chain.instead = () => undefined
    seal(8)
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('looks at the last four blocks, however slowly they come', () => {
    const { chain, seal, pass } = walk()
    for (let block = 0; block < 8; block += 1) {
      seal(1)
      pass(2_000)
    }
    expect(chain.ranges().slice(-2)).toEqual([
      [HEAD + 2, HEAD + 5],
      [HEAD + 4, HEAD + 7],
    ])
  })

  it('asks a node that gives only some blocks at a time for the oldest four that are due', () => {
    const { chain, told, seal } = walk()
    chain.rangeBound = 5
    seal(7)
    const log = chain.put(HEAD + 3)
    seal(1)
    expect(chain.ranges().slice(-2)).toEqual([
      [HEAD + 1, HEAD + 7],
      [HEAD + 1, HEAD + 4],
    ])
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it.each([3, 2, 1])('asks a node that gives only %i at a time for those in parts', (rangeBound) => {
    const { chain, told, seal } = walk()
    chain.rangeBound = rangeBound
    seal(7)
    const logs = [HEAD + 1, HEAD + 2, HEAD + 3, HEAD + 4].map((block) => chain.put(block))
    seal(1)
    expect(told.logs().toSorted()).toEqual(logs.map(keyOf).toSorted())
  })

  it('keeps up with a chain that is faster than that', () => {
    const { chain, told, seal } = walk()
    chain.rangeBound = 2
    const logs = Array.from({ length: 400 }, () => {
      seal(1)
      return chain.put(chain.head - 9)
    })
    seal(30)
    expect(told.logs()).toEqual(logs.slice(9).map(keyOf))
  })

  describe('of a block that is too large by itself', () => {
    /** A chain whose third block no range may hold. */
    const crowded = () => {
      const life = walk()
      const { chain } = life
      const questions: unknown[] = []
      chain.instead = ({ params }) => {
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
      const { chain, told, seal, questions } = crowded()
      const held = chain.put(HEAD + 3)
      seal(7)
      const late = [HEAD + 2, HEAD + 4].map((block) => chain.put(block))
      seal(40)
      expect(told.logs()).toEqual([held, ...late].map(keyOf))
      expect(questions.length).toBeGreaterThan(0)
      expect(questions.length).toBeLessThan(10)
    })

    it('settles it again where it had seemed empty', () => {
      const { chain, told, seal, questions } = crowded()
      const log = chain.put(HEAD + 3)
      chain.hide(HEAD + 3, 1)
      seal(40)
      expect(told.logs()).toEqual([keyOf(log)])
      expect(questions.length).toBeLessThan(10)
    })
  })

  it('takes nothing back because an answer has less', () => {
    const { chain, told, seal } = walk()
    chain.put(HEAD + 1)
    seal(1)
    chain.hide(HEAD + 1)
    seal(6)
    expect(told.blocks().filter(({ number }) => number === HEAD + 1)).toHaveLength(1)
  })

  it('misses nothing of tokens that were not listed yet when a block was settled', () => {
    const { chain, told, list, seal } = walk()
    chain.put(HEAD + 1, tesla)
    seal(1)
    list.addresses = [...list.addresses, tesla]
    seal(7)
    expect(told.logs()).toEqual([])
    expect(told.numbers()).toEqual([...new Set(told.numbers())])
  })

  it('counts none of those who are listed no more', () => {
    const { chain, owed, told, seal } = walk()
    const [gone, log] = [chain.put(HEAD + 1, tesla), chain.put(HEAD + 1)]
    owed.owe(gone)
    chain.instead = ({ method }) => {
      if (method !== 'eth_getLogs') return undefined
      chain.instead = () => undefined
      return [chain.wireOf(gone)]
    }
    seal(1)
    expect(told.logs()).toEqual([keyOf(gone)])
    seal(1)
    expect(told.logs().slice(1)).toEqual([gone, log].map(keyOf))
  })

  it('says nothing of the logs of another block at that height', () => {
    const { chain, told, seal } = walk()
    seal(1)
    chain.put(HEAD + 1)
    chain.instead = ({ params }) => {
      if (!JSON.stringify(params).includes('fromBlock')) return undefined
      const { blockHash: _, ...log } = { ...chain.headerOf(HEAD + 1), blockHash: word(77) }
      return [log]
    }
    seal(1)
    expect(told.numbers()).toEqual([HEAD + 1, HEAD + 2])
  })

  it('may fail, and finds it the next time', () => {
    const { chain, told, seal } = walk()
    const log = chain.put(HEAD + 1)
    chain.hide(HEAD + 1, 1)
    const refuse = ({ params }: { readonly params: readonly unknown[] }) => {
      if (!JSON.stringify(params).includes('fromBlock')) return undefined
      throw new UpstreamError('busy', 'over rate limit')
    }
    chain.instead = refuse
    seal(2)
    chain.instead = () => undefined
    expect(told.logs()).toEqual([])
    seal(6)
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('is not kept from settling again by a head that never became part of the chain', () => {
    const { chain, told, seal, sealed, pass } = walk()
    const log = chain.put(HEAD + 1)
    chain.hide(HEAD + 1, 1)
    seal(1)
    sealed.raise(sealedHeader({ ...chain.headerOf(HEAD + 1), hash: word(77) }))
    pass(0)
    seal(2)
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('of a block that is no more finds the block that took its place', () => {
    const { chain, told, seal, raise, pass } = walk()
    const log = chain.put(HEAD + 1)
    chain.hide(HEAD + 1, 1)
    seal(1)
    chain.delayMs = 30
    chain.head += 1
    raise()
    pass(70)
    chain.reorganise(2)
    pass(5_000)
    seal(1)
    pass(1_000)
    expect(told.blocks().at(-1)?.hash).toBe(chain.hashOf(HEAD + 3))
    const last = new Map(told.blocks().map((block) => [block.number, block]))
    expect(last.get(HEAD + 1)?.hash).toBe(chain.hashOf(HEAD + 1))
    expect(last.get(HEAD + 1)?.logs).toEqual([])
    expect(told.logs().filter((key) => key === keyOf(log)).length).toBeLessThanOrEqual(1)
  })
})

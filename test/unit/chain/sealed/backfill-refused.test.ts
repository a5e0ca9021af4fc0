import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import type { Asked } from '../fake-chain.ts'
import { apple, keyOf, tesla } from '../node-json.ts'
import { catchUp } from './backfill-fixture.ts'
import { range } from './sealed-blocks-fixture.ts'

/** The range that a question is about; null where it is about no range. */
const rangeOf = ({ params }: Asked): readonly [from: number, to: number] | null => {
  const { fromBlock, toBlock } = (params[0] ?? {}) as { fromBlock?: string; toBlock?: string }
  return fromBlock ? [Number(fromBlock), Number(toBlock)] : null
}
const sizes = (chain: { ranges: () => readonly (readonly [number, number | 'pending'])[] }) =>
  chain.ranges().map(([from, to]) => Number(to) - from + 1)

describe('a page that is too large', () => {
  it('is halved as often as it takes, at once', () => {
    const { chain, told, add, pass } = catchUp()
    chain.rangeBound = 300
    const log = chain.put(5)
    add(1, 2_000)
    pass(0)
    expect(sizes(chain).slice(0, 4)).toEqual([2_000, 1_000, 500, 250])
    expect(told.logs()).toEqual([keyOf(log)])
    expect(told.cursors().at(-1)).toBe(10_000)
  })

  it('is tried again, after some that went well', () => {
    const { chain, add, pass } = catchUp()
    chain.rangeBound = 100
    add(1, 2_000)
    pass(0)
    chain.rangeBound = 2_000
    add(2_001, 10_000)
    pass(0)
    expect(Math.max(...sizes(chain).slice(-6))).toBeGreaterThan(500)
    expect(chain.ranges().at(-1)?.[1]).toBe(10_000)
  })

  it('is asked for in the very range that the node suggests, in decimal', () => {
    const { chain, told, add, pass } = catchUp()
    chain.suggests = 'decimal'
    chain.resultsBound = 10
    for (const block of range(1, 40)) chain.put(block * 5)
    add(1, 200)
    pass(0)
    // Ten logs lie in the first 54 blocks: half of the page would have been too much.
    expect(sizes(chain).slice(0, 2)).toEqual([200, 54])
    expect(told.logs()).toHaveLength(40)
  })

  it('is asked for in the very range that the node suggests, in hex', () => {
    const { chain, told, add, pass } = catchUp()
    chain.suggests = 'hex'
    chain.resultsBound = 10
    for (const block of range(1, 40)) chain.put(block * 5)
    add(1, 200)
    pass(0)
    expect(sizes(chain).slice(0, 2)).toEqual([200, 54])
    expect(told.logs()).toHaveLength(40)
  })

  it.each(['retry with the range 5-9', 'retry with the range 1-0', 'use a range between 5 and 9', 'range 1–'])(
    'is halved where the node says "%s", which is no part of it',
    (hint) => {
      const { chain, add, pass } = catchUp()
      chain.instead = () => {
        chain.instead = () => undefined
        throw new UpstreamError('too_large', `query exceeds max results, ${hint}`)
      }
      add(1, 200)
      pass(0)
      expect(sizes(chain).slice(0, 2)).toEqual([200, 100])
    },
  )

  it('with a single block is asked for contract by contract', () => {
    const { chain, told, list, add, pass } = catchUp()
    list.addresses = [apple, tesla]
    chain.resultsBound = 2
    const logs = [chain.put(5), chain.put(5, tesla), chain.put(5)]
    const other = chain.put(6)
    add(1, 10)
    pass(0)
    expect(told.logs()).toEqual([...logs, other].map(keyOf))
    expect(told.holes()).toEqual([])
  })

  it('with a single contract in a single block is left out in the end, and no block beside it', () => {
    const { chain, told, add, pass } = catchUp()
    chain.resultsBound = 2
    const before = chain.put(4)
    for (let log = 0; log < 3; log += 1) chain.put(5)
    const after = chain.put(6)
    add(1, 10)
    pass(1_000)
    expect(told.holes()).toEqual([])
    pass(5_000)
    expect(told.holes()).toEqual(['5-5 too_large'])
    expect(told.logs()).toEqual([before, after].map(keyOf))
  })

  it('is halved though the node could not be asked for a while before', () => {
    const { chain, told, add, pass } = catchUp()
    chain.rangeBound = 500
    const log = chain.put(1_234)
    chain.trouble = new UpstreamError('unreachable', 'ECONNREFUSED')
    add(1, 2_000)
    pass(10_000)
    chain.trouble = null
    pass(5_000)
    expect(told.holes()).toEqual([])
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('may take too long instead of being refused, and is halved then, too', () => {
    const { chain, told, add, pass } = catchUp()
    const log = chain.put(1_234)
    chain.instead = (asked) => {
      const asks = rangeOf(asked)
      if (!asks || asks[1] - asks[0] < 500) return undefined
      throw new UpstreamError('unreachable', 'The operation was aborted due to timeout')
    }
    add(1, 2_000)
    pass(10_000)
    expect(told.logs()).toEqual([keyOf(log)])
    expect(told.holes()).toEqual([])
  })
})

describe('a page of which the node has forgotten a part', () => {
  it('is a hole of the very blocks that are gone; the rest is told', () => {
    const { chain, told, add, pass } = catchUp()
    chain.keptFrom = 777
    const [lost, kept] = [chain.put(776), chain.put(777)]
    add(1, 3_000)
    pass(0)
    expect(told.holes()).toEqual(['1-776 pruned'])
    expect(told.logs()).toEqual([keyOf(kept)])
    expect(told.logs()).not.toContain(keyOf(lost))
    expect(told.cursors()).toEqual([776, 776, 2_776, 10_000])
  })

  it('is a hole as a whole where the node has nothing of it', () => {
    const { chain, told, add, pass } = catchUp()
    chain.keptFrom = 5_000
    add(1, 3_000)
    pass(0)
    expect(told.holes()).toEqual(['1-3000 pruned'])
    expect(told.cursors().at(-1)).toBe(10_000)
  })

  it('still ends what was told of it, as far as its blocks can be read by themselves', () => {
    const { chain, owed, told, add, pass } = catchUp()
    chain.keptFrom = 777
    const log = chain.put(500)
    owed.owe(log)
    owed.owe({ block: 600 })
    chain.instead = ({ params }) => {
      const asked = JSON.stringify(params)
      return asked.includes(chain.hashOf(500)) ? [chain.wireOf(log)] : undefined
    }
    add(1, 1_000)
    pass(60_000)
    expect(told.holes()).toEqual(['1-499 pruned', '501-776 pruned'])
    expect(told.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([[500, 1]])
  })

  it('is not asked for again and again where one node has forgotten it, and another of its name has not', () => {
    const { chain, told, add, pass } = catchUp()
    const log = chain.put(500)
    chain.instead = (asked) => {
      const asks = rangeOf(asked)
      if (!asks || asks[0] === asks[1]) return undefined
      throw new UpstreamError('gone', 'pruned history unavailable')
    }
    add(1, 1_000)
    pass(1_000)
    expect(chain.asked.length).toBeLessThan(100)
    chain.instead = () => undefined
    pass(2_000)
    expect(told.logs()).toEqual([keyOf(log)])
    expect(told.holes()).toEqual([])
  })
})

describe('a hole', () => {
  it('is told with the cursor behind it', () => {
    const { chain, told, add, pass } = catchUp()
    chain.put(160)
    add(1, 100)
    add(101, 200, 'backfill_bound')
    add(201, 300)
    pass(0)
    const cursor = { number: 200, hash: null }
    expect(told.all.slice(1, 3)).toEqual([
      { type: 'sealed', blocks: [], newest: 10_000, cursor },
      { type: 'hole', blocks: { from: 101, to: 200 }, reason: 'backfill_bound', cursor },
    ])
    expect(told.logs()).toEqual([])
  })

  it.each([
    [[50], ['1-49', '51-100']],
    [[1], ['2-100']],
    [[100], ['1-99']],
    [
      [1, 2, 50, 51, 100],
      ['3-49', '52-99'],
    ],
  ])('leaves out the blocks of which something was told, %j: they are settled', (blocks, holes) => {
    const { chain, owed, told, add, pass } = catchUp()
    for (const block of blocks) owed.owe(chain.put(block))
    add(1, 100, 'backfill_bound')
    pass(0)
    expect(told.numbers()).toEqual(blocks)
    expect(told.logs()).toHaveLength(blocks.length)
    expect(told.holes()).toEqual(holes.map((hole) => `${hole} backfill_bound`))
  })

  it('is none where something was told of each of its blocks', () => {
    const { chain, owed, told, add, pass } = catchUp()
    for (const block of range(5, 7)) owed.owe(chain.put(block))
    add(5, 7, 'backfill_bound')
    pass(0)
    expect(told.numbers()).toEqual([5, 6, 7])
    expect(told.holes()).toEqual([])
  })

  it('is told though a node has forgotten what was told of it', () => {
    const { chain, owed, told, add, pass } = catchUp()
    owed.owe({ block: 50 })
    chain.instead = () => null
    add(1, 100, 'backfill_bound')
    pass(1_000)
    expect(told.holes()).toEqual([])
    pass(1_000)
    expect(told.holes()).toEqual(['1-100 backfill_bound'])
  })

  it('waits for a node that cannot be asked', () => {
    const { chain, owed, told, add, pass } = catchUp()
    owed.owe({ block: 50 })
    chain.trouble = new UpstreamError('unreachable', 'ECONNREFUSED')
    add(1, 100, 'backfill_bound')
    pass(60_000)
    expect(told.all).toEqual([])
    chain.trouble = null
    pass(2_000)
    expect(told.holes()).toEqual(['1-49 backfill_bound', '51-100 backfill_bound'])
    expect(told.numbers()).toEqual([50])
  })
})

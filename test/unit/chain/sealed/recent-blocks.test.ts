import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RECENT_BLOCKS_BOUND, RecentBlocks } from '../../../../src/chain/sealed/recent-blocks.ts'
import { blockHash } from '../node-json.ts'
import { range } from './sealed-blocks-fixture.ts'

const settledBlock = (number: number) => ({ hash: blockHash(number), logCount: 0, addresses: [], settledAt: 0 })

describe('what was settled lately', () => {
  it('is remembered by number', () => {
    const lately = new RecentBlocks()
    expect(lately.oldest).toBe(0)
    expect(lately.get(5)).toBeUndefined()
    lately.add(5, settledBlock(5))
    lately.add(6, settledBlock(6))
    expect(lately.get(5)).toEqual(settledBlock(5))
    expect(lately.oldest).toBe(5)
  })

  it('is no more what came after a block that the chain goes back to', () => {
    const lately = new RecentBlocks()
    for (const number of [5, 6, 7]) lately.add(number, settledBlock(number))
    lately.removeAfter(5)
    expect([5, 6, 7].map((number) => lately.get(number)?.hash)).toEqual([blockHash(5), undefined, undefined])
    lately.removeAfter(0)
    expect(lately.oldest).toBe(0)
    lately.add(3, settledBlock(3))
    expect(lately.oldest).toBe(3)
  })

  it('is bounded: the oldest is forgotten first, however far apart the blocks lie and wherever the chain goes back to', () => {
    const act = fc.record({ gap: fc.constantFrom(1, 1, 2, 1_000_000), more: fc.nat(600), back: fc.nat(50) })
    fc.assert(
      fc.property(fc.array(act, { maxLength: 12 }), (acts) => {
        const lately = new RecentBlocks()
        let model: number[] = []
        for (const { gap, more, back } of acts) {
          const next = (model.at(-1) ?? 0) + gap
          for (let number = next; number <= next + more; number += 1) lately.add(number, settledBlock(number))
          model = [...model, ...range(next, next + more)].slice(-RECENT_BLOCKS_BOUND)
          lately.add(next, settledBlock(next))
          lately.removeAfter(next + more - back)
          model = model.filter((number) => number <= next + more - back)
        }
        expect(lately.oldest).toBe(model[0] ?? 0)
        expect(model.every((number) => lately.get(number)?.hash === blockHash(number))).toBe(true)
        expect(lately.get((model[0] ?? 0) - 1)).toBeUndefined()
      }),
      { numRuns: 30 },
    )
  })

  it('is as quickly forgotten after a gap as without one', () => {
    const lately = new RecentBlocks()
    lately.add(5, settledBlock(5))
    for (const number of range(1, RECENT_BLOCKS_BOUND)) lately.add(1e12 + number, settledBlock(number))
    expect(lately.oldest).toBe(1e12 + 1)
  })
})

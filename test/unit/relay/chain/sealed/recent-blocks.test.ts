import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RECENT_BLOCKS_BOUND } from '../../../../../src/relay/chain/sealed/block-bounds.ts'
import { RecentBlocks } from '../../../../../src/relay/chain/sealed/recent-blocks.ts'
import { blockHash } from '../node-json.ts'
import { range } from './sealed-chain-fixture.ts'

const settledBlock = (number: number) => ({ hash: blockHash(number), logCount: 0, addresses: [], settledAt: 0 })

describe('the recent blocks', () => {
  it('are kept by number', () => {
    const recentBlocks = new RecentBlocks()
    expect(recentBlocks.oldest).toBe(0)
    expect(recentBlocks.get(5)).toBeUndefined()
    recentBlocks.add(5, settledBlock(5))
    recentBlocks.add(6, settledBlock(6))
    expect(recentBlocks.get(5)).toEqual(settledBlock(5))
    expect(recentBlocks.oldest).toBe(5)
  })

  it('are removed above the target of a rollback', () => {
    const recentBlocks = new RecentBlocks()
    for (const number of [5, 6, 7]) recentBlocks.add(number, settledBlock(number))
    recentBlocks.rollBackTo({ number: 5, hash: blockHash(5) })
    expect([5, 6, 7].map((number) => recentBlocks.get(number)?.hash)).toEqual([blockHash(5), undefined, undefined])
    expect(recentBlocks.newest).toEqual({ number: 5, hash: blockHash(5) })
    recentBlocks.rollBackTo({ number: 3, hash: null })
    expect(recentBlocks.oldest).toBe(3)
    expect(recentBlocks.newest).toEqual({ number: 3, hash: null })
  })

  it('evict the oldest one beyond their bound, with any gaps and rollbacks', () => {
    const step = fc.record({ gap: fc.constantFrom(1, 1, 2, 1_000_000), more: fc.nat(600), back: fc.nat(50) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const recentBlocks = new RecentBlocks()
        let model: number[] = []
        for (const { gap, more, back } of steps) {
          const next = (model.at(-1) ?? 0) + gap
          for (let number = next; number <= next + more; number += 1) recentBlocks.add(number, settledBlock(number))
          model = [...model, ...range(next, next + more)].slice(-RECENT_BLOCKS_BOUND)
          recentBlocks.add(next, settledBlock(next))
          const target = Math.max(0, next + more - back)
          recentBlocks.rollBackTo({ number: target, hash: blockHash(target) })
          model = [...model.filter((number) => number < target), target]
          expect(recentBlocks.newest?.number).toBe(target)
        }
        expect(recentBlocks.oldest).toBe(model[0] ?? 0)
        expect(model.every((number) => recentBlocks.get(number)?.hash === blockHash(number))).toBe(true)
        expect(recentBlocks.get((model[0] ?? 0) - 1)).toBeUndefined()
      }),
      { numRuns: 30 },
    )
  })

  it('evict as quickly after a gap as without one', () => {
    const recentBlocks = new RecentBlocks()
    recentBlocks.add(5, settledBlock(5))
    for (const number of range(1, RECENT_BLOCKS_BOUND)) recentBlocks.add(1e12 + number, settledBlock(number))
    expect(recentBlocks.oldest).toBe(1e12 + 1)
  })
})

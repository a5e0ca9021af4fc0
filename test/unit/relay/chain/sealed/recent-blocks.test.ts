import { expect, it } from 'vitest'
import { RECENT_BLOCKS_BOUND } from '../../../../../src/relay/chain/sealed/block-bounds.ts'
import { RecentBlocks } from '../../../../../src/relay/chain/blocks/sealed-block.ts'
import { blockHash } from '../node-json.ts'
import { range } from './sealed-chain-fixture.ts'

const settledBlock = (number: number) => ({ hash: blockHash(number), logCount: 0, addresses: [], settledAt: 0 })

it('the recent blocks are kept by number, and removed above the target of a rollback', () => {
  const recentBlocks = new RecentBlocks()
  expect([recentBlocks.oldest, recentBlocks.get(5)]).toEqual([0, undefined])
  for (const number of [5, 6, 7]) recentBlocks.add(number, settledBlock(number))
  recentBlocks.rollBackTo({ number: 5, hash: blockHash(5) })
  expect([5, 6, 7].map((number) => recentBlocks.get(number))).toEqual([settledBlock(5), undefined, undefined])
  expect(recentBlocks.newest).toEqual({ number: 5, hash: blockHash(5) })
  expect(recentBlocks.hashes).toEqual([{ number: 5, hash: blockHash(5) }])
  recentBlocks.rollBackTo({ number: 3, hash: null })
  expect([recentBlocks.oldest, recentBlocks.newest]).toEqual([3, { number: 3, hash: null }])
})

it('the recent blocks evict the oldest one beyond their bound, quickly even after a gap, and not its hash', () => {
  const recentBlocks = new RecentBlocks()
  const numbers = [5, ...range(1e12, 1e12 + RECENT_BLOCKS_BOUND)]
  for (const number of numbers) recentBlocks.add(number, settledBlock(number))
  expect([recentBlocks.oldest, recentBlocks.first, recentBlocks.get(1e12)]).toEqual([1e12 + 1, 5, undefined])
  expect(recentBlocks.hashes.map(({ number }) => number)).toEqual(numbers)
  recentBlocks.addUnread({ number: 1e12 + 1, hash: null })
  expect(recentBlocks.hashes.length).toBe(numbers.length - 1)
})

import { expect, it } from 'vitest'
import { DEPTH_BOUND_BLOCKS, RECENT_BLOCKS_BOUND } from '../../../../../src/relay/chain/blocks/block-bounds.ts'
import {
  addBlock,
  addUnread,
  findBlock,
  nearestRecent,
  noBlocks,
  oldestRecent,
  rollBackTo,
  type SettledBlocks,
} from '../../../../../src/relay/chain/sealed/settled-blocks.ts'
import { blockHash } from '../node-json.ts'
import { range } from './sealed-chain-fixture.ts'

const settledBlock = (number: number) => ({ number, hash: blockHash(number), logCount: 0, filters: [], settledAt: 0 })
const blocksOf = (...numbers: readonly number[]) => numbers.map(settledBlock).reduce(addBlock, noBlocks(null))
const numbersOf = ({ all }: SettledBlocks) => all.map(({ number }) => number)

it('the settled blocks are found by number, and removed above the target of a rollback', () => {
  const empty = noBlocks(null)
  expect([oldestRecent(empty), findBlock(empty, 5)]).toEqual([0, undefined])
  const blocks = rollBackTo(blocksOf(5, 6, 7), { number: 5, hash: blockHash(5) })
  expect([5, 6, 7].map((number) => findBlock(blocks, number))).toEqual([settledBlock(5), undefined, undefined])
  expect(blocks.newest).toEqual({ number: 5, hash: blockHash(5) })
  const below = rollBackTo(blocks, { number: 3, hash: null })
  expect([numbersOf(below), below.newest]).toEqual([[3], { number: 3, hash: null }])
})

it('the settled blocks are in order, each once, also those that are read inside of a hole', () => {
  const blocks = addUnread(addUnread(blocksOf(5, 9), { number: 7, hash: null }), { number: 7, hash: blockHash(7) })
  expect(numbersOf(blocks)).toEqual([5, 7, 9])
  expect(findBlock(blocks, 7)?.hash).toBe(blockHash(7))
  expect([blocks.newest?.number, blocks.first, nearestRecent(blocks, 8), nearestRecent(blocks, 4)]).toEqual([9, 5, 7, 5])
})

it('the settled blocks are limited in number, and the recent ones to fewer', () => {
  const blocks = blocksOf(5, ...range(1e12, 1e12 + DEPTH_BOUND_BLOCKS))
  expect(numbersOf(blocks)).toEqual(range(1e12 + 1, 1e12 + DEPTH_BOUND_BLOCKS))
  expect([oldestRecent(blocks), blocks.first]).toEqual([1e12 + 1 + DEPTH_BOUND_BLOCKS - RECENT_BLOCKS_BOUND, 5])
  expect(nearestRecent(blocks, 1e12 + 2)).toBe(oldestRecent(blocks))
})

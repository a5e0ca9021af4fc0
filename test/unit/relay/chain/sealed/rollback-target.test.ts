import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEPTH_BOUND_BLOCKS } from '../../../../../src/relay/chain/blocks/block-bounds.ts'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import { findForkPoint, findRollbackTarget } from '../../../../../src/relay/chain/sealed/rollback-target.ts'
import {
  addBlock,
  addUnread,
  noBlocks,
  rollBackTo,
  type SettledBlocks,
} from '../../../../../src/relay/chain/sealed/settled-blocks.ts'
import { FakeChain } from '../fake-chain.ts'
import { range } from './sealed-chain-fixture.ts'

const HEAD = 10_000
const { signal } = new AbortController()

/** Settled blocks, and the current chain. */
const openSettled = (from: number, to: number) => {
  const chain = new FakeChain(HEAD)
  let blocks = range(from, to)
    .map((number) => ({ number, hash: chain.hashOf(number), logCount: 0, filters: [], settledAt: 0 }))
    .reduce(addBlock, noBlocks(null))
  const change = (next: (before: SettledBlocks) => SettledBlocks) => {
    blocks = next(blocks)
  }
  const searchBelow = (number: number) => findForkPoint(new ChainReader(chain.request), blocks, number, signal)
  return { chain, blocks: () => blocks, change, searchBelow }
}

describe('the fork point', () => {
  it('is found anywhere below a replaced block, as far as blocks are kept', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 1_000 }), fc.nat(1_100), async (remembered, depth) => {
        const { chain, searchBelow } = openSettled(HEAD - remembered, HEAD)
        if (depth > 0) chain.reorganise(depth)
        const standing = await searchBelow(HEAD)
        if (depth > remembered) expect(standing).toBeNull()
        else {
          const last = depth > 0 ? HEAD - depth : HEAD - 1
          expect(standing?.number).toBeLessThanOrEqual(last)
          expect(standing?.number).toBeGreaterThanOrEqual(HEAD - Math.max(1, 2 * depth))
          expect(standing?.hash).toBe(chain.hashOf(standing?.number ?? 0))
        }
      }),
    )
  })

  it('is found in a few requests', async () => {
    const { chain, searchBelow } = openSettled(HEAD - 1_000, HEAD)
    chain.reorganise(900)
    expect(await searchBelow(HEAD)).toMatchObject({ number: HEAD - 1_000 })
    expect(chain.requests.length).toBeLessThanOrEqual(11)
  })

  it.each([
    ['stands above one that is canonical', 10, HEAD - 3],
    ['lies above one that is replaced', 500, HEAD - 600],
  ])('is the block of unknown hash that %s, or below it', async (_, depth, expected) => {
    const { chain, change, searchBelow } = openSettled(HEAD, HEAD)
    change((before) => rollBackTo(before, { number: HEAD - 600, hash: chain.hashOf(HEAD - 600) }))
    change((before) => addUnread(before, { number: HEAD - 100, hash: chain.hashOf(HEAD - 100) }))
    change((before) => addUnread(before, { number: HEAD - 3, hash: null }))
    chain.reorganise(depth)
    expect(await searchBelow(HEAD)).toEqual({ number: expected, hash: chain.hashOf(expected) })
  })

  it('is the block of unknown hash that has none below it', async () => {
    const { chain, change, searchBelow } = openSettled(HEAD - 1, HEAD)
    change((before) => addUnread(before, { number: HEAD - 1, hash: null }))
    chain.reorganise(5)
    expect(await searchBelow(HEAD)).toEqual({ number: HEAD - 1, hash: chain.hashOf(HEAD - 1) })
  })

  it('is null without a kept block below', async () => {
    const { searchBelow } = openSettled(HEAD, HEAD)
    expect(await searchBelow(HEAD)).toBeNull()
    expect(await searchBelow(HEAD - 5)).toBeNull()
  })

  it('is not searched on a lagging node', async () => {
    const { chain, searchBelow } = openSettled(HEAD - 10, HEAD)
    chain.lagBlocks = 5
    await expect(searchBelow(HEAD)).rejects.toMatchObject({ kind: 'behind' })
  })
})

describe('a rollback', () => {
  const oldest = HEAD - 6_000
  it.each([
    ['within the depth bound loses nothing', 1_500, 0, null],
    ['of nearly the depth bound loses nothing', DEPTH_BOUND_BLOCKS - 1, 0, null],
    ['beyond it loses all that may be replaced', 4_500, 0, { from: oldest + 1, to: HEAD - DEPTH_BOUND_BLOCKS }],
    ['to a safe block loses nothing', 2_000, HEAD - 3_000, null],
    ['beyond the bound to a safe block loses the blocks between', 4_500, HEAD - 5_000, { from: HEAD - 4_999, to: HEAD - 4_096 }],
    ['of a safe block and recent ones loses nothing', 1_010, HEAD - 200, null],
    ['of a safe block and older ones loses what the ledger forgot', 1_500, HEAD - 200, { from: HEAD - 1_499, to: HEAD - 1_024 }],
  ])('%s', async (_, depth, safe, lost) => {
    const { chain, blocks } = openSettled(oldest, HEAD)
    chain.reorganise(depth)
    const target = await findRollbackTarget(new ChainReader(chain.request), blocks(), { number: HEAD, safe }, signal)
    expect(target.lost).toEqual(lost)
    expect(target.to.hash).toBe(chain.hashOf(target.to.number))
    expect(target.to.number).toBeLessThanOrEqual(lost ? lost.to : HEAD - depth)
    expect(chain.requests.length).toBeLessThan(40)
  })

  it('on a node without old blocks loses nothing above the fork point', async () => {
    const { chain, blocks } = openSettled(oldest, HEAD)
    chain.reorganise(1_500)
    chain.override = ({ params }) => (Number(params[0]) < HEAD - 2_000 ? null : undefined)
    const target = await findRollbackTarget(new ChainReader(chain.request), blocks(), { number: HEAD, safe: 0 }, signal)
    expect(target).toEqual({ to: { number: HEAD - 2_000, hash: chain.hashOf(HEAD - 2_000) }, lost: null })
  })
})

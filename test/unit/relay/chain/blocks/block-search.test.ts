import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { binarySearch, firstWithinAge } from '../../../../../src/relay/chain/blocks/block-search.ts'
import { ChainReader } from '../../../../../src/relay/chain/rpc/chain-reader.ts'
import { FakeChain } from '../fake-chain.ts'
import { timestampOf } from '../node-json.ts'
import { sealedHeader } from '../sealed/sealed-chain-fixture.ts'

const HEAD = 10_000
const REQUESTS_BOUND = 10
const { signal } = new AbortController()

describe('the first block within a bound of chain time', () => {
  const open = () => {
    const chain = new FakeChain(HEAD)
    const first = (from: number, boundMs: number, head: unknown = chain.headerOf(HEAD)) =>
      firstWithinAge(new ChainReader(chain.request), from, sealedHeader(head), boundMs, signal)
    return { chain, first }
  }

  it('is the first of its second, or the start if that is later', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: HEAD }), fc.nat(3_000_000), async (from, boundMs) => {
        const { chain, first } = open()
        const result = await first(from, boundMs)
        // Its blocks are regular, so that half of the steps nearly hit.
        expect(chain.requests.length).toBeLessThanOrEqual(REQUESTS_BOUND)
        const since = timestampOf(HEAD) - Math.floor(boundMs / 1_000)
        expect(timestampOf(result)).toBeGreaterThanOrEqual(since)
        expect(result === from || (result > from && timestampOf(result - 1) < since)).toBe(true)
      }),
    )
  })

  /** The node lacks the blocks from the first to the last of these. */
  it.each([
    ['found with one request if the whole range is within the bound', 1e9, [], 9_000],
    ['the start if the node has pruned it or lacks it', 1_000, [0, 9_499], 9_000],
    ['not before a block that the node lacks', 100_000, [9_001, 9_989], 9_990],
  ])('is %s', async (_, boundMs, [firstLacked = 0, lastLacked = -1], expected) => {
    const { chain, first } = open()
    chain.override = ({ params: [number] }) => (Number(number) >= firstLacked && Number(number) <= lastLacked ? null : undefined)
    expect(await first(9_000, boundMs)).toBe(expected)
    if (boundMs === 1e9) expect(chain.requests).toHaveLength(1)
  })

  it('is found with few requests in a node that lacks all between block 0 and that one', async () => {
    const { chain, first } = open()
    const age = timestampOf(HEAD) - timestampOf(5_000)
    chain.override = ({ params: [number] }) => (Number(number) > 0 && Number(number) < 5_000 ? null : undefined)
    expect(await first(0, age * 1_000)).toBe(5_000)
    expect(chain.requests.length).toBeLessThanOrEqual(REQUESTS_BOUND)
  })

  it('is the start if no time is known', async () => {
    const { chain, first } = open()
    expect(await first(9_000, 1_000, { ...chain.headerOf(HEAD), timestamp: null })).toBe(9_000)
    expect(chain.requests).toEqual([])
  })
})

it('a binary search finds the lowest match anywhere, in as few steps as possible', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(10_000), fc.nat(10_000), fc.nat(20_000), async (low, length, first) => {
      const high = low + length
      let steps = 0
      const result = await binarySearch(low, high, async (number) => {
        steps += 1
        expect(number).toBeGreaterThanOrEqual(low)
        expect(number).toBeLessThan(high)
        return number >= first
      })
      expect(result).toBe(Math.min(high, Math.max(low, first)))
      expect(steps).toBeLessThanOrEqual(Math.ceil(Math.log2(length + 2)))
    }),
  )
})

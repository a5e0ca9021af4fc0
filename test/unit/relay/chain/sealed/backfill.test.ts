import { describe, expect, it } from 'vitest'
import { keyOf } from '../node-json.ts'
import { openBackfill } from './backfill-fixture.ts'
import { range } from './sealed-chain-fixture.ts'

describe('a backfill', () => {
  it.each([2_000, 500, 5])('in pages of at most %i blocks skips no block and reads none twice', async (bound) => {
    const { chain, settledEvents, add, advance } = openBackfill()
    chain.rangeBound = bound
    const blocks = [1, 2, 250, 499, 500, 501, 1_999, 2_000, 2_001, 2_500]
    const logs = blocks.map((block) => chain.addLog(block))
    add(1, 2_500)
    await advance(0)
    expect(settledEvents.logKeys()).toEqual(logs.map(keyOf))
    const read = chain.requestedRanges().filter(([from, to]) => Number(to) - from < bound)
    let next = 1
    for (const [from, to] of read) {
      expect(from).toBe(next)
      next = Number(to) + 1
    }
    expect(next).toBe(2_501)
    expect(settledEvents.cursors().at(-1)).toBe(10_000)
  })

  it('moves the cursor with each page, even an empty one, finally to the newest block', async () => {
    const { chain, settledEvents, sealed, add, advance } = openBackfill()
    chain.rangeBound = 1_000
    add(1, 2_500)
    expect(sealed.cursor()).toEqual({ number: 0, hash: null })
    await advance(0)
    expect(settledEvents.cursors()).toEqual([1_000, 2_000, 10_000])
    const cursor = { number: 10_000, hash: chain.hashOf(10_000) }
    expect(settledEvents.all.at(-1)).toEqual({
      type: 'sealed',
      holes: [],
      blocks: [],
      newest: 10_000,
      cursor,
      restartCursor: cursor,
    })
  })

  it('keeps the cursor at the lowest unread block', async () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    chain.rangeBound = 500
    add(3_001, 4_000)
    add(2_001, 2_500)
    await advance(0)
    expect(settledEvents.cursors()).toEqual([2_000, 2_000, 10_000])
  })

  it('keeps a bounded number of ranges, and rather reads too much than too little', async () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    const logs = range(0, 99).map((part) => chain.addLog(100 * part + 5))
    chain.delayMs = 1
    for (const part of range(0, 99)) add(100 * part + 1, 100 * part + 10)
    await advance(1_000)
    expect(settledEvents.logKeys()).toEqual(logs.map(keyOf))
    expect(chain.requestedRanges().length).toBeLessThan(70)
  })

  it('splits a page with many logs into batches, but no block', async () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    for (const [block, logs] of [300, 200, 300, 201, 600].entries()) for (const _ of range(1, logs)) chain.addLog(block + 1)
    add(1, 10)
    await advance(0)
    const batches = settledEvents.ofType('sealed').map(({ blocks }) => blocks.map(({ logs }) => logs.length))
    expect(batches).toEqual([[300, 200], [300], [201], [600]])
    expect(settledEvents.cursors()).toEqual([2, 3, 4, 10_000])
  })

  it('reads the header of a block whose logs lack its hash or time', async () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    const log = chain.addLog(50)
    chain.override = ({ method, params }) => {
      if (method !== 'eth_getLogs' || !JSON.stringify(params).includes('fromBlock')) return undefined
      return [{ ...chain.nodeLogOf(log), blockTimestamp: undefined }]
    }
    add(1, 100)
    await advance(0)
    expect(settledEvents.blocks()).toMatchObject([{ number: 50, timestamp: 1_795_000_010, logs: [{ key: keyOf(log) }] }])
    expect(chain.requestedHeaders()).toEqual([100, 50])
  })

  it('finds the block with logs that cannot be read, counts them, and reports a hole before it emits the rest', async () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    const [log, other] = [chain.addLog(50), chain.addLog(60)]
    chain.override = ({ method, params }) => {
      const { fromBlock, toBlock, blockHash } = (params[0] ?? {}) as Record<string, string>
      const isRead = blockHash === chain.hashOf(50) || (Number(fromBlock) <= 50 && Number(toBlock) >= 50)
      return method === 'eth_getLogs' && isRead ? [unreadable, chain.nodeLogOf(log), unreadable] : undefined
    }
    const unreadable = { ...chain.nodeLogOf(other), data: '0x1' }
    add(1, 100)
    await advance(1_500)
    expect(settledEvents.holes()).toEqual(['50-50 unreadable'])
    expect(settledEvents.logKeys()).toEqual([log, other].map(keyOf))
    expect(settledEvents.blocks()).toMatchObject([{ number: 50, unreadable: 2 }, { number: 60 }])
  })
})

describe('a backfill of blocks with published keys', () => {
  it('reads each of these blocks by itself', async () => {
    const { chain, openKeys, settledEvents, add, advance } = openBackfill()
    const log = chain.addLog(50)
    openKeys.add(log)
    openKeys.add({ block: 60 })
    chain.addLog(70)
    add(1, 100)
    await advance(0)
    expect(chain.requestedHashes()).toEqual([50, 60].map((block) => chain.hashOf(block)))
    expect(settledEvents.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([
      [50, 1],
      [60, 0],
      [70, 1],
    ])
  })
})

describe('a backfill on a failing node', () => {
  it('waits for a lagging node, though it returns no logs', async () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    const log = chain.addLog(50)
    chain.lagBlocks = 10_000 - 60
    add(1, 100)
    await advance(10_000)
    expect(settledEvents.all).toEqual([])
    chain.lagBlocks = 0
    await advance(2_000)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })
})

import { describe, expect, it } from 'vitest'
import { addRange } from '../../../../../src/relay/chain/blocks/block-ranges.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { keyOf } from '../node-json.ts'
import { openSealedBlocks, range, rangeOf } from './sealed-chain-fixture.ts'

/** A backfill of a scripted chain in virtual time. */
const openBackfill = () => {
  const opened = openSealedBlocks()
  const add = (from: number, to: number, missingReason: string | null = null) =>
    opened.change((state) => ({ ...state, unread: addRange(state.unread, { from, to, missingReason, readableAt: 0 }) }))
  return { ...opened, add }
}
const rangeSizes = (chain: { requestedRanges: () => readonly (readonly [number, number | 'pending'])[] }) =>
  chain.requestedRanges().map(([from, to]) => Number(to) - from + 1)

describe('a backfill', () => {
  it('moves the cursor with each page, even an empty one, finally to the newest block', async () => {
    const { chain, settledEvents, cursorNow, add, advance } = openBackfill()
    chain.rangeBound = 1_000
    add(1, 2_500)
    expect(cursorNow()).toEqual({ number: 0, hash: null })
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
})

describe('a backfill page that is too large', () => {
  it('is halved until it fits, without delay', async () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    chain.rangeBound = 300
    const log = chain.addLog(5)
    add(1, 2_000)
    await advance(0)
    expect(rangeSizes(chain).slice(0, 4)).toEqual([2_000, 1_000, 500, 250])
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(settledEvents.cursors().at(-1)).toBe(10_000)
  })

  it('grows again after some successful pages', async () => {
    const { chain, add, advance } = openBackfill()
    chain.rangeBound = 100
    add(1, 2_000)
    await advance(0)
    chain.rangeBound = 2_000
    add(2_001, 10_000)
    await advance(0)
    expect(Math.max(...rangeSizes(chain).slice(-6))).toBeGreaterThan(500)
    expect(chain.requestedRanges().at(-1)?.[1]).toBe(10_000)
  })

  it.each(['decimal', 'hex'] as const)('becomes the range that the node suggests, in %s', async (notation) => {
    const { chain, settledEvents, add, advance } = openBackfill()
    chain.rangeHint = notation
    chain.resultsBound = 10
    for (const block of range(1, 40)) chain.addLog(block * 5)
    add(1, 200)
    await advance(0)
    // The first 54 blocks have ten logs, so half of the page would be too large.
    expect(rangeSizes(chain).slice(0, 2)).toEqual([200, 54])
    expect(settledEvents.logKeys()).toHaveLength(40)
  })

  it.each(['retry with the range 5-9', 'retry with the range 1-0', 'use a range between 5 and 9'])(
    'is halved when the node suggests "%s", which is no part of it',
    async (hint) => {
      const { chain, add, advance } = openBackfill()
      chain.override = () => {
        chain.override = () => undefined
        throw new UpstreamError('too_large', `query exceeds max results, ${hint}`)
      }
      add(1, 200)
      await advance(0)
      expect(rangeSizes(chain).slice(0, 2)).toEqual([200, 100])
    },
  )

  it('with one contract in one block is finally a hole of just that block', async () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    chain.resultsBound = 2
    const before = chain.addLog(4)
    for (let log = 0; log < 3; log += 1) chain.addLog(5)
    const after = chain.addLog(6)
    add(1, 10)
    await advance(1_000)
    expect(settledEvents.holes()).toEqual([])
    await advance(5_000)
    expect(settledEvents.holes()).toEqual(['5-5 too_large'])
    expect(settledEvents.logKeys()).toEqual([before, after].map(keyOf))
  })

  it('is halved after timeouts too', async () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    const log = chain.addLog(1_234)
    chain.override = (request) => {
      const blocks = rangeOf(request)
      if (!blocks || blocks[1] - blocks[0] < 500) return undefined
      throw new UpstreamError('unreachable', 'The operation was aborted due to timeout')
    }
    add(1, 2_000)
    await advance(10_000)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(settledEvents.holes()).toEqual([])
  })
})

describe('a backfill page that the node refuses as invalid', () => {
  const openRefused = (lacksBlocks: boolean) => {
    const backfill = openBackfill()
    const log = backfill.chain.addLog(1_234)
    backfill.chain.override = (request) => {
      if (rangeOf(request)) throw new UpstreamError('invalid', 'invalid block range params')
      return lacksBlocks && request.method === 'eth_getBlockByNumber' ? null : undefined
    }
    backfill.add(1, 2_000)
    return { ...backfill, log }
  }

  it('waits for a node whose head is below its end', async () => {
    const { chain, settledEvents, log, advance } = openRefused(true)
    await advance(20_000)
    expect(settledEvents.all).toEqual([])
    chain.override = () => undefined
    await advance(2_000)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(settledEvents.holes()).toEqual([])
  })

  it('is a hole after some tries if the node has its last block', async () => {
    const { settledEvents, advance } = openRefused(false)
    await advance(20_000)
    expect(settledEvents.holes()).toEqual(['1-2000 invalid'])
  })
})

describe('a backfill page that the node has pruned in part', () => {
  it.each([
    ['exactly the pruned blocks, and the others are emitted', 777, ['1-776 pruned'], [776, 2_776, 10_000]],
    ['all blocks if the node has none', 5_000, ['1-3000 pruned'], [10_000]],
  ])('is one hole of %s', async (_, oldest, holes, cursors) => {
    const { chain, settledEvents, add, advance } = openBackfill()
    chain.oldestLogBlock = oldest
    const logs = [776, 777].map((block) => chain.addLog(block))
    add(1, 3_000)
    await advance(0)
    expect(settledEvents.holes()).toEqual(holes)
    expect(settledEvents.logKeys()).toEqual(logs.filter(({ block }) => block >= oldest).map(keyOf))
    expect(settledEvents.cursors()).toEqual(cursors)
  })
})

describe('a hole', () => {
  it('is reported with the published blocks in it, and the cursor passes them together', async () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    chain.addLog(160)
    add(1, 100)
    add(101, 200, 'backfill_bound')
    add(201, 300)
    await advance(0)
    const cursorsAt = (number: number) => ({ cursor: { number, hash: null }, restartCursor: { number, hash: null } })
    const holes = [{ blocks: { from: 101, to: 200 }, reason: 'backfill_bound' }]
    expect(settledEvents.all[1]).toEqual({ type: 'sealed', holes, blocks: [], newest: 10_000, ...cursorsAt(200) })
    expect(settledEvents.logKeys()).toEqual([])
  })

  it.each([
    [[20, 50], [], ['1-50 pruned', '51-100 backfill_bound']],
    [[100], [], ['1-100 pruned']],
    [[50], [30, 80], ['1-29 backfill_bound', '31-50 pruned', '51-79 backfill_bound', '81-100 backfill_bound']],
  ])('is one of pruned blocks up to the last one with published keys that the node lacks, %j', async (lacked, kept, holes) => {
    const { chain, openKeys, settledEvents, add, advance } = openBackfill()
    for (const block of lacked) openKeys.add({ block })
    for (const block of kept) openKeys.add(chain.addLog(block))
    chain.override = ({ params: [number] }) => (lacked.includes(Number(number)) ? null : undefined)
    add(1, 100, 'backfill_bound')
    await advance(1_000)
    expect(settledEvents.holes()).toEqual([])
    await advance(1_000)
    expect(settledEvents.holes()).toEqual(holes)
    expect(settledEvents.blockNumbers()).toEqual(kept)
  })
})

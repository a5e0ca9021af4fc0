import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { apple, keyOf, tesla } from '../node-json.ts'
import { openBackfill } from './backfill-fixture.ts'
import { range } from './sealed-blocks-fixture.ts'

describe('catching up', () => {
  it.each([2_000, 500, 10, 5])('in pages of at most %i blocks leaves none out and asks for none twice', (bound) => {
    const { chain, settledEvents, add, advance } = openBackfill()
    chain.rangeBound = bound
    const blocks = [1, 2, 250, 499, 500, 501, 1_999, 2_000, 2_001, 2_500]
    const logs = blocks.map((block) => chain.addLog(block))
    add(1, 2_500)
    advance(0)
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

  it('tells blocks in order, each with its logs and whose they are', () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    const [one, two] = [chain.addLog(30), chain.addLog(20)]
    chain.addLog(20)
    add(1, 100)
    advance(0)
    expect(
      settledEvents
        .blocks()
        .map(({ number, hash, logs, addresses, via }) => [number, hash, logs.length, addresses, via]),
    ).toEqual([
      [two.block, chain.hashOf(20), 2, [apple], 'backfill'],
      [one.block, chain.hashOf(30), 1, [apple], 'backfill'],
    ])
    expect(settledEvents.ofType('sealed')[0]?.newest).toBe(10_000)
  })

  it('says that it is through where a page holds nothing', () => {
    const { settledEvents, add, advance } = openBackfill()
    add(1, 100)
    advance(0)
    expect(settledEvents.all).toEqual([
      { type: 'sealed', blocks: [], newest: 10_000, cursor: { number: 10_000, hash: null } },
    ])
  })

  it('moves the cursor with each page, and is at the newest block in the end', () => {
    const { chain, settledEvents, backfill, add, advance } = openBackfill()
    chain.rangeBound = 1_000
    add(1, 2_500)
    const newest = { number: 10_000, hash: chain.hashOf(10_000) }
    expect(backfill.cursor(newest)).toEqual({ number: 0, hash: null })
    advance(0)
    expect(settledEvents.cursors()).toEqual([1_000, 2_000, 10_000])
    expect(backfill.cursor(newest)).toEqual(newest)
  })

  it('reads what is added while it reads, range by range', () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    chain.delayMs = 50
    const logs = [chain.addLog(50), chain.addLog(250)]
    add(1, 100)
    advance(20)
    add(201, 300)
    advance(1_000)
    expect(settledEvents.logKeys()).toEqual(logs.map(keyOf))
    expect(chain.requestedRanges()).toEqual([
      [1, 100],
      [201, 300],
    ])
  })

  it('keeps the cursor at the lowest block that is still to be read', () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    chain.rangeBound = 500
    add(3_001, 4_000)
    add(2_001, 2_500)
    advance(0)
    expect(settledEvents.cursors()).toEqual([2_000, 2_000, 10_000])
  })

  it('remembers so many ranges at most, and reads more rather than less', () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    const logs = range(0, 99).map((part) => chain.addLog(100 * part + 5))
    chain.delayMs = 1
    for (const part of range(0, 99)) add(100 * part + 1, 100 * part + 10)
    advance(1_000)
    expect(settledEvents.logKeys()).toEqual(logs.map(keyOf))
    expect(chain.requestedRanges().length).toBeLessThan(70)
  })

  it('tells a page with many logs in several strokes, and divides no block', () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    for (const block of range(1, 4)) for (let log = 0; log < 300; log += 1) chain.addLog(block)
    for (let log = 0; log < 1_200; log += 1) chain.addLog(5)
    add(1, 10)
    advance(0)
    expect(settledEvents.ofType('sealed').map(({ blocks }) => blocks.map(({ logs }) => logs.length))).toEqual([
      [300],
      [300],
      [300],
      [300],
      [1_200],
    ])
    expect(settledEvents.cursors()).toEqual([1, 2, 3, 4, 10_000])
  })

  it('asks for the header of a block whose logs do not say enough', () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    const log = chain.addLog(50)
    chain.override = ({ method, params }) => {
      if (method !== 'eth_getLogs' || !JSON.stringify(params).includes('fromBlock')) return undefined
      return [{ ...chain.nodeLogOf(log), blockTimestamp: undefined }]
    }
    add(1, 100)
    advance(0)
    expect(settledEvents.blocks()).toMatchObject([
      { number: 50, timestamp: 1_795_000_010, logs: [{ key: keyOf(log) }] },
    ])
    expect(chain.requestedHeaders()).toEqual([100, 50])
  })

  it('counts what cannot be read and tells the rest', () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    const log = chain.addLog(50)
    chain.override = ({ method }) => (method === 'eth_getLogs' ? [{}, chain.nodeLogOf(log), null] : undefined)
    add(1, 100)
    advance(0)
    expect(settledEvents.ofType('unreadable')).toEqual([{ type: 'unreadable', count: 2 }])
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('believes no answer that has logs of other blocks than were asked for', () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    const [log, other] = [chain.addLog(50), chain.addLog(5_000)]
    chain.override = ({ method }) => (method === 'eth_getLogs' ? [log, other].map(chain.nodeLogOf) : undefined)
    add(1, 100)
    advance(1_000)
    expect(settledEvents.all).toEqual([])
    chain.override = () => undefined
    advance(2_000)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })
})

describe('catching up on what was told', () => {
  it('reads each block of which something was told by itself', () => {
    const { chain, openKeys, settledEvents, add, advance } = openBackfill()
    const log = chain.addLog(50)
    openKeys.add(log)
    openKeys.add({ block: 60 })
    chain.addLog(70)
    add(1, 100)
    advance(0)
    expect(chain.requestedHashes()).toEqual([50, 60].map((block) => chain.hashOf(block)))
    expect(settledEvents.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([
      [50, 1],
      [60, 0],
      [70, 1],
    ])
  })

  it('asks for tokens too that are listed no more', () => {
    const { chain, openKeys, settledEvents, add, advance } = openBackfill()
    const log = chain.addLog(50, tesla)
    openKeys.add(log)
    add(1, 100)
    advance(0)
    expect(chain.requestedAddresses()[0]).toEqual([apple, tesla])
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('doubts a block that says to have nothing of it', () => {
    const { chain, openKeys, settledEvents, add, advance } = openBackfill()
    const log = chain.addLog(50)
    openKeys.add(log)
    chain.hideLogs(50, 3)
    add(1, 100)
    advance(400)
    expect(settledEvents.all).toEqual([])
    advance(2_000)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('believes no block sooner because another one was believed', () => {
    const { chain, openKeys, settledEvents, add, advance } = openBackfill()
    for (const block of [50, 60]) openKeys.add(chain.addLog(block))
    chain.hideLogs(50)
    add(1, 100)
    advance(1_499)
    expect(settledEvents.all).toEqual([])
    // Only now it takes a while until the second is shown: by itself, and within the page before.
    chain.hideLogs(60, 2)
    advance(5_000)
    expect(settledEvents.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([
      [50, 0],
      [60, 1],
    ])
  })
})

describe('a node that fails while it is caught up', () => {
  it('is asked again, and nothing is told twice', () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    chain.rangeBound = 100
    const logs = range(1, 10).map((part) => chain.addLog(part * 95))
    let questions = 0
    chain.override = () => {
      questions += 1
      if (questions % 3 === 0) throw new UpstreamError('unreachable', 'HTTP 503')
      return undefined
    }
    add(1, 1_000)
    advance(60_000)
    expect(settledEvents.logKeys()).toEqual(logs.map(keyOf))
  })

  it('is left alone for longer each time, up to two seconds', () => {
    const { chain, warnings, add, advance } = openBackfill()
    chain.failure = new UpstreamError('busy', 'over rate limit')
    add(1, 100)
    advance(1_500)
    expect(chain.requests.length).toBe(5)
    advance(60_000)
    expect(chain.requests.length).toBeGreaterThan(30)
    expect(chain.requests.length).toBeLessThan(40)
    expect(new Set(warnings)).toEqual(new Set(['backfill waits']))
  })

  it('that is behind is waited for, though it answers with nothing', () => {
    const { chain, settledEvents, add, advance } = openBackfill()
    const log = chain.addLog(50)
    chain.lagBlocks = 10_000 - 60
    add(1, 100)
    advance(10_000)
    expect(settledEvents.all).toEqual([])
    chain.lagBlocks = 0
    advance(2_000)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })
})

import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { apple, keyOf, tesla } from '../node-json.ts'
import { catchUp } from './backfill-fixture.ts'
import { range } from './sealed-blocks-fixture.ts'

describe('catching up', () => {
  it.each([2_000, 500, 10, 5])('in pages of at most %i blocks leaves none out and asks for none twice', (bound) => {
    const { chain, told, add, pass } = catchUp()
    chain.rangeBound = bound
    const blocks = [1, 2, 250, 499, 500, 501, 1_999, 2_000, 2_001, 2_500]
    const logs = blocks.map((block) => chain.put(block))
    add(1, 2_500)
    pass(0)
    expect(told.logs()).toEqual(logs.map(keyOf))
    const read = chain.ranges().filter(([from, to]) => Number(to) - from < bound)
    let next = 1
    for (const [from, to] of read) {
      expect(from).toBe(next)
      next = Number(to) + 1
    }
    expect(next).toBe(2_501)
    expect(told.cursors().at(-1)).toBe(10_000)
  })

  it('tells blocks in order, each with its logs and whose they are', () => {
    const { chain, told, add, pass } = catchUp()
    const [one, two] = [chain.put(30), chain.put(20)]
    chain.put(20)
    add(1, 100)
    pass(0)
    expect(told.blocks().map(({ number, hash, logs, asked, via }) => [number, hash, logs.length, asked, via])).toEqual([
      [two.block, chain.hashOf(20), 2, [apple], 'backfill'],
      [one.block, chain.hashOf(30), 1, [apple], 'backfill'],
    ])
    expect(told.of('sealed')[0]?.newest).toBe(10_000)
  })

  it('says that it is through where a page holds nothing', () => {
    const { told, add, pass } = catchUp()
    add(1, 100)
    pass(0)
    expect(told.all).toEqual([{ type: 'sealed', blocks: [], newest: 10_000, cursor: { number: 10_000, hash: null } }])
  })

  it('moves the cursor with each page, and is at the newest block in the end', () => {
    const { chain, told, backfill, add, pass } = catchUp()
    chain.rangeBound = 1_000
    add(1, 2_500)
    const newest = { number: 10_000, hash: chain.hashOf(10_000) }
    expect(backfill.cursor(newest)).toEqual({ number: 0, hash: null })
    pass(0)
    expect(told.cursors()).toEqual([1_000, 2_000, 10_000])
    expect(backfill.cursor(newest)).toEqual(newest)
  })

  it('reads what is added while it reads, range by range', () => {
    const { chain, told, add, pass } = catchUp()
    chain.delayMs = 50
    const logs = [chain.put(50), chain.put(250)]
    add(1, 100)
    pass(20)
    add(201, 300)
    pass(1_000)
    expect(told.logs()).toEqual(logs.map(keyOf))
    expect(chain.ranges()).toEqual([
      [1, 100],
      [201, 300],
    ])
  })

  it('keeps the cursor at the lowest block that is still to be read', () => {
    const { chain, told, add, pass } = catchUp()
    chain.rangeBound = 500
    add(3_001, 4_000)
    add(2_001, 2_500)
    pass(0)
    expect(told.cursors()).toEqual([2_000, 2_000, 10_000])
  })

  it('remembers so many ranges at most, and reads more rather than less', () => {
    const { chain, told, add, pass } = catchUp()
    const logs = range(0, 99).map((part) => chain.put(100 * part + 5))
    chain.delayMs = 1
    for (const part of range(0, 99)) add(100 * part + 1, 100 * part + 10)
    pass(1_000)
    expect(told.logs()).toEqual(logs.map(keyOf))
    expect(chain.ranges().length).toBeLessThan(70)
  })

  it('tells a page with many logs in several strokes, and divides no block', () => {
    const { chain, told, add, pass } = catchUp()
    for (const block of range(1, 4)) for (let log = 0; log < 300; log += 1) chain.put(block)
    for (let log = 0; log < 1_200; log += 1) chain.put(5)
    add(1, 10)
    pass(0)
    expect(told.of('sealed').map(({ blocks }) => blocks.map(({ logs }) => logs.length))).toEqual([
      [300],
      [300],
      [300],
      [300],
      [1_200],
    ])
    expect(told.cursors()).toEqual([1, 2, 3, 4, 10_000])
  })

  it('asks for the header of a block whose logs do not say enough', () => {
    const { chain, told, add, pass } = catchUp()
    const log = chain.put(50)
    chain.instead = ({ method, params }) => {
      if (method !== 'eth_getLogs' || !JSON.stringify(params).includes('fromBlock')) return undefined
      return [{ ...chain.wireOf(log), blockTimestamp: undefined }]
    }
    add(1, 100)
    pass(0)
    expect(told.blocks()).toMatchObject([{ number: 50, timestamp: 1_795_000_010, logs: [{ key: keyOf(log) }] }])
    expect(chain.headers()).toEqual([100, 50])
  })

  it('counts what cannot be read and tells the rest', () => {
    const { chain, told, add, pass } = catchUp()
    const log = chain.put(50)
    chain.instead = ({ method }) => (method === 'eth_getLogs' ? [{}, chain.wireOf(log), null] : undefined)
    add(1, 100)
    pass(0)
    expect(told.of('unreadable')).toEqual([{ type: 'unreadable', count: 2 }])
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('believes no answer that has logs of other blocks than were asked for', () => {
    const { chain, told, add, pass } = catchUp()
    const [log, other] = [chain.put(50), chain.put(5_000)]
    chain.instead = ({ method }) => (method === 'eth_getLogs' ? [log, other].map(chain.wireOf) : undefined)
    add(1, 100)
    pass(1_000)
    expect(told.all).toEqual([])
    chain.instead = () => undefined
    pass(2_000)
    expect(told.logs()).toEqual([keyOf(log)])
  })
})

describe('catching up on what was told', () => {
  it('reads each block of which something was told by itself', () => {
    const { chain, owed, told, add, pass } = catchUp()
    const log = chain.put(50)
    owed.owe(log)
    owed.owe({ block: 60 })
    chain.put(70)
    add(1, 100)
    pass(0)
    expect(chain.hashes()).toEqual([50, 60].map((block) => chain.hashOf(block)))
    expect(told.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([
      [50, 1],
      [60, 0],
      [70, 1],
    ])
  })

  it('asks for tokens too that are listed no more', () => {
    const { chain, owed, told, add, pass } = catchUp()
    const log = chain.put(50, tesla)
    owed.owe(log)
    add(1, 100)
    pass(0)
    expect(chain.addresses()[0]).toEqual([apple, tesla])
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('doubts a block that says to have nothing of it', () => {
    const { chain, owed, told, add, pass } = catchUp()
    const log = chain.put(50)
    owed.owe(log)
    chain.hide(50, 3)
    add(1, 100)
    pass(400)
    expect(told.all).toEqual([])
    pass(2_000)
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('believes no block sooner because another one was believed', () => {
    const { chain, owed, told, add, pass } = catchUp()
    for (const block of [50, 60]) owed.owe(chain.put(block))
    chain.hide(50)
    add(1, 100)
    pass(1_499)
    expect(told.all).toEqual([])
    // Only now it takes a while until the second is shown: by itself, and within the page before.
    chain.hide(60, 2)
    pass(5_000)
    expect(told.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([
      [50, 0],
      [60, 1],
    ])
  })
})

describe('a node that fails while it is caught up', () => {
  it('is asked again, and nothing is told twice', () => {
    const { chain, told, add, pass } = catchUp()
    chain.rangeBound = 100
    const logs = range(1, 10).map((part) => chain.put(part * 95))
    let questions = 0
    chain.instead = () => {
      questions += 1
      if (questions % 3 === 0) throw new UpstreamError('unreachable', 'HTTP 503')
      return undefined
    }
    add(1, 1_000)
    pass(60_000)
    expect(told.logs()).toEqual(logs.map(keyOf))
  })

  it('is left alone for longer each time, up to two seconds', () => {
    const { chain, said, add, pass } = catchUp()
    chain.trouble = new UpstreamError('busy', 'over rate limit')
    add(1, 100)
    pass(1_500)
    expect(chain.asked.length).toBe(5)
    pass(60_000)
    expect(chain.asked.length).toBeGreaterThan(30)
    expect(chain.asked.length).toBeLessThan(40)
    expect(new Set(said)).toEqual(new Set(['catching up waits']))
  })

  it('that is behind is waited for, though it answers with nothing', () => {
    const { chain, told, add, pass } = catchUp()
    const log = chain.put(50)
    chain.lag = 10_000 - 60
    add(1, 100)
    pass(10_000)
    expect(told.all).toEqual([])
    chain.lag = 0
    pass(2_000)
    expect(told.logs()).toEqual([keyOf(log)])
  })
})

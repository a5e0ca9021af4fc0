import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { apple, keyOf, tesla } from '../node-json.ts'
import { HEAD, range, walk } from './sealed-blocks-fixture.ts'

/** A walk that begins so many blocks behind the head. */
const away = (blocks: number, given: Parameters<typeof walk>[0] = {}) =>
  walk({ cursor: { number: HEAD - blocks, hash: null }, backfillBoundMs: 1e12, ...given })

describe('after an absence', () => {
  it('what was sealed meanwhile is caught up, and what comes later is told as it is sealed', () => {
    const { chain, told, raise, pass, seal } = away(10)
    raise()
    pass(0)
    seal(2)
    expect(told.numbers()).toEqual(range(HEAD - 9, HEAD + 2))
    expect(told.blocks().map(({ via }) => via)).toEqual([...Array(10).fill('backfill'), 'sealed', 'sealed'])
    expect(chain.hashes()).toHaveLength(12)
  })

  it('is told the newest first, and what lies deeper beside them, in pages', () => {
    const { chain, told, raise, pass } = away(1_000)
    chain.delayMs = 20
    chain.rangeBound = 10
    const [deep, newest] = [chain.put(HEAD - 500), chain.put(HEAD - 3)]
    raise()
    pass(60_000)
    expect(told.logs()).toEqual([newest, deep].map(keyOf))
    expect(told.blocks().find(({ number }) => number === HEAD - 500)?.via).toBe('backfill')
    expect(told.numbers().filter((number) => number > HEAD - 64)).toEqual(range(HEAD - 63, HEAD))
    expect(told.cursors().at(-1)).toBe(HEAD)
  })

  it.each([
    [96, 96],
    [97, 64],
  ])('of %i blocks is told %i of them one by one: for fewer, pages are not worth it', (blocks, single) => {
    const { told, raise, pass } = away(blocks)
    raise()
    pass(0)
    expect(told.numbers()).toEqual(range(HEAD - single + 1, HEAD))
    expect(told.cursors().at(-1)).toBe(HEAD)
  })

  it('new blocks are told at once, while old ones are caught up', () => {
    const { chain, told, raise, pass, seal } = away(9_000)
    chain.delayMs = 20
    chain.rangeBound = 5
    raise()
    pass(3_000)
    const log = chain.put(HEAD + 1)
    seal(1)
    expect(told.logs()).toEqual([keyOf(log)])
    expect(told.cursors().at(-1)).toBeLessThan(HEAD - 5_000)
  })

  it('what was told and not ended is settled for certain, however deep it lies', () => {
    const { chain, owed, told, raise, pass } = away(1_000)
    const held = chain.put(HEAD - 700)
    const lost = { block: HEAD - 600 }
    owed.owe(held)
    owed.owe(lost)
    chain.hide(HEAD - 700, 2)
    raise()
    pass(10_000)
    const deep = told.blocks().filter(({ number }) => number < HEAD - 64)
    expect(deep.map(({ number, hash, logs }) => [number, hash, logs.length])).toEqual([
      [HEAD - 700, chain.hashOf(HEAD - 700), 1],
      [HEAD - 600, chain.hashOf(HEAD - 600), 0],
    ])
  })

  it('longer than the bound, names the very blocks that it leaves out', () => {
    // Five blocks a second: ten minutes are 3,000 blocks.
    const { chain, told, raise, pass } = away(9_000, { backfillBoundMs: 600_000 })
    const [before, after] = [chain.put(HEAD - 3_001), chain.put(HEAD - 3_000)]
    raise()
    pass(0)
    expect(told.holes()).toEqual([`${HEAD - 8_999}-${HEAD - 3_001} backfill_bound`])
    expect(told.logs()).not.toContain(keyOf(before))
    expect(told.logs()).toContain(keyOf(after))
  })

  it('longer than the bound, still ends what was told of the blocks that it leaves out', () => {
    const { chain, owed, told, raise, pass } = away(9_000, { backfillBoundMs: 600_000 })
    const log = chain.put(HEAD - 5_000)
    owed.owe(log)
    raise()
    pass(0)
    expect(told.logs()).toEqual([keyOf(log)])
    expect(told.holes()).toEqual([
      `${HEAD - 8_999}-${HEAD - 5_001} backfill_bound`,
      `${HEAD - 4_999}-${HEAD - 3_001} backfill_bound`,
    ])
  })

  it('within the bound, leaves out nothing', () => {
    const { told, raise, pass } = away(9_000, { backfillBoundMs: 3_600_000 })
    raise()
    pass(0)
    expect(told.holes()).toEqual([])
    expect(told.cursors().at(-1)).toBe(HEAD)
  })

  it('on a node that has forgotten the oldest of it, names the very blocks that are lost', () => {
    const { chain, told, raise, pass } = away(5_000)
    chain.keptFrom = HEAD - 1_234
    const [lost, kept] = [chain.put(HEAD - 1_235), chain.put(HEAD - 1_234)]
    raise()
    pass(60_000)
    expect(told.holes()).toEqual([`${HEAD - 4_999}-${HEAD - 1_235} pruned`])
    expect(told.logs()).not.toContain(keyOf(lost))
    expect(told.logs()).toContain(keyOf(kept))
  })

  it('in which the node alone could not be asked, counts as one', () => {
    const { chain, told, raise, pass } = walk()
    chain.trouble = new UpstreamError('unreachable', 'ECONNREFUSED')
    for (let block = 0; block < 20; block += 1) {
      chain.head += 1
      raise()
      pass(200)
    }
    chain.trouble = null
    pass(2_000)
    expect(told.numbers()).toEqual(range(HEAD + 1, HEAD + 20))
    expect(told.blocks().at(-1)?.via).toBe('backfill')
  })

  it('too short to be one, tells what is sealed as it is', () => {
    const { chain, told, raise, pass, seal } = walk()
    seal(1)
    chain.trouble = new UpstreamError('busy', 'over rate limit')
    chain.head += 5
    raise()
    pass(1_000)
    chain.trouble = null
    pass(2_000)
    expect(told.blocks().map(({ via }) => via)).toEqual(Array(6).fill('sealed'))
  })

  it('that is announced later is caught up as well', () => {
    const { chain, told, sealed, seal, raise, pass } = walk({ backfillBoundMs: 60_000 })
    seal(1)
    sealed.wasAway()
    chain.head += 1_000
    raise()
    pass(0)
    // A minute are 300 blocks.
    expect(told.holes()).toEqual([`${HEAD + 2}-${HEAD + 699} backfill_bound`])
    expect(
      told
        .blocks()
        .slice(1)
        .map(({ via }) => via),
    ).not.toContain('sealed')
  })
})

describe('the cursor', () => {
  it('is never beyond what is settled: from wherever a restart goes on, nothing is lost', () => {
    fc.assert(
      fc.property(
        fc.record({
          behind: fc.integer({ min: 0, max: 600 }),
          rangeBound: fc.constantFrom(3, 20, 500, 2_000),
          blocks: fc.uniqueArray(fc.integer({ min: -599, max: 30 }), { maxLength: 20 }),
          trouble: fc.uniqueArray(fc.nat(60), { maxLength: 10 }),
          lag: fc.nat(3),
        }),
        ({ behind, rangeBound, blocks, trouble, lag }) => {
          const { chain, told, raise, pass, seal } = away(behind)
          chain.rangeBound = rangeBound
          chain.delayMs = 7
          const first = HEAD - behind
          const logs = blocks.map((at) => chain.put(HEAD + at)).filter(({ block }) => block > first)
          let questions = 0
          chain.instead = () => {
            questions += 1
            chain.lag = questions % 4 === 0 ? lag : 0
            if (trouble.includes(questions)) throw new UpstreamError('busy', 'over rate limit')
            return undefined
          }
          raise()
          pass(500)
          seal(30)
          pass(30_000)
          const settled = new Set<string>()
          for (const one of told.all) {
            if (one.type !== 'sealed') continue
            for (const block of one.blocks) for (const { key } of block.logs) settled.add(key)
            const missing = logs.filter((log) => log.block <= one.cursor.number && !settled.has(keyOf(log)))
            expect(missing).toEqual([])
          }
          expect(told.cursors().at(-1)).toBe(HEAD + 30)
          expect(told.logs().length).toBe(settled.size)
          expect(settled.size).toBe(logs.length)
        },
      ),
      { numRuns: 25 },
    )
  })

  it('goes back with the chain, while what lies deeper is caught up', () => {
    const { chain, told, raise, pass } = away(100, { safe: HEAD - 90 })
    chain.rangeBound = 1
    chain.delayMs = 20
    raise()
    pass(1_000)
    const before = told.cursors().at(-1) ?? 0
    chain.reorganise(70)
    chain.head = HEAD - 30
    told.all.length = 0
    raise()
    pass(10_000)
    expect(before).toBeGreaterThan(HEAD - 90)
    for (const { newest, cursor } of told.of('sealed')) expect(cursor.number).toBeLessThanOrEqual(newest)
    expect(told.cursors().at(-1)).toBe(HEAD - 30)
  })

  it('stays where it was while a page is read anew', () => {
    const { chain, told, raise, pass } = away(1_000)
    const log = chain.put(HEAD - 999, tesla)
    chain.instead = ({ params }) => {
      if (!JSON.stringify(params).includes('fromBlock')) return undefined
      throw new UpstreamError('busy', 'over rate limit')
    }
    raise()
    pass(10_000)
    expect(new Set(told.cursors())).toEqual(new Set([HEAD - 1_000]))
    expect(told.logs()).not.toContain(keyOf(log))
  })
})

describe('a block', () => {
  it.each(['gone', 'too_large', 'unknown_method'] as const)(
    'that the node will not give, since it is %s, is a hole, and the walk goes on',
    (kind) => {
      const { chain, told, seal, pass } = walk()
      const refused = chain.hashOf(HEAD + 1)
      chain.instead = ({ params }) => {
        if (!JSON.stringify(params).includes(refused)) return undefined
        throw new UpstreamError(kind, 'no')
      }
      seal(2)
      pass(1_000)
      expect(told.all).toEqual([])
      pass(2_000)
      expect(told.holes()).toEqual([`${HEAD + 1}-${HEAD + 1} ${kind}`])
      expect(told.numbers()).toEqual([HEAD + 2])
      expect(told.cursors()).toEqual([HEAD + 1, HEAD + 2])
    },
  )

  it('is no hole because the node could not be asked before it refused once', () => {
    const { chain, told, seal, pass } = walk()
    chain.trouble = new UpstreamError('unreachable', 'ECONNREFUSED')
    seal(1)
    pass(10_000)
    chain.trouble = new UpstreamError('too_large', 'response too large')
    pass(2_000)
    chain.trouble = null
    pass(5_000)
    expect(told.holes()).toEqual([])
    expect(told.numbers()).toEqual([HEAD + 1])
  })

  it('with too many logs for one answer is asked for contract by contract', () => {
    const { chain, told, list, seal } = walk()
    list.addresses = [apple, tesla]
    const logs = [chain.put(HEAD + 1), chain.put(HEAD + 1, tesla), chain.put(HEAD + 1)]
    chain.resultsBound = 2
    seal(1)
    expect(chain.addresses()).toEqual([[apple, tesla], [apple], [tesla]])
    expect(told.logs()).toEqual(logs.map(keyOf))
    expect(told.blocks()[0]?.logs.map(({ logIndex }) => logIndex)).toEqual([0, 1, 2])
  })
})

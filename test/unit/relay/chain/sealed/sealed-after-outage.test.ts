import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { apple, keyOf, tesla } from '../node-json.ts'
import { HEAD, openSealedBlocks, range, sealedHeader } from './sealed-chain-fixture.ts'

/** Settling that starts this many blocks behind the head. */
const openBehindHead = (blocks: number, settings: Parameters<typeof openSealedBlocks>[0] = {}) =>
  openSealedBlocks({ cursor: { number: HEAD - blocks, hash: null }, backfillLimitMs: 1e12, ...settings })

describe('settling after an outage', () => {
  it('backfills what was sealed meanwhile, and settles later blocks as usual', async () => {
    const { chain, settledEvents, announceHead, advance, seal } = openBehindHead(10)
    announceHead()
    await advance(0)
    await seal(2)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD - 9, HEAD + 2))
    expect(settledEvents.blocks().map(({ via }) => via)).toEqual([...Array(10).fill('backfill'), 'sealed', 'sealed'])
    expect(chain.requestedHashes()).toHaveLength(12)
  })

  it('settles the newest blocks first, and reads older ones beside them in pages', async () => {
    const { chain, settledEvents, announceHead, advance } = openBehindHead(1_000)
    chain.delayMs = 20
    chain.rangeBound = 10
    const [deep, newest] = [chain.addLog(HEAD - 500), chain.addLog(HEAD - 3)]
    announceHead()
    await advance(60_000)
    expect(settledEvents.logKeys()).toEqual([newest, deep].map(keyOf))
    expect(settledEvents.blocks().find(({ number }) => number === HEAD - 500)?.via).toBe('backfill')
    expect(settledEvents.blockNumbers().filter((number) => number > HEAD - 64)).toEqual(range(HEAD - 63, HEAD))
    expect(settledEvents.cursors().at(-1)).toBe(HEAD)
  })

  it.each([
    [96, 96],
    [97, 64],
  ])('of %i blocks settles %i of them one by one: paging fewer does not pay off', async (blocks, single) => {
    const { settledEvents, announceHead, advance } = openBehindHead(blocks)
    announceHead()
    await advance(0)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD - single + 1, HEAD))
    expect(settledEvents.cursors().at(-1)).toBe(HEAD)
  })

  it('settles new blocks at once during a backfill', async () => {
    const { chain, settledEvents, announceHead, advance, seal } = openBehindHead(9_000)
    chain.delayMs = 20
    chain.rangeBound = 5
    announceHead()
    await advance(3_000)
    const log = chain.addLog(HEAD + 1)
    await seal(1)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(settledEvents.cursors().at(-1)).toBeLessThan(HEAD - 5_000)
  })

  it('settles blocks with open keys for certain, at any depth', async () => {
    const { chain, openKeys, settledEvents, announceHead, advance } = openBehindHead(1_000)
    const openLog = chain.addLog(HEAD - 700)
    const lost = { block: HEAD - 600 }
    openKeys.add(openLog)
    openKeys.add(lost)
    chain.hideLogs(HEAD - 700, 2)
    announceHead()
    await advance(10_000)
    const deep = settledEvents.blocks().filter(({ number }) => number < HEAD - 64)
    expect(deep.map(({ number, hash, logs }) => [number, hash, logs.length])).toEqual([
      [HEAD - 700, chain.hashOf(HEAD - 700), 1],
      [HEAD - 600, chain.hashOf(HEAD - 600), 0],
    ])
  })

  it('reports exactly the blocks beyond the bound', async () => {
    // Five blocks a second: ten minutes are 3,000 blocks.
    const { chain, settledEvents, announceHead, advance } = openBehindHead(9_000, { backfillLimitMs: 600_000 })
    const [before, after] = [chain.addLog(HEAD - 3_001), chain.addLog(HEAD - 3_000)]
    announceHead()
    await advance(0)
    expect(settledEvents.holes()).toEqual([`${HEAD - 8_999}-${HEAD - 3_001} backfill_bound`])
    expect(settledEvents.logKeys()).not.toContain(keyOf(before))
    expect(settledEvents.logKeys()).toContain(keyOf(after))
  })

  it('still settles open keys in blocks beyond the bound', async () => {
    const { chain, openKeys, settledEvents, announceHead, advance } = openBehindHead(9_000, { backfillLimitMs: 600_000 })
    const log = chain.addLog(HEAD - 5_000)
    openKeys.add(log)
    announceHead()
    await advance(0)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(settledEvents.holes()).toEqual([
      `${HEAD - 8_999}-${HEAD - 5_001} backfill_bound`,
      `${HEAD - 4_999}-${HEAD - 3_001} backfill_bound`,
    ])
  })

  it('skips nothing within the bound', async () => {
    const { settledEvents, announceHead, advance } = openBehindHead(9_000, { backfillLimitMs: 3_600_000 })
    announceHead()
    await advance(0)
    expect(settledEvents.holes()).toEqual([])
    expect(settledEvents.cursors().at(-1)).toBe(HEAD)
  })

  it('skips nothing by the false time of a pushed head', async () => {
    const { chain, sealed, settledEvents, advance } = openBehindHead(50, { backfillLimitMs: 600_000 })
    const header = sealedHeader(chain.headerOf(HEAD))
    sealed.receiveHead({ ...header, timestamp: (header.timestamp ?? 0) + 31_536_000 }, true)
    await advance(0)
    expect(settledEvents.holes()).toEqual([])
    expect(settledEvents.cursors().at(-1)).toBe(HEAD)
  })

  it('reports exactly the blocks that the node has pruned', async () => {
    const { chain, settledEvents, announceHead, advance } = openBehindHead(5_000)
    chain.oldestLogBlock = HEAD - 1_234
    const [lost, available] = [chain.addLog(HEAD - 1_235), chain.addLog(HEAD - 1_234)]
    announceHead()
    await advance(60_000)
    expect(settledEvents.holes()).toEqual([`${HEAD - 4_999}-${HEAD - 1_235} pruned`])
    expect(settledEvents.logKeys()).not.toContain(keyOf(lost))
    expect(settledEvents.logKeys()).toContain(keyOf(available))
  })

  it('also backfills if only requests failed', async () => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks()
    chain.failure = new UpstreamError('unreachable', 'ECONNREFUSED')
    for (let block = 0; block < 20; block += 1) {
      chain.head += 1
      announceHead()
      await advance(200)
    }
    chain.failure = null
    await advance(2_000)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 20))
    expect(settledEvents.blocks().at(-1)?.via).toBe('backfill')
  })

  it('settles as usual after a short failure', async () => {
    const { chain, settledEvents, announceHead, advance, seal } = openSealedBlocks()
    await seal(1)
    chain.failure = new UpstreamError('busy', 'over rate limit')
    chain.head += 5
    announceHead()
    await advance(1_000)
    chain.failure = null
    await advance(2_000)
    expect(settledEvents.blocks().map(({ via }) => via)).toEqual(Array(6).fill('sealed'))
  })

  it('backfills for an outage that is announced later as well', async () => {
    const { chain, settledEvents, sealed, seal, announceHead, advance } = openSealedBlocks({ backfillLimitMs: 60_000 })
    await seal(1)
    sealed.beginOutage()
    chain.head += 1_000
    announceHead()
    await advance(0)
    // One minute is 300 blocks.
    expect(settledEvents.holes()).toEqual([`${HEAD + 2}-${HEAD + 699} backfill_bound`])
    expect(
      settledEvents
        .blocks()
        .slice(1)
        .map(({ via }) => via),
    ).not.toContain('sealed')
  })
})

describe('the cursor of settling', () => {
  it('is never beyond settled blocks, so a restart from it loses nothing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          behind: fc.integer({ min: 0, max: 600 }),
          rangeBound: fc.constantFrom(3, 20, 500, 2_000),
          blocks: fc.uniqueArray(fc.integer({ min: -599, max: 30 }), { maxLength: 20 }),
          trouble: fc.uniqueArray(fc.nat(60), { maxLength: 10 }),
          lag: fc.nat(3),
        }),
        async ({ behind, rangeBound, blocks, trouble, lag }) => {
          const { chain, settledEvents, announceHead, advance, seal } = openBehindHead(behind)
          chain.rangeBound = rangeBound
          chain.delayMs = 7
          const first = HEAD - behind
          const logs = blocks.map((at) => chain.addLog(HEAD + at)).filter(({ block }) => block > first)
          let questions = 0
          chain.override = () => {
            questions += 1
            chain.lagBlocks = questions % 4 === 0 ? lag : 0
            if (trouble.includes(questions)) throw new UpstreamError('busy', 'over rate limit')
            return undefined
          }
          announceHead()
          await advance(500)
          await seal(30)
          await advance(30_000)
          const settled = new Set<string>()
          for (const event of settledEvents.all) {
            if (event.type !== 'sealed') continue
            for (const block of event.blocks) for (const { key } of block.logs) settled.add(key)
            const missing = logs.filter((log) => log.block <= event.cursor.number && !settled.has(keyOf(log)))
            expect(missing).toEqual([])
          }
          expect(settledEvents.cursors().at(-1)).toBe(HEAD + 30)
          expect(settledEvents.logKeys().length).toBe(settled.size)
          expect(settled.size).toBe(logs.length)
        },
      ),
      { numRuns: 25 },
    )
  })

  it('goes back with a reorganisation during a backfill', async () => {
    const { chain, settledEvents, announceHead, advance } = openBehindHead(100, { safe: HEAD - 90 })
    chain.rangeBound = 1
    chain.delayMs = 20
    announceHead()
    await advance(1_000)
    const before = settledEvents.cursors().at(-1) ?? 0
    chain.reorganise(70)
    chain.head = HEAD - 30
    settledEvents.all.length = 0
    announceHead()
    await advance(10_000)
    expect(before).toBeGreaterThan(HEAD - 90)
    for (const { newest, cursor } of settledEvents.ofType('sealed')) expect(cursor.number).toBeLessThanOrEqual(newest)
    expect(settledEvents.cursors().at(-1)).toBe(HEAD - 30)
  })

  it('stays while a page is read again', async () => {
    const { chain, settledEvents, announceHead, advance } = openBehindHead(1_000)
    const log = chain.addLog(HEAD - 999, tesla)
    chain.override = ({ params }) => {
      if (!JSON.stringify(params).includes('fromBlock')) return undefined
      throw new UpstreamError('busy', 'over rate limit')
    }
    announceHead()
    await advance(10_000)
    expect(new Set(settledEvents.cursors())).toEqual(new Set([HEAD - 1_000]))
    expect(settledEvents.logKeys()).not.toContain(keyOf(log))
  })
})

describe('a block that cannot be read', () => {
  it.each(['gone', 'too_large', 'unknown_method'] as const)(
    'is a hole after the error %s, and settling continues',
    async (kind) => {
      const { chain, settledEvents, seal, advance } = openSealedBlocks()
      const refused = chain.hashOf(HEAD + 1)
      chain.override = ({ params }) => {
        if (!JSON.stringify(params).includes(refused)) return undefined
        throw new UpstreamError(kind, 'no')
      }
      await seal(2)
      await advance(1_000)
      expect(settledEvents.all).toEqual([])
      await advance(2_000)
      expect(settledEvents.holes()).toEqual([`${HEAD + 1}-${HEAD + 1} ${kind}`])
      expect(settledEvents.blockNumbers()).toEqual([HEAD + 2])
      expect(settledEvents.cursors()).toEqual([HEAD + 1, HEAD + 2])
    },
  )

  it('is not a hole because of failed connections before one refusal', async () => {
    const { chain, settledEvents, seal, advance } = openSealedBlocks()
    chain.failure = new UpstreamError('unreachable', 'ECONNREFUSED')
    await seal(1)
    await advance(10_000)
    chain.failure = new UpstreamError('too_large', 'response too large')
    await advance(2_000)
    chain.failure = null
    await advance(5_000)
    expect(settledEvents.holes()).toEqual([])
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1])
  })

  it('for its many logs is read contract by contract', async () => {
    const { chain, settledEvents, list, seal } = openSealedBlocks()
    list.addresses = [apple, tesla]
    const logs = [chain.addLog(HEAD + 1), chain.addLog(HEAD + 1, tesla), chain.addLog(HEAD + 1)]
    chain.resultsBound = 2
    await seal(1)
    expect(chain.requestedAddresses()).toEqual([[apple, tesla], [apple], [tesla]])
    expect(settledEvents.logKeys()).toEqual(logs.map(keyOf))
    expect(settledEvents.blocks()[0]?.logs.map(({ logIndex }) => logIndex)).toEqual([0, 1, 2])
  })
})

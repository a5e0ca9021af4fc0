import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { blockHash, keyOf } from '../node-json.ts'
import { HEAD, openSealedBlocks, range, sealedHeader } from './sealed-chain-fixture.ts'

/** Settling that starts this many blocks behind the head. */
const openBehindHead = (blocks: number, settings: Parameters<typeof openSealedBlocks>[0] = {}) =>
  openSealedBlocks({ cursor: { number: HEAD - blocks, hash: null }, backfillLimitMs: 1e12, ...settings })
/** Five blocks a second: in ten minutes there are 3,000. */
const TEN_MINUTES_MS = 600_000

describe('settling after an outage', () => {
  it.each([
    [10, 10],
    [96, 96],
    [97, 64],
  ])(
    'of %i blocks settles %i of them one by one, and later ones as usual: paging fewer does not pay off',
    async (blocks, single) => {
      const { settledEvents, announceHead, advance, seal } = openBehindHead(blocks)
      announceHead()
      await advance(0)
      await seal(2)
      expect(settledEvents.blockNumbers()).toEqual(range(HEAD - single + 1, HEAD + 2))
      expect(settledEvents.blocks().map(({ via }) => via)).toEqual([...Array(single).fill('backfill'), 'sealed', 'sealed'])
      expect(settledEvents.cursors().at(-1)).toBe(HEAD + 2)
    },
  )

  it('settles the newest blocks first, and reads older ones beside them in pages', async () => {
    const { chain, settledEvents, announceHead, advance, seal } = openBehindHead(1_000)
    chain.delayMs = 20
    chain.rangeBound = 10
    const [deep, newest, next] = [HEAD - 100, HEAD - 3, HEAD + 1].map((block) => chain.addLog(block))
    announceHead()
    await advance(1_000)
    await seal(1)
    expect(settledEvents.logKeys()).toEqual([newest, next].map((log) => keyOf(log ?? { block: 0 })))
    expect(settledEvents.cursors().at(-1)).toBeLessThan(HEAD - 500)
    await advance(60_000)
    expect(settledEvents.blocks().at(-1)).toMatchObject({
      number: HEAD - 100,
      logs: [{ key: keyOf(deep ?? { block: 0 }) }],
      via: 'backfill',
    })
    expect(settledEvents.cursors().at(-1)).toBe(HEAD + 1)
  })

  it('keeps the hash of the block where older ones begin, with which a restart notices a reorg', async () => {
    const cursor = { number: HEAD - 1_000, hash: blockHash(HEAD - 1_000) }
    const { chain, settledEvents, announceHead, advance } = openBehindHead(1_000, { cursor })
    chain.delayMs = 20
    chain.rangeBound = 10
    announceHead()
    await advance(1_000)
    expect(settledEvents.ofType('sealed')[0]).toMatchObject({ cursor, restartCursor: cursor })
  })

  it.each([
    ['blocks beyond the bound, except those with open keys', TEN_MINUTES_MS, 0, 'backfill_bound', 3_000],
    ['blocks that the node has pruned', 1e12, HEAD - 1_234, 'pruned', 1_234],
  ])('reports exactly the %s', async (_, backfillLimitMs, oldestLogBlock, reason, kept) => {
    const { chain, openKeys, settledEvents, announceHead, advance } = openBehindHead(9_000, { backfillLimitMs })
    chain.oldestLogBlock = oldestLogBlock
    const [open, , after] = [HEAD - 5_000, HEAD - kept - 1, HEAD - kept].map((block) => chain.addLog(block))
    if (open && reason === 'backfill_bound') openKeys.add(open)
    announceHead()
    await advance(60_000)
    const ends = reason === 'pruned' ? [] : [`${HEAD - 5_001} ${reason}`, `${HEAD - 4_999}`]
    expect(settledEvents.holes().join('-')).toBe([HEAD - 8_999, ...ends, `${HEAD - kept - 1} ${reason}`].join('-'))
    const logs = reason === 'pruned' ? [after] : [open, after]
    expect(settledEvents.logKeys()).toEqual(logs.map((log) => keyOf(log ?? { block: 0 })))
  })

  it('skips nothing by the false time of a pushed head', async () => {
    const { chain, sealed, settledEvents, advance } = openBehindHead(50, { backfillLimitMs: TEN_MINUTES_MS })
    const header = sealedHeader(chain.headerOf(HEAD))
    sealed.receiveHead({ ...header, timestamp: (header.timestamp ?? 0) + 31_536_000 }, true)
    await advance(0)
    expect(settledEvents.holes()).toEqual([])
    expect(settledEvents.cursors().at(-1)).toBe(HEAD)
  })

  it.each([
    ['also backfills if only requests failed', 'unreachable', 4_000, 'backfill'],
    ['settles as usual after a short failure', 'busy', 1_000, 'sealed'],
    ['settles as usual after refusals, which show that the node is there', 'behind', 4_000, 'sealed'],
  ] as const)('%s', async (_, kind, ms, via) => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks()
    chain.failure = new UpstreamError(kind, 'no')
    chain.head += 20
    announceHead()
    await advance(ms)
    chain.failure = null
    await advance(3_000)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 20))
    expect(settledEvents.blocks().at(-1)?.via).toBe(via)
  })
})

describe('a block that cannot be read', () => {
  it.each(['gone', 'too_large', 'unknown_method'] as const)(
    'is a hole after the error %s, and settling continues',
    async (kind) => {
      const { chain, settledEvents, seal, advance } = openSealedBlocks()
      const refused = chain.hashOf(HEAD + 1)
      const refusal = new UpstreamError(kind, 'no')
      chain.override = ({ params }) => (JSON.stringify(params).includes(refused) ? Promise.reject(refusal) : undefined)
      await seal(2)
      await advance(1_000)
      expect(settledEvents.all).toEqual([])
      await advance(2_000)
      expect(settledEvents.holes()).toEqual([`${HEAD + 1}-${HEAD + 1} ${kind}`])
      expect(settledEvents.blockNumbers()).toEqual([HEAD + 2])
      expect(settledEvents.cursors()).toEqual([HEAD + 1, HEAD + 2])
    },
  )
})

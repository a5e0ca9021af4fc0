import { describe, expect, it } from 'vitest'
import { DEPTH_BOUND_BLOCKS, MACHINE_LAG_MS } from '../../../../../src/relay/chain/blocks/block-bounds.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { apple, keyOf, timestampOf, word } from '../node-json.ts'
import { HEAD, openSealedBlocks, range } from './sealed-chain-fixture.ts'

/** Five blocks a second: in ten minutes there are 3,000. */
const TEN_MINUTES_MS = 600_000
const BLOCKS = 3_000

describe('settling', () => {
  it('emits every field of a block', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.addLog(HEAD + 1)
    await seal(1)
    const hash = chain.hashOf(HEAD + 1)
    expect(settledEvents.all).toEqual([
      {
        type: 'sealed',
        holes: [],
        blocks: [
          {
            number: HEAD + 1,
            hash,
            timestamp: timestampOf(HEAD + 1),
            logs: [expect.objectContaining({ key: keyOf({ block: HEAD + 1 }), blockHash: hash })],
            filters: [{ addresses: [apple] }],
            via: 'sealed',
          },
        ],
        newest: HEAD + 1,
        cursor: { number: HEAD + 1, hash },
        restartCursor: { number: HEAD, hash: chain.hashOf(HEAD) },
      },
    ])
  })

  it('reads each block by its hash once, though its head is pushed often and in any order', async () => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks()
    chain.head = HEAD + 4
    for (const block of [1, 4, 1, 4, 3, 3, 2]) {
      announceHead(HEAD + block)
      await advance(0)
    }
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 4))
    expect(settledEvents.cursors()).toEqual(range(HEAD + 1, HEAD + 4))
    expect(chain.requestedHashes().toSorted()).toEqual(range(HEAD + 1, HEAD + 4).map((block) => chain.hashOf(block)))
    // No header that was received before.
    expect(chain.requestedHeaders()).toEqual([HEAD + 2, HEAD + 3])
  })
})

describe('settling after an outage', () => {
  /** Settling that starts this many blocks behind the head. */
  const openBehindHead = (blocks: number, backfillLimitMs = 1e12) =>
    openSealedBlocks({ cursor: { number: HEAD - blocks, hash: null }, backfillLimitMs })

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

  it.each([
    ['blocks beyond the bound, except those with open keys', TEN_MINUTES_MS, 0, 'backfill_bound', 3_000],
    ['blocks that the node has pruned', 1e12, HEAD - 1_234, 'pruned', 1_234],
  ])('reports exactly the %s', async (_, backfillLimitMs, oldestLogBlock, reason, kept) => {
    const { chain, openKeys, settledEvents, announceHead, advance } = openBehindHead(9_000, backfillLimitMs)
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

describe('settling in a first run', () => {
  it('begins so far back in block time, and reads what is between as after an outage, without a hole', async () => {
    const { chain, settledEvents, announceHead, advance, seal } = openSealedBlocks({ backfillFirstMs: TEN_MINUTES_MS })
    const [before, , deep, newest] = [BLOCKS + 1, BLOCKS, BLOCKS - 1, 3].map((depth) => chain.addLog(HEAD - depth))
    announceHead()
    await advance(60_000)
    await seal(1)
    expect(settledEvents.all[0]).toEqual({
      type: 'cursor',
      cursor: { number: HEAD - BLOCKS, hash: chain.hashOf(HEAD - BLOCKS) },
      timestamp: null,
    })
    expect(settledEvents.logKeys().toSorted()).toEqual([deep, newest].map((log) => keyOf(log ?? { block: 0 })).toSorted())
    expect(settledEvents.logKeys()).not.toContain(keyOf(before ?? { block: 0 }))
    expect(settledEvents.holes()).toEqual([])
    expect(new Set(settledEvents.blocks().map(({ number, via }) => number > HEAD || via))).toEqual(new Set([true, 'backfill']))
    expect(settledEvents.cursors().at(-1)).toBe(HEAD + 1)
  })

  it('waits for what the first block left behind', async () => {
    const asked: number[] = []
    let answer = () => {}
    const readFirstState = ({ number }: { readonly number: number }) => {
      asked.push(number)
      return new Promise<void>((resolve) => {
        answer = resolve
      })
    }
    const { settledEvents, announceHead, advance } = openSealedBlocks({ backfillFirstMs: TEN_MINUTES_MS, readFirstState })
    announceHead()
    await advance(60_000)
    expect(asked).toEqual([HEAD - BLOCKS])
    expect(settledEvents.all).toEqual([])
    answer()
    await advance(60_000)
    expect(settledEvents.cursors().at(-1)).toBe(HEAD)
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

describe('a reorganisation of settled blocks', () => {
  it.each([
    ['by the next block', HEAD + 11],
    ['by a head of the same height', HEAD + 10],
  ])('waits for the chain of what answered, asked for after it was noticed %s', async (_, head) => {
    const { chain, settledEvents, warnings, announceHead, advance, clock, seal } = openSealedBlocks()
    await seal(10)
    settledEvents.all.length = 0
    chain.delayMs = 10
    const since = clock.now()
    chain.reorganise(2)
    chain.head = head
    chain.chainFailure = new UpstreamError('wrong_chain', 'it is of chain 1')
    announceHead()
    await advance(20_000)
    expect(settledEvents.all).toEqual([])
    expect(warnings).not.toContain('reorg')
    for (const { answeredSince, askedAfter } of chain.confirmations) {
      expect(answeredSince).toBeGreaterThanOrEqual(since)
      expect(askedAfter).toBeGreaterThan(answeredSince)
    }
    chain.chainFailure = null
    await advance(3_000)
    expect(settledEvents.ofType('reorg')).toHaveLength(1)
    expect(settledEvents.blockNumbers().at(-1)).toBe(head)
  })

  const depthBound = HEAD - DEPTH_BOUND_BLOCKS
  // The relay knows nothing but a cursor that was replaced. It settles again from the block after `target` on.
  it.each([
    ['goes back to the safe block of the previous run', { safe: HEAD - 600 }, 0, HEAD - 600, []],
    [
      'never goes back further than the depth bound, and reports the blocks below as one hole',
      { safe: 5 },
      0,
      depthBound,
      [`6-${depthBound} reorg`],
    ],
    [
      'goes back to the first block that the node still has, and reports the blocks below as one hole',
      { safe: HEAD - 600 },
      HEAD - 200,
      HEAD - 200,
      [`${HEAD - 599}-${HEAD - 200} reorg`],
    ],
    [
      'without a safe block goes back to where the first run began, though nothing is known of its blocks',
      { began: HEAD - 300 },
      0,
      HEAD - 300,
      [],
    ],
    ['goes back by the number of newest blocks if no safe block is known', {}, 0, HEAD - 64, []],
  ])('%s', async (_, settings, oldest, target, holes) => {
    const { chain, settledEvents, seal, advance } = openSealedBlocks({ cursor: { number: HEAD, hash: word(1) }, ...settings })
    chain.override = ({ params: [number] }) => (Number(number) < oldest ? null : undefined)
    const logs = [target + 1, HEAD, HEAD + 1].map((block) => chain.addLog(block))
    chain.addLog(target)
    await seal(1)
    // Ranges of blocks are read only when no node can have the old chain any more.
    await advance(MACHINE_LAG_MS)
    expect(settledEvents.logKeys().toSorted()).toEqual(logs.map(keyOf).toSorted())
    expect(settledEvents.holes()).toEqual(holes)
    expect(settledEvents.all.slice(0, 2).map(({ type }) => type)).toEqual(['reorg', 'sealed'])
    expect(settledEvents.cursors().at(-1)).toBe(HEAD + 1)
  })
})

import { describe, expect, it } from 'vitest'
import { DEPTH_BOUND_BLOCKS, MACHINE_LAG_MS } from '../../../../../src/relay/chain/blocks/block-bounds.ts'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { blockHash, keyOf, word } from '../node-json.ts'
import { HEAD, openSealedBlocks, range, sealedHeader } from './sealed-chain-fixture.ts'

type Opened = ReturnType<typeof openSealedBlocks>

/** Settling that has settled this many blocks. */
const openSettled = async (blocks: number) => {
  const opened = openSealedBlocks()
  await opened.seal(blocks)
  opened.settledEvents.all.length = 0
  return opened
}
/** Expects that the last version of each settled block is canonical. */
const expectCanonical = ({ settledEvents, chain }: Pick<Opened, 'settledEvents' | 'chain'>) => {
  const last = new Map(settledEvents.blocks().map(({ number, hash }) => [number, hash] as const))
  expect([...last]).toEqual([...last.keys()].map((number) => [number, chain.hashOf(number)]))
}
const sorted = (keys: readonly string[]) => keys.toSorted()

/** Seals a block of the new chain, and waits until no node can have the old one, since ranges of blocks are read only then. */
const sealAfterReorg = async ({ seal, advance }: Pick<Opened, 'seal' | 'advance'>) => {
  await seal(1)
  await advance(MACHINE_LAG_MS)
}

describe('a reorganisation', () => {
  it.each([1, 2, 5, 40])('of depth %i is settled again in order from the fork point, or from twice as deep', async (depth) => {
    const { chain, settledEvents, seal, sealed } = await openSettled(100)
    const first = chain.reorganise(depth)
    const log = chain.addLog(first)
    await seal(1)
    const [start = 0] = settledEvents.blockNumbers()
    expect(start).toBeLessThanOrEqual(first)
    expect(start).toBeGreaterThan(HEAD + 99 - 2 * depth)
    expect(settledEvents.blockNumbers()).toEqual(range(start, HEAD + 101))
    expect(settledEvents.cursors()).toEqual(range(start, HEAD + 101))
    expectCanonical({ chain, settledEvents })
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(sealed.settled()).toEqual({ number: HEAD + 101, hash: chain.hashOf(HEAD + 101) })
  })

  it.each<[string, number, number, (opened: Opened, old: Parameters<Opened['sealed']['retract']>[1]) => unknown]>([
    ['is detected by a head at the same height with another hash', 1, 10, ({ announceHead }) => announceHead()],
    [
      'is detected by a lower head with another hash, and the blocks above it are dropped',
      6,
      7,
      ({ announceHead }) => announceHead(),
    ],
    ['is detected by a log that the node withdraws', 6, 10, ({ sealed }, old) => sealed.retract(HEAD + 5, old)],
    [
      'is detected by a safe block that differs from the settled one',
      6,
      10,
      ({ sealed, chain }) => sealed.markSafe(sealedHeader(chain.headerOf(HEAD + 5))),
    ],
  ])('%s', async (_, depth, newHead, detect) => {
    const opened = await openSettled(10)
    const { chain, settledEvents, sealed, seal, advance } = opened
    const old = chain.hashOf(HEAD + 5)
    const first = chain.reorganise(depth)
    chain.head = HEAD + newHead
    const log = chain.addLog(first)
    detect(opened, old)
    await advance(0)
    expect(settledEvents.ofType('reorg')).toHaveLength(1)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(settledEvents.blockNumbers().at(-1)).toBe(chain.head)
    expectCanonical(opened)
    expect(sealed.head()?.number).toBe(chain.head)
    await seal(3)
    expect(settledEvents.blockNumbers().slice(-3)).toEqual(range(HEAD + newHead + 1, HEAD + newHead + 3))
  })

  it.each([
    ['by the next block', HEAD + 11],
    ['by a head of the same height', HEAD + 10],
  ])('waits for the chain of what answered, asked for after it was noticed %s', async (_, head) => {
    const { chain, settledEvents, warnings, announceHead, advance, clock } = await openSettled(10)
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
})

describe('a reorganisation deeper than the recent blocks', () => {
  it('goes back to the safe block', async () => {
    const { chain, settledEvents, seal, sealed, advance } = await openSettled(100)
    sealed.markSafe(sealedHeader(chain.headerOf(HEAD + 50)))
    await seal(1_000)
    settledEvents.all.length = 0
    // Of 1,100 blocks the first are evicted, the safe one among them.
    chain.reorganise(1_050)
    const logs = [HEAD + 51, HEAD + 76, HEAD + 1_100].map((block) => chain.addLog(block))
    chain.addLog(HEAD + 50)
    await seal(1)
    expect(settledEvents.logKeys()).toEqual(logs.slice(-1).map(keyOf))
    await advance(MACHINE_LAG_MS)
    expect(sorted(settledEvents.logKeys())).toEqual(sorted(logs.map(keyOf)))
    expectCanonical({ chain, settledEvents })
    expect(settledEvents.cursors().at(-1)).toBe(HEAD + 1_101)
  })

  it('below the cursor goes back to a block that the previous run sealed', async () => {
    const [cursor, ...sealedInPreviousRun] = [HEAD, HEAD - 900, HEAD - 300, HEAD - 20].map((number) => ({
      number,
      hash: blockHash(number),
    }))
    const opened = openSealedBlocks({ ...(cursor && { cursor }), sealedInPreviousRun })
    const { chain, settledEvents } = opened
    chain.reorganise(200)
    const logs = [HEAD - 199, HEAD - 5].map((block) => chain.addLog(block))
    chain.addLog(HEAD - 300)
    await sealAfterReorg(opened)
    expect(sorted(settledEvents.logKeys())).toEqual(sorted(logs.map(keyOf)))
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
    const opened = openSealedBlocks({ cursor: { number: HEAD, hash: word(1) }, ...settings })
    const { chain, settledEvents } = opened
    chain.override = ({ params: [number] }) => (Number(number) < oldest ? null : undefined)
    const logs = [target + 1, HEAD, HEAD + 1].map((block) => chain.addLog(block))
    chain.addLog(target)
    await sealAfterReorg(opened)
    expect(sorted(settledEvents.logKeys())).toEqual(sorted(logs.map(keyOf)))
    expect(settledEvents.holes()).toEqual(holes)
    expect(settledEvents.all.slice(0, 2).map(({ type }) => type)).toEqual(['reorg', 'sealed'])
    expect(settledEvents.cursors().at(-1)).toBe(HEAD + 1)
  })
})

describe('blocks behind one of unknown hash', () => {
  it.each([
    ['each of them', HEAD + 4, range(HEAD + 1, HEAD + 3)],
    ['those before one that cannot be read', HEAD + 2, [HEAD + 1]],
  ])('are settled once the chain of what answered is confirmed: %s', async (_, unreadable, settled) => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks({ cursor: { number: HEAD, hash: null } })
    chain.override = ({ method, params }) => {
      if (method === 'eth_getBlockByNumber' && Number(params[0]) === unreadable) throw new UpstreamError('unreachable', 'timeout')
      return undefined
    }
    chain.chainFailure = new UpstreamError('wrong_chain', 'it is of chain 1')
    chain.head = HEAD + 3
    announceHead()
    await advance(3_000)
    expect(settledEvents.all).toEqual([])
    chain.chainFailure = null
    await advance(3_000)
    expect(settledEvents.blockNumbers()).toEqual(settled)
  })
})

describe('a hash that differs from the settled one', () => {
  it('of a lower head of a lagging node changes nothing if it is ours', async () => {
    const { chain, settledEvents, announceHead, advance, sealed } = await openSettled(10)
    const requestCount = chain.requests.length
    announceHead(HEAD + 7)
    await advance(5_000)
    expect(settledEvents.all).toEqual([])
    expect(chain.requests.length).toBe(requestCount)
    expect(sealed.head()?.number).toBe(HEAD + 10)
  })

  it.each([
    ['is checked, and dropped if the node disagrees with it', 0],
    ['is checked a few times while the node lacks the block, and then dropped', 5],
  ])('%s', async (_, lagBlocks) => {
    const { chain, settledEvents, sealed, advance, seal } = await openSettled(10)
    chain.lagBlocks = lagBlocks
    sealed.receiveHead(sealedHeader({ ...chain.headerOf(HEAD + 8), hash: word(77) }))
    await advance(5_000)
    expect(settledEvents.all).toEqual([])
    chain.lagBlocks = 0
    await seal(1)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 11])
  })
})

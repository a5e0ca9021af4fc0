import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { DEPTH_BOUND_BLOCKS } from '../../../../../src/relay/chain/sealed/block-bounds.ts'
import { keyOf, word } from '../node-json.ts'
import { HEAD, openSealedBlocks, range, sealedHeader } from './sealed-chain-fixture.ts'

/** Settling that has settled this many blocks. */
const openSettled = async (blocks: number, settings: Parameters<typeof openSealedBlocks>[0] = {}) => {
  const opened = openSealedBlocks(settings)
  await opened.seal(blocks)
  opened.settledEvents.all.length = 0
  return opened
}

/** The last hash of each settled number. */
const lastHashes = (settledEvents: ReturnType<typeof openSealedBlocks>['settledEvents']) =>
  new Map(settledEvents.blocks().map(({ number, hash }) => [number, hash] as const))

describe('a reorganisation', () => {
  it.each([1, 2, 5, 40])('of depth %i is settled again from the fork point, in order', async (depth) => {
    const { chain, settledEvents, seal } = await openSettled(100)
    const first = chain.reorganise(depth)
    const log = chain.addLog(first)
    await seal(1)
    const resettled = settledEvents.blockNumbers()
    expect(resettled[0]).toBeLessThanOrEqual(first)
    expect(resettled).toEqual(range(resettled[0] ?? 0, HEAD + 101))
    for (const [number, hash] of lastHashes(settledEvents)) expect(hash).toBe(chain.hashOf(number))
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(settledEvents.cursors().at(-1)).toBe(HEAD + 101)
  })

  it('goes back at most twice as far as needed', async () => {
    const { chain, settledEvents, seal } = await openSettled(100)
    chain.reorganise(40)
    await seal(1)
    expect(settledEvents.blockNumbers()[0]).toBeGreaterThan(HEAD + 100 - 2 * 40)
  })

  it('moves the cursor back', async () => {
    const { chain, settledEvents, seal, sealed } = await openSettled(20)
    const first = chain.reorganise(5)
    await seal(1)
    expect(settledEvents.cursors()[0]).toBeLessThanOrEqual(first)
    expect(sealed.settled).toEqual({ number: HEAD + 21, hash: chain.hashOf(HEAD + 21) })
  })

  it('is detected by a head at the same height with another hash', async () => {
    const { chain, settledEvents, announceHead, advance } = await openSettled(10)
    chain.reorganise(1)
    const log = chain.addLog(HEAD + 10)
    announceHead()
    await advance(0)
    expect(settledEvents.blockNumbers().at(-1)).toBe(HEAD + 10)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('is detected by a lower head with another hash, and the blocks above it are dropped', async () => {
    const { chain, settledEvents, announceHead, advance, sealed, seal } = await openSettled(10)
    chain.reorganise(6)
    chain.head = HEAD + 7
    announceHead()
    await advance(0)
    expect(sealed.settled).toEqual({ number: HEAD + 7, hash: chain.hashOf(HEAD + 7) })
    expect(sealed.head?.number).toBe(HEAD + 7)
    await seal(5)
    expect(settledEvents.blockNumbers().slice(-5)).toEqual(range(HEAD + 8, HEAD + 12))
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
    expect(warnings).not.toContain('the chain was reorganised')
    for (const { answeredSince, askedAfter } of chain.confirmations) {
      expect(answeredSince).toBeGreaterThanOrEqual(since)
      expect(askedAfter).toBeGreaterThan(answeredSince)
    }
    chain.chainFailure = null
    await advance(3_000)
    expect(settledEvents.ofType('reorg')).toHaveLength(1)
    expect(settledEvents.blockNumbers().at(-1)).toBe(head)
  })

  it('is detected by a log that the node withdraws', async () => {
    const { chain, settledEvents, sealed, advance } = await openSettled(10)
    const old = chain.hashOf(HEAD + 9)
    chain.reorganise(2)
    const log = chain.addLog(HEAD + 9)
    sealed.retract(HEAD + 9, old)
    await advance(0)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(lastHashes(settledEvents).get(HEAD + 9)).toBe(chain.hashOf(HEAD + 9))
  })

  it('is detected by a safe block that differs from the settled one', async () => {
    const { chain, settledEvents, sealed, advance } = await openSettled(10)
    chain.reorganise(4)
    sealed.markSafe(sealedHeader(chain.headerOf(HEAD + 8)))
    await advance(0)
    expect(settledEvents.blockNumbers().slice(-1)).toEqual([HEAD + 10])
    expect(lastHashes(settledEvents).get(HEAD + 8)).toBe(chain.hashOf(HEAD + 8))
  })

  it('may follow within another one', async () => {
    const { chain, settledEvents, announceHead, advance, seal } = await openSettled(30)
    chain.reorganise(10)
    chain.delayMs = 40
    announceHead()
    await advance(100)
    chain.reorganise(12)
    const log = chain.addLog(HEAD + 25)
    announceHead()
    await advance(5_000)
    await seal(1)
    for (const [number, hash] of lastHashes(settledEvents)) expect(hash).toBe(chain.hashOf(number))
    expect(settledEvents.logKeys().at(-1)).toBe(keyOf(log))
    expect(settledEvents.blockNumbers().at(-1)).toBe(HEAD + 31)
  })

  it('may go back to the first settled blocks', async () => {
    const { chain, settledEvents, sealed, advance, announceHead } = await openSettled(10)
    const first = chain.headerOf(HEAD + 10)
    const log = chain.addLog(HEAD + 10)
    chain.override = ({ params }) => (Number(params[0]) === HEAD + 10 ? other : undefined)
    const other = { ...first, hash: word(77) }
    sealed.receiveHead(sealedHeader(other))
    await advance(0)
    chain.override = () => undefined
    announceHead()
    await advance(5_000)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(sealed.settled?.hash).toBe(chain.hashOf(HEAD + 10))
  })
})

describe('a reorganisation deeper than the recent blocks', () => {
  it('goes back to the safe block', async () => {
    const { chain, settledEvents, seal, sealed } = await openSettled(100)
    sealed.markSafe(sealedHeader(chain.headerOf(HEAD + 50)))
    await seal(1_000)
    settledEvents.all.length = 0
    // Of 1,100 blocks the first are evicted, the safe one among them.
    chain.reorganise(1_050)
    const logs = [HEAD + 51, HEAD + 76, HEAD + 1_100].map((block) => chain.addLog(block))
    chain.addLog(HEAD + 50)
    await seal(1)
    expect([...settledEvents.logKeys()].sort()).toEqual(logs.map(keyOf).sort())
    for (const [number, hash] of lastHashes(settledEvents)) expect(hash).toBe(chain.hashOf(number))
    expect(settledEvents.cursors().at(-1)).toBe(HEAD + 1_101)
  })

  it('goes back below all recent blocks, even below a safe block', async () => {
    const { chain, settledEvents, seal, sealed } = await openSettled(80)
    sealed.markSafe(sealedHeader(chain.headerOf(HEAD + 3)))
    chain.reorganise(80 + 10)
    const logs = [HEAD, HEAD + 3, HEAD + 17, HEAD + 80].map((block) => chain.addLog(block))
    await seal(1)
    expect([...settledEvents.logKeys()].sort()).toEqual(logs.map(keyOf).sort())
    expect(settledEvents.cursors().at(-1)).toBe(HEAD + 81)
  })

  it('goes back to the safe block of the previous run', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks({ cursor: { number: HEAD, hash: word(1) }, safe: HEAD - 600 })
    const logs = [HEAD - 599, HEAD - 63, HEAD, HEAD + 1].map((block) => chain.addLog(block))
    chain.addLog(HEAD - 600)
    await seal(1)
    expect([...settledEvents.logKeys()].sort()).toEqual(logs.map(keyOf).sort())
  })

  it('below the cursor goes back to a block that the previous run sealed', async () => {
    const before = openSealedBlocks()
    const sealedInPreviousRun = [HEAD - 900, HEAD - 300, HEAD - 20].map((number) => ({ number, hash: before.chain.hashOf(number) }))
    const cursor = { number: HEAD, hash: before.chain.hashOf(HEAD) }
    const { chain, settledEvents, seal } = openSealedBlocks({ cursor, sealedInPreviousRun })
    chain.reorganise(50)
    const logs = [HEAD - 49, HEAD - 5].map((block) => chain.addLog(block))
    chain.addLog(HEAD - 300)
    await seal(1)
    expect([...settledEvents.logKeys()].sort()).toEqual(logs.map(keyOf).sort())
  })

  it('never goes back further than the depth bound, and reports the blocks below as one hole', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks({ cursor: { number: HEAD, hash: word(1) }, safe: 5 })
    const first = HEAD - DEPTH_BOUND_BLOCKS + 1
    const logs = [first, HEAD].map((block) => chain.addLog(block))
    chain.addLog(first - 1)
    await seal(1)
    expect([...settledEvents.logKeys()].sort()).toEqual(logs.map(keyOf).sort())
    expect(settledEvents.holes()).toEqual([`6-${first - 1} reorg`])
    expect(settledEvents.all.slice(0, 2).map(({ type }) => type)).toEqual(['reorg', 'hole'])
  })

  it('goes back to the first block that the node still has, and reports the blocks below as one hole', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks({ cursor: { number: HEAD, hash: word(1) }, safe: HEAD - 600 })
    chain.override = ({ params }) => (Number(params[0]) < HEAD - 200 ? null : undefined)
    const log = chain.addLog(HEAD - 199)
    await seal(1)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(settledEvents.cursors().at(-1)).toBe(HEAD + 1)
    expect(settledEvents.holes()).toEqual([`${HEAD - 599}-${HEAD - 200} reorg`])
  })

  it('without a safe block goes back to where the first run began, though nothing is known of its blocks', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks({ cursor: { number: HEAD, hash: word(1) }, began: HEAD - 300 })
    const logs = [HEAD - 299, HEAD].map((block) => chain.addLog(block))
    chain.addLog(HEAD - 300)
    await seal(1)
    expect([...settledEvents.logKeys()].sort()).toEqual(logs.map(keyOf).sort())
    expect(settledEvents.holes()).toEqual([])
  })

  it('goes back by the number of newest blocks if no safe block is known', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks({ cursor: { number: HEAD, hash: word(1) } })
    await seal(1)
    expect(settledEvents.blockNumbers().at(-1)).toBe(HEAD + 1)
    expect(settledEvents.cursors().every((cursor) => cursor >= HEAD - 64)).toBe(true)
    expect(lastHashes(settledEvents).get(HEAD)).toBe(chain.hashOf(HEAD))
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
    expect(sealed.head?.number).toBe(HEAD + 10)
  })

  it('is checked, and dropped if the node disagrees with it', async () => {
    const { chain, settledEvents, sealed, advance, seal } = await openSettled(10)
    sealed.receiveHead(sealedHeader({ ...chain.headerOf(HEAD + 8), hash: word(77) }))
    await advance(5_000)
    expect(settledEvents.all).toEqual([])
    await seal(1)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 11])
  })

  it('is checked a few times while the node lacks the block, and then dropped', async () => {
    const { chain, settledEvents, sealed, advance, seal } = await openSettled(10)
    chain.lagBlocks = 5
    sealed.receiveHead(sealedHeader({ ...chain.headerOf(HEAD + 8), hash: word(77) }))
    await advance(5_000)
    expect(settledEvents.all).toEqual([])
    chain.lagBlocks = 0
    await seal(1)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 11])
  })

  it('of a withdrawn block that was never settled changes nothing', async () => {
    const { chain, settledEvents, sealed, advance } = await openSettled(10)
    const requestCount = chain.requests.length
    sealed.retract(HEAD + 9, word(77))
    sealed.retract(HEAD + 9, null)
    sealed.retract(5, chain.hashOf(5))
    await advance(5_000)
    expect(settledEvents.all).toEqual([])
    expect(chain.requests.length).toBe(requestCount)
  })

  it('may be of an announced block that never became canonical', async () => {
    const { chain, settledEvents, sealed, advance, announceHead } = await openSettled(10)
    chain.head = HEAD + 11
    sealed.receiveHead(sealedHeader({ ...chain.headerOf(HEAD + 11), hash: word(77) }))
    await advance(1_000)
    announceHead()
    await advance(1_000)
    expect(settledEvents.blocks().map(({ number, hash }) => [number, hash])).toEqual([[HEAD + 11, chain.hashOf(HEAD + 11)]])
  })

  it('may be of an announced parent that the node disagrees with', async () => {
    const { chain, settledEvents, sealed, advance, warnings } = await openSettled(10)
    chain.head = HEAD + 11
    sealed.receiveHead(sealedHeader({ ...chain.headerOf(HEAD + 11), hash: word(77), parentHash: word(76) }))
    await advance(1_000)
    expect(settledEvents.blocks().map(({ number, hash }) => [number, hash])).toEqual([[HEAD + 11, chain.hashOf(HEAD + 11)]])
    expect(warnings).not.toContain('the chain was reorganised')
  })
})

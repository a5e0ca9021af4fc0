import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { keyOf } from '../node-json.ts'
import { HEAD, openSealedBlocks, range, rangeOf } from './sealed-chain-fixture.ts'

describe('a recheck of settled blocks', () => {
  it('settles a block again that has more logs now', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    await seal(1)
    expect(settledEvents.blocks().map(({ logs }) => logs.length)).toEqual([0])
    await seal(1)
    expect(settledEvents.blocks().map(({ number, logs }) => [number, logs.length])).toEqual([
      [HEAD + 1, 0],
      [HEAD + 2, 0],
      [HEAD + 1, 1],
    ])
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    // The cursor did not go back.
    expect(settledEvents.ofType('sealed').map(({ newest, cursor }) => [newest, cursor.number])).toEqual([
      [HEAD + 1, HEAD + 1],
      [HEAD + 2, HEAD + 2],
      [HEAD + 2, HEAD + 2],
    ])
  })

  it('reads blocks once a second, until three seconds after they were settled, and until then holds the restart back', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    for (const block of range(HEAD + 1, HEAD + 26)) chain.addLog(block)
    await seal(10)
    expect(settledEvents.restartCursor()?.number).toBe(HEAD)
    await seal(16)
    expect(chain.requestedRanges()).toEqual([
      [HEAD + 1, HEAD + 1],
      [HEAD + 1, HEAD + 7],
      [HEAD + 1, HEAD + 13],
      [HEAD + 1, HEAD + 19],
      [HEAD + 6, HEAD + 25],
    ])
    expect(settledEvents.restartCursor()?.number).toBe(HEAD + 5)
  })

  it('reads blocks for five seconds more that no later log shows the node to have', async () => {
    const { chain, seal } = openSealedBlocks()
    chain.addLog(HEAD + 3)
    await seal(56)
    expect(chain.requestedRanges().slice(3)).toEqual([
      [HEAD + 1, HEAD + 19],
      [HEAD + 4, HEAD + 25],
      [HEAD + 4, HEAD + 31],
      [HEAD + 4, HEAD + 37],
      [HEAD + 4, HEAD + 43],
      [HEAD + 5, HEAD + 49],
      [HEAD + 11, HEAD + 55],
    ])
  })

  it('reports old blocks that the node has pruned as holes, but those with logs', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.override = (request) => (rangeOf(request) ? Promise.reject(new UpstreamError('busy', 'HTTP 429')) : undefined)
    chain.addLog(HEAD + 50)
    await seal(300)
    expect(settledEvents.restartCursor()?.number).toBe(HEAD)
    chain.override = () => undefined
    chain.oldestLogBlock = HEAD + 100
    await seal(60)
    expect(settledEvents.restartCursor()?.number).toBeGreaterThan(HEAD + 300)
    expect(settledEvents.holes()).toEqual([`${HEAD + 1}-${HEAD + 49} pruned`, `${HEAD + 51}-${HEAD + 99} pruned`])
  })

  it('always reads the last four blocks, even of a slow chain', async () => {
    const { chain, seal, advance } = openSealedBlocks()
    for (const block of range(HEAD + 1, HEAD + 8)) {
      chain.addLog(block)
      await seal(1)
      await advance(2_000)
    }
    expect(chain.requestedRanges().slice(-2)).toEqual([
      [HEAD + 2, HEAD + 5],
      [HEAD + 4, HEAD + 7],
    ])
  })

  it('reads the oldest four due blocks of a node that limits the range', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.rangeBound = 5
    await seal(7)
    const log = chain.addLog(HEAD + 3)
    await seal(1)
    expect(chain.requestedRanges().slice(-2)).toEqual([
      [HEAD + 1, HEAD + 7],
      [HEAD + 1, HEAD + 4],
    ])
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it.each([3, 2, 1])(
    'reads in parts from a node that allows only %i blocks, and keeps up with a quick chain',
    async (rangeBound) => {
      const { chain, settledEvents, seal } = openSealedBlocks()
      chain.rangeBound = rangeBound
      await seal(9)
      const logs: ReturnType<typeof chain.addLog>[] = []
      for (const _ of range(1, 100)) {
        await seal(1)
        logs.push(chain.addLog(chain.head - 9))
      }
      await seal(30)
      expect(settledEvents.logKeys()).toEqual(logs.map(keyOf))
    },
  )

  it.each([
    ['still reads the other blocks, and finishes', 0],
    ['settles that block again if it seemed empty', 1],
  ])('with a block that is too large by itself %s', async (_, hiddenTimes) => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    const requests: unknown[] = []
    chain.override = (request) => {
      // Only a recheck requests ranges here.
      const [from, to] = rangeOf(request) ?? [0, 0]
      if (from > HEAD + 3 || to < HEAD + 3) return undefined
      if (from === to) requests.push(from)
      throw new UpstreamError('too_large', 'query exceeds max results')
    }
    const large = chain.addLog(HEAD + 3)
    chain.hideLogs(HEAD + 3, hiddenTimes)
    await seal(7)
    const late = [HEAD + 2, HEAD + 4].map((block) => chain.addLog(block))
    await seal(40)
    expect(settledEvents.logKeys().toSorted()).toEqual([large, ...late].map(keyOf).toSorted())
    expect(requests.length).toBeGreaterThan(0)
    expect(requests.length).toBeLessThan(10)
  })
})

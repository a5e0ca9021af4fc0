import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { apple, keyOf, tesla, word } from '../node-json.ts'
import { HEAD, openSealedBlocks, range, rangeOf, sealedHeader } from './sealed-chain-fixture.ts'

/** Settling, with a recheck whose requests a test can answer. */
const openRecheck = (settings?: Parameters<typeof openSealedBlocks>[0]) => {
  const opened = openSealedBlocks(settings)
  const answerRecheck = (answer: (from: number, to: number) => unknown) => {
    // Only a recheck requests ranges here.
    opened.chain.override = (request) => {
      const blocks = rangeOf(request)
      return blocks ? answer(...blocks) : undefined
    }
  }
  return {
    ...opened,
    answerRecheck,
    refuseRecheck: () => answerRecheck(() => Promise.reject(new UpstreamError('busy', 'HTTP 429'))),
  }
}
/** The same, after a block whose logs the node did not show at first. */
const openWithLateLog = async (settings?: Parameters<typeof openSealedBlocks>[0]) => {
  const opened = openRecheck(settings)
  const log = opened.chain.addLog(HEAD + 1)
  opened.chain.hideLogs(HEAD + 1, 1)
  await opened.seal(1)
  return { ...opened, log }
}

describe('a recheck of settled blocks', () => {
  it('settles a block again that has more logs now', async () => {
    const { settledEvents, seal, log } = await openWithLateLog()
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

  it('settles it by the header that the node has now, and not by an older one that was announced', async () => {
    const { chain, settledEvents, seal, log, change } = await openWithLateLog()
    const replaced = sealedHeader({ ...chain.headerOf(HEAD + 1), hash: word(77) })
    change((before) => ({ ...before, announced: new Map([[HEAD + 1, { header: replaced, isPushed: false }]]) }))
    await seal(2)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('reads blocks once a second, until three seconds after they were settled, and until then holds the restart back', async () => {
    const { chain, settledEvents, seal } = openRecheck()
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
    const { chain, seal } = openRecheck()
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

  it.each([
    ['without logs', false],
    ['with later logs of another branch alone', true],
  ])('reads blocks again that an answer %s may lack', async (_, hasOthers) => {
    const { chain, settledEvents, seal, answerRecheck } = openRecheck()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    // A machine of the same name lags, and answers for blocks that it lacks as for empty ones.
    answerRecheck((_from, to) => (hasOthers ? [{ ...chain.nodeLogOf({ ...log, block: to }), blockHash: word(77) }] : []))
    await seal(26)
    expect(settledEvents.logKeys()).toEqual([])
    chain.override = () => undefined
    await seal(8)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('reads blocks again that a short answer may lack', async () => {
    const { chain, settledEvents, seal, answerRecheck } = openRecheck()
    const first = chain.addLog(HEAD + 2)
    chain.addLog(HEAD + 6)
    await seal(8)
    const late = chain.addLog(HEAD + 4)
    // Every answer ends behind its first log.
    answerRecheck((from) => (from <= HEAD + 2 ? [chain.nodeLogOf(first)] : []))
    await seal(40)
    expect(settledEvents.logKeys()).not.toContain(keyOf(late))
    chain.override = () => undefined
    await seal(8)
    expect(settledEvents.logKeys()).toContain(keyOf(late))
  })

  it('reads blocks again that come after the last log of an answer, however old they are', async () => {
    const { chain, settledEvents, seal, advance } = openRecheck()
    const [first, second, late] = [chain.addLog(HEAD + 1), chain.addLog(HEAD + 1), chain.addLog(HEAD + 2)]
    chain.hideLogs(HEAD + 2, 1)
    chain.cutAfter = 2
    await seal(2)
    await advance(60_000)
    // The recheck below the fourth block is the only one in these seconds, and its answer ends in the first.
    await seal(6)
    expect(settledEvents.logKeys()).toEqual([first, second].map(keyOf))
    await advance(1_000)
    await seal(6)
    expect(settledEvents.logKeys()).toEqual([first, second, late].map(keyOf))
  })

  it('reads the blocks that the node still has, where it pruned older ones', async () => {
    const { chain, settledEvents, seal } = openRecheck()
    await seal(12)
    chain.oldestLogBlock = HEAD + 9
    const log = chain.addLog(HEAD + 11)
    await seal(8)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('reports old blocks that the node has pruned as holes, but those with logs', async () => {
    const { chain, settledEvents, seal, refuseRecheck } = openRecheck()
    refuseRecheck()
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
    const { chain, seal, advance } = openRecheck()
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
    const { chain, settledEvents, seal } = openRecheck()
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
      const { chain, settledEvents, seal } = openRecheck()
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
    const { chain, settledEvents, seal, answerRecheck } = openRecheck()
    const requests: unknown[] = []
    answerRecheck((from, to) => {
      if (from > HEAD + 3 || to < HEAD + 3) return undefined
      if (from === to) requests.push(from)
      throw new UpstreamError('too_large', 'query exceeds max results')
    })
    const large = chain.addLog(HEAD + 3)
    chain.hideLogs(HEAD + 3, hiddenTimes)
    await seal(7)
    const late = [HEAD + 2, HEAD + 4].map((block) => chain.addLog(block))
    await seal(40)
    expect(settledEvents.logKeys().toSorted()).toEqual([large, ...late].map(keyOf).toSorted())
    expect(requests.length).toBeGreaterThan(0)
    expect(requests.length).toBeLessThan(10)
  })

  it('ignores logs of tokens that were listed after the block was settled', async () => {
    const { chain, settledEvents, listAddresses, seal } = openRecheck()
    chain.addLog(HEAD + 1, tesla)
    await seal(1)
    listAddresses([apple, tesla])
    await seal(7)
    expect(settledEvents.logKeys()).toEqual([])
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 8))
  })

  it('ignores logs of tokens that are no longer listed', async () => {
    const { chain, openKeys, settledEvents, seal } = openRecheck()
    const [gone, log] = [chain.addLog(HEAD + 1, tesla), chain.addLog(HEAD + 1)]
    openKeys.add(gone)
    chain.override = ({ method }) => {
      if (method !== 'eth_getLogs') return undefined
      chain.override = () => undefined
      return [chain.nodeLogOf(gone)]
    }
    await seal(1)
    expect(settledEvents.logKeys()).toEqual([keyOf(gone)])
    expect(settledEvents.blocks()[0]?.filters).toEqual([{ addresses: [apple, tesla] }])
    await seal(1)
    expect(settledEvents.logKeys().slice(1)).toEqual([gone, log].map(keyOf))
  })
})

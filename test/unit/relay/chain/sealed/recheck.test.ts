import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../../src/relay/chain/rpc/upstream-error.ts'
import { keyOf, tesla, word } from '../node-json.ts'
import { HEAD, openSealedBlocks, range, sealedHeader } from './sealed-chain-fixture.ts'

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

  it('is made up for after a restart', async () => {
    const { chain, settledEvents, seal, restart } = openSealedBlocks({ recordsSettled: true })
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    await seal(1)
    expect(settledEvents.logKeys()).toEqual([])
    restart(null)
    await seal(1)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('is made up for after a restart before the block that it found is settled again', async () => {
    const { chain, settledEvents, seal, announceHead, advance, restart } = openSealedBlocks({ recordsSettled: true })
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    await seal(1)
    await advance(4_000)
    chain.delayMs = 50
    chain.head += 1
    announceHead()
    await advance(60)
    // The recheck is answered at 100 ms, the next block at 110 ms.
    chain.head += 1
    announceHead()
    await advance(52)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 3))
    restart(null)
    await seal(1)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('includes the fork point of a reorganisation', async () => {
    const { chain, settledEvents, seal, announceHead, advance } = openSealedBlocks()
    await seal(1)
    const log = chain.addLog(HEAD + 2)
    chain.hideLogs(HEAD + 2, 1)
    await seal(2)
    chain.reorganise(1)
    announceHead()
    await advance(200)
    await seal(6)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('holds the restart back for a few seconds only', async () => {
    const { settledEvents, seal } = openSealedBlocks()
    await seal(10)
    expect(settledEvents.restartCursor()?.number).toBe(HEAD)
    await seal(50)
    expect(settledEvents.restartCursor()?.number).toBeGreaterThan(HEAD + 10)
  })

  it('reads blocks once a second, until three seconds after they were settled', async () => {
    const { chain, seal } = openSealedBlocks()
    for (let block = HEAD + 1; block <= HEAD + 26; block += 1) chain.addLog(block)
    await seal(26)
    expect(chain.requestedRanges()).toEqual([
      [HEAD + 1, HEAD + 1],
      [HEAD + 1, HEAD + 7],
      [HEAD + 1, HEAD + 13],
      [HEAD + 1, HEAD + 19],
      [HEAD + 6, HEAD + 25],
    ])
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

  it.each([
    ['without logs', false],
    ['with later logs of another branch alone', true],
  ])('reads blocks again that an answer %s may lack', async (_, hasOthers) => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    // A machine of the same name lags, and answers for blocks that it lacks as for empty ones.
    chain.override = ({ params }) => {
      const { toBlock } = params[0] as { toBlock?: string }
      if (toBlock === undefined) return undefined
      return hasOthers ? [{ ...chain.nodeLogOf({ ...log, block: Number(toBlock) }), blockHash: word(77) }] : []
    }
    await seal(26)
    expect(settledEvents.logKeys()).toEqual([])
    chain.override = () => undefined
    await seal(8)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('reads blocks again that a short answer may lack', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    const first = chain.addLog(HEAD + 2)
    chain.addLog(HEAD + 6)
    await seal(8)
    const late = chain.addLog(HEAD + 4)
    // Every answer ends behind its first log.
    chain.override = ({ params }) => {
      const { fromBlock } = params[0] as { fromBlock?: string }
      if (fromBlock === undefined) return undefined
      return Number(fromBlock) <= HEAD + 2 ? [chain.nodeLogOf(first)] : []
    }
    await seal(40)
    expect(settledEvents.logKeys()).not.toContain(keyOf(late))
    chain.override = () => undefined
    await seal(8)
    expect(settledEvents.logKeys()).toContain(keyOf(late))
  })

  it('reads blocks again that come after the last log of an answer, however old they are', async () => {
    const { chain, settledEvents, seal, advance } = openSealedBlocks()
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

  it('leaves its blocks to the next one when it fails', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    await seal(8)
    const log = chain.addLog(HEAD + 2)
    chain.override = (request) => {
      if (JSON.stringify(request.params).includes('fromBlock')) throw new UpstreamError('busy', 'HTTP 429')
      return undefined
    }
    await seal(40)
    expect(settledEvents.logKeys()).toEqual([])
    chain.override = () => undefined
    await seal(8)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('reads the blocks that the node still has, where it pruned older ones', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    await seal(12)
    chain.oldestLogBlock = HEAD + 9
    const log = chain.addLog(HEAD + 11)
    await seal(8)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it.each([90, 300])('reads the last blocks before an outage of %i blocks', async (blocks) => {
    const { chain, settledEvents, announceHead, seal, advance } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    await seal(1)
    chain.override = () => {
      throw new UpstreamError('unreachable', 'HTTP 502')
    }
    chain.head += blocks
    announceHead()
    await advance(60_000)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1])
    chain.override = () => undefined
    await seal(60)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
    expect(settledEvents.restartCursor()?.number).toBeGreaterThan(HEAD + blocks)
  })

  it('gives up old blocks that the node has pruned', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.override = ({ params }) => {
      if (JSON.stringify(params).includes('fromBlock')) throw new UpstreamError('busy', 'HTTP 429')
      return undefined
    }
    await seal(300)
    expect(settledEvents.restartCursor()?.number).toBe(HEAD)
    chain.override = () => undefined
    chain.oldestLogBlock = HEAD + 100
    await seal(60)
    expect(settledEvents.restartCursor()?.number).toBeGreaterThan(HEAD + 300)
  })

  it('always reads the last four blocks, even of a slow chain', async () => {
    const { chain, seal, advance } = openSealedBlocks()
    for (let block = HEAD + 1; block <= HEAD + 8; block += 1) chain.addLog(block)
    for (let block = 0; block < 8; block += 1) {
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

  it.each([3, 2, 1])('reads in parts from a node that allows only %i blocks', async (rangeBound) => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.rangeBound = rangeBound
    await seal(7)
    const logs = [HEAD + 1, HEAD + 2, HEAD + 3, HEAD + 4].map((block) => chain.addLog(block))
    await seal(1)
    expect(settledEvents.logKeys().toSorted()).toEqual(logs.map(keyOf).toSorted())
  })

  it('keeps up with a chain that is faster than that', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.rangeBound = 2
    const logs: ReturnType<typeof chain.addLog>[] = []
    while (logs.length < 400) {
      await seal(1)
      logs.push(chain.addLog(chain.head - 9))
    }
    await seal(30)
    expect(settledEvents.logKeys()).toEqual(logs.slice(9).map(keyOf))
  })

  describe('with a block that is too large by itself', () => {
    /** A chain whose third block is too large for any range. */
    const crowded = () => {
      const opened = openSealedBlocks()
      const { chain } = opened
      const requests: unknown[] = []
      chain.override = ({ params }) => {
        const [filter] = params as readonly { readonly fromBlock?: string; readonly toBlock?: string }[]
        if (filter?.fromBlock === undefined) return undefined
        const [from, to] = [Number(filter.fromBlock), Number(filter.toBlock)]
        if (from > HEAD + 3 || to < HEAD + 3) return undefined
        if (from === to) requests.push(filter)
        throw new UpstreamError('too_large', 'query exceeds max results')
      }
      return { ...opened, requests }
    }

    it('still reads the other blocks, and finishes', async () => {
      const { chain, settledEvents, seal, requests } = crowded()
      const largeBlockLog = chain.addLog(HEAD + 3)
      await seal(7)
      const late = [HEAD + 2, HEAD + 4].map((block) => chain.addLog(block))
      await seal(40)
      expect(settledEvents.logKeys()).toEqual([largeBlockLog, ...late].map(keyOf))
      expect(requests.length).toBeGreaterThan(0)
      expect(requests.length).toBeLessThan(10)
    })

    it('settles that block again if it seemed empty', async () => {
      const { chain, settledEvents, seal, requests } = crowded()
      const log = chain.addLog(HEAD + 3)
      chain.hideLogs(HEAD + 3, 1)
      await seal(40)
      expect(settledEvents.logKeys()).toEqual([keyOf(log)])
      expect(requests.length).toBeLessThan(10)
    })
  })

  it('retracts nothing because an answer has fewer logs', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.addLog(HEAD + 1)
    await seal(1)
    chain.hideLogs(HEAD + 1)
    await seal(6)
    expect(settledEvents.blocks().filter(({ number }) => number === HEAD + 1)).toHaveLength(1)
  })

  it('ignores logs of tokens that were listed after the block was settled', async () => {
    const { chain, settledEvents, list, seal } = openSealedBlocks()
    chain.addLog(HEAD + 1, tesla)
    await seal(1)
    list.addresses = [...list.addresses, tesla]
    await seal(7)
    expect(settledEvents.logKeys()).toEqual([])
    expect(settledEvents.blockNumbers()).toEqual([...new Set(settledEvents.blockNumbers())])
  })

  it('ignores logs of tokens that are no longer listed', async () => {
    const { chain, openKeys, settledEvents, seal } = openSealedBlocks()
    const [gone, log] = [chain.addLog(HEAD + 1, tesla), chain.addLog(HEAD + 1)]
    openKeys.add(gone)
    chain.override = ({ method }) => {
      if (method !== 'eth_getLogs') return undefined
      chain.override = () => undefined
      return [chain.nodeLogOf(gone)]
    }
    await seal(1)
    expect(settledEvents.logKeys()).toEqual([keyOf(gone)])
    await seal(1)
    expect(settledEvents.logKeys().slice(1)).toEqual([gone, log].map(keyOf))
  })

  it('ignores logs of another block at that height', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    await seal(1)
    chain.addLog(HEAD + 1)
    chain.override = ({ params }) => {
      if (!JSON.stringify(params).includes('fromBlock')) return undefined
      const { blockHash: _, ...log } = { ...chain.headerOf(HEAD + 1), blockHash: word(77) }
      return [log]
    }
    await seal(1)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1, HEAD + 2])
  })

  it('may fail, and the next one finds the logs', async () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    const refuse = ({ params }: { readonly params: readonly unknown[] }) => {
      if (!JSON.stringify(params).includes('fromBlock')) return undefined
      throw new UpstreamError('busy', 'over rate limit')
    }
    chain.override = refuse
    await seal(2)
    chain.override = () => undefined
    expect(settledEvents.logKeys()).toEqual([])
    await seal(6)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('still settles a block again after a head that never became canonical', async () => {
    const { chain, settledEvents, seal, sealed, advance } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    await seal(1)
    sealed.receiveHead(sealedHeader({ ...chain.headerOf(HEAD + 1), hash: word(77) }))
    await advance(0)
    await seal(2)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('of a replaced block leads to the block in its place', async () => {
    const { chain, settledEvents, seal, announceHead, advance } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    await seal(1)
    chain.delayMs = 30
    chain.head += 1
    announceHead()
    await advance(70)
    chain.reorganise(2)
    await advance(5_000)
    await seal(1)
    await advance(1_000)
    expect(settledEvents.blocks().at(-1)?.hash).toBe(chain.hashOf(HEAD + 3))
    const last = new Map(settledEvents.blocks().map((block) => [block.number, block]))
    expect(last.get(HEAD + 1)?.hash).toBe(chain.hashOf(HEAD + 1))
    expect(last.get(HEAD + 1)?.logs).toEqual([])
    expect(settledEvents.logKeys().filter((key) => key === keyOf(log)).length).toBeLessThanOrEqual(1)
  })
})

import { describe, expect, it } from 'vitest'
import { UpstreamError } from '../../../../src/chain/rpc/error.ts'
import { keyOf, tesla, word } from '../node-json.ts'
import { HEAD, openSealedBlocks, sealedHeader } from './sealed-blocks-fixture.ts'

describe('a recheck of settled blocks', () => {
  it('settles a block again that has more logs now', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    seal(1)
    expect(settledEvents.blocks().map(({ logs }) => logs.length)).toEqual([0])
    seal(1)
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

  it('is made up for after a restart', () => {
    const { chain, settledEvents, seal, restart } = openSealedBlocks({ recordsSettled: true })
    seal(1)
    const log = chain.addLog(HEAD + 2)
    chain.hideLogs(HEAD + 2, 1)
    seal(1)
    expect(settledEvents.logKeys()).toEqual([])
    restart(null)
    seal(1)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('does not hold back the restart point for long', () => {
    const { settledEvents, seal } = openSealedBlocks()
    const restartPoint = () => settledEvents.ofType('sealed').at(-1)?.restart?.number
    seal(10)
    expect(restartPoint()).toBe(HEAD)
    seal(30)
    expect(restartPoint()).toBeGreaterThan(HEAD + 10)
  })

  it('reads blocks once a second, until three seconds after they were settled', () => {
    const { chain, seal } = openSealedBlocks()
    seal(26)
    expect(chain.requestedRanges()).toEqual([
      [HEAD + 1, HEAD + 1],
      [HEAD + 1, HEAD + 7],
      [HEAD + 1, HEAD + 13],
      [HEAD + 1, HEAD + 19],
      [HEAD + 6, HEAD + 25],
    ])
  })

  it('leaves its blocks to the next one when it fails', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    seal(8)
    const log = chain.addLog(HEAD + 2)
    chain.override = (request) => {
      if (JSON.stringify(request.params).includes('fromBlock')) throw new UpstreamError('busy', 'HTTP 429')
      return undefined
    }
    seal(40)
    expect(settledEvents.logKeys()).toEqual([])
    chain.override = () => undefined
    seal(8)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('always reads the last four blocks, even of a slow chain', () => {
    const { chain, seal, advance } = openSealedBlocks()
    for (let block = 0; block < 8; block += 1) {
      seal(1)
      advance(2_000)
    }
    expect(chain.requestedRanges().slice(-2)).toEqual([
      [HEAD + 2, HEAD + 5],
      [HEAD + 4, HEAD + 7],
    ])
  })

  it('reads the oldest four due blocks of a node that limits the range', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.rangeBound = 5
    seal(7)
    const log = chain.addLog(HEAD + 3)
    seal(1)
    expect(chain.requestedRanges().slice(-2)).toEqual([
      [HEAD + 1, HEAD + 7],
      [HEAD + 1, HEAD + 4],
    ])
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it.each([3, 2, 1])('reads in parts from a node that allows only %i blocks', (rangeBound) => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.rangeBound = rangeBound
    seal(7)
    const logs = [HEAD + 1, HEAD + 2, HEAD + 3, HEAD + 4].map((block) => chain.addLog(block))
    seal(1)
    expect(settledEvents.logKeys().toSorted()).toEqual(logs.map(keyOf).toSorted())
  })

  it('keeps up with a chain that is faster than that', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.rangeBound = 2
    const logs = Array.from({ length: 400 }, () => {
      seal(1)
      return chain.addLog(chain.head - 9)
    })
    seal(30)
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

    it('still reads the other blocks, and finishes', () => {
      const { chain, settledEvents, seal, requests } = crowded()
      const largeBlockLog = chain.addLog(HEAD + 3)
      seal(7)
      const late = [HEAD + 2, HEAD + 4].map((block) => chain.addLog(block))
      seal(40)
      expect(settledEvents.logKeys()).toEqual([largeBlockLog, ...late].map(keyOf))
      expect(requests.length).toBeGreaterThan(0)
      expect(requests.length).toBeLessThan(10)
    })

    it('settles that block again if it seemed empty', () => {
      const { chain, settledEvents, seal, requests } = crowded()
      const log = chain.addLog(HEAD + 3)
      chain.hideLogs(HEAD + 3, 1)
      seal(40)
      expect(settledEvents.logKeys()).toEqual([keyOf(log)])
      expect(requests.length).toBeLessThan(10)
    })
  })

  it('retracts nothing because an answer has fewer logs', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.addLog(HEAD + 1)
    seal(1)
    chain.hideLogs(HEAD + 1)
    seal(6)
    expect(settledEvents.blocks().filter(({ number }) => number === HEAD + 1)).toHaveLength(1)
  })

  it('ignores logs of tokens that were listed after the block was settled', () => {
    const { chain, settledEvents, list, seal } = openSealedBlocks()
    chain.addLog(HEAD + 1, tesla)
    seal(1)
    list.addresses = [...list.addresses, tesla]
    seal(7)
    expect(settledEvents.logKeys()).toEqual([])
    expect(settledEvents.blockNumbers()).toEqual([...new Set(settledEvents.blockNumbers())])
  })

  it('ignores logs of tokens that are no longer listed', () => {
    const { chain, openKeys, settledEvents, seal } = openSealedBlocks()
    const [gone, log] = [chain.addLog(HEAD + 1, tesla), chain.addLog(HEAD + 1)]
    openKeys.add(gone)
    chain.override = ({ method }) => {
      if (method !== 'eth_getLogs') return undefined
      chain.override = () => undefined
      return [chain.nodeLogOf(gone)]
    }
    seal(1)
    expect(settledEvents.logKeys()).toEqual([keyOf(gone)])
    seal(1)
    expect(settledEvents.logKeys().slice(1)).toEqual([gone, log].map(keyOf))
  })

  it('ignores logs of another block at that height', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    seal(1)
    chain.addLog(HEAD + 1)
    chain.override = ({ params }) => {
      if (!JSON.stringify(params).includes('fromBlock')) return undefined
      const { blockHash: _, ...log } = { ...chain.headerOf(HEAD + 1), blockHash: word(77) }
      return [log]
    }
    seal(1)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1, HEAD + 2])
  })

  it('may fail, and the next one finds the logs', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    const refuse = ({ params }: { readonly params: readonly unknown[] }) => {
      if (!JSON.stringify(params).includes('fromBlock')) return undefined
      throw new UpstreamError('busy', 'over rate limit')
    }
    chain.override = refuse
    seal(2)
    chain.override = () => undefined
    expect(settledEvents.logKeys()).toEqual([])
    seal(6)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('still settles a block again after a head that never became canonical', () => {
    const { chain, settledEvents, seal, sealed, advance } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    seal(1)
    sealed.receiveHead(sealedHeader({ ...chain.headerOf(HEAD + 1), hash: word(77) }))
    advance(0)
    seal(2)
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('of a replaced block leads to the block in its place', () => {
    const { chain, settledEvents, seal, announceHead, advance } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.hideLogs(HEAD + 1, 1)
    seal(1)
    chain.delayMs = 30
    chain.head += 1
    announceHead()
    advance(70)
    chain.reorganise(2)
    advance(5_000)
    seal(1)
    advance(1_000)
    expect(settledEvents.blocks().at(-1)?.hash).toBe(chain.hashOf(HEAD + 3))
    const last = new Map(settledEvents.blocks().map((block) => [block.number, block]))
    expect(last.get(HEAD + 1)?.hash).toBe(chain.hashOf(HEAD + 1))
    expect(last.get(HEAD + 1)?.logs).toEqual([])
    expect(settledEvents.logKeys().filter((key) => key === keyOf(log)).length).toBeLessThanOrEqual(1)
  })
})

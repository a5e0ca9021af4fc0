import { describe, expect, it } from 'vitest'
import { apple, keyOf, sealedLog, timestampOf } from '../node-json.ts'
import { HEAD, openSealedBlocks, range, sealedHeader } from './sealed-blocks-fixture.ts'

describe('settling', () => {
  it('emits each block once and in order as heads are pushed', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    const logs = range(HEAD + 1, HEAD + 10).map((block) => chain.addLog(block))
    seal(10)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 10))
    expect(settledEvents.logKeys()).toEqual(logs.map(keyOf))
    expect(settledEvents.cursors()).toEqual(range(HEAD + 1, HEAD + 10))
  })

  it('emits every field of a block', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.addLog(HEAD + 1)
    seal(1)
    const hash = chain.hashOf(HEAD + 1)
    expect(settledEvents.all).toEqual([
      {
        type: 'sealed',
        blocks: [
          {
            number: HEAD + 1,
            hash,
            timestamp: timestampOf(HEAD + 1),
            logs: [expect.objectContaining({ key: keyOf({ block: HEAD + 1 }), blockHash: hash })],
            addresses: [apple],
            via: 'sealed',
          },
        ],
        newest: HEAD + 1,
        cursor: { number: HEAD + 1, hash },
        restart: { number: HEAD, hash: chain.hashOf(HEAD) },
      },
    ])
  })

  it('reads logs by hash, and no header that was pushed', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    seal(3)
    expect(settledEvents.blockNumbers()).toHaveLength(3)
    expect(chain.requestedHashes()).toEqual(range(HEAD + 1, HEAD + 3).map((block) => chain.hashOf(block)))
    expect(chain.requestedHeaders()).toEqual([])
  })

  it('reads headers that were not pushed', () => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks()
    chain.head = HEAD + 5
    announceHead()
    advance(0)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 5))
    expect(chain.requestedHeaders()).toEqual(range(HEAD + 1, HEAD + 4))
  })

  it('emits a block once, however often and in any order its head is pushed', () => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks()
    chain.head = HEAD + 4
    for (const block of [2, 4, 1, 4, 3, 3, 2]) {
      announceHead(HEAD + block)
      advance(50)
    }
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 4))
  })

  it('emits nothing before it has a start', () => {
    const { chain, settledEvents, sealed, announceHead, advance } = openSealedBlocks()
    expect(sealed.begin({ number: HEAD - 100, hash: null })).toBe(false)
    chain.head = HEAD + 1
    announceHead()
    advance(0)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1])
  })

  it('starts after a block with unknown hash', () => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks({ cursor: { number: HEAD, hash: null } })
    chain.head = HEAD + 2
    announceHead()
    advance(0)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1, HEAD + 2])
  })

  it('reads no logs without a token, and still emits each block', () => {
    const { chain, settledEvents, list, seal } = openSealedBlocks()
    list.addresses = []
    seal(2)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1, HEAD + 2])
    expect(chain.requestedHashes()).toEqual([])
  })

  it('counts unreadable logs and emits the others', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    const log = chain.addLog(HEAD + 1)
    chain.override = ({ method }) => {
      if (method !== 'eth_getLogs') return undefined
      chain.override = () => undefined
      return [{ data: '0x1' }, sealedLog(log), null]
    }
    seal(1)
    expect(settledEvents.ofType('unreadable')).toEqual([{ type: 'unreadable', count: 2 }])
    expect(settledEvents.logKeys()).toEqual([keyOf(log)])
  })

  it('keeps up with the chain on a node slower than the block time', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.delayMs = 500
    seal(50)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, settledEvents.blockNumbers().at(-1) ?? 0))
    expect(settledEvents.blockNumbers().length).toBeGreaterThanOrEqual(45)
  })

  it('emits in order, in any order the answers come', () => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks()
    const logs = range(HEAD + 1, HEAD + 20).map((block) => chain.addLog(block))
    let questions = 0
    chain.override = () => {
      questions += 1
      chain.delayMs = [300, 10, 120, 40, 5][questions % 5] ?? 0
      return undefined
    }
    chain.head = HEAD + 20
    announceHead()
    advance(10_000)
    expect(settledEvents.logKeys()).toEqual(logs.map(keyOf))
  })

  it('continues after one head far above the chain', () => {
    const { chain, settledEvents, sealed, seal, advance } = openSealedBlocks()
    seal(1)
    const beyond = { ...chain.headerOf(HEAD + 1), number: `0x${(HEAD + 50_000).toString(16)}` }
    sealed.receiveHead(sealedHeader(beyond))
    advance(1_000)
    seal(20)
    advance(10_000)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 21))
    expect(sealed.head?.number).toBe(HEAD + 21)
  })

  it('ignores a head that is implausibly far ahead', () => {
    const { chain, settledEvents, sealed, seal } = openSealedBlocks()
    seal(1)
    const beyond = { ...chain.headerOf(HEAD + 1), number: `0x${(HEAD + 200_000_000).toString(16)}` }
    expect(sealed.receiveHead(sealedHeader(beyond))).toBe(false)
    seal(1)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1, HEAD + 2])
  })
})

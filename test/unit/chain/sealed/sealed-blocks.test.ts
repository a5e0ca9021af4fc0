import { describe, expect, it } from 'vitest'
import { apple, keyOf, sealedLog, timestampOf } from '../node-json.ts'
import { HEAD, openSealedBlocks, range, sealedHeader } from './sealed-blocks-fixture.ts'

describe('the sealed chain', () => {
  it('is told block by block, each once and in order, as heads are pushed', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    const logs = range(HEAD + 1, HEAD + 10).map((block) => chain.addLog(block))
    seal(10)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 10))
    expect(settledEvents.logKeys()).toEqual(logs.map(keyOf))
    expect(settledEvents.cursors()).toEqual(range(HEAD + 1, HEAD + 10))
  })

  it('says of each block what is to be known of it', () => {
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
      },
    ])
  })

  it('asks for the logs of each block by its hash, and for no header that was pushed', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    seal(3)
    expect(settledEvents.blockNumbers()).toHaveLength(3)
    expect(chain.requestedHashes()).toEqual(range(HEAD + 1, HEAD + 3).map((block) => chain.hashOf(block)))
    expect(chain.requestedHeaders()).toEqual([])
  })

  it('asks for the headers that nobody pushed', () => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks()
    chain.head = HEAD + 5
    announceHead()
    advance(0)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 5))
    expect(chain.requestedHeaders()).toEqual(range(HEAD + 1, HEAD + 4))
  })

  it('is told once, however often and in whatever order its heads are told', () => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks()
    chain.head = HEAD + 4
    for (const block of [2, 4, 1, 4, 3, 3, 2]) {
      announceHead(HEAD + block)
      advance(50)
    }
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, HEAD + 4))
  })

  it('is not told before it is known where to begin', () => {
    const { chain, settledEvents, sealed, announceHead, advance } = openSealedBlocks()
    expect(sealed.begin({ number: HEAD - 100, hash: null })).toBe(false)
    chain.head = HEAD + 1
    announceHead()
    advance(0)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1])
  })

  it('begins after a block whose hash nobody knows', () => {
    const { chain, settledEvents, announceHead, advance } = openSealedBlocks({ cursor: { number: HEAD, hash: null } })
    chain.head = HEAD + 2
    announceHead()
    advance(0)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1, HEAD + 2])
  })

  it('asks for nothing where no token is wanted, and tells each block all the same', () => {
    const { chain, settledEvents, list, seal } = openSealedBlocks()
    list.addresses = []
    seal(2)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1, HEAD + 2])
    expect(chain.requestedHashes()).toEqual([])
  })

  it('counts the logs that cannot be read and tells the others', () => {
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

  it('keeps up with the chain where the node is further away than a block takes', () => {
    const { chain, settledEvents, seal } = openSealedBlocks()
    chain.delayMs = 500
    seal(50)
    expect(settledEvents.blockNumbers()).toEqual(range(HEAD + 1, settledEvents.blockNumbers().at(-1) ?? 0))
    expect(settledEvents.blockNumbers().length).toBeGreaterThanOrEqual(45)
  })

  it('is told in order, however the answers come', () => {
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

  it('goes on though a head was told once that is far above the chain', () => {
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

  it('takes no head for one that lies further ahead than any chain runs', () => {
    const { chain, settledEvents, sealed, seal } = openSealedBlocks()
    seal(1)
    const beyond = { ...chain.headerOf(HEAD + 1), number: `0x${(HEAD + 200_000_000).toString(16)}` }
    expect(sealed.receiveHead(sealedHeader(beyond))).toBe(false)
    seal(1)
    expect(settledEvents.blockNumbers()).toEqual([HEAD + 1, HEAD + 2])
  })
})

import { describe, expect, it } from 'vitest'
import { apple, keyOf, sealedLog, secondOf } from '../node-json.ts'
import { HEAD, range, sealedHeader, walk } from './sealed-blocks-fixture.ts'

describe('the sealed chain', () => {
  it('is told block by block, each once and in order, as heads are pushed', () => {
    const { chain, told, seal } = walk()
    const logs = range(HEAD + 1, HEAD + 10).map((block) => chain.put(block))
    seal(10)
    expect(told.numbers()).toEqual(range(HEAD + 1, HEAD + 10))
    expect(told.logs()).toEqual(logs.map(keyOf))
    expect(told.cursors()).toEqual(range(HEAD + 1, HEAD + 10))
  })

  it('says of each block what is to be known of it', () => {
    const { chain, told, seal } = walk()
    chain.put(HEAD + 1)
    seal(1)
    const hash = chain.hashOf(HEAD + 1)
    expect(told.all).toEqual([
      {
        type: 'sealed',
        blocks: [
          {
            number: HEAD + 1,
            hash,
            timestamp: secondOf(HEAD + 1),
            logs: [expect.objectContaining({ key: keyOf({ block: HEAD + 1 }), blockHash: hash })],
            asked: [apple],
            via: 'sealed',
          },
        ],
        newest: HEAD + 1,
        cursor: { number: HEAD + 1, hash },
      },
    ])
  })

  it('asks for the logs of each block by its hash, and for no header that was pushed', () => {
    const { chain, told, seal } = walk()
    seal(3)
    expect(told.numbers()).toHaveLength(3)
    expect(chain.hashes()).toEqual(range(HEAD + 1, HEAD + 3).map((block) => chain.hashOf(block)))
    expect(chain.headers()).toEqual([])
  })

  it('asks for the headers that nobody pushed', () => {
    const { chain, told, raise, pass } = walk()
    chain.head = HEAD + 5
    raise()
    pass(0)
    expect(told.numbers()).toEqual(range(HEAD + 1, HEAD + 5))
    expect(chain.headers()).toEqual(range(HEAD + 1, HEAD + 4))
  })

  it('is told once, however often and in whatever order its heads are told', () => {
    const { chain, told, raise, pass } = walk()
    chain.head = HEAD + 4
    for (const block of [2, 4, 1, 4, 3, 3, 2]) {
      raise(HEAD + block)
      pass(50)
    }
    expect(told.numbers()).toEqual(range(HEAD + 1, HEAD + 4))
  })

  it('is not told before it is known where to begin', () => {
    const { chain, told, sealed, raise, pass } = walk()
    expect(sealed.begin({ number: HEAD - 100, hash: null })).toBe(false)
    chain.head = HEAD + 1
    raise()
    pass(0)
    expect(told.numbers()).toEqual([HEAD + 1])
  })

  it('begins after a block whose hash nobody knows', () => {
    const { chain, told, raise, pass } = walk({ cursor: { number: HEAD, hash: null } })
    chain.head = HEAD + 2
    raise()
    pass(0)
    expect(told.numbers()).toEqual([HEAD + 1, HEAD + 2])
  })

  it('asks for nothing where no token is wanted, and tells each block all the same', () => {
    const { chain, told, list, seal } = walk()
    list.addresses = []
    seal(2)
    expect(told.numbers()).toEqual([HEAD + 1, HEAD + 2])
    expect(chain.hashes()).toEqual([])
  })

  it('counts the logs that cannot be read and tells the others', () => {
    const { chain, told, seal } = walk()
    const log = chain.put(HEAD + 1)
    chain.instead = ({ method }) => {
      if (method !== 'eth_getLogs') return undefined
      chain.instead = () => undefined
      return [{ data: '0x1' }, sealedLog(log), null]
    }
    seal(1)
    expect(told.of('unreadable')).toEqual([{ type: 'unreadable', count: 2 }])
    expect(told.logs()).toEqual([keyOf(log)])
  })

  it('keeps up with the chain where the node is further away than a block takes', () => {
    const { chain, told, seal } = walk()
    chain.delayMs = 500
    seal(50)
    expect(told.numbers()).toEqual(range(HEAD + 1, told.numbers().at(-1) ?? 0))
    expect(told.numbers().length).toBeGreaterThanOrEqual(45)
  })

  it('is told in order, however the answers come', () => {
    const { chain, told, raise, pass } = walk()
    const logs = range(HEAD + 1, HEAD + 20).map((block) => chain.put(block))
    let questions = 0
    chain.instead = () => {
      questions += 1
      chain.delayMs = [300, 10, 120, 40, 5][questions % 5] ?? 0
      return undefined
    }
    chain.head = HEAD + 20
    raise()
    pass(10_000)
    expect(told.logs()).toEqual(logs.map(keyOf))
  })

  it('goes on though a head was told once that is far above the chain', () => {
    const { chain, told, sealed, seal, pass } = walk()
    seal(1)
    const beyond = { ...chain.headerOf(HEAD + 1), number: `0x${(HEAD + 50_000).toString(16)}` }
    sealed.raise(sealedHeader(beyond))
    pass(1_000)
    seal(20)
    pass(10_000)
    expect(told.numbers()).toEqual(range(HEAD + 1, HEAD + 21))
    expect(sealed.head?.number).toBe(HEAD + 21)
  })

  it('takes no head for one that lies further ahead than any chain runs', () => {
    const { chain, told, sealed, seal } = walk()
    seal(1)
    const beyond = { ...chain.headerOf(HEAD + 1), number: `0x${(HEAD + 200_000_000).toString(16)}` }
    expect(sealed.raise(sealedHeader(beyond))).toBe(false)
    seal(1)
    expect(told.numbers()).toEqual([HEAD + 1, HEAD + 2])
  })
})

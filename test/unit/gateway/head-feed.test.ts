import { describe, expect, it } from 'vitest'
import { Heads } from '../../../src/gateway/head-feed.ts'
import { type Fork, hashOf, headed, logOf, preconfirmed, sealed } from './log-feed-fixture.ts'

type Answer = Record<string, unknown> | null

/** Whoever wants to hear of heads, and a node that answers when it is let, of the chain that it is on. */
function openHeads() {
  const told: Record<string, unknown>[] = []
  const asked: number[] = []
  const node = {
    listens: true,
    /** From which block on the chain is another one. */
    parting: Number.POSITIVE_INFINITY,
    /** What the node says instead of the truth. */
    instead: (_number: number): Answer | undefined => undefined,
    fails: false,
  }
  const forkAt = (number: number): Fork => (number >= node.parting ? 'b' : 'a')
  const blockAt = (number: number) => ({
    number: `0x${number.toString(16)}`,
    hash: hashOf(number, forkAt(number)),
    parentHash: hashOf(number - 1, forkAt(number - 1)),
    logsBloom: '0x00',
    timestampMs: '0x18',
  })
  const contents = { transactions: ['0x1'], uncles: [], withdrawals: [], size: '0x2' }
  const heads = new Heads({
    listens: () => node.listens,
    block: async (number) => {
      asked.push(number)
      if (node.fails) throw new Error('the node does not answer')
      const instead = node.instead(number)
      return instead === undefined ? { ...blockAt(number), ...contents } : instead
    },
    tell: (header) => told.push(JSON.parse(header)),
    rest: async () => {},
  })
  /** Hears, and waits until all that follows from it without any more being heard is done. */
  const hear = async (...some: Parameters<Heads['hear']>[0][]) => {
    for (const one of some) heads.hear(one)
    await new Promise(setImmediate)
  }
  const inShort = () =>
    told.map(({ number, hash }) => `${Number(number)}${hash === hashOf(Number(number)) ? 'a' : 'b'}`)
  return { node, told, asked, hear, inShort, blockAt }
}

describe('the heads', () => {
  it('are told as headers: all that a block says of itself, and nothing of what it holds', async () => {
    const { told, hear, blockAt } = openHeads()
    await hear(headed(10))
    expect(told).toEqual([blockAt(10)])
  })

  it('come in order and without holes, however they are heard of', async () => {
    const { hear, inShort, asked } = openHeads()
    await hear(headed(10), headed(11), headed(14))
    await hear(preconfirmed(logOf({ block: 15 })), sealed({ number: 14 }), headed(14))
    await hear(headed(15))
    expect(inShort()).toEqual(['10a', '11a', '12a', '13a', '14a', '15a'])
    expect(asked).toEqual([10, 11, 12, 13, 14, 15])
  })

  it('are asked for by nobody where nobody listens, and begin with the next for who comes then', async () => {
    const { node, hear, inShort, asked } = openHeads()
    node.listens = false
    await hear(headed(10), headed(12), sealed({ number: 12 }))
    expect(asked).toEqual([])
    node.listens = true
    await hear(headed(13))
    expect(inShort()).toEqual(['13a'])
    node.listens = false
    await hear(headed(14), headed(20))
    node.listens = true
    await hear(headed(21))
    expect(inShort()).toEqual(['13a', '21a'])
  })

  it('that were missed are told up to 128; of more, the newest', async () => {
    const { hear, inShort } = openHeads()
    await hear(headed(10))
    await hear(headed(10 + 128))
    expect(inShort()).toEqual(Array.from({ length: 129 }, (_, at) => `${10 + at}a`))
    await hear(headed(10 + 128 + 1_000))
    expect(inShort().slice(129)).toEqual(Array.from({ length: 128 }, (_, at) => `${1_011 + at}a`))
  })

  it.each<[string, (blockAt: (number: number) => Answer) => Answer]>([
    ['answers nothing', () => null],
    ['answers an older block', (blockAt) => blockAt(9)],
    ['answers what is no block', () => ({ number: '0xb' })],
  ])('wait for a node that %s, and go on without a hole', async (_, instead) => {
    const { node, hear, inShort, blockAt } = openHeads()
    await hear(headed(10))
    node.instead = () => instead(blockAt)
    await hear(headed(11))
    await hear(headed(12))
    expect(inShort()).toEqual(['10a'])
    node.instead = () => undefined
    await hear(sealed({ number: 11 }))
    expect(inShort()).toEqual(['10a', '11a', '12a'])
  })

  it('are asked for again, for a node that is a moment behind whoever told of them, and not for ever', async () => {
    const { node, asked, hear, inShort } = openHeads()
    let lacks = 3
    node.instead = () => (lacks-- > 0 ? null : undefined)
    await hear(headed(10))
    expect(inShort()).toEqual(['10a'])
    expect(asked).toHaveLength(4)
    lacks = Number.POSITIVE_INFINITY
    await hear(headed(11))
    expect(asked).toHaveLength(4 + 21)
  })

  it('wait for a node that fails', async () => {
    const { node, hear, inShort } = openHeads()
    node.fails = true
    await hear(headed(10))
    node.fails = false
    await hear(headed(12))
    expect(inShort()).toEqual(['10a', '11a', '12a'])
  })
})

describe('where the chain goes back', () => {
  it('the heads do, and come anew from the first that is another', async () => {
    const { node, hear, inShort } = openHeads()
    for (const number of [10, 11, 12]) await hear(headed(number), sealed({ number }))
    node.parting = 11
    await hear(headed(13))
    expect(inShort()).toEqual(['10a', '11a', '12a', '11b', '12b', '13b'])
  })

  it('and no further, the settling of another block at the same height tells so', async () => {
    const { node, hear, inShort } = openHeads()
    for (const number of [10, 11, 12]) await hear(headed(number), sealed({ number }))
    node.parting = 11
    await hear({ type: 'doubted', from: 11 }, sealed({ number: 11, fork: 'b' }), sealed({ number: 12, fork: 'b' }))
    await hear(sealed({ number: 11, fork: 'b' }))
    expect(inShort()).toEqual(['10a', '11a', '12a', '11b', '12b'])
  })

  it('no head is repeated for a node that still answers the former block, until it goes back too', async () => {
    const { node, hear, inShort, blockAt } = openHeads()
    for (const number of [10, 11]) await hear(headed(number))
    const former = blockAt(11)
    node.parting = 11
    node.instead = (number) => (number === 11 ? former : undefined)
    await hear(headed(12))
    expect(inShort()).toEqual(['10a', '11a'])
    node.instead = () => undefined
    await hear(sealed({ number: 11, fork: 'b' }))
    expect(inShort()).toEqual(['10a', '11a', '11b', '12b'])
  })

  it('no head is repeated where it is settled otherwise and the node still answers the former block', async () => {
    const { node, hear, inShort, blockAt } = openHeads()
    for (const number of [10, 11]) await hear(headed(number))
    const former = blockAt(11)
    node.parting = 11
    node.instead = (number) => (number === 11 ? former : undefined)
    await hear(sealed({ number: 11, fork: 'b' }))
    expect(inShort()).toEqual(['10a', '11a'])
    node.instead = () => undefined
    await hear(headed(12))
    expect(inShort()).toEqual(['10a', '11a', '11b', '12b'])
  })

  it('and returns to where it was, nothing that was told is told again', async () => {
    const { node, hear, inShort, blockAt } = openHeads()
    for (const number of [10, 11]) await hear(headed(number))
    node.instead = (number) => (number === 12 ? { ...blockAt(12), parentHash: hashOf(11, 'b') } : undefined)
    await hear(headed(12))
    node.instead = () => undefined
    await hear(headed(13))
    expect(inShort()).toEqual(['10a', '11a', '12a', '13a'])
  })

  it('and then returns to the former chain, that is told once more', async () => {
    const { node, hear, inShort } = openHeads()
    for (const number of [10, 11]) await hear(headed(number), sealed({ number }))
    node.parting = 10
    node.instead = (number) => (number > 10 ? null : undefined)
    await hear(sealed({ number: 10, fork: 'b' }))
    expect(inShort()).toEqual(['10a', '11a', '10b'])
    node.parting = Number.POSITIVE_INFINITY
    node.instead = () => undefined
    await hear(sealed({ number: 10 }))
    await hear(headed(12))
    expect(inShort()).toEqual(['10a', '11a', '10b', '10a', '11a', '12a'])
  })
})

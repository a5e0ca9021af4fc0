import { describe, expect, it } from 'vitest'
import { HeadNotifier } from '../../../../../src/relay/gateway/subscriptions/head-notifier.ts'
import { type Fork, hashOf, headEvent, pendingLogEvent, readNodeLog, sealedEvent } from './log-notifier-fixture.ts'

type Answer = Record<string, unknown> | null

/** A feed with a subscriber, and a node that answers when the test lets it. */
function openHeadFeed() {
  const published: Record<string, unknown>[] = []
  const requestedBlocks: number[] = []
  const node = {
    listens: true,
    /** The block from which on the chain is another one. */
    forkBlock: Number.POSITIVE_INFINITY,
    /** What the node answers instead of the truth. */
    override: (_number: number): Answer | undefined => undefined,
    fails: false,
  }
  const forkAt = (number: number): Fork => (number >= node.forkBlock ? 'b' : 'a')
  const blockAt = (number: number) => ({
    number: `0x${number.toString(16)}`,
    hash: hashOf(number, forkAt(number)),
    parentHash: hashOf(number - 1, forkAt(number - 1)),
    logsBloom: '0x00',
    timestampMs: '0x18',
  })
  const contents = { transactions: ['0x1'], uncles: [], withdrawals: [], size: '0x2' }
  const headNotifier = new HeadNotifier({
    hasListeners: () => node.listens,
    readBlock: async (number) => {
      requestedBlocks.push(number)
      if (node.fails) throw new Error('the node does not answer')
      const override = node.override(number)
      return override === undefined ? { ...blockAt(number), ...contents } : override
    },
    publish: (header) => published.push(JSON.parse(header)),
    delay: async () => {},
  })
  /** Delivers an event and waits until the feed is idle. */
  const receive = async (...events: Parameters<HeadNotifier['receive']>[0][]) => {
    for (const event of events) headNotifier.receive(event)
    await new Promise(setImmediate)
  }
  const summarise = () => published.map(({ number, hash }) => `${Number(number)}${hash === hashOf(Number(number)) ? 'a' : 'b'}`)
  return { node, published, requestedBlocks, receive, summarise, blockAt }
}

describe('the heads', () => {
  it('are sent as headers, without what only a block has', async () => {
    const { published, receive, blockAt } = openHeadFeed()
    await receive(headEvent(10))
    expect(published).toEqual([blockAt(10)])
  })

  it('come in order and without holes, however they arrive', async () => {
    const { receive, summarise, requestedBlocks } = openHeadFeed()
    await receive(headEvent(10), headEvent(11), headEvent(14))
    await receive(pendingLogEvent(readNodeLog({ block: 15 })), sealedEvent({ number: 14 }), headEvent(14))
    await receive(headEvent(15))
    expect(summarise()).toEqual(['10a', '11a', '12a', '13a', '14a', '15a'])
    expect(requestedBlocks).toEqual([10, 11, 12, 13, 14, 15])
  })

  it('are not requested without subscribers, and begin with the next head for a new one', async () => {
    const { node, receive, summarise, requestedBlocks } = openHeadFeed()
    node.listens = false
    await receive(headEvent(10), headEvent(12), sealedEvent({ number: 12 }))
    expect(requestedBlocks).toEqual([])
    node.listens = true
    await receive(headEvent(13))
    expect(summarise()).toEqual(['13a'])
    node.listens = false
    await receive(headEvent(14), headEvent(20))
    node.listens = true
    await receive(headEvent(21))
    expect(summarise()).toEqual(['13a', '21a'])
  })

  it('are sent up to 128 if they were missed; of more, the newest', async () => {
    const { receive, summarise } = openHeadFeed()
    await receive(headEvent(10))
    await receive(headEvent(10 + 128))
    expect(summarise()).toEqual(Array.from({ length: 129 }, (_, at) => `${10 + at}a`))
    await receive(headEvent(10 + 128 + 1_000))
    expect(summarise().slice(129)).toEqual(Array.from({ length: 128 }, (_, at) => `${1_011 + at}a`))
  })

  it.each<[string, (blockAt: (number: number) => Answer) => Answer]>([
    ['answers nothing', () => null],
    ['answers an older block', (blockAt) => blockAt(9)],
    ['answers what is no block', () => ({ number: '0xb' })],
  ])('wait for a node that %s, and continue without a hole', async (_, override) => {
    const { node, receive, summarise, blockAt } = openHeadFeed()
    await receive(headEvent(10))
    node.override = () => override(blockAt)
    await receive(headEvent(11))
    await receive(headEvent(12))
    expect(summarise()).toEqual(['10a'])
    node.override = () => undefined
    await receive(sealedEvent({ number: 11 }))
    expect(summarise()).toEqual(['10a', '11a', '12a'])
  })

  it('are requested again, a limited number of times, from a node that lags behind the announcement', async () => {
    const { node, requestedBlocks, receive, summarise } = openHeadFeed()
    let lacks = 3
    node.override = () => (lacks-- > 0 ? null : undefined)
    await receive(headEvent(10))
    expect(summarise()).toEqual(['10a'])
    expect(requestedBlocks).toHaveLength(4)
    lacks = Number.POSITIVE_INFINITY
    await receive(headEvent(11))
    expect(requestedBlocks).toHaveLength(4 + 21)
  })

  it('wait for a node that fails', async () => {
    const { node, receive, summarise } = openHeadFeed()
    node.fails = true
    await receive(headEvent(10))
    node.fails = false
    await receive(headEvent(12))
    expect(summarise()).toEqual(['10a', '11a', '12a'])
  })
})

describe('after a reorganisation', () => {
  it('the heads are sent again from the first that differs', async () => {
    const { node, receive, summarise } = openHeadFeed()
    for (const number of [10, 11, 12]) await receive(headEvent(number), sealedEvent({ number }))
    node.forkBlock = 11
    await receive(headEvent(13))
    expect(summarise()).toEqual(['10a', '11a', '12a', '11b', '12b', '13b'])
  })

  it('the settling of another block at the same height shows where that is', async () => {
    const { node, receive, summarise } = openHeadFeed()
    for (const number of [10, 11, 12]) await receive(headEvent(number), sealedEvent({ number }))
    node.forkBlock = 11
    await receive({ type: 'reorg', from: 11 }, sealedEvent({ number: 11, fork: 'b' }), sealedEvent({ number: 12, fork: 'b' }))
    await receive(sealedEvent({ number: 11, fork: 'b' }))
    expect(summarise()).toEqual(['10a', '11a', '12a', '11b', '12b'])
  })

  it('no head repeats for a node that still answers the old block, until it reorganises too', async () => {
    const { node, receive, summarise, blockAt } = openHeadFeed()
    for (const number of [10, 11]) await receive(headEvent(number))
    const former = blockAt(11)
    node.forkBlock = 11
    node.override = (number) => (number === 11 ? former : undefined)
    await receive(headEvent(12))
    expect(summarise()).toEqual(['10a', '11a'])
    node.override = () => undefined
    await receive(sealedEvent({ number: 11, fork: 'b' }))
    expect(summarise()).toEqual(['10a', '11a', '11b', '12b'])
  })

  it('no head repeats if it is settled otherwise and the node still answers the old block', async () => {
    const { node, receive, summarise, blockAt } = openHeadFeed()
    for (const number of [10, 11]) await receive(headEvent(number))
    const former = blockAt(11)
    node.forkBlock = 11
    node.override = (number) => (number === 11 ? former : undefined)
    await receive(sealedEvent({ number: 11, fork: 'b' }))
    expect(summarise()).toEqual(['10a', '11a'])
    node.override = () => undefined
    await receive(headEvent(12))
    expect(summarise()).toEqual(['10a', '11a', '11b', '12b'])
  })

  it('that returns to where it was, no head is sent again', async () => {
    const { node, receive, summarise, blockAt } = openHeadFeed()
    for (const number of [10, 11]) await receive(headEvent(number))
    node.override = (number) => (number === 12 ? { ...blockAt(12), parentHash: hashOf(11, 'b') } : undefined)
    await receive(headEvent(12))
    node.override = () => undefined
    await receive(headEvent(13))
    expect(summarise()).toEqual(['10a', '11a', '12a', '13a'])
  })

  it('that then returns to the old chain, the old heads are sent once more', async () => {
    const { node, receive, summarise } = openHeadFeed()
    for (const number of [10, 11]) await receive(headEvent(number), sealedEvent({ number }))
    node.forkBlock = 10
    node.override = (number) => (number > 10 ? null : undefined)
    await receive(sealedEvent({ number: 10, fork: 'b' }))
    expect(summarise()).toEqual(['10a', '11a', '10b'])
    node.forkBlock = Number.POSITIVE_INFINITY
    node.override = () => undefined
    await receive(sealedEvent({ number: 10 }))
    await receive(headEvent(12))
    expect(summarise()).toEqual(['10a', '11a', '10b', '10a', '11a', '12a'])
  })
})

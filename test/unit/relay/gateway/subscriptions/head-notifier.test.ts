import { describe, expect, it } from 'vitest'
import type { ChainEvent } from '../../../../../src/relay/chain/source/source.ts'
import { HeadNotifier } from '../../../../../src/relay/gateway/subscriptions/head-notifier.ts'
import { type Fork, hashOf, headEvent, pendingLogEvent, readNodeLog, sealedEvent } from './log-notifier-fixture.ts'

/** A feed with a subscriber, and a node. */
function openHeadFeed() {
  const published: Record<string, unknown>[] = []
  const requestedBlocks: number[] = []
  /** The block from which on the chain is another one; what the node answers instead of the truth. */
  const node = { listens: true, forkBlock: Number.POSITIVE_INFINITY, override: (_: number): object | null | undefined => undefined }
  const forkAt = (number: number): Fork => (number >= node.forkBlock ? 'b' : 'a')
  const blockAt = (number: number, fork = forkAt(number), parentFork = forkAt(number - 1)) => ({
    number: `0x${number.toString(16)}`,
    hash: hashOf(number, fork),
    parentHash: hashOf(number - 1, parentFork),
    logsBloom: '0x00',
    timestampMs: '0x18',
  })
  const contents = { transactions: ['0x1'], uncles: [], withdrawals: [], size: '0x2' }
  const headNotifier = new HeadNotifier({
    hasListeners: () => node.listens,
    readBlock: async (number) => {
      requestedBlocks.push(number)
      const answer = await node.override(number)
      return answer === undefined ? { ...blockAt(number), ...contents } : answer
    },
    publish: (header) => published.push(JSON.parse(header)),
    delay: async () => {},
  })
  const override = (answer: (number: number) => object | null | undefined) => Object.assign(node, { override: answer })
  /** What the node does from then on. */
  const changes: Record<string, (at: number) => object> = {
    'nobody listens': () => Object.assign(node, { listens: false }),
    'somebody listens': () => Object.assign(node, { listens: true }),
    'the chain forks at': (at) => Object.assign(node, { forkBlock: at }),
    'the chain returns': () => Object.assign(node, { forkBlock: Number.POSITIVE_INFINITY }),
    'the node tells the truth': () => override(() => undefined),
    'the node lacks blocks above': (at) => override((number) => (number > at ? null : undefined)),
    'the node always answers': (at) => override(() => blockAt(at)),
    'the node answers no block': () => override(() => ({ number: '0xb' })),
    'the node fails': () => override(() => Promise.reject(new Error('the node does not answer'))),
    'the node has the old block': (at) => override((number) => (number === at ? blockAt(at, 'a', 'a') : undefined)),
    'the node has another parent of': (at) => override((number) => (number === at ? blockAt(at, 'a', 'b') : undefined)),
  }
  const readEvent = (text: string): ChainEvent => {
    const [kind, at = ''] = text.split(' ')
    const number = Number.parseInt(at, 10)
    if (kind === 'head') return headEvent(number)
    if (kind === 'reorg') return { type: 'reorg', from: number }
    if (kind === 'log') return pendingLogEvent(readNodeLog({ block: number }))
    return sealedEvent({ number, fork: at.endsWith('b') ? 'b' : 'a' })
  }
  /** Delivers events, those between commas together, or changes the node; waits until the feed is idle. */
  const play = async (steps: string) => {
    for (const step of steps.split('; ')) {
      const [, name = '', at] = /^(.*?)(?: (\d+))?$/.exec(step) ?? []
      if (changes[name]) changes[name](Number(at))
      else for (const text of step.split(', ')) headNotifier.receive(readEvent(text))
      await new Promise(setImmediate)
    }
  }
  const summary = () => published.map(({ number, hash }) => `${Number(number)}${hash === hashOf(Number(number)) ? 'a' : 'b'}`)
  return { node, published, requestedBlocks, play, summary, blockAt }
}

describe('the heads', () => {
  it('are sent as headers, without what only a block has', async () => {
    const { published, play, blockAt } = openHeadFeed()
    await play('head 10')
    expect(published).toEqual([blockAt(10)])
  })

  it('are sent up to 128 if they were missed; of more, the newest', async () => {
    const { play, summary } = openHeadFeed()
    await play('head 10; head 138')
    expect(summary()).toEqual(Array.from({ length: 129 }, (_, at) => `${10 + at}a`))
    await play('head 1138')
    expect(summary().slice(129)).toEqual(Array.from({ length: 128 }, (_, at) => `${1_011 + at}a`))
  })

  it('are requested again, a limited number of times, from a node that lags behind the announcement', async () => {
    const { node, requestedBlocks, play, summary } = openHeadFeed()
    let lacks = 3
    node.override = () => (lacks-- > 0 ? null : undefined)
    await play('head 10')
    expect(summary()).toEqual(['10a'])
    expect(requestedBlocks).toHaveLength(4)
    lacks = Number.POSITIVE_INFINITY
    await play('head 11')
    expect(requestedBlocks).toHaveLength(4 + 21)
  })

  it.each<[string, string, string, number[]?]>([
    [
      'come in order and without holes, however they arrive',
      'head 10, head 11, head 14; log 15, settle 14a, head 14; head 15',
      '10a 11a 12a 13a 14a 15a',
      [10, 11, 12, 13, 14, 15],
    ],
    ['are not requested without subscribers', 'nobody listens; head 10, head 12, settle 12a', '', []],
    [
      'begin with the next one for a new subscriber',
      'nobody listens; head 12; somebody listens; head 13; nobody listens; head 14, head 20; somebody listens; head 21',
      '13a 21a',
      [13, 21],
    ],
    ...['the node lacks blocks above 10', 'the node always answers 9', 'the node answers no block', 'the node fails'].map(
      (change): [string, string, string] => [
        `wait if ${change}`,
        `head 10; ${change}; head 11; head 12; the node tells the truth; settle 11a`,
        '10a 11a 12a',
      ],
    ),
  ])('%s', async (_, steps, expected, requested) => {
    const { play, summary, requestedBlocks } = openHeadFeed()
    await play(steps)
    expect(summary().join(' ')).toBe(expected)
    if (requested) expect(requestedBlocks).toEqual(requested)
  })
})

describe('after a reorganisation', () => {
  const settled = (...numbers: readonly number[]) => numbers.map((number) => `head ${number}, settle ${number}a`).join('; ')

  it.each([
    [
      'the heads are sent again from the first that differs',
      `${settled(10, 11, 12)}; the chain forks at 11; head 13`,
      '10a 11a 12a 11b 12b 13b',
    ],
    [
      'the settling of another block at the same height shows where that is',
      `${settled(10, 11, 12)}; the chain forks at 11; reorg 11, settle 11b, settle 12b; settle 11b`,
      '10a 11a 12a 11b 12b',
    ],
    [
      'no head repeats for a node that still answers the old block, until it reorganises too',
      'head 10; head 11; the chain forks at 11; the node has the old block 11; head 12; the node tells the truth; settle 11b',
      '10a 11a 11b 12b',
    ],
    [
      'no head repeats if it is settled otherwise and the node still answers the old block',
      'head 10; head 11; the chain forks at 11; the node has the old block 11; settle 11b; the node tells the truth; head 12',
      '10a 11a 11b 12b',
    ],
    [
      'that returns to where it was, no head is sent again',
      'head 10; head 11; the node has another parent of 12; head 12; the node tells the truth; head 13',
      '10a 11a 12a 13a',
    ],
    [
      'that then returns to the old chain, the old heads are sent once more',
      `${settled(10, 11)}; the chain forks at 10; the node lacks blocks above 10; settle 10b; the chain returns; the node tells the truth; settle 10a; head 12`,
      '10a 11a 10b 10a 11a 12a',
    ],
  ])('%s', async (_, steps, expected) => {
    const { play, summary } = openHeadFeed()
    await play(steps)
    expect(summary().join(' ')).toBe(expected)
  })
})

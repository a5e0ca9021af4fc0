import { describe, expect, it } from 'vitest'
import type { Heard } from '../../../src/chain/source/source.ts'
import { Moment } from '../../../src/gateway/chain-state.ts'
import type { SourceName, SourceReason } from '../../../src/protocol/fields.ts'
import { blockHash, word } from '../chain/node-json.ts'
import { heard } from './answers-fixture.ts'

const after = (...news: readonly Heard[]): Moment => {
  const moment = new Moment()
  for (const one of news) moment.hear(one)
  return moment
}
const counts = ({ era, heads, moves }: Moment) => [era, heads, moves]

describe('how far the chain is', () => {
  it('is not known before anything is heard', () => {
    const { head, safe, finalized, pending } = after()
    expect([head, safe, finalized, pending]).toEqual([null, null, null, null])
  })

  it('is the newest head, be it lower than one before', () => {
    expect(after(heard.head(5), heard.head(7)).head).toBe(7)
    expect(after(heard.head(7), heard.head(5)).head).toBe(5)
  })

  it.each(['safe', 'finalized'] as const)('is, as to what is %s, as was said', (stage) => {
    const moment = after(heard.head(5), heard.finality(stage, 3))
    expect([moment[stage], moment.head]).toEqual([3, 5])
  })

  it.each([
    ['the block that is being built', [heard.head(5), heard.building(6)], 6],
    ['the block of a log', [heard.head(5), heard.log(7)], 7],
    ['the head where it is newer', [heard.building(6), heard.log(6), heard.head(8)], 8],
    ['what is being built where no head is known', [heard.building(6)], 6],
    ['the block of a log not far above the head', [heard.head(5), heard.log(69)], 69],
    ['nothing of a log far above the head', [heard.head(5), heard.log(70)], 5],
    ['what is said to be built, be it lower than a log', [heard.head(5), heard.log(9), heard.building(6)], 6],
  ])('is, as to what is pending, %s', (_, news, pending) => {
    expect(after(...news).pending).toBe(pending)
  })
})

describe('whether heads are heard of', () => {
  it.each<[boolean, SourceName, SourceReason]>([
    [true, 'pendingLogs', 'ok'],
    [true, 'poll', 'ok'],
    [true, 'poll', 'silent'],
    [true, 'sealed', 'no_pending'],
    [true, 'pendingLogs', 'stale_head'],
    [false, 'down', 'unreachable'],
    [false, 'pendingLogs', 'unreachable'],
  ])('is %s where the source is %s, %s', (isHeard, source, reason) => {
    const moment = after()
    expect(moment.isDeaf).toBe(true)
    moment.hear({ type: 'status', source, reason })
    expect(moment.isDeaf).toBe(!isHeard)
  })
})

describe('how often the chain moved', () => {
  it.each<[string, Heard[], number[]]>([
    ['a head that is new', [heard.head(5), heard.head(6)], [0, 2, 0]],
    [
      'a number that is the head again, since the chain had gone back',
      [heard.head(5), heard.doubted(5), heard.head(5)],
      [1, 2, 0],
    ],
    ['that nothing is heard any more', [heard.head(5), heard.deaf], [0, 2, 0]],
    ['what is heard again', [heard.deaf, heard.hearing], [0, 1, 0]],
    ['a block that is begun', [heard.building(6), heard.building(7)], [0, 0, 2]],
    ['a block that is being built still', [heard.building(6), heard.building(6)], [0, 0, 1]],
    ['logs', [heard.log(6), heard.log(6)], [0, 0, 2]],
    ['a watermark', [heard.finality('safe', 3), heard.finality('finalized', 2)], [0, 2, 0]],
    ['a doubt', [heard.doubted(5)], [1, 0, 0]],
    ['blocks that are settled', [heard.sealed(5), heard.sealed(6)], [0, 0, 0]],
    ['a block that is settled twice', [heard.sealed(5), heard.sealed(5)], [0, 0, 0]],
    ['a block that is settled under another hash', [heard.sealed(5), heard.sealed(5, word(1))], [1, 0, 0]],
    ['one that comes back', [heard.sealed(5), heard.sealed(5, word(1)), heard.sealed(5)], [2, 0, 0]],
  ])('counts %s', (_, news, expected) => {
    expect(counts(after(...news))).toEqual(expected)
  })

  it('counts nothing that does not concern it', () => {
    const others: Heard[] = [
      { type: 'cursor', cursor: { number: 5, hash: blockHash(5) } },
      { type: 'hearing', addresses: [] },
      { type: 'unreadable', count: 1 },
      { type: 'status', source: 'sealed', reason: 'no_pending' },
      { type: 'hole', blocks: { from: 1, to: 2 }, reason: 'gone', cursor: { number: 5, hash: null } },
      { type: 'head', sealed: null, pending: null, timestamp: null },
    ]
    expect(counts(after(...others))).toEqual([0, 0, 0])
  })

  it('counts a reorganisation once: what was doubted may be settled under any hash', () => {
    const moment = after(heard.sealed(5), heard.sealed(6), heard.doubted(6), heard.sealed(6, word(1)))
    expect(moment.era).toBe(1)
    moment.hear(heard.sealed(5, word(2)))
    expect(moment.era).toBe(2)
  })

  it('counts a reorganisation where the head is settled under another hash than it had', () => {
    expect(after(heard.head(5), heard.sealed(5)).era).toBe(0)
    expect(after(heard.head(5), heard.sealed(5, word(1))).era).toBe(1)
  })

  it('takes with a block that is settled under another hash all that came after it', () => {
    const moment = after(heard.sealed(5), heard.sealed(6), heard.sealed(5, word(1)), heard.sealed(6, word(2)))
    expect(moment.era).toBe(1)
  })

  it('remembers the hashes of a thousand blocks and a few', () => {
    const moment = after(...Array.from({ length: 1_025 }, (_, number) => heard.sealed(number)))
    moment.hear(heard.sealed(0, word(1)))
    expect(moment.era).toBe(0)
    moment.hear(heard.sealed(2, word(1)))
    expect(moment.era).toBe(1)
  })
})

import { describe, expect, it } from 'vitest'
import type { SourceName, SourceReason } from '../../../../src/protocol/fields.ts'
import type { ChainEvent } from '../../../../src/relay/chain/source/source.ts'
import { ChainState } from '../../../../src/relay/gateway/chain-state.ts'
import { blockHash, word } from '../chain/node-json.ts'
import { holeEvent } from '../ingest/reducer-fixture.ts'
import { chainEvents } from './shared-answers-fixture.ts'

const stateAfter = (...events: readonly ChainEvent[]): ChainState => {
  const chainState = new ChainState()
  for (const event of events) chainState.receive(event)
  return chainState
}
const countersOf = ({ reorgCount, headCount, pendingCount }: ChainState) => [reorgCount, headCount, pendingCount]

describe('the state of the chain', () => {
  it('is unknown before any event', () => {
    const { head, safe, finalized, pending } = stateAfter()
    expect([head, safe, finalized, pending]).toEqual([null, null, null, null])
  })

  it('has the newest head, even if it is lower than one before', () => {
    expect(stateAfter(chainEvents.head(5), chainEvents.head(7)).head).toBe(7)
    expect(stateAfter(chainEvents.head(7), chainEvents.head(5)).head).toBe(5)
  })

  it.each(['safe', 'finalized'] as const)('has the %s block of the newest event', (stage) => {
    const chainState = stateAfter(chainEvents.head(5), chainEvents.finality(stage, 3))
    expect([chainState[stage], chainState.head]).toEqual([3, 5])
  })

  it.each([
    ['the block that is being built', [chainEvents.head(5), chainEvents.pendingHead(6)], 6],
    ['the block of a log', [chainEvents.head(5), chainEvents.log(7)], 7],
    ['the head where it is newer', [chainEvents.pendingHead(6), chainEvents.log(6), chainEvents.head(8)], 8],
    ['what is being built where no head is known', [chainEvents.pendingHead(6)], 6],
    ['the block of a log not far above the head', [chainEvents.head(5), chainEvents.log(69)], 69],
    ['nothing of a log far above the head', [chainEvents.head(5), chainEvents.log(70)], 5],
    [
      'the block being built, even if it is lower than that of a log',
      [chainEvents.head(5), chainEvents.log(9), chainEvents.pendingHead(6)],
      6,
    ],
  ])('has as pending %s', (_, events, pending) => {
    expect(stateAfter(...events).pending).toBe(pending)
  })
})

describe('the connection to the chain', () => {
  it.each<[boolean, SourceName, SourceReason]>([
    [true, 'pendingLogs', 'ok'],
    [true, 'poll', 'ok'],
    [true, 'poll', 'silent'],
    [true, 'sealed', 'no_pending'],
    [true, 'pendingLogs', 'stale_head'],
    [false, 'down', 'unreachable'],
    [false, 'pendingLogs', 'unreachable'],
  ])('is %s with the source %s, %s', (isConnected, source, reason) => {
    const chainState = stateAfter()
    expect(chainState.isDisconnected).toBe(true)
    chainState.receive({ type: 'status', source, reason })
    expect(chainState.isDisconnected).toBe(!isConnected)
  })
})

describe('the counts of moves', () => {
  const blocks = [chainEvents.sealed(5), chainEvents.sealed(6)]

  it.each<[string, ChainEvent[], number[]]>([
    ['a head that is new', [chainEvents.head(5), chainEvents.head(6)], [0, 2, 0]],
    [
      'a number that is the head again, since the chain had gone back',
      [chainEvents.head(5), chainEvents.reorg(5), chainEvents.head(5)],
      [1, 2, 0],
    ],
    ['a lost connection', [chainEvents.head(5), chainEvents.disconnected], [0, 2, 0]],
    ['a restored connection', [chainEvents.disconnected, chainEvents.connected], [0, 1, 0]],
    ['a block that is begun', [chainEvents.pendingHead(6), chainEvents.pendingHead(7)], [0, 0, 2]],
    ['a block that is being built still', [chainEvents.pendingHead(6), chainEvents.pendingHead(6)], [0, 0, 1]],
    ['logs', [chainEvents.log(6), chainEvents.log(6)], [0, 0, 2]],
    ['a safe and a finalized block', [chainEvents.finality('safe', 3), chainEvents.finality('finalized', 2)], [0, 2, 0]],
    ['a doubt', [chainEvents.reorg(5)], [1, 0, 0]],
    ['blocks that are settled', [chainEvents.sealed(5), chainEvents.sealed(6)], [0, 0, 0]],
    ['a block that is settled twice', [chainEvents.sealed(5), chainEvents.sealed(5)], [0, 0, 0]],
    ['a block that is settled under another hash', [chainEvents.sealed(5), chainEvents.sealed(5, word(1))], [1, 0, 0]],
    ['a hash that comes back', [chainEvents.sealed(5), chainEvents.sealed(5, word(1)), chainEvents.sealed(5)], [2, 0, 0]],
    ['a reorganisation once, under any hash', [...blocks, chainEvents.reorg(6), chainEvents.sealed(6, word(1))], [1, 0, 0]],
    [
      'a reorganisation of a block before one that was replaced',
      [...blocks, chainEvents.reorg(6), chainEvents.sealed(6, word(1)), chainEvents.sealed(5, word(2))],
      [2, 0, 0],
    ],
    ['a head that is settled under its hash', [chainEvents.head(5), chainEvents.sealed(5)], [0, 1, 0]],
    ['a head that is settled under another hash', [chainEvents.head(5), chainEvents.sealed(5, word(1))], [1, 2, 0]],
    [
      'no block after one that is settled anew',
      [...blocks, chainEvents.sealed(5, word(1)), chainEvents.sealed(6, word(2))],
      [1, 0, 0],
    ],
    [
      'what moves nothing',
      [
        { type: 'cursor', cursor: { number: 5, hash: blockHash(5) }, timestamp: null },
        ...[{ type: 'subscribed', addresses: [] } as const, { type: 'unreadable', count: 1 } as const, holeEvent(1, 2)],
        { type: 'status', source: 'sealed', reason: 'no_pending' },
        { type: 'head', sealed: null, pending: null, timestamp: null },
      ],
      [0, 0, 0],
    ],
  ])('count %s', (_, events, expected) => {
    expect(countersOf(stateAfter(...events))).toEqual(expected)
  })

  it('keep the hashes of a thousand blocks and a few', () => {
    const chainState = stateAfter(...Array.from({ length: 1_025 }, (_, number) => chainEvents.sealed(number)))
    chainState.receive(chainEvents.sealed(0, word(1)))
    expect(chainState.reorgCount).toBe(0)
    chainState.receive(chainEvents.sealed(2, word(1)))
    expect(chainState.reorgCount).toBe(1)
  })
})

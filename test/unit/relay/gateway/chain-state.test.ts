import { describe, expect, it } from 'vitest'
import type { SourceName, SourceReason } from '../../../../src/protocol/fields.ts'
import type { ChainEvent } from '../../../../src/relay/chain/source/source.ts'
import { ChainState } from '../../../../src/relay/gateway/chain-state.ts'
import { blockHash, word } from '../chain/node-json.ts'
import { holeEvent } from '../ingest/reducer-fixture.ts'
import { chainEvents } from './shared-answers-fixture.ts'

const { head, pendingHead, log, sealed, connected, disconnected, reorg, finality } = chainEvents
const stateAfter = (...events: readonly ChainEvent[]): ChainState => {
  const chainState = new ChainState()
  for (const event of events) chainState.receive(event)
  return chainState
}

describe('the state of the chain', () => {
  it.each<[string, ChainEvent[], Partial<ChainState>]>([
    ['is unknown before any event', [], { head: null, safe: null, finalized: null, pending: null, isDisconnected: true }],
    ['has the newest head', [head(5), head(7)], { head: 7 }],
    ['has the newest head, though it is lower than one before', [head(7), head(5)], { head: 5 }],
    ['has the safe block of the newest event', [head(5), finality('safe', 3)], { head: 5, safe: 3, finalized: null }],
    ['has the finalized block of the newest event', [head(5), finality('finalized', 3)], { head: 5, finalized: 3, safe: null }],
    ['has as pending what is being built', [head(5), pendingHead(6)], { pending: 6 }],
    ['has as pending what is being built where no head is known', [pendingHead(6)], { pending: 6 }],
    ['has as pending the block of a log', [head(5), log(7)], { pending: 7 }],
    ['has as pending the head where it is newer', [pendingHead(6), log(6), head(8)], { pending: 8 }],
    ['has as pending the block of a log not far above the head', [head(5), log(69)], { pending: 69 }],
    ['has nothing of a log far above the head', [head(5), log(70)], { pending: 5 }],
    ['has as pending what is being built, though it is lower than a log', [head(5), log(9), pendingHead(6)], { pending: 6 }],
  ])('%s', (_, events, expected) => {
    const { pending } = stateAfter(...events)
    expect({ ...stateAfter(...events), pending }).toMatchObject(expected)
  })

  it.each<[boolean, SourceName, SourceReason]>([
    [true, 'poll', 'silent'],
    [true, 'pendingLogs', 'stale_head'],
    [false, 'down', 'unreachable'],
    [false, 'pendingLogs', 'unreachable'],
  ])('is that it is connected: %s, with the source %s, %s', (isConnected, source, reason) => {
    expect(stateAfter({ type: 'status', source, reason }).isDisconnected).toBe(!isConnected)
  })
})

describe('the counts of moves', () => {
  const blocks = [sealed(5), sealed(6)]

  it.each<[string, ChainEvent[], number[]]>([
    ['a head that is new', [head(5), head(6)], [0, 2, 0]],
    ['a number that is the head again, since the chain had gone back', [head(5), reorg(5), head(5)], [1, 2, 0]],
    ['a lost connection', [head(5), disconnected], [0, 2, 0]],
    ['a restored connection', [disconnected, connected], [0, 1, 0]],
    ['a block that is begun', [pendingHead(6), pendingHead(7)], [0, 0, 2]],
    ['a block that is being built still', [pendingHead(6), pendingHead(6)], [0, 0, 1]],
    ['logs', [log(6), log(6)], [0, 0, 2]],
    ['a safe and a finalized block', [finality('safe', 3), finality('finalized', 2)], [0, 2, 0]],
    ['blocks that are settled', blocks, [0, 0, 0]],
    ['a block that is settled twice', [sealed(5), sealed(5)], [0, 0, 0]],
    ['a block that is settled under another hash', [sealed(5), sealed(5, word(1))], [1, 0, 0]],
    ['a hash that comes back', [sealed(5), sealed(5, word(1)), sealed(5)], [2, 0, 0]],
    ['a reorganisation once, under any hash', [...blocks, reorg(6), sealed(6, word(1))], [1, 0, 0]],
    ['a reorganisation before a replaced block', [...blocks, reorg(6), sealed(6, word(1)), sealed(5, word(2))], [2, 0, 0]],
    ['a head that is settled under its hash', [head(5), sealed(5)], [0, 1, 0]],
    ['a head that is settled under another hash', [head(5), sealed(5, word(1))], [1, 2, 0]],
    ['a head whose parent is another than the known block', [sealed(5), head(6, word(2), word(1))], [1, 3, 0]],
    ['no block after one that is settled anew', [...blocks, sealed(5, word(1)), sealed(6, word(2))], [1, 0, 0]],
    [
      'what moves nothing',
      [
        { type: 'cursor', cursor: { number: 5, hash: blockHash(5) }, timestamp: null },
        ...[{ type: 'subscribed', filters: [] } as const, holeEvent(1, 2)],
        { type: 'status', source: 'sealed', reason: 'no_pending' },
        { type: 'head', sealed: null, pending: null, timestamp: null },
      ],
      [0, 0, 0],
    ],
  ])('count %s', (_, events, expected) => {
    const { reorgCount, headCount, pendingCount } = stateAfter(...events)
    expect([reorgCount, headCount, pendingCount]).toEqual(expected)
  })

  it('keep the hashes of a thousand blocks and a few', () => {
    const chainState = stateAfter(...Array.from({ length: 1_025 }, (_, number) => sealed(number)))
    chainState.receive(sealed(0, word(1)))
    expect(chainState.reorgCount).toBe(0)
    chainState.receive(sealed(2, word(1)))
    expect(chainState.reorgCount).toBe(1)
  })
})

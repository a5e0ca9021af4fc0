import { expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import type { ChainEvent } from '../../../../src/relay/chain/source/source.ts'
import { LastChainEvents } from '../../../../src/relay/workers/last-chain-events.ts'

const cursorAt = (number: number): ChainEvent => ({ type: 'cursor', cursor: { number, hash: null }, timestamp: null })
const headAt = (sealed: number | null, pending: number | null = null): ChainEvent => ({
  type: 'head',
  sealed,
  pending,
  timestamp: 1,
})
const live: ChainEvent = { type: 'status', source: 'pendingLogs', reason: 'ok' }
const finalized = (number: number): ChainEvent => ({
  ...{ type: 'finality', stage: 'finalized' },
  block: { number, hash: '0x1', parentHash: '0x0', timestamp: 1 } as never,
})
const settled = (newest: number): Extract<ChainEvent, { type: 'sealed' }> => {
  const cursor = { number: newest, hash: '0x1' as Hex }
  return { type: 'sealed', holes: [], blocks: [], newest, cursor, restartCursor: cursor }
}
const logs: ChainEvent = { type: 'logs', logs: [], via: 'pendingLogs', receivedAt: 0 }

it.each<[string, readonly ChainEvent[], readonly ChainEvent[]]>([
  [
    'one of each kind, the last',
    [live, headAt(4), cursorAt(3), headAt(5), finalized(2)],
    [live, headAt(5), cursorAt(3), finalized(2)],
  ],
  [
    'the newest settled block, without blocks and holes',
    [cursorAt(3), { ...settled(4), holes: [{ blocks: { from: 4, to: 4 }, reason: 'pruned' }] }],
    [settled(4)],
  ],
  ['the sealed head beside a pending one', [headAt(4), headAt(null, 5)], [headAt(4), headAt(null, 5)]],
  ['no head that a reorg replaces', [headAt(4), { type: 'reorg', from: 4 }], []],
  ['a head below a reorg', [headAt(4), { type: 'reorg', from: 5 }], [headAt(4)]],
  ['no logs', [logs], []],
])('keeps %s', (_, received, kept) => {
  const events = new LastChainEvents()
  for (const event of received) events.receive(event)
  expect(events.all).toEqual(kept)
})

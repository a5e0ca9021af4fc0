import { describe, expect, it, vi } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import { RECENT_BLOCKS_BOUND } from '../../../../src/relay/chain/blocks/block-bounds.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import { restartPointNote } from '../../../../src/relay/ingest/restore-state.ts'
import { headNote } from '../../../../src/relay/notes/published-notes.ts'
import { blockHash } from '../chain/node-json.ts'
import { APPLE, apple, NOON, TESLA } from '../tokens/stock-records.ts'
import {
  holeEvent,
  listEvent,
  logAt,
  openIngest,
  openReducer,
  pendingLogEvent,
  publishedKeys,
  readUpdates,
  sealedEvent,
  statusEvent,
  subscribedEvent,
  transactionEvent,
} from './reducer-fixture.ts'

const address = APPLE as Hex
/** The list could not be read. */
const unreadList: IngestEvent = { type: 'list', list: null }
const cursorEvent = (number: number): IngestEvent => ({
  type: 'cursor',
  cursor: { number, hash: blockHash(number) },
  timestamp: null,
})

/** A reducer with one listed token. */
const openListed = () => openIngest((update) => update, { first: [listEvent(apple()), subscribedEvent] })

describe('a log', () => {
  it('of an unlisted token is counted and not published, sealed or not', async () => {
    const { publish, counts, openedTape } = await openListed()
    await publish(pendingLogEvent({ block: 5, address: TESLA as Hex }), sealedEvent(5, [{ address: TESLA as Hex }]))
    expect(await publishedKeys(openedTape.tape)).toEqual([])
    expect(counts.unlisted).toBe(2)
  })

  it('of a delisted token is not published', async () => {
    const { publish, openedTape } = await openListed()
    await publish(listEvent())
    await publish(pendingLogEvent({ block: 5, address }), sealedEvent(5, [{ address }]))
    expect(await publishedKeys(openedTape.tape)).toEqual([])
  })
})

describe('a source status', () => {
  it('is published when it changes, with its time and the head', async () => {
    const { publish, clock, updates } = await openListed()
    await publish({ type: 'head', sealed: 100, pending: null, timestamp: null }, statusEvent('poll'))
    clock.now += 1_000
    await publish(statusEvent('poll'))
    await publish(statusEvent('down'))
    const statuses = (await updates()).filter(({ type }) => type === 'status')
    expect(statuses).toMatchObject([
      {
        symbol: '*',
        address: null,
        source: 'poll',
        reason: 'ok',
        started_at: new Date(NOON).toISOString(),
        head: { sealed: 100, pending: null },
      },
      { source: 'down', reason: 'unreachable', started_at: new Date(NOON + 1_000).toISOString() },
    ])
  })

  it('is not published again after a restart', async () => {
    const { publish, crash } = await openListed()
    await publish(statusEvent('poll'))
    const again = await crash()
    expect(await again.publish(statusEvent('poll'))).toEqual([])
  })
})

describe('an event', () => {
  it('of a hole is published for all tokens', async () => {
    const { publish, openedTape } = await openListed()
    expect(await publish(holeEvent(3, 9))).toMatchObject([
      { type: 'hole', symbol: '*', address: null, blocks: { first: 3, last: 9 }, reason: 'pruned' },
    ])
    expect(openedTape.tape.notes.note(restartPointNote)).toMatchObject({ block: 9 })
  })

  it('of finality is published for all tokens and kept in the head', async () => {
    const { publish, openedTape } = await openListed()
    const block = { number: 90, hash: blockHash(90), parentHash: null, timestamp: 1_795_000_018 }
    expect(await publish({ type: 'finality', stage: 'safe', block })).toMatchObject([
      {
        ...{ type: 'finality', symbol: '*', address: null, stage: 'safe' },
        block: { number: 90, hash: blockHash(90), timestamp: '2026-11-18T11:06:58.000Z' },
      },
    ])
    expect(openedTape.tape.notes.note(headNote)).toMatchObject({ safe: 90, finalized: null })
  })

  it('of a head only raises the head beside the tape', async () => {
    const { publish, openedTape } = await openListed()
    await publish({ type: 'head', sealed: 100, pending: 101, timestamp: null })
    await publish({ type: 'head', sealed: 98, pending: null, timestamp: null })
    expect(openedTape.tape.notes.note(headNote)).toMatchObject({ sealed: 100, pending: 101 })
    await publish(pendingLogEvent({ block: 105, address }))
    expect(openedTape.tape.notes.note(headNote)).toMatchObject({ sealed: 100, pending: 105 })
  })

  it('of a failed list makes a NAV stale once it is too old', async () => {
    const { publish, clock } = await openListed()
    clock.now += 30 * 3_600_000
    expect(await publish(unreadList)).toMatchObject([{ type: 'nav', nav: { state: 'stale' }, before: { state: 'fresh' } }])
    expect(await publish(unreadList)).toEqual([])
  })
})

describe('a restart of the reducer', () => {
  it('reads the tape from the oldest block that it needs', async () => {
    const { publish, openedTape } = await openListed()
    await publish(cursorEvent(10))
    const end = 2 * RECENT_BLOCKS_BOUND
    for (let block = 11; block <= end; block += 1)
      await publish(pendingLogEvent({ block, address }), sealedEvent(block, [{ address }]))
    const safe = { number: end, hash: blockHash(end), parentHash: null, timestamp: null }
    await publish({ type: 'finality', stage: 'safe', block: safe }, pendingLogEvent({ block: end + 1, address }))
    await publish(sealedEvent(end + 1, [{ address }]))
    const { tape } = openedTape
    const reads = vi.spyOn(tape, 'readTexts')
    await openReducer(tape)
    const first = tape.readAfter(reads.mock.calls[0]?.[0] ?? 0, 1)[0]?.update
    expect(first).toMatchObject({ block: { number: end + 1 - RECENT_BLOCKS_BOUND } })
  })

  it('in the middle of a large block completes that block', async () => {
    const positions = (from: number, to: number, raw = 1n) =>
      Array.from({ length: to - from }, (_, index) => ({ index: from + index, raw, address }))
    const announced = transactionEvent(positions(0, 600).map((position) => logAt({ ...position, block: 101 })))
    // 300 announced logs are not sealed, 300 others are sealed with another amount, and 600 were not announced.
    const block = sealedEvent(101, [...positions(300, 600, 2n), ...positions(600, 1_200)])
    for (const writtenParts of [1, 2, 3]) {
      const { publish, publishParts, crash, openedTape } = await openListed()
      await publish(statusEvent('pendingLogs'), cursorEvent(100))
      expect(await publishParts(2, announced)).toEqual([500, 100])
      expect(await publishParts(writtenParts, block)).toEqual([500, 500, 201].slice(0, writtenParts))
      const { publishParts: again, state } = await crash()
      expect(state.restartCursor?.number).toBe(writtenParts < 3 ? 100 : 101)
      await again(3, block)
      const updates = await readUpdates(openedTape.tape)
      const keysOf = (type: string) => updates.flatMap((update) => (update.type === type && 'key' in update ? update.key : []))
      for (const type of ['transfer', 'retract', 'amend']) expect(keysOf(type)).toEqual([...new Set(keysOf(type))])
      expect(['transfer', 'retract', 'amend'].map((type) => keysOf(type).length)).toEqual([1_200, 300, 300])
      expect(updates.flatMap((update) => (update.type === 'seal' ? update.count : []))).toEqual([900])
      expect(state.ledger.openSeq).toBeNull()
    }
  })
})

import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { IngestEvent } from '../../../../../src/relay/ingest/fold-batch.ts'
import { barTimesNote, blockTradesNotes, minuteRowNotes } from '../../../../../src/relay/notes/bar-notes.ts'
import { minuteBarOf } from '../../../../../src/relay/tape/bars/bar-row.ts'
import { blockHash, timestampOf } from '../../chain/node-json.ts'
import { APPLE, apple } from '../../tokens/stock-records.ts'
import {
  bothReceived,
  bought,
  boughtOfManager,
  everything,
  managedPool,
  ofManager,
  ofTokens,
  openFollowed,
  openWith,
  pool,
  pushed,
  read,
  reading,
  readOf,
  received,
  secondary,
} from '../pools/pool-fixture.ts'
import {
  agreedHead,
  holeEvent,
  listEvent,
  logAt,
  play,
  sealedEvent,
  sealedEventOfLogs,
  transactionEvent,
} from '../reducer-fixture.ts'

// Five blocks make a second. A minute begins at block 100, at block 400 and at block 700.

type Options = Parameters<typeof sealedEventOfLogs>[2]
type Sale = Parameters<typeof bought>

const sealed = (block: number, sales: readonly Sale[] = [], options: Options = {}) =>
  sealedEventOfLogs(
    block,
    sales.map((sale) => bought(...sale)),
    { addresses: everything, ...options },
  )
const sale = (block: number, index = 0, dollars?: number): Sale => [{ block, index }, dollars]
const isOne = 'buy 1.5 at 324.90438933'

describe('a bar', () => {
  it('is published with the first settled block whose time is at the end of the minute or later', async () => {
    await play(await openFollowed(), [
      [pushed({ block: 110 }), `${isOne} preconfirmed`],
      [sealed(110, [sale(110)]), 'seal trade'],
      [sealed(399), ''],
      [[...agreedHead(401)], ''],
      [sealed(400), 'bar r1 1 at 324.90438933 in 110-110'],
      [sealed(700), ''],
    ])
  })

  it('has the prices of its trades in chain order, and their sums', async () => {
    const ingest = await openFollowed()
    await ingest.publish(sealed(110, [sale(110, 0, 300), sale(110, 1, 600)]))
    await ingest.publish(sealed(120, [sale(120, 0, 450)]))
    await ingest.publish(sealed(400))
    const bar = (await ingest.updates()).find(({ type }) => type === 'bar')
    expect(bar).toMatchObject({
      start: new Date(timestampOf(100) * 1_000).toISOString(),
      end: new Date(timestampOf(400) * 1_000).toISOString(),
      ...{ open: '200', high: '400', low: '200', close: '300', vwap: '300', trades: 3 },
      ...{ volume: '4.5', shares: '4.5', currency_volume: '1350', buy_volume: '4.5', buy_currency_volume: '1350' },
      ...{ venues: [pool.id], blocks: { first: 110, last: 120 }, partial: null },
    })
  })

  it('counts a trade without a price in trades and volumes only', async () => {
    const ingest = await openFollowed()
    await ingest.publish(sealed(110, [sale(110, 0, 0), sale(110, 1, 300), sale(110, 2, 0)]))
    await ingest.publish(sealed(400))
    const bar = (await ingest.updates()).find(({ type }) => type === 'bar')
    expect(bar).toMatchObject({ open: '200', close: '200', vwap: '66.66666667', trades: 3, volume: '4.5', currency_volume: '300' })
  })

  it('waits until all blocks before are settled', async () => {
    await play(await openFollowed(), [
      [sealed(110, [sale(110)]), `${isOne} sealed late, seal trade`],
      [sealed(400, [], { cursor: 398 }), ''],
      [sealed(399, [], { newest: 400, cursor: 400 }), 'bar r1 1 at 324.90438933 in 110-110'],
    ])
  })

  it('does not close while missed blocks are read', async () => {
    await play(await openFollowed(), [
      [agreedHead(711), ''],
      [sealed(110, [sale(110)], { via: 'backfill' }), `${isOne} sealed late, seal trade`],
      [sealed(410, [sale(410)], { via: 'backfill' }), `${isOne} sealed late, seal trade`],
      [sealed(710, [], { via: 'backfill' }), ''],
      [sealed(711, [], { via: 'backfill' }), 'bar r1 1 at 324.90438933 in 110-110, bar r1 1 at 324.90438933 in 410-410'],
    ])
  })

  it('is in pages with all others that end with it, also where they are too many for one batch', async () => {
    const ingest = await openFollowed()
    const openFroms = [0]
    let bars = 0
    ingest.openedTape.tape.follow((batch, notes) => {
      bars += batch.filter(({ update }) => update.type === 'bar').length
      const { openFrom } = notes.note(barTimesNote) ?? {}
      if (openFrom !== undefined) openFroms[bars] = openFrom
    })
    const minutes = Array.from({ length: 70 }, (_, minute) => 110 + minute * 300)
    await ingest.publish(...agreedHead(22_000))
    for (const block of minutes) await ingest.publish(sealed(block, [sale(block)], { via: 'backfill' }))
    expect(await ingest.publishParts(10, sealed(22_000, [], { via: 'backfill' }))).toEqual([30, 30, 10])
    expect(openFroms.flatMap((openFrom, count) => (openFrom > timestampOf(110) + 60 ? [count] : []))).toEqual([70])
  })

  it('is not published for a pre-confirmed trade, nor for a minute without trades', async () => {
    await play(await openFollowed(), [
      [pushed({ block: 110 }), `${isOne} preconfirmed`],
      [sealed(400), ''],
      [sealed(700), ''],
    ])
  })
})

const replaced = (from: number): IngestEvent => ({ type: 'reorg', from })
const another = { hash: blockHash(9_999) }

describe('a bar that changes', () => {
  it('loses a trade whose amount is unknown by the time of its seal', async () => {
    const ingest = await openFollowed()
    await ingest.publish(pushed({ block: 110 }))
    await ingest.publish(listEvent(apple({ decimals: '8' })))
    await ingest.publish(sealed(110, [sale(110)]))
    expect(await ingest.publish(sealed(400))).toEqual([])
  })

  it.each([
    ['gains a trade', [sale(110), sale(110, 1)], 'bar r2 2 at 324.90438933 in 110-110'],
    ['has a trade at another price', [sale(110, 0, 300)], 'bar r2 1 at 200 in 110-110'],
    ['loses its only trade', [], 'bar r2 0 at null in null'],
  ])('is published again where a reorg %s', async (_, sales, told) => {
    const ingest = await openFollowed()
    await ingest.publish(sealed(110, [sale(110)]))
    expect(await ingest.publish(sealed(400))).toEqual(['bar r1 1 at 324.90438933 in 110-110'])
    await ingest.publish(replaced(110))
    expect((await ingest.publish(sealed(110, sales, another))).join()).not.toContain('bar')
    expect(await ingest.publish(sealed(400, [], { hash: blockHash(8_888) }))).toEqual([told])
    expect(await ingest.publish(sealed(700))).toEqual([])
  })

  it('is not published again where a reorg keeps its trades, nor after a restart', async () => {
    await play(await openFollowed(), [
      [sealed(110, [sale(110)]), `${isOne} sealed late, seal trade`],
      [sealed(400), 'bar r1 1 at 324.90438933 in 110-110'],
      [replaced(110), ''],
      [sealed(110, [sale(110)], another), 'seal trade'],
      [sealed(400, [], { hash: blockHash(8_888) }), ''],
      'restart',
      [bothReceived, ''],
      [sealed(400, [], { hash: blockHash(8_888) }), ''],
      [sealed(410), ''],
    ])
  })

  it('is of another minute if the block of its trade has another time now', async () => {
    await play(await openFollowed(), [
      [sealed(399, [sale(399)]), `${isOne} sealed late, seal trade`],
      [sealed(400), 'bar r1 1 at 324.90438933 in 399-399'],
      [replaced(399), ''],
      [sealed(399, [sale(399)], { ...another, timestamp: timestampOf(400) }), 'seal trade, bar r2 0 at null in null'],
      [sealed(400, [], { hash: blockHash(8_888) }), ''],
      [sealed(700), 'bar r1 1 at 324.90438933 in 399-399'],
    ])
  })

  it('is published in the next run if the last one ended before', async () => {
    await play(await openFollowed(), [
      [sealed(110, [sale(110)]), `${isOne} sealed late, seal trade`],
      'crash',
      [bothReceived, ''],
      [sealed(400), 'bar r1 1 at 324.90438933 in 110-110'],
    ])
  })
})

describe('a bar of several pools', () => {
  it('leaves out those against another currency than the first', async () => {
    const ingest = await openWith(secondary(pool), received(APPLE as Hex), readOf(secondary(pool), reading(324.9)), bothReceived)
    await ingest.publish(sealed(110, [sale(110)]))
    expect(await ingest.publish(sealed(400))).toEqual([])
    const [minute] = ingest.openedTape.tape.readBars(APPLE as Hex, { since: 0, until: 2 ** 40 }).map(minuteBarOf)
    expect(minute).toMatchObject({ edition: 1, revision: 0, pools: [{ pool: pool.id, isMain: false, part: { trades: 1 } }] })
    await ingest.publish(holeEvent(120, 130, 400))
    expect((await ingest.updates()).filter(({ type }) => type === 'bar')).toEqual([])
  })
})

describe('a partial bar', () => {
  it.each([
    ['has a hole inside', [holeEvent(120, 130)], ' partial pruned'],
    ['has a hole before', [holeEvent(90, 95, 110)], ''],
  ])('%s', async (_, events, told) => {
    const ingest = await openFollowed()
    await ingest.publish(sealed(99))
    await ingest.publish(sealed(101))
    await ingest.publish(sealed(110, [sale(110)]))
    await ingest.publish(...events)
    await ingest.publish(sealed(140))
    expect(await ingest.publish(sealed(400))).toEqual([`bar r1 1 at 324.90438933 in 110-110${told}`])
    await ingest.publish(sealed(410, [sale(410)]))
    expect(await ingest.publish(sealed(700))).toEqual(['bar r1 1 at 324.90438933 in 410-410'])
  })

  it('was published as a whole one before its hole was known', async () => {
    await play(await openFollowed(), [
      [sealed(101), ''],
      [sealed(110, [sale(110)]), `${isOne} sealed late, seal trade`],
      [sealed(400), 'bar r1 1 at 324.90438933 in 110-110'],
      [holeEvent(120, 130, 400), 'hole, bar r2 1 at 324.90438933 in 110-110 partial pruned'],
    ])
  })

  it('has a hole after a reorg below the first settled block', async () => {
    const ingest = await openFollowed()
    await ingest.publish(sealed(401))
    await ingest.publish(replaced(100))
    await ingest.publish(holeEvent(120, 130))
    await ingest.publish(sealed(140, [sale(140)]))
    expect(await ingest.publish(sealed(402))).toEqual(['bar r1 1 at 324.90438933 in 140-140 partial pruned'])
  })

  it('was published before such a reorg, and has the hole instead of its blocks', async () => {
    await play(await openFollowed(), [
      [sealed(110, [sale(110)]), `${isOne} sealed late, seal trade`],
      [sealed(400), 'bar r1 1 at 324.90438933 in 110-110'],
      [replaced(100), ''],
      [holeEvent(100, 200), 'hole'],
      [sealed(401), 'bar r2 1 at 324.90438933 in 110-110 partial pruned'],
    ])
  })

  it('is each one while the node refuses the logs of a pool', async () => {
    const own = (block: number) => ({ filters: [ofTokens, ofManager], block })
    const ingest = await openWith(managedPool, received(APPLE as Hex), readOf(managedPool, reading(324.9)))
    await ingest.publish({ type: 'subscribed', filters: [ofTokens, ofManager] })
    await ingest.publish(transactionEvent([logAt({ block: 101 })]))
    const sealedWith = (block: number) => sealedEventOfLogs(block, [boughtOfManager({ block })], own(block))
    await ingest.publish(sealedWith(110))
    await ingest.publish({ type: 'refusal', contract: managedPool.manager as Hex, isOver: false })
    expect(await ingest.publish(sealedEvent(400, []))).toEqual(['bar r1 1 at 324.90438933 in 110-110 partial refused'])
  })

  it('is each one after a refusal, also of blocks below the first settled one', async () => {
    const filters = [{ addresses: everything }, ofManager]
    const first = [received(APPLE as Hex), readOf(managedPool, reading(324.9)), read(reading(324.9))]
    const ingest = await openWith([pool, managedPool], ...first, { type: 'subscribed', filters })
    await ingest.publish(sealed(401, [], { filters, restartCursor: 99 }))
    await ingest.publish(replaced(100))
    await ingest.publish({ type: 'refusal', contract: managedPool.manager as Hex, isOver: false })
    await ingest.publish(sealed(140, [sale(140)]))
    expect(await ingest.publish(sealed(402))).toEqual(['bar r1 1 at 324.90438933 in 140-140 partial refused'])
  })

  it('is none that ended before a refusal, though a reorg was suspected in between', async () => {
    const filters = [{ addresses: everything }, ofManager]
    const first = [received(APPLE as Hex), readOf(managedPool, reading(324.9)), read(reading(324.9))]
    await play(await openWith([pool, managedPool], ...first, { type: 'subscribed', filters }), [
      [sealed(110, [sale(110)], { filters }), `${isOne} sealed late, seal trade`],
      [sealed(400, [], { filters }), 'bar r1 1 at 324.90438933 in 110-110'],
      [{ type: 'reorg', from: 400, isSuspected: true }, ''],
      [sealed(401, [], { filters, restartCursor: 400 }), ''],
      [{ type: 'refusal', contract: managedPool.manager as Hex, isOver: false }, 'dropped from 401 refused'],
      [sealed(402, [], { filters: [{ addresses: everything }] }), ''],
    ])
  })
})

describe('what a restart needs', () => {
  it('is kept until no block of the minute can change', async () => {
    const { publish, openedTape } = await openFollowed()
    const { notes } = openedTape.tape
    const kept = () => [notes.notes(blockTradesNotes).size, notes.notes(minuteRowNotes).size]
    await publish(sealed(110, [sale(110)]))
    await publish(sealed(410, [sale(410)]))
    expect(kept()).toEqual([2, 1])
    await publish(sealed(100_000))
    expect(notes.note(barTimesNote)?.openFrom).toBe(timestampOf(100_000))
    await publish({
      type: 'finality',
      stage: 'safe',
      block: { number: 100_000, hash: blockHash(100_000), parentHash: null, timestamp: null },
    })
    await publish(sealed(110_000))
    await publish(sealed(110_300))
    expect(kept()).toEqual([0, 0])
    expect(await publish(sealed(110_600))).toEqual([])
  })
})

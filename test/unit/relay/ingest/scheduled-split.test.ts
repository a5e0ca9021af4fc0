import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import type { Log } from '../../../../src/relay/chain/logs/log-parser.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import { timestampOf, txHash } from '../chain/node-json.ts'
import { APPLE, apple, tesla } from '../tokens/stock-records.ts'
import { agreedHead, headEvent, isoTime, openListed, positionAt, summarise } from './multiplier-fixture.ts'
import { listEvent, openReducer, sealedEventOfLogs, subscribedEvent, transactionEvent } from './reducer-fixture.ts'
import { transfer, uiMultiplierUpdateCancelled, uiMultiplierUpdated } from './token-logs.ts'

const address = APPLE as Hex
/** A head that the upstream pushed. */
const pushedHead = (block: number): IngestEvent => ({ ...headEvent(block), isPushed: true }) as IngestEvent
const withoutTimestamp = (log: Log): Log => ({ ...log, blockTimestamp: null })

describe('a scheduled split', () => {
  // Five blocks share a second.
  const soon = timestampOf(20)
  const schedule = uiMultiplierUpdated(positionAt(10, 0), '1', '2', soon)

  it('takes effect at the first block of its time, before the movements there', async () => {
    const { publish, state } = await openListed()
    expect(await publish(transactionEvent([schedule]))).toEqual(['scheduled 1 to 2 by log'])
    expect(state.tokens.get(address)?.scheduled).toEqual({ to: '2', effectiveAt: soon })
    expect(await publish(transactionEvent([transfer(positionAt(19, 0), 1n)]), headEvent(19))).toEqual([
      'preconfirmed 19/0 1 x 1 = 0.00000001',
    ])
    expect(await publish(headEvent(20), transactionEvent([transfer(positionAt(20, 0), 1n)]))).toEqual([
      'effective 1 to 2 by clock',
      'preconfirmed 20/0 1 x 2 = 0.00000002',
    ])
    expect(await publish(transactionEvent([transfer(positionAt(19, 1), 1n)]), headEvent(25))).toEqual([
      'preconfirmed 19/1 1 x 1 = 0.00000001',
    ])
    expect(await publish(transactionEvent([transfer(positionAt(25, 1), 1n)]))).toEqual(['preconfirmed 25/1 1 x 2 = 0.00000002'])
    expect(state.tokens.get(address)).toMatchObject({ multiplier: '2', multiplierSource: 'log', scheduled: null })
  })

  it.each([
    [253_402_300_799, '9999-12-31T23:59:59.000Z'],
    [253_402_300_800, null],
    [Number.MAX_SAFE_INTEGER, null],
  ])('at second %i is told as %s', async (second, told) => {
    const { reduceEvents } = await openListed()
    const { updates } = reduceEvents(transactionEvent([uiMultiplierUpdated(positionAt(10, 0), '1', '2', second)]))
    expect(updates).toMatchObject([{ type: 'multiplier', phase: 'scheduled', effective_at: told }])
  })

  it.each([
    ['a settled block', [sealedEventOfLogs(20, [])], true],
    ['a head that was asked for twice', agreedHead(20), true],
    ['a pushed head that was asked for, too', [pushedHead(20), headEvent(20)], true],
    ['a pushed log whose head was asked for, too', [transactionEvent([transfer(positionAt(20, 0), 1n)]), headEvent(20)], true],
    ['a head that was asked for once', [headEvent(20)], false],
    ['a head and a log that were pushed', [pushedHead(20), transactionEvent([transfer(positionAt(20, 0), 1n)])], false],
    ['two heads that differ', [headEvent(20), { ...headEvent(20), timestamp: soon + 1 }], false],
    ['a head without a time', [{ ...headEvent(20), timestamp: null }], false],
  ])('takes effect with what two answers agree on: %s', async (_, events, isEffective) => {
    const { publish } = await openListed()
    await publish(transactionEvent([schedule]), sealedEventOfLogs(10, [schedule]), sealedEventOfLogs(18, []))
    const lines = await publish(...(events as readonly IngestEvent[]))
    expect(lines.filter((line) => line.startsWith('effective'))).toEqual(isEffective ? ['effective 1 to 2 by clock'] : [])
  })

  it('is no matter of what a log says of its own block, until that block is settled', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([schedule]), sealedEventOfLogs(10, [schedule]))
    const [early, late] = [transfer(positionAt(19, 0), 1n), transfer(positionAt(21, 0), 1n)]
    expect(await publish(transactionEvent([{ ...early, blockTimestamp: soon + 31_536_000 }]))).toEqual([
      'preconfirmed 19/0 1 x 1 = 0.00000001',
    ])
    expect(await publish(sealedEventOfLogs(19, [early]), sealedEventOfLogs(20, []))).toEqual([
      'seal 19/0 as transfer',
      'effective 1 to 2 by clock',
    ])
    expect(await publish(transactionEvent([{ ...late, blockTimestamp: 0 }]))).toEqual(['preconfirmed 21/0 1 x 2 = 0.00000002'])
    expect(await publish(sealedEventOfLogs(21, [late]))).toEqual(['seal 21/0 as transfer'])
  })

  it('amends a movement that came before the time of its block was believed', async () => {
    const { publish } = await openListed()
    const moved = transfer(positionAt(20, 0), 1n)
    expect(await publish(transactionEvent([schedule]), transactionEvent([moved]))).toEqual([
      'scheduled 1 to 2 by log',
      'preconfirmed 20/0 1 x 1 = 0.00000001',
    ])
    expect(await publish(sealedEventOfLogs(10, [schedule]), sealedEventOfLogs(20, [moved]))).toEqual([
      'seal 10/0 as multiplier',
      'effective 1 to 2 by clock',
      'amend 20/0 multiplier,shares: 2 sealed',
      'seal 20/0 as transfer',
    ])
  })

  it('takes effect for a token that is not listed yet, if a published log scheduled it', async () => {
    const { publish } = await openListed('pendingLogs', [])
    const backfilled = [
      sealedEventOfLogs(10, [schedule], { via: 'backfill' }),
      sealedEventOfLogs(20, [transfer(positionAt(20, 0), 1n)], { via: 'backfill' }),
    ]
    expect(await publish(...backfilled)).toEqual([
      'scheduled 1 to 2 by log late',
      'seal 10/0 as multiplier',
      'effective 1 to 2 by clock',
      'sealed 20/0 1 x 2 = 0.00000002 late',
      'seal 20/0 as transfer',
    ])
  })

  it('takes effect for a delisted token with an open key', async () => {
    const { publish } = await openListed('pendingLogs')
    await publish(listEvent(apple(), tesla()), subscribedEvent)
    await publish(transactionEvent([schedule]), transactionEvent([transfer(positionAt(10, 1), 1n)]))
    await publish(listEvent(tesla()))
    expect(await publish(...agreedHead(20))).toEqual(['effective 1 to 2 by clock'])
  })

  it('carries its time as an ISO timestamp', async () => {
    const { publish, openedTape } = await openListed()
    await publish(transactionEvent([schedule]), ...agreedHead(20))
    const updates = (await openedTape.tape.readAfter(0, 100)).map(({ update }) => update)
    expect(updates.filter(({ type }) => type === 'multiplier')).toMatchObject([
      { phase: 'effective', previous: null, effective_at: null, source: 'list' },
      { phase: 'scheduled', effective_at: isoTime(soon), source: 'log', key: `10-${txHash(10, 0)}-0` },
      { phase: 'effective', effective_at: isoTime(soon), source: 'clock' },
    ])
  })

  it('takes effect after a restart, and in backfilled blocks only from its time on', async () => {
    const { publish, openedTape } = await openListed()
    await publish(transactionEvent([schedule]), sealedEventOfLogs(10, [schedule]))
    const again = await openReducer(openedTape.tape)
    const backfilled = [
      sealedEventOfLogs(19, [transfer(positionAt(19, 0), 1n)], { via: 'backfill' }),
      sealedEventOfLogs(20, [transfer(positionAt(20, 0), 1n)], { via: 'backfill' }),
    ]
    // The head is far above by then and does not apply to earlier blocks.
    expect((await again.publish(...agreedHead(30), ...backfilled)).map(summarise)).toEqual([
      'sealed 19/0 1 x 1 = 0.00000001 late',
      'seal 19/0 as transfer',
      'effective 1 to 2 by clock',
      'sealed 20/0 1 x 2 = 0.00000002 late',
      'seal 20/0 as transfer',
    ])
  })

  it('takes effect once, even over a restart', async () => {
    const { publish, openedTape } = await openListed()
    await publish(transactionEvent([schedule]), ...agreedHead(20))
    const again = await openReducer(openedTape.tape)
    expect((await again.publish(headEvent(21), transactionEvent([transfer(positionAt(22, 0), 1n)]))).map(summarise)).toEqual([
      'preconfirmed 22/0 1 x 2 = 0.00000002',
    ])
  })

  it('does not take effect if it is cancelled', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([schedule]))
    expect(await publish(transactionEvent([uiMultiplierUpdateCancelled(positionAt(12, 0), '2', soon)]))).toEqual([
      'cancelled 1 to 2 by log',
    ])
    expect(await publish(sealedEventOfLogs(25, []), ...agreedHead(26))).toEqual([])
  })

  it.each(['head', 'log'])('cancelled during an outage does not take effect by a %s that arrives first', async (by) => {
    const { publish, openedTape } = await openListed()
    await publish(transactionEvent([schedule]), sealedEventOfLogs(10, [schedule]))
    const again = await openReducer(openedTape.tape)
    const first = by === 'head' ? [] : [transactionEvent([transfer(positionAt(41, 0), 1n)])]
    const lines = await again.publish(
      ...agreedHead(40),
      ...first,
      sealedEventOfLogs(15, [uiMultiplierUpdateCancelled(positionAt(15, 0), '2', soon)], { newest: 15 }),
    )
    const cancelled = ['cancelled 1 to 2 by log late', 'seal 15/0 as multiplier']
    expect(lines.map(summarise)).toEqual(by === 'head' ? cancelled : ['preconfirmed 41/0 1 x 1 = 0.00000001', ...cancelled])
    expect((await again.publish(sealedEventOfLogs(40, []), ...agreedHead(41))).map(summarise)).toEqual([])
  })

  it('is dropped if it is not sealed', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([schedule]))
    expect(await publish(sealedEventOfLogs(10, []))).toEqual(['retract 10/0 not_sealed now {"multiplier":"1"}'])
    expect(await publish(sealedEventOfLogs(25, []), ...agreedHead(26))).toEqual([])
  })

  it('that took effect and is not sealed is retracted, and its movements are amended', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([schedule]), headEvent(20), transactionEvent([transfer(positionAt(20, 0), 1n)]))
    expect(await publish(sealedEventOfLogs(10, []))).toEqual([
      'retract 10/0 not_sealed now {"multiplier":"1"}',
      'amend 20/0 multiplier,shares: 1 preconfirmed',
    ])
  })

  it('found after its time is published, takes effect and amends later movements', async () => {
    const { publish } = await openListed()
    await publish(
      transactionEvent([transfer(positionAt(19, 0), 1n)]),
      transactionEvent([transfer(positionAt(20, 0), 1n)]),
      headEvent(20),
    )
    expect(await publish(sealedEventOfLogs(10, [schedule], { newest: 18, cursor: 18 }))).toEqual([
      'scheduled 1 to 2 by log late',
      'seal 10/0 as multiplier',
      'effective 1 to 2 by clock',
      'amend 20/0 multiplier,shares: 2 preconfirmed',
    ])
  })

  it('is compared with the block time if the pre-confirmed log had none', async () => {
    const { publish, openedTape } = await openListed()
    const withoutTimestamp = { ...transfer(positionAt(19, 0), 1n), blockTimestamp: null }
    await publish(
      transactionEvent([schedule]),
      transactionEvent([withoutTimestamp]),
      sealedEventOfLogs(19, [withoutTimestamp]),
      ...agreedHead(20),
    )
    expect(await publish(sealedEventOfLogs(24, [uiMultiplierUpdated(positionAt(24, 0), '2', '4', timestampOf(24))]))).toEqual([
      'effective 2 to 4 by log late',
      'seal 24/0 as multiplier',
    ])
    expect(
      await publish(sealedEventOfLogs(10, [uiMultiplierUpdated(positionAt(10, 0), '3', '2', soon)], { newest: 24, cursor: 10 })),
    ).toEqual(['amend 10/0 previous:  sealed', 'seal 10/0 as multiplier', 'amend 19/0 multiplier,shares: 3 sealed'])
    const [last] = (await openedTape.tape.readAfter(openedTape.tape.end() - 1, 1)).map(({ update }) => update)
    expect(last).toMatchObject({ update: { block: { number: 19, timestamp: isoTime(timestampOf(19)) } } })
  })

  it('found below published facts takes effect once all blocks up to its time are settled', async () => {
    const { publish, openedTape } = await openListed()
    await publish(transactionEvent([transfer(positionAt(31, 0), 1n)]))
    const again = await openReducer(openedTape.tape)
    const lines = await again.publish(sealedEventOfLogs(10, [schedule], { newest: 30, cursor: 10 }))
    expect(lines.map(summarise)).toEqual(['scheduled 1 to 2 by log late', 'seal 10/0 as multiplier'])
    expect((await again.publish(sealedEventOfLogs(30, []))).map(summarise)).toEqual([
      'effective 1 to 2 by clock',
      'amend 31/0 multiplier,shares: 2 preconfirmed',
    ])
  })

  it('is published as effective even if another change followed already', async () => {
    const { publish } = await openListed()
    await publish(
      transactionEvent([uiMultiplierUpdated(positionAt(30, 0), '2', '4', timestampOf(50))]),
      transactionEvent([transfer(positionAt(31, 0), 1n)]),
      headEvent(31),
    )
    const lines = await publish(sealedEventOfLogs(10, [schedule], { newest: 29, cursor: 10 }))
    expect(lines).toEqual(['scheduled 1 to 2 by log late', 'seal 10/0 as multiplier', 'effective 1 to 2 by clock'])
  })

  it('is not published again when the list applies it early', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([schedule]))
    expect(await publish(listEvent(apple({ multiplier: 2 })))).toEqual([])
    expect(await publish(...agreedHead(20))).toEqual(['effective 1 to 2 by clock'])
  })

  it('does not apply to an earlier movement that was pre-confirmed without a time', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([schedule]), sealedEventOfLogs(10, [schedule]))
    const moved = transfer(positionAt(19, 0), 1n)
    await publish(transactionEvent([withoutTimestamp(moved)]), sealedEventOfLogs(19, [moved]), ...agreedHead(20))
    expect(await publish(transactionEvent([uiMultiplierUpdated(positionAt(25, 0), '2', '4', timestampOf(25))]))).toEqual([
      'effective 2 to 4 by log',
    ])
  })

  it('is published as effective before later movements if a later change came first', async () => {
    const { publish } = await openListed()
    await publish(sealedEventOfLogs(500, [uiMultiplierUpdated(positionAt(500, 0), '2', '4', timestampOf(500))]))
    const beneath = { via: 'backfill', newest: 500 } as const
    expect(
      await publish(
        sealedEventOfLogs(10, [schedule], { ...beneath, cursor: 10 }),
        sealedEventOfLogs(21, [transfer(positionAt(21, 0), 1n)], { ...beneath, cursor: 21 }),
      ),
    ).toEqual([
      'scheduled 1 to 2 by log late',
      'seal 10/0 as multiplier',
      'effective 1 to 2 by clock',
      'sealed 21/0 1 x 2 = 0.00000002 late',
      'seal 21/0 as transfer',
    ])
  })

  it('is published as effective before later movements if the list had a later change first', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([schedule]), sealedEventOfLogs(10, [schedule]))
    await publish(listEvent(apple({ multiplier: 4 })))
    const next = uiMultiplierUpdated(positionAt(21, 1), '2', '4', timestampOf(21))
    expect(await publish(sealedEventOfLogs(21, [transfer(positionAt(21, 0), 1n), next]))).toEqual([
      'effective 1 to 2 by clock',
      'sealed 21/0 1 x 2 = 0.00000002 late',
      'effective 2 to 4 by log late',
      'seal 21/0,21/1 as transfer,multiplier',
    ])
  })

  it('is published as effective before the block that proves that nothing cancelled it', async () => {
    const { publish } = await openListed()
    await publish(transactionEvent([schedule]), sealedEventOfLogs(10, [schedule]))
    const early = { ...uiMultiplierUpdated(positionAt(20, 0), '1', '3', timestampOf(19)), blockTimestamp: timestampOf(19) }
    await publish(transactionEvent([early]))
    expect(await publish(sealedEventOfLogs(20, [transfer(positionAt(20, 1), 1n)]))).toEqual([
      'effective 1 to 2 by clock',
      'retract 20/0 not_sealed now {"multiplier":"2"}',
      'sealed 20/1 1 x 2 = 0.00000002 late',
      'seal 20/1 as transfer',
    ])
  })
})

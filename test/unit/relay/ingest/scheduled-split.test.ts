import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import type { Log } from '../../../../src/relay/chain/logs/log-parser.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import { timestampOf } from '../chain/node-json.ts'
import { APPLE, apple } from '../tokens/stock-records.ts'
import { cancelled, changed, isoTime, moved, openListed } from './multiplier-fixture.ts'
import {
  agreedHead,
  headEvent,
  listEvent,
  play,
  type Step,
  sealedEventOfLogs as sealed,
  transactionEvent,
} from './reducer-fixture.ts'
import { uiMultiplierUpdated } from './token-logs.ts'

const address = APPLE as Hex
/** A head that the upstream pushed. */
const pushedHead = (block: number): IngestEvent => ({ ...headEvent(block), isPushed: true }) as IngestEvent
const push = (...logs: readonly Log[]) => transactionEvent(logs)
const atTime = (log: Log, blockTimestamp: number | null): Log => ({ ...log, blockTimestamp })

describe('a scheduled split', () => {
  // Five blocks share a second.
  const soon = timestampOf(20)
  const schedule = changed(10, '1', '2', { due: 20 })
  const scheduled: Step = [push(schedule), 'scheduled 1 to 2 by log']
  const settled: Step = [sealed(10, [schedule]), 'seal 10/0']
  const backfilled = { via: 'backfill' } as const

  it('takes effect at the first block of its time, before the movements there', async () => {
    const ingest = await openListed()
    const state = () => ingest.state.tokens.get(address)
    await play(ingest, [scheduled])
    expect(state()?.scheduled).toEqual({ to: '2', effectiveAt: soon })
    await play(ingest, [
      [[push(moved(19)), headEvent(19)], 'preconfirmed 19/0 x 1'],
      [[headEvent(20), push(moved(20))], 'effective 1 to 2 by clock, preconfirmed 20/0 x 2'],
      [[push(moved(19, 1)), headEvent(25)], 'preconfirmed 19/1 x 1'],
      [push(moved(25, 1)), 'preconfirmed 25/1 x 2'],
    ])
    expect(state()).toMatchObject({ multiplier: '2', multiplierSource: 'log', scheduled: null })
  })

  it.each([
    [253_402_300_799, '9999-12-31T23:59:59.000Z'],
    [253_402_300_800, null],
    [Number.MAX_SAFE_INTEGER, null],
  ])('at second %i is told as %s', async (second, told) => {
    const { reduceEvents } = await openListed()
    const { updates } = reduceEvents(push(uiMultiplierUpdated({ block: 10, index: 0 }, '1', '2', second)))
    expect(updates).toMatchObject([{ type: 'multiplier', phase: 'scheduled', effective_at: told }])
  })

  it.each<[string, readonly IngestEvent[], boolean]>([
    ['a settled block', [sealed(20, [])], true],
    ['a head that was asked for twice', agreedHead(20), true],
    ['a pushed head that was asked for, too', [pushedHead(20), headEvent(20)], true],
    ['a pushed log whose head was asked for, too', [push(moved(20)), headEvent(20)], true],
    ['a head that was asked for once', [headEvent(20)], false],
    ['a head and a log that were pushed', [pushedHead(20), push(moved(20))], false],
    ['two heads that differ', [headEvent(20), { ...headEvent(20), timestamp: soon + 1 } as IngestEvent], false],
    ['a head without a time', [{ ...headEvent(20), timestamp: null } as IngestEvent], false],
  ])('takes effect with what two answers agree on: %s', async (_, events, isEffective) => {
    const ingest = await openListed()
    await play(ingest, [scheduled, settled, [sealed(18, []), '']])
    const lines = await ingest.publish(...events)
    expect(lines.filter((line) => line.startsWith('effective'))).toEqual(isEffective ? ['effective 1 to 2 by clock'] : [])
  })

  it.each<[string, ...Step[]]>([
    [
      'is no matter of what a log says of its own block, until that block is settled',
      scheduled,
      settled,
      [push(atTime(moved(19), soon + 31_536_000)), 'preconfirmed 19/0 x 1'],
      [[sealed(19, [moved(19)]), sealed(20, [])], 'seal 19/0, effective 1 to 2 by clock'],
      [push(atTime(moved(21), 0)), 'preconfirmed 21/0 x 2'],
      [sealed(21, [moved(21)]), 'seal 21/0'],
    ],
    [
      'amends a movement that came before the time of its block was believed',
      scheduled,
      [push(moved(20)), 'preconfirmed 20/0 x 1'],
      settled,
      [sealed(20, [moved(20)]), 'effective 1 to 2 by clock, amend 20/0 sealed x 2, seal 20/0'],
    ],
    [
      'takes effect after a restart, and in backfilled blocks only from its time on',
      scheduled,
      settled,
      'restart',
      // The head is far above by then and does not apply to earlier blocks.
      [
        [...agreedHead(30), sealed(19, [moved(19)], backfilled), sealed(20, [moved(20)], backfilled)],
        'sealed 19/0 x 1 late, seal 19/0, effective 1 to 2 by clock, sealed 20/0 x 2 late, seal 20/0',
      ],
    ],
    [
      'does not take effect if it is cancelled',
      scheduled,
      [push(cancelled(12, '2', 20)), 'cancelled 1 to 2 by log'],
      [[sealed(25, []), ...agreedHead(26)], ''],
    ],
    [
      'cancelled during an outage does not take effect by a head or a log that arrives first',
      scheduled,
      settled,
      'restart',
      [[...agreedHead(40), push(moved(41))], 'preconfirmed 41/0 x 1'],
      [sealed(15, [cancelled(15, '2', 20)], { newest: 15 }), 'cancelled 1 to 2 by log late, seal 15/0'],
      [[sealed(40, []), ...agreedHead(41)], ''],
    ],
    [
      'that took effect and is not sealed is retracted, and its movements are amended',
      scheduled,
      [[headEvent(20), push(moved(20))], 'effective 1 to 2 by clock, preconfirmed 20/0 x 2'],
      [sealed(10, []), 'retract 10/0 not_sealed, now 1, amend 20/0 preconfirmed x 1'],
    ],
    [
      'found after its time is published, takes effect and amends later movements',
      [[push(moved(19)), push(moved(20)), headEvent(20)], 'preconfirmed 19/0 x 1, preconfirmed 20/0 x 1'],
      [
        sealed(10, [schedule], { newest: 18, cursor: 18 }),
        'scheduled 1 to 2 by log late, seal 10/0, effective 1 to 2 by clock, amend 20/0 preconfirmed x 2',
      ],
    ],
    [
      'found below published facts takes effect once all blocks up to its time are settled',
      [push(moved(31)), 'preconfirmed 31/0 x 1'],
      'restart',
      [sealed(10, [schedule], { newest: 30, cursor: 10 }), 'scheduled 1 to 2 by log late, seal 10/0'],
      [sealed(30, []), 'effective 1 to 2 by clock, amend 31/0 preconfirmed x 2'],
    ],
    [
      'is published as effective even if another change followed already',
      [push(changed(30, '2', '4', { due: 50 })), 'scheduled 2 to 4 by log'],
      [[push(moved(31)), headEvent(31)], 'preconfirmed 31/0 x 2'],
      [sealed(10, [schedule], { newest: 29, cursor: 10 }), 'scheduled 1 to 2 by log late, seal 10/0, effective 1 to 2 by clock'],
    ],
    [
      'is published as effective before later movements if a later change came first',
      [sealed(500, [changed(500, '2', '4')]), 'effective 2 to 4 by log late, seal 500/0'],
      [
        [
          sealed(10, [schedule], { ...backfilled, newest: 500, cursor: 10 }),
          sealed(21, [moved(21)], { ...backfilled, newest: 500, cursor: 21 }),
        ],
        'scheduled 1 to 2 by log late, seal 10/0, effective 1 to 2 by clock, sealed 21/0 x 2 late, seal 21/0',
      ],
    ],
    [
      'is published as effective before later movements if the list had a later change first',
      scheduled,
      settled,
      [listEvent(apple({ multiplier: 4 })), 'effective 1 to 4 by list'],
      [
        sealed(21, [moved(21), changed(21, '2', '4', { index: 1 })]),
        'effective 1 to 2 by clock, sealed 21/0 x 2 late, effective 2 to 4 by log late, seal 21/0,21/1',
      ],
    ],
    [
      'is published as effective before the block that proves that nothing cancelled it',
      scheduled,
      settled,
      [push(atTime(changed(20, '1', '3', { due: 19 }), timestampOf(19))), 'effective 1 to 3 by log'],
      [sealed(20, [moved(20, 1)]), 'effective 1 to 2 by clock, retract 20/0 not_sealed, now 2, sealed 20/1 x 2 late, seal 20/1'],
    ],
  ])('%s', async (_, ...steps) => {
    await play(await openListed(), steps)
  })

  it('is compared with the block time if the pre-confirmed log had none', async () => {
    const ingest = await openListed()
    const timeless = atTime(moved(19), null)
    await play(ingest, [
      scheduled,
      [[push(timeless), sealed(19, [timeless]), ...agreedHead(20)], 'preconfirmed 19/0 x 1, seal 19/0, effective 1 to 2 by clock'],
      [sealed(24, [changed(24, '2', '4')]), 'effective 2 to 4 by log late, seal 24/0'],
      [
        sealed(10, [changed(10, '3', '2', { due: 20 })], { newest: 24, cursor: 10 }),
        'amend 10/0 previous, seal 10/0, amend 19/0 sealed x 3',
      ],
    ])
    expect((await ingest.updates()).at(-1)).toMatchObject({
      update: { block: { number: 19, timestamp: isoTime(timestampOf(19)) } },
    })
  })
})

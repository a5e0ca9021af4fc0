import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../src/lib/hex.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import { timestampOf } from '../chain/node-json.ts'
import { APPLE } from '../tokens/stock-records.ts'
import { changed, moved, openListed } from './multiplier-fixture.ts'
import { agreedHead, headEvent, play, push, type Step, sealedEventOfLogs as sealed } from './reducer-fixture.ts'
import { uiMultiplierUpdated } from './token-logs.ts'

const address = APPLE as Hex
/** A head that the upstream pushed. */
const pushedHead = (block: number): IngestEvent => ({ ...headEvent(block), isPushed: true }) as IngestEvent

describe('a scheduled split', () => {
  // Five blocks share a second.
  const soon = timestampOf(20)
  const schedule = changed(10, '1', '2', { due: 20 })
  const scheduled: Step = [push(schedule), 'scheduled 1 to 2 by log']
  const settled: Step = [sealed(10, [schedule]), 'seal 10/0']

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
      'amends a movement that came before the time of its block was believed',
      scheduled,
      [push(moved(20)), 'preconfirmed 20/0 x 1'],
      settled,
      [sealed(20, [moved(20)]), 'effective 1 to 2 by clock, amend 20/0 sealed x 2, seal 20/0'],
    ],
    [
      'that took effect and is not sealed is retracted, and its movements are amended',
      scheduled,
      [[headEvent(20), push(moved(20))], 'effective 1 to 2 by clock, preconfirmed 20/0 x 2'],
      [sealed(10, []), 'retract 10/0 not_sealed, now 1, amend 20/0 preconfirmed x 1'],
    ],
    [
      'is published as effective before the block that proves that nothing cancelled it',
      scheduled,
      settled,
      [push({ ...changed(20, '1', '3', { due: 19 }), blockTimestamp: timestampOf(19) }), 'effective 1 to 3 by log'],
      [sealed(20, [moved(20, 1)]), 'effective 1 to 2 by clock, retract 20/0 not_sealed, now 2, sealed 20/1 x 2 late, seal 20/1'],
    ],
  ])('%s', async (_, ...steps) => {
    await play(await openListed(), steps)
  })
})

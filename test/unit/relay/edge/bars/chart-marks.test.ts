import { describe, expect, it } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { TimescaleMarks, UdfMarks } from '../../../../../src/protocol/bars/udf.ts'
import { formatKey, type Nav } from '../../../../../src/protocol/fields.ts'
import type { Draft, DraftOf } from '../../../../../src/protocol/updates.ts'
import { apple, tesla } from '../../tape/update-drafts.ts'
import { DAY, nav, openCharts } from './chart-fixture.ts'

const HOUR = 3_600
const timeOf = (seconds: number): string => new Date(seconds * 1_000).toISOString()

/** A fact of a block at a time. It is written at that time, or later. */
type Place = { readonly time: number; readonly writtenAt?: number; readonly address?: Hex }

const common = ({ time, writtenAt = time, address = apple }: Place) => ({ symbol: 'AAPLc', address, time: timeOf(writtenAt) })
const located = ({ time }: Place) => {
  const hash: Hex = `0x${time.toString(16).padStart(64, '0')}`
  return {
    ...{ key: formatKey(time, hash, 0), stage: 'preconfirmed' as const, late: false },
    block: { number: time, hash: null, timestamp: timeOf(time) },
    tx: { hash, index: 0, log_index: 0 },
  }
}
const keyAt = (time: number): string => located({ time }).key

const pause = (place: Place, change: 'paused' | 'unpaused' = 'paused', left: readonly string[] = []): DraftOf<'pause'> => ({
  ...{ type: 'pause', ...common(place), change, features: ['TRANSFER', 'MINT'], feature_ids: [0, 1], paused: [...left] },
  ...{ source: 'log', ...located(place) },
})
const action = (place: Place, description: string): DraftOf<'action'> => ({
  ...{ type: 'action', ...common(place), action_id: '1', description, uri: 'https://a.example', keys: [], ...located(place) },
})
type Multiplier = DraftOf<'multiplier'>
const multiplier = (place: Place, phase: Multiplier['phase'], source: Multiplier['source'], effective: number | null): Draft => ({
  ...{ type: 'multiplier', ...common(place), phase, previous: '1', multiplier: '2' },
  ...{ effective_at: effective === null ? null : timeOf(effective), source, ...(source === 'log' && located(place)) },
})
const navAt = (place: Place, frozen: boolean | null, before: boolean | null | 'none'): DraftOf<'nav'> => {
  const navOf = (value: boolean | null): Nav => ({ ...nav, frozen: value })
  return { type: 'nav', ...common(place), nav: navOf(frozen), before: before === 'none' ? null : navOf(before), source: 'list' }
}
const retract = (fact: DraftOf<'pause'>, writtenAt: number): DraftOf<'retract'> => {
  const { symbol, address, key = '', block } = fact
  return {
    ...{ type: 'retract', symbol, address, time: timeOf(writtenAt), key, fact_type: 'pause', fact_id: 'k.1' },
    ...{
      reason: 'not_sealed',
      replaced_by: null,
      restored: null,
      block: { number: block?.number ?? 0, hash: null, timestamp: null },
    },
  }
}
const amend = (fact: DraftOf<'pause'>, writtenAt: number, change: Partial<DraftOf<'pause'>>): DraftOf<'amend'> => {
  const { time: _, ...content } = { ...fact, ...change }
  const { symbol, address, key = '' } = fact
  return {
    ...{ type: 'amend', symbol, address, time: timeOf(writtenAt), key, fact_type: 'pause', fact_id: 'k.1', changed: ['features'] },
    update: content,
  }
}

const range = `symbol=AAPLc&from=${DAY}&to=${DAY + 2 * 86_400}`

/** Time, label, color and text of each mark beside the time axis. */
async function marksOf(messages: readonly Draft[], query = `${range}&resolution=1`) {
  const { answerTo } = await openCharts({ messages })
  const marks: TimescaleMarks = await answerTo(`timescale_marks?${query}`)
  return marks.map(({ time, label, color, tooltip }) => [time - DAY, label, color, ...tooltip] as const)
}

describe('the marks of a chart', () => {
  const at = { time: DAY + 60 }
  const announced = `Multiplier announced: 2, before 1, from ${timeOf(DAY + HOUR)}`
  const cancelled = `Announced multiplier cancelled, from ${timeOf(DAY + HOUR)}`
  const inEffect = 'Multiplier in effect: 2, before 1'
  const takingEffect = multiplier({ time: DAY + HOUR + 3 }, 'effective', 'clock', DAY + HOUR)
  const paused = 'Paused: TRANSFER, MINT'

  it.each<[what: string, message: Draft, at: number, label: string, color: string, text: string]>([
    ['an announced multiplier', multiplier(at, 'scheduled', 'log', DAY + HOUR), 60, 'M', 'blue', announced],
    ['a multiplier that takes effect', takingEffect, HOUR, 'M', 'green', inEffect],
    ['a multiplier that takes effect at once', multiplier(at, 'effective', 'log', null), 60, 'M', 'green', inEffect],
    ['a cancelled multiplier', multiplier(at, 'cancelled', 'list', DAY + HOUR), 60, 'M', 'red', cancelled],
    ['a pause', pause(at), 60, 'P', 'red', paused],
    ['its end', pause(at, 'unpaused', ['BURN']), 60, 'P', 'green', 'Unpaused: TRANSFER, MINT; still paused: BURN'],
    ['a frozen NAV', navAt(at, true, false), 60, 'F', 'red', 'NAV frozen at 100 USD'],
    ['a NAV that is frozen from the start', navAt(at, true, 'none'), 60, 'F', 'red', 'NAV frozen at 100 USD'],
    ['the end of it', navAt(at, false, true), 60, 'F', 'green', 'NAV no longer frozen at 100 USD'],
    ['an announcement', action(at, 'Split\n2:1'), 60, 'A', 'blue', 'Announcement: Split 2:1'],
    [
      'markup as text',
      action(at, '<img src=x onerror=alert(1)>\u202e'),
      60,
      'A',
      'blue',
      'Announcement: ‹img src=x onerror=alert(1)›\ufffd',
    ],
    ['a fact of a clock that was an hour late', pause({ ...at, writtenAt: DAY - 3_540 }), 60, 'P', 'red', paused],
    ['a fact whose block was read late', pause({ ...at, writtenAt: DAY + 2 * 86_400 + 99 }), 60, 'P', 'red', paused],
  ])('show %s', async (_, message, ...mark) => {
    expect(await marksOf([message])).toEqual([mark])
  })

  it.each<[what: string, messages: readonly Draft[]]>([
    ['a NAV that changes otherwise', [navAt({ time: DAY + 60 }, true, true), navAt({ time: DAY + 61 }, false, null)]],
    ['a NAV of which nothing is known', [navAt({ time: DAY + 60 }, null, true), navAt({ time: DAY + 61 }, null, 'none')]],
    [
      'the first multiplier of the list',
      [{ ...multiplier({ time: DAY + 60 }, 'effective', 'list', null), previous: null } as DraftOf<'multiplier'>],
    ],
    ['other tokens', [pause({ time: DAY + 60, address: tesla }), navAt({ time: DAY + 61, address: tesla }, true, false)]],
    ['the time before and after', [pause({ time: DAY - 1 }), pause({ time: DAY + 2 * 86_400 + 60 })]],
    ['a retracted fact', [pause({ time: DAY + 60 }), retract(pause({ time: DAY + 60 }), DAY + 62)]],
  ])('do not show %s', async (_, messages) => {
    expect(await marksOf(messages)).toEqual([])
  })

  it('show a fact as it was last amended or published', async () => {
    const fact = pause({ time: DAY + 60 })
    const amended = [fact, amend(fact, DAY + 61, { features: ['BURN'] })]
    expect(await marksOf(amended)).toEqual([[60, 'P', 'red', 'Paused: BURN']])
    const again = { ...fact, time: timeOf(DAY + 63) }
    expect(await marksOf([...amended, retract(fact, DAY + 62), again])).toEqual([[60, 'P', 'red', 'Paused: TRANSFER, MINT']])
  })

  it('have ids that stay: the key, or the position', async () => {
    const { answerTo, tape } = await openCharts({
      messages: [
        pause({ time: DAY + 60 }),
        navAt({ time: DAY + 70 }, true, false),
        multiplier({ time: DAY + 80 }, 'effective', 'clock', DAY + 80),
      ],
    })
    const ids = [keyAt(DAY + 60), `${tape.epoch}.2`, `${tape.epoch}.3`]
    const marks: TimescaleMarks = await answerTo(`timescale_marks?${range}&resolution=1`)
    expect(marks.map(({ id }) => id)).toEqual(ids)
    expect(await answerTo(`marks?${range}&resolution=1D`)).toMatchObject({ id: ids })
  })

  it('are in the order of their times, up to the end of the last bar', async () => {
    const messages = [DAY + 60, DAY + 30, DAY + 600].map((time) => pause({ time, writtenAt: DAY + 700 }))
    expect((await marksOf(messages)).map(([time]) => time)).toEqual([30, 60, 600])
    const query = (resolution: string) => `symbol=AAPLc&from=${DAY}&to=${DAY + 59}&resolution=${resolution}`
    expect((await marksOf(messages, query('1'))).map(([time]) => time)).toEqual([30])
    expect((await marksOf(messages, query('5'))).map(([time]) => time)).toEqual([30, 60])
    expect((await marksOf(messages, query('1D'))).map(([time]) => time)).toEqual([30, 60, 600])
  })

  it('are the newest of many', async () => {
    const messages = Array.from({ length: 510 }, (_, index) => pause({ time: DAY + index }))
    const times = (await marksOf(messages)).map(([time]) => time)
    expect([times.length, times[0], times.at(-1)]).toEqual([500, 10, 509])
  })
})

describe('the marks on bars', () => {
  const minutes = [DAY + 60, DAY + 600, DAY + 86_400].map((start) => ({ start, prices: ['1'] }))

  it.each<[what: string, resolution: string, at: number, barAt: number]>([
    ['in the bar of their time', '1', 630, 600],
    ['on the last bar before them', '1', 590, 60],
    ['where a bar would be if none is before them', '1', 30, 0],
    ['in a longer bar', '5', 190, 0],
    ['on the last longer bar before them', '5', 590, 0],
    ['on a day in UTC', '1D', 86_000, 0],
  ])('are %s', async (_, resolution, at, barAt) => {
    const { answerTo } = await openCharts({ minutes, messages: [pause({ time: DAY + at })] })
    const { time, text }: UdfMarks = await answerTo(`marks?${range}&resolution=${resolution}`)
    expect([time, text]).toEqual([[DAY + barAt], ['Paused: TRANSFER, MINT']])
  })

  it('are a table, with ten at most for a bar: the newest', async () => {
    const messages = [DAY + 60, ...Array.from({ length: 12 }, (_, index) => DAY + 600 + index)].map((time) => pause({ time }))
    const { answerTo } = await openCharts({ minutes, messages })
    const marks: UdfMarks = await answerTo(`marks?${range}&resolution=1`)
    expect(marks.time).toEqual([DAY + 60, ...Array.from({ length: 10 }, () => DAY + 600)])
    expect(marks.id).toEqual([keyAt(DAY + 60), ...Array.from({ length: 10 }, (_, index) => keyAt(DAY + 602 + index))])
    for (const column of Object.values(marks)) expect(column).toHaveLength(11)
    expect(await answerTo(`marks?symbol=TSLAc&from=0&to=${DAY * 2}&resolution=1`)).toMatchObject({ id: [], time: [] })
  })
})

import { describe, expect, it } from 'vitest'
import type { UdfHistory } from '../../../../../src/protocol/bars/udf.ts'
import { DAY, type Minute, openCharts } from './chart-fixture.ts'

const HOUR = 3_600
const minutes: readonly Minute[] = [
  { start: DAY, prices: ['1', '3', '0.5', '2'] },
  { start: DAY + 60, prices: ['2.00000001'] },
  // A bar whose trades are gone, and one of a trade that is too small for a price.
  { start: DAY + 120, prices: [] },
  { start: DAY + 180, prices: [null] },
  { start: DAY + 300, prices: ['4', null] },
  { start: DAY + 86_400 + HOUR, prices: ['5'] },
]
const open: Minute = { start: DAY + 2 * 86_400, prices: ['6', '7'] }
const priced = [DAY, DAY + 60, DAY + 300, DAY + 86_400 + HOUR, open.start]

const starts = (answer: UdfHistory): readonly number[] => (answer.s === 'ok' ? answer.t : [])

describe('the history of a chart', () => {
  it.each<[what: string, query: string, expected: readonly number[]]>([
    ['holds the bars from from to before to', `resolution=1&from=${DAY + 60}&to=${DAY + 300}`, [DAY + 60]],
    ['includes a bar at from', `resolution=1&from=${DAY}&to=${DAY + 1}`, [DAY]],
    ['holds the open bar as the last one', `resolution=1&from=${DAY + 300}&to=${DAY + 10 * 86_400}`, priced.slice(2)],
    ['gives countback precedence over from', `resolution=1&from=${DAY + 300}&to=${DAY + 301}&countback=2`, [DAY + 60, DAY + 300]],
    ['takes no more than countback, whatever from says', `resolution=1&from=0&to=${DAY + 301}&countback=1`, [DAY + 300]],
    ['needs no from with countback', `resolution=1&to=${DAY + 301}&countback=99`, priced.slice(0, 3)],
    ['takes any great countback', `resolution=1&to=${DAY + 301}&countback=999999999`, priced.slice(0, 3)],
    ['folds five minutes', `resolution=5&from=${DAY}&to=${DAY + 600}`, [DAY, DAY + 300]],
    ['folds a quarter of an hour', `resolution=15&from=${DAY}&to=${DAY + 600}`, [DAY]],
    ['folds four hours', `resolution=240&to=${DAY + 10 * 86_400}&countback=9`, [DAY, DAY + 86_400, open.start]],
    ['folds days in UTC', `resolution=1D&to=${DAY + 10 * 86_400}&countback=9`, [DAY, DAY + 86_400, open.start]],
    ['knows a day without its number', `resolution=D&to=${DAY + 10 * 86_400}&countback=1`, [open.start]],
    ['holds whole bars, also those that contain to', `resolution=60&from=${DAY}&to=${DAY + 30}`, [DAY]],
    ['takes fractions of seconds', `resolution=1&from=${DAY + 0.5}&to=${DAY + 60.5}`, [DAY + 60]],
    ['takes a from before 1970', `resolution=1&from=-86400&to=${DAY + 1}`, [DAY]],
  ])('%s', async (_, query, expected) => {
    const { answerTo } = await openCharts({ minutes, open })
    expect(starts(await answerTo(`history?symbol=AAPLc&${query}`))).toEqual(expected)
  })

  it('has doubles, in columns', async () => {
    const { answerTo } = await openCharts({ minutes, open })
    expect(await answerTo(`history?symbol=AAPLc&resolution=1&from=${DAY}&to=${DAY + 120}`)).toEqual({
      ...{ s: 'ok', t: [DAY, DAY + 60], o: [1, 2.00000001], h: [3, 2.00000001], l: [0.5, 2.00000001], c: [2, 2.00000001] },
      v: [6, 1.5],
    })
    expect(await answerTo(`history?symbol=AAPLc&resolution=1D&from=${DAY}&to=${DAY + 1}`)).toEqual({
      ...{ s: 'ok', t: [DAY], o: [1], h: [4], l: [0.5], c: [4], v: [12] },
    })
  })

  it.each<[what: string, query: string, nextTime: number | undefined]>([
    ['names the newest older bar', `from=${DAY + HOUR}&to=${DAY + 2 * HOUR}`, DAY + 300],
    ['passes over bars without a price', `from=${DAY + 120}&to=${DAY + 240}`, DAY + 60],
    ['names no bar if none is older', `from=${DAY - HOUR}&to=${DAY}`, undefined],
    ['names no bar to a client that counts', `from=${DAY - HOUR}&to=${DAY}&countback=300`, undefined],
    ['names the newest bar to a client that is ahead', `from=${DAY * 2}&to=${DAY * 2 + HOUR}`, open.start],
  ])('without a bar in the range %s', async (_, query, nextTime) => {
    const { answerTo } = await openCharts({ minutes, open })
    expect(await answerTo(`history?symbol=AAPLc&resolution=1&${query}`)).toStrictEqual({
      s: 'no_data',
      ...(nextTime !== undefined && { nextTime }),
    })
  })

  it('of a token without trades is empty', async () => {
    const { answerTo } = await openCharts({ minutes, open })
    expect(await answerTo(`history?symbol=TSLAc&resolution=1D&from=0&to=${DAY * 2}`)).toStrictEqual({ s: 'no_data' })
  })

  it('holds the newest bars of a long range', async () => {
    const many = Array.from({ length: 5_010 }, (_, index): Minute => ({ start: DAY - 86_400 + 60 * index, prices: ['1'] }))
    const { answerTo } = await openCharts({ minutes: many })
    const bars = starts(await answerTo(`history?symbol=AAPLc&resolution=1&from=0&to=${DAY * 2}`))
    expect([bars.length, bars[0], bars.at(-1)]).toEqual([5_000, DAY - 86_400 + 600, DAY - 86_400 + 60 * 5_009])
  })

  it.each([
    ['1', 2, [3]],
    // The rest of an hour is minutes, and that of a day is hours too: each is read at once.
    ['60', 2, [50, 3]],
    ['1D', 1, [50, 1, 2]],
  ])('of a few bars of resolution %s reads few minutes', async (resolution, count, expected) => {
    const many = Array.from({ length: 2_990 }, (_, index): Minute => ({ start: DAY + 60 * index, prices: ['1'] }))
    const { answerTo, reads } = await openCharts({ minutes: many, open: { start: DAY + 60 * 2_990, prices: ['2'] } })
    expect(starts(await answerTo(`history?symbol=AAPLc&resolution=${resolution}&to=${DAY * 2}&countback=${count}`))).toHaveLength(
      count,
    )
    expect(reads).toEqual(expected)
  })
})

/** A library whose user scrolls left: it asks for the bars before its first one, until there are none. */
async function scrollLeft(ask: (query: string) => Promise<UdfHistory>, queryBefore: (time: number) => string) {
  const [bars, answers]: [number[], string[]] = [[], []]
  for (let before = DAY * 2; answers.length < 50; ) {
    const answer = await ask(queryBefore(before))
    answers.push('nextTime' in answer ? 'nextTime' : answer.s)
    if (answer.s === 'ok') bars.unshift(...answer.t)
    else if (answer.nextTime === undefined) break
    before = answer.s === 'ok' ? (answer.t[0] ?? 0) : (answer.nextTime ?? 0) + 1
  }
  return { bars, answers }
}

describe('a client that scrolls left', () => {
  it.each([
    ['with countback', '&countback=2', ['ok', 'ok', 'ok', 'no_data']],
    ['without countback, led over the times without trades,', '', expect.arrayContaining(['nextTime'])],
  ])('%s has each bar once and stops at the first one', async (_, more, answered) => {
    const { answerTo } = await openCharts({ minutes, open })
    const { bars, answers } = await scrollLeft(answerTo, (time) => {
      return `history?symbol=AAPLc&resolution=1&from=${time - 120}&to=${time}${more}`
    })
    expect(bars).toEqual(priced)
    expect(answers.at(-1)).toBe('no_data')
    expect(answers).toEqual(answered)
  })
})

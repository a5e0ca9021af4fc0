import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { MarketCalendar } from '../../../src/relay/market/market-calendar.ts'
import { needPrograms, pathOf } from '../../support/debian-programs.ts'

needPrograms('quantlib', 'tzdata')

/**
 * Others judge the calendar, day by day. QuantLib (Debian's 1.29) knows the holidays of the New York Stock
 * Exchange, and Python's zoneinfo with Debian's tzdata knows the hours of New York; neither shares a line or a table with src.
 */

const PYTHON = pathOf('python')
const FIRST = '2000-01-01'
/** The last day that the table knows, and so the last that can be judged. */
const LAST = '2028-12-31'

const program = `
import sys, QuantLib
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

def at(day, hour, minute):
    return int(datetime.combine(day, time(hour, minute), ZoneInfo("America/New_York")).timestamp())

exchange = QuantLib.UnitedStates(QuantLib.UnitedStates.NYSE)
day, last = (date.fromisoformat(text) for text in sys.argv[1:])
while day <= last:
    judged = exchange.isBusinessDay(QuantLib.Date(day.day, day.month, day.year))
    hours = [(4, 0), (9, 30), (13, 0), (16, 0), (20, 0)]
    print(day, int(judged), at(day - timedelta(days=1), 20, 0), *(at(day, *hour) for hour in hours))
    day += timedelta(days=1)
`

/**
 * No package of npm or Debian knows the early closes. These are literal: 2000 to 2022 as QuantConnect's LEAN has them in its
 * database of market hours, and from 2023 on as NYSE announced them. All are at 13:00.
 */
const earlyCloses = new Set(
  `
  2000 07-03 11-24, 2001 07-03 11-23 12-24, 2002 07-05 11-29 12-24, 2003 07-03 11-28 12-24 12-26, 2004 11-26, 2005 11-25,
  2006 07-03 11-24, 2007 07-03 11-23 12-24, 2008 07-03 11-28 12-24, 2009 11-27 12-24, 2010 11-26, 2011 11-25,
  2012 07-03 11-23 12-24, 2013 07-03 11-29 12-24, 2014 07-03 11-28 12-24, 2015 11-27 12-24, 2016 11-25, 2017 07-03 11-24,
  2018 07-03 11-23 12-24, 2019 07-03 11-29 12-24, 2020 11-27 12-24, 2021 11-26, 2022 11-25, 2023 07-03 11-24,
  2024 07-03 11-29 12-24, 2025 07-03 11-28 12-24, 2026 11-27 12-24, 2027 11-26, 2028 07-03 11-24`
    .split(',')
    .flatMap((line) => {
      const [year, ...dates] = line.trim().split(' ')
      return dates.map((date) => `${year}-${date}`)
    }),
)

/** Each day on which the judges differ from src: none but these. */
const knownDifferences = [
  // The day of mourning for Jimmy Carter was announced after QuantLib 1.29.
  { date: '2025-01-09', expected: 'overnight pre open post', actual: 'closed' },
]

type JudgedDay = { readonly date: string; readonly isOpen: boolean; readonly hours: readonly number[] }

const judgedDays: readonly JudgedDay[] = execFileSync(PYTHON, ['-c', program, FIRST, LAST], { encoding: 'utf8' })
  .trim()
  .split('\n')
  .map((line) => {
    const [date = '', isOpen, ...hours] = line.split(' ')
    return { date, isOpen: isOpen === '1', hours: hours.map(Number) }
  })

/** Each state of the day with the time at which it begins: what the judges expect. */
function expectedOn({
  date,
  isOpen,
  hours: [begin = 0, pre = 0, open = 0, early = 0, post = 0],
}: JudgedDay): (readonly [string, number])[] {
  if (!isOpen) return [['closed', begin]]
  const end = earlyCloses.has(date) ? (['closed', early] as const) : (['post', post] as const)
  return [['overnight', begin], ['pre', pre], ['open', open], end]
}

/** The same, as the calendar has it: each change of the session between the day's begin and its end. */
function actualOn(calendar: MarketCalendar, { hours }: JudgedDay): (readonly [string, number])[] {
  const [begin = 0, end = 0] = [hours.at(0), hours.at(-1)]
  const states: (readonly [string, number])[] = []
  for (let time = begin; time < end; ) {
    const { state, ends_at } = calendar.sessionAt(time)
    states.push([state, time])
    const next = Date.parse(ends_at ?? '') / 1_000
    time = next > time ? next : end
  }
  return states
}

const namesOf = (states: readonly (readonly [string, number])[]): string => states.map(([state]) => state).join(' ')

it('agrees with QuantLib and zoneinfo on every state of every day, except for the differences that are known', () => {
  expect(judgedDays).toHaveLength(10_593)
  const calendar = new MarketCalendar()
  const differences = judgedDays.flatMap((day) => {
    const [expected, actual] = [expectedOn(day), actualOn(calendar, day)]
    if (JSON.stringify(expected) === JSON.stringify(actual)) return []
    const [names, found] = [namesOf(expected), namesOf(actual)]
    return [names === found ? { date: day.date, expected, actual } : { date: day.date, expected: names, actual: found }]
  })
  expect(differences).toEqual(knownDifferences)
})

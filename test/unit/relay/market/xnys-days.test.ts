import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { MarketCalendar, namesByDate } from '../../../../src/relay/market/market-calendar.ts'
import { xnysDays } from '../../../../src/relay/market/xnys-days.ts'

const text = readFileSync(new URL('../../../../src/relay/market/xnys-days.ts', import.meta.url), 'utf8')

it('names its source and its end', () => {
  expect(text).toMatch(/^ \* Source: NYSE Rule 7\.2, .+\.$/m)
  expect(text).toContain(` * Valid to: ${new MarketCalendar().sessionAt(0).valid_to},`)
})

it('has each day once, in order under its name, between the first and the last', () => {
  for (const days of [xnysDays.holidays, xnysDays.earlyCloses]) {
    const lists = Object.values(days).map((dates) => dates.split(/\s+/))
    expect(lists).toEqual(lists.map((dates) => dates.toSorted()))
    const all = [...namesByDate(days).keys()].sort()
    expect(all).toEqual(lists.flat().sort())
    expect([xnysDays.first < (all[0] ?? ''), xnysDays.last > (all.at(-1) ?? '')]).toEqual([true, true])
  }
})

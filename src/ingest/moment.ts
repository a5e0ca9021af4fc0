import { type Decimal, parseDecimal } from '../protocol/decimal.ts'
import type { Nav } from '../protocol/fields.ts'
import { type NavReading, type NavTiming, navAt } from '../tokens/nav.ts'

/** The time at which a batch is reduced, and what is computed from it once for many logs. */
export type Moment = NavTiming & {
  /** `now` as text. */
  readonly time: string
  /** The NAV of a reading, the same object for all logs. */
  navOf(reading: NavReading): Nav
  /** The text of a time in milliseconds. */
  isoOf(ms: number): string
  /** A multiplier or price. */
  decimalOf(text: string): Decimal | null
}

export function openMoment(now: number, staleMs: number): Moment {
  const time = new Date(now).toISOString()
  const navs = new Map<NavReading, Nav>()
  const decimals = new Map<string, Decimal | null>()
  const times = new Map<number, string>()
  return {
    now,
    staleMs,
    time,
    navOf(reading) {
      let nav = navs.get(reading)
      if (!nav) {
        nav = navAt(reading, now, staleMs)
        navs.set(reading, nav)
      }
      return nav
    },
    isoOf(ms) {
      let text = times.get(ms)
      if (text === undefined) {
        text = new Date(ms).toISOString()
        times.set(ms, text)
      }
      return text
    },
    decimalOf(text) {
      let decimal = decimals.get(text)
      if (decimal === undefined) {
        decimal = parseDecimal(text)
        decimals.set(text, decimal)
      }
      return decimal
    },
  }
}

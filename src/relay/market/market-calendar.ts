import { xnysDays } from './xnys-days.ts'

type MarketState = 'pre' | 'open' | 'post' | 'overnight' | 'closed' | 'unknown'

/** A period in which the state of the market stays the same, in Unix seconds. `reason` names why a weekday is closed. */
type Stretch = { readonly state: MarketState; readonly since: number; readonly until: number; readonly reason: string | null }

/** Limit of the days in a row without trading, with which the last trading day is looked for. */
const CLOSED_DAYS_BOUND = 14

/** Times are RFC 3339 in UTC with milliseconds. */
export type MarketSession = {
  readonly market: 'XNYS'
  readonly state: MarketState
  readonly started_at: string | null
  readonly ends_at: string | null
  /** The end of the last `open` session before this one. */
  readonly closed_at: string | null
  readonly reason: string | null
  readonly valid_to: string
}

const HOUR = 3_600
const DAY = 24 * HOUR
const PRE = 4 * HOUR
const OPEN = 9.5 * HOUR
const POST = 16 * HOUR
/** A trading day begins at 20:00 of the evening before. */
const END = 20 * HOUR
const BEGIN = END - DAY
const [SUNDAY, SATURDAY] = [0, 6]

export const openCalendar = (market: 'XNYS' | 'none'): MarketCalendar | null => (market === 'none' ? null : new MarketCalendar())

/** The sessions of the New York Stock Exchange by time, with the night sessions of other US markets. */
export class MarketCalendar {
  /** The start of the table of trading days, in the time of New York. `#end` is its end. */
  readonly #begin = secondsOf(xnysDays.first) + BEGIN
  readonly #end = secondsOf(xnysDays.last) + END
  readonly #validFrom = timeInNewYork(this.#begin)
  readonly #validTo = timeInNewYork(this.#end)
  readonly #holidays = namesByDate(xnysDays.holidays)
  readonly #earlyCloses = namesByDate(xnysDays.earlyCloses)
  /** The last answer, since most calls ask about the current session. */
  #current: { readonly stretch: Stretch; readonly session: MarketSession } | null = null

  /** @param time Unix time in seconds. @returns One object for all times of a session. */
  sessionAt(time: number): MarketSession {
    if (this.#current === null || time < this.#current.stretch.since || time >= this.#current.stretch.until) {
      const stretch = this.#stretchAt(time)
      this.#current = { stretch, session: this.#sessionOf(stretch) }
    }
    return this.#current.session
  }

  #sessionOf({ state, since, until, reason }: Stretch): MarketSession {
    const bounds =
      state === 'unknown'
        ? { started_at: null, ends_at: null, closed_at: null }
        : { started_at: textOf(since), ends_at: textOf(until), closed_at: this.#lastCloseAt(newYorkClock(since)) }
    return { market: 'XNYS', state, ...bounds, reason, valid_to: textOf(this.#validTo) }
  }

  /** Returns the stretch that contains the time. It is as long as the state lasts, so it may span several closed days. */
  #stretchAt(time: number): Stretch {
    if (time < this.#validFrom) return { state: 'unknown', since: -Infinity, until: this.#validFrom, reason: null }
    if (time >= this.#validTo) return { state: 'unknown', since: this.#validTo, until: Infinity, reason: null }
    const part = this.#partAt(newYorkClock(time))
    const { state, since, until, reason } = part.state === 'closed' ? this.#joined(part) : part
    return { state, since: timeInNewYork(since), until: timeInNewYork(until), reason }
  }

  /** Joins a closed part with the adjacent closed parts. The earliest part that has a reason gives the reason. */
  #joined(closed: Stretch): Stretch {
    let { since, until, reason } = closed
    while (since > this.#begin) {
      const before = this.#partAt(since - 1)
      if (before.state !== 'closed') break
      since = before.since
      reason = before.reason ?? reason
    }
    while (until < this.#end) {
      const after = this.#partAt(until)
      if (after.state !== 'closed') break
      until = after.until
      reason ??= after.reason
    }
    return { state: 'closed', since, until, reason }
  }

  /** Returns the time of the last close at or before a time, which is in the time of New York. */
  #lastCloseAt(shown: number): string | null {
    const today = midnightOf(shown)
    for (let days = 0; days <= CLOSED_DAYS_BOUND; days += 1) {
      const midnight = today - days * DAY
      if (midnight + BEGIN < this.#begin) return null
      const closesAt = this.#closeOf(midnight)
      if (closesAt !== null && closesAt <= shown) return textOf(timeInNewYork(closesAt))
    }
    return null
  }

  /** Returns the time of the close of a day, in the time of New York; null if the market does not open. */
  #closeOf(midnight: number): number | null {
    const date = dateOf(midnight)
    if (isWeekend(midnight) || this.#holidays.has(date)) return null
    return this.#earlyCloses.has(date) ? secondsOf(`${date}T${xnysDays.earlyCloseTime}Z`) : midnight + POST
  }

  /** Returns the part of a trading day that contains a time. The time and the part are in the time of New York. */
  #partAt(shown: number): Stretch {
    const midnight = midnightOf(shown)
    const [begin, end] = [midnight + BEGIN, midnight + END]
    const date = dateOf(midnight)
    const closesAt = this.#closeOf(midnight)
    if (closesAt === null) return { state: 'closed', since: begin, until: end, reason: this.#holidays.get(date) ?? null }
    const [pre, open] = [midnight + PRE, midnight + OPEN]
    if (shown < pre) return { state: 'overnight', since: begin, until: pre, reason: null }
    if (shown < open) return { state: 'pre', since: pre, until: open, reason: null }
    const early = this.#earlyCloses.get(date) ?? null
    if (shown < closesAt) return { state: 'open', since: open, until: closesAt, reason: null }
    return { state: early === null ? 'post' : 'closed', since: closesAt, until: end, reason: early }
  }
}

/** Returns the name of each date in a group of `xnysDays`. */
export const namesByDate = (days: Readonly<Record<string, string>>): ReadonlyMap<string, string> =>
  new Map(Object.entries(days).flatMap(([name, dates]) => dates.split(/\s+/).map((date) => [date, name] as const)))

/** Returns the midnight in the trading day that contains a time. */
const midnightOf = (shown: number): number => Math.floor((shown - BEGIN) / DAY) * DAY
const dateOf = (midnight: number): string => new Date(midnight * 1_000).toISOString().slice(0, 10)
const isWeekend = (midnight: number): boolean => [SUNDAY, SATURDAY].includes(new Date(midnight * 1_000).getUTCDay())
const secondsOf = (text: string): number => Date.parse(text) / 1_000
const textOf = (time: number): string => new Date(time * 1_000).toISOString()

const format = new Intl.DateTimeFormat('en-US', {
  timeZone: 'America/New_York',
  hourCycle: 'h23',
  year: 'numeric',
  month: 'numeric',
  day: 'numeric',
  hour: 'numeric',
  minute: 'numeric',
  second: 'numeric',
})
const STANDARD_OFFSET_SECONDS = 5 * 3_600

/** Turns a Unix time into the time that the clocks in New York show, written as if they were clocks on UTC. */
function newYorkClock(time: number): number {
  const fields = format.format(time * 1_000).match(/\d+/g) ?? []
  const [month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0] = fields.map(Number)
  return Date.UTC(year, month - 1, day, hour, minute, second) / 1_000
}

/** The inverse of `newYorkClock`. It may be wrong from 01:00 to 03:00, when the clocks can change. */
function timeInNewYork(shown: number): number {
  const inWinter = shown + STANDARD_OFFSET_SECONDS
  return inWinter - (newYorkClock(inWinter) - shown)
}

import { newYorkClock, timeInNewYork } from './new-york-time.ts'

export type MarketState = 'pre' | 'open' | 'post' | 'overnight' | 'closed' | 'unknown'

/** The time from one change of the state to the next, in Unix seconds. `reason` names what closes the market on a weekday. */
export type Stretch = {
  readonly state: MarketState
  readonly since: number
  readonly until: number
  readonly reason: string | null
}

/** Dates in New York. The table does not know the days before the first and after the last. */
type DayTable = {
  readonly first: string
  readonly last: string
  readonly holidays: readonly (readonly [date: string, name: string])[]
  readonly earlyCloses: readonly (readonly [date: string, name: string, closesAt: string])[]
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

/** The states of a market with the hours of the US exchanges and their night sessions, whose days off are in a table. */
export class TradingDays {
  readonly validFrom: number
  readonly validTo: number
  /** The same, as the clocks in New York show it. */
  readonly #begin: number
  readonly #end: number
  readonly #holidays: ReadonlyMap<string, string>
  readonly #earlyCloses: ReadonlyMap<string, { readonly name: string; readonly closesAt: number }>

  constructor({ first, last, holidays, earlyCloses }: DayTable) {
    this.#begin = secondsOf(first) + BEGIN
    this.#end = secondsOf(last) + END
    this.validFrom = timeInNewYork(this.#begin)
    this.validTo = timeInNewYork(this.#end)
    this.#holidays = new Map(holidays)
    this.#earlyCloses = new Map(
      earlyCloses.map(([date, name, closesAt]) => [date, { name, closesAt: secondsOf(`${date}T${closesAt}Z`) }]),
    )
  }

  /** The stretch that contains the time. It is as long as the state lasts, so it may span several closed days. */
  stretchAt(time: number): Stretch {
    if (time < this.validFrom) return { state: 'unknown', since: -Infinity, until: this.validFrom, reason: null }
    if (time >= this.validTo) return { state: 'unknown', since: this.validTo, until: Infinity, reason: null }
    const part = this.#partAt(newYorkClock(time))
    const { state, since, until, reason } = part.state === 'closed' ? this.#joined(part) : part
    return { state, since: timeInNewYork(since), until: timeInNewYork(until), reason }
  }

  /** A closed part with the closed parts that adjoin it. The reason is the first that is found in them. */
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

  /** The part of one trading day that contains what the clocks in New York show. Its bounds are in the same terms. */
  #partAt(shown: number): Stretch {
    const midnight = Math.floor((shown - BEGIN) / DAY) * DAY
    const [begin, end] = [midnight + BEGIN, midnight + END]
    const date = new Date(midnight * 1_000).toISOString().slice(0, 10)
    const holiday = this.#holidays.get(date) ?? null
    if (holiday !== null || isWeekend(midnight)) return { state: 'closed', since: begin, until: end, reason: holiday }
    const [pre, open] = [midnight + PRE, midnight + OPEN]
    if (shown < pre) return { state: 'overnight', since: begin, until: pre, reason: null }
    if (shown < open) return { state: 'pre', since: pre, until: open, reason: null }
    const early = this.#earlyCloses.get(date)
    const closesAt = early?.closesAt ?? midnight + POST
    if (shown < closesAt) return { state: 'open', since: open, until: closesAt, reason: null }
    return { state: early === undefined ? 'post' : 'closed', since: closesAt, until: end, reason: early?.name ?? null }
  }
}

const isWeekend = (midnight: number): boolean => [SUNDAY, SATURDAY].includes(new Date(midnight * 1_000).getUTCDay())
const secondsOf = (text: string): number => Date.parse(text) / 1_000

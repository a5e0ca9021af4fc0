import { type MarketState, type Stretch, TradingDays } from './trading-days.ts'
import { xnysDays } from './xnys-days.ts'

/** Times are RFC 3339 in UTC with milliseconds. */
export type MarketSession = {
  readonly market: 'XNYS'
  readonly state: MarketState
  readonly started_at: string | null
  readonly ends_at: string | null
  readonly reason: string | null
  readonly valid_to: string
}

export const openCalendar = (market: 'XNYS' | 'none'): MarketCalendar | null => (market === 'none' ? null : new MarketCalendar())

/** The New York Stock Exchange's sessions by time. It keeps the latest one, because most questions are about the same. */
export class MarketCalendar {
  readonly #days = new TradingDays(xnysDays)
  #current: { readonly stretch: Stretch; readonly session: MarketSession } | null = null

  /** @param time Unix time in seconds. @returns The same object for every time of the session. */
  sessionAt(time: number): MarketSession {
    if (this.#current === null || time < this.#current.stretch.since || time >= this.#current.stretch.until) {
      const stretch = this.#days.stretchAt(time)
      this.#current = { stretch, session: this.#sessionOf(stretch) }
    }
    return this.#current.session
  }

  #sessionOf({ state, since, until, reason }: Stretch): MarketSession {
    const bounds = state === 'unknown' ? { started_at: null, ends_at: null } : { started_at: textOf(since), ends_at: textOf(until) }
    return { market: 'XNYS', state, ...bounds, reason, valid_to: textOf(this.#days.validTo) }
  }
}

const textOf = (time: number): string => new Date(time * 1_000).toISOString()

import type { Bar, BarsPage, StockState } from '../../sdk/client/index.ts'

/** Figures of a stock in the last day. They are equal for every reader, because the relay keeps the bars. */
export type DayFigures = {
  /** False until the bars have been read. */
  readonly isRead: boolean
  /** The newest price that is known, which the closes end with: while a pool cannot be read, that of its last quote. */
  readonly priceFrom: 'now' | 'last quote' | 'last trade'
  /** The last price of each hour with a trade that is over, oldest first, and the present one. */
  readonly closes: readonly { readonly atMs: number; readonly price: number }[]
  /** Dollars for which the stock was traded, and in how many trades. */
  readonly volume: number
  readonly trades: number
  /** Since the last close of the market; without a price of that time, since the first hour of the day, or the first trade. */
  readonly change: DayChange | null
}

/** A change from the price `base`; `isClose` is whether that is the last close of the market. */
export type DayChange = { readonly percent: number; readonly sinceMs: number; readonly base: number; readonly isClose: boolean }

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Limit on the bars of a page, and on the pages of a day. */
const [PAGE_SIZE, PAGES_BOUND] = [5_000, 4]
/** A close of this time ago would be at the place of the present price. */
const RECENT_MS = 600_000
/** Limit on the hours that are kept of a symbol. */
const HOURS_BOUND = 25
/** Hours that are read again each time, because late trades change them. */
const REREAD_HOURS = 2
/** Hours that are not over may be two, just after an hour has ended. With more of them the relay still reads its past. */
const OPEN_HOURS = 2
/** Interval between two readings; and until the day is whole. */
const [INTERVAL_MS, FIRST_INTERVAL_MS] = [60_000, 10_000]

export type ReadBars = (parameters: Readonly<Record<string, string>>) => Promise<BarsPage>

/** The bars of the last day, one for each hour, of all symbols that the page shows. */
export class DayBars {
  readonly #read: ReadBars
  readonly #figures = new WeakMap<StockState, { readonly nowMs: number; readonly version: number; readonly figures: DayFigures }>()
  #version = 0
  readonly #hours = new Map<string, Map<string, Bar>>()
  /** The prices at the last close of the market. */
  #closed: { readonly at: string; readonly prices: Map<string, number> } | null = null
  /** The last price in a pool, by the address of the token. */
  readonly #quoted = new Map<string, string>()
  isRead = false
  /** Start of the oldest bar of the last reading of the whole day. */
  #oldest: string | null = null
  #isWhole = false
  /** End of the oldest of several hours, of which the relay may have only a part: one base for all that were traded in it. */
  #wholeFrom: string | null = null

  constructor(read: ReadBars) {
    this.#read = read
  }

  /** How long the next reading waits. A minute of bars closes each minute. */
  get intervalMs(): number {
    return this.#isWhole ? INTERVAL_MS : FIRST_INTERVAL_MS
  }

  /** Reads the bars that are new, and all of the day until it is whole: until then the relay may still read the past. `closedAt` is when the market closed last. */
  async refresh(stockCount: number, closedAt: string | null): Promise<void> {
    let since: string | null = this.#isWhole ? `${REREAD_HOURS}h` : '24h'
    const before = this.#oldest
    this.#oldest = null
    const openHours = new Set<string>()
    for (let page = 0; page < PAGES_BOUND && since !== null; page += 1) {
      const { bars, next }: BarsPage = await this.#read({ interval: '1h', since, open: 'true', limit: String(PAGE_SIZE) })
      for (const bar of bars) this.#keep(bar)
      this.#oldest ??= bars[0]?.start ?? null
      for (const { state, start } of bars) if (state === 'open') openHours.add(start)
      since = next
    }
    this.#isWhole ||= this.isRead && this.#oldest === before && openHours.size <= OPEN_HOURS
    if (closedAt !== null && closedAt !== this.#closed?.at) {
      const limit = String(Math.max(1, Math.min(PAGE_SIZE, REREAD_HOURS * stockCount)))
      const { bars } = await this.#read({ interval: '1h', until: closedAt, order: 'desc', limit })
      const oldestFirst = bars.toReversed().filter(({ close }) => close !== null)
      this.#closed = { at: closedAt, prices: new Map(oldestFirst.map(({ symbol, close }) => [symbol, Number(close)])) }
    }
    const ends = new Set([...this.#hours.values()].flatMap((hours) => [...hours.values()].map(({ end }) => end)))
    this.#wholeFrom = ends.size > 1 ? ([...ends].toSorted()[0] ?? null) : null
    this.isRead = true
    this.#version += 1
  }

  /** Keeps the price in a pool, which the next quote may no longer have. */
  keepQuote({ address, quote }: StockState): void {
    if (quote?.price != null) this.#quoted.set(address, quote.price)
  }

  /** Keeps what is known of a token whose symbol changes, unless another token has the new symbol. */
  rename(before: string, symbol: string): void {
    if (this.#hours.has(symbol) || this.#closed?.prices.has(symbol)) return
    const hours = this.#hours.get(before)
    if (hours) this.#hours.set(symbol, hours)
    this.#hours.delete(before)
    const closed = this.#closed?.prices.get(before)
    if (closed !== undefined) this.#closed?.prices.set(symbol, closed)
    this.#version += 1
  }

  /** Returns the figures of a stock, which are the same object while nothing changes. */
  of(stock: StockState, nowMs: number): DayFigures {
    const cached = this.#figures.get(stock)
    if (cached?.nowMs === nowMs && cached.version === this.#version) return cached.figures
    const figures = this.#figuresOf(stock, nowMs)
    this.#figures.set(stock, { nowMs, version: this.#version, figures })
    return figures
  }

  #figuresOf({ symbol, address, quote }: StockState, nowMs: number): DayFigures {
    const hours = [...(this.#hours.get(symbol)?.values() ?? [])].filter(({ start }) => Date.parse(start) > nowMs - DAY_MS)
    const known = hours.flatMap(({ end, close }) =>
      close === null ? [] : [{ atMs: Math.min(nowMs, Date.parse(end)), price: Number(close) }],
    )
    // Another pool without a price may still be traded, so its last trade is newer.
    const quoted = quote?.price ?? (quote?.state === 'unreadable' ? this.#quoted.get(address) : undefined)
    const price = quoted === undefined ? known.at(-1)?.price : Number(quoted)
    // The present price is the last one of the hour that is not over, and stands for a close of a moment ago.
    const over = known.filter(({ atMs }) => atMs < nowMs - RECENT_MS)
    const closes = price === undefined || known.length === 0 ? known : [...over, { atMs: nowMs, price }]
    const sum = (amountOf: (bar: Bar) => number) => hours.reduce((total, bar) => total + amountOf(bar), 0)
    return {
      isRead: this.isRead,
      priceFrom: quote?.price != null ? 'now' : quoted === undefined ? 'last trade' : 'last quote',
      closes,
      volume: sum(({ currency_volume }) => Number(currency_volume)),
      trades: sum(({ trades }) => trades),
      change: price === undefined ? null : this.#changeOf(symbol, price, hours, nowMs),
    }
  }

  #changeOf(symbol: string, price: number, hours: readonly Bar[], nowMs: number): DayChange | null {
    const atClose = this.#closed?.prices.get(symbol)
    const changeFrom = (base: number, since: string, isClose: boolean) => {
      return { percent: (price / base - 1) * 100, sinceMs: Date.parse(since), base, isClose }
    }
    if (this.#closed !== null && atClose !== undefined) return changeFrom(atClose, this.#closed.at, true)
    const early = hours.find(({ end, close }) => end === this.#wholeFrom && close !== null && Date.parse(end) <= nowMs)
    if (early) return changeFrom(Number(early.close), early.end, false)
    const first = hours.find(({ open }) => open !== null)
    return first ? changeFrom(Number(first.open), first.start, false) : null
  }

  #keep(bar: Bar): void {
    const hours = this.#hours.get(bar.symbol) ?? new Map<string, Bar>()
    this.#hours.set(bar.symbol, hours)
    hours.delete(bar.start)
    hours.set(bar.start, bar)
    const oldest = hours.keys().next()
    if (hours.size > HOURS_BOUND && !oldest.done) hours.delete(oldest.value)
  }
}

/** One of the changes that most stocks of a list share their base with: its head names that base. */
export function commonChange(days: readonly Pick<DayFigures, 'change'>[]): DayChange | null {
  const changes = days.flatMap(({ change }) => change ?? [])
  const bases = [...Map.groupBy(changes, ({ sinceMs }) => sinceMs).values()]
  return bases.toSorted((a, b) => b.length - a.length)[0]?.[0] ?? null
}

import { barIntervals } from '../generated/bar-intervals.ts'
import type { Bar, BarMessage, BarsPage, Update } from '../generated/messages.ts'
import type { StocktapeError } from './errors.ts'
import type { HistoryOptions } from './history-reader.ts'
import type { Http } from './http-requests.ts'
import { floorTo, OpenBars, secondsOf, timeOf } from './open-bars.ts'
import type { isNotAfter } from './position-order.ts'
import type { StreamItem, StreamOptions } from './stream-types.ts'

export type BarInterval = keyof typeof barIntervals

export type BarsOptions = Pick<StreamOptions, 'signal' | 'onState' | 'onError'> & {
  /** The length of a bar; a day is a day in UTC. Default `1m`. */
  readonly interval?: BarInterval
  /** Bars of the trades in these pools alone. By default of all pools against the main currency of the relay. */
  readonly pools?: string | readonly string[]
  /** Begins with the stored bar of this chain time: a duration back such as `6h`, or a time. By default with the first one. */
  readonly since?: string | Date
  /** Begins with so many stored bars, the newest ones. */
  readonly limit?: number
}

/** The part of a client that bars need. This file imports no code of it, so that a bundler does not cut the client into pieces. */
export type BarsSource = {
  readonly isNotAfter: typeof isNotAfter
  readonly http: Http
  readonly updates: (symbol: string, options: StreamOptions) => AsyncIterable<StreamItem>
  readonly history: (symbol: string, options: HistoryOptions) => AsyncIterable<Update>
}

const MINUTE_S = 60
const PAGE_SIZE = 5_000
/** Number of messages in one request for the trades of bars that are not over. */
const TRADES_PAGE_SIZE = 200
/** Limit on the stored messages that are read for them. */
const TRADES_BOUND = 50_000

/** Yields the stored bars of one token, then each bar that changes. A bar replaces the one before with the same `start`. */
export async function* readBars(source: BarsSource, symbol: string, options: BarsOptions = {}): AsyncGenerator<Bar, void> {
  try {
    // After a gap everything is read again.
    for (let goesOn = true; goesOn; ) goesOn = yield* new BarsReader(source, symbol, options).read()
  } catch (failure) {
    if (!options.signal?.aborted) throw failure
  }
}

type StoredRange = Pick<HistoryOptions, 'since' | 'until' | 'order' | 'limit'> & { readonly interval?: BarInterval }

class BarsReader {
  readonly #source: BarsSource
  readonly #symbol: string
  readonly #options: BarsOptions
  readonly #seconds: number
  readonly #open: OpenBars
  /** The bars from this time on were read, with all messages up to this position. */
  #loaded = { from: Number.POSITIVE_INFINITY, through: '' }
  /** Block with the first trade of the minutes that are not over. */
  #firstOpenBlock = Number.POSITIVE_INFINITY
  /** Whether only the relay knows if the next bar is partial. */
  #hasFault = true
  /** Start of the bars to read again once a block after `settled` is settled, because trades of a bar that is over changed. */
  #late: { readonly from: number; readonly settled: number } | null = null
  #settled = 0

  constructor(source: BarsSource, symbol: string, options: BarsOptions) {
    const { interval = '1m', pools } = options
    const seconds: number | undefined = barIntervals[interval]
    if (!seconds) throw new TypeError(`interval must be one of ${Object.keys(barIntervals).join(', ')}`)
    this.#source = source
    this.#symbol = symbol
    this.#options = options
    this.#seconds = seconds
    this.#open = new OpenBars(seconds, pools === undefined ? null : String(pools).split(','))
  }

  /** Returns true if everything has to be read again. */
  async *read(): AsyncGenerator<Bar, boolean> {
    const { since, limit, signal, onState, onError } = this.#options
    const start = yield* this.#load({ since, limit })
    await this.#takeStoredTrades(start)
    yield* this.#changes()
    const events = { ...(signal && { signal }), ...(onState && { onState }), ...(onError && { onError }) }
    const types = ['trade', 'bar', 'hole', 'venue', 'finality'] as const
    let newest = start
    for await (const item of this.#source.updates(this.#symbol, {
      ...events,
      types,
      since: start,
      snapshot: false,
      gaps: 'fill',
    })) {
      // A message that was lost on the way may follow those that depend on it.
      if (item.type === 'gap' || (item.id !== null && this.#source.isNotAfter(item.id, newest))) return true
      newest = item.id ?? newest
      if (item.type !== 'snapshot') yield* this.#take(item)
    }
    return false
  }

  async *#take(update: Update): AsyncGenerator<Bar> {
    const { pools } = this.#options
    const found = this.#open.apply(update)
    switch (update.type) {
      case 'bar':
        yield* pools ? this.#settle(update.end) : this.#takeBar(update)
        break
      case 'hole':
      case 'venue':
        this.#hasFault = true
        this.#open.forgetPartials()
        break
      case 'finality':
        yield* this.#settle(update.block.timestamp)
        break
      case 'seal':
        if (pools) yield* this.#settle(update.block.timestamp)
    }
    const time = found && timeOfTrade(update)
    if (time && found === 'unknown') yield* this.#load({ since: timeOf(floorTo(time, this.#seconds)) })
    // Without `pools` the relay publishes such a bar again.
    if (time && found === 'late' && pools) {
      const from = Math.min(this.#late?.from ?? time, time - MINUTE_S)
      this.#late = { from, settled: this.#settled }
    }
    yield* this.#changes()
  }

  async *#takeBar(bar: BarMessage): AsyncGenerator<Bar> {
    const [time, end] = [secondsOf(bar.start), secondsOf(bar.end)]
    if (time >= this.#loaded.from && this.#source.isNotAfter(bar.id, this.#loaded.through)) return
    if (this.#seconds === MINUTE_S) {
      this.#open.takeMinute(bar)
      const { type: _type, id: _id, prev: _prev, address: _address, time: _time, ...fields } = bar
      return yield { ...fields, state: 'closed' }
    }
    const start = floorTo(time, this.#seconds)
    const { first, openFrom } = this.#open
    if (start + this.#seconds <= openFrom) {
      const { bars } = await this.#get({ since: timeOf(start), until: timeOf(start + this.#seconds) })
      yield* bars
    } else if (end === start + this.#seconds || (first !== null && first < start))
      yield* this.#load({ since: timeOf(Math.min(start, first ?? start)) })
    else this.#open.takeMinute(bar)
  }

  /** A block with this time is settled, so that bars may be over although no message says so. */
  async *#settle(time: string | null): AsyncGenerator<Bar> {
    if (time === null) return
    const settled = secondsOf(time)
    const { first } = this.#open
    const isOver = first !== null && first + this.#seconds <= settled
    const late = this.#late && settled > this.#late.settled ? this.#late.from : null
    this.#settled = Math.max(settled, this.#settled)
    if (!isOver && late === null) return
    if (late !== null) this.#late = null
    const from = Math.min(late ?? settled, first ?? settled)
    yield* this.#load({ since: timeOf(floorTo(from, this.#seconds)) }, floorTo(settled, MINUTE_S))
  }

  async *#changes(): AsyncGenerator<Bar> {
    const { first, hasUnknownPartial } = this.#open
    if (first !== null && this.#hasFault && hasUnknownPartial) yield* this.#load({ since: timeOf(first) })
    yield* this.#open.takeChanges()
  }

  /**
   * Reads bars up to the newest one. Yields those that are over, and takes what is known of the others. Minutes before `settled`
   * are over. Returns the position up to which all messages are in the bars.
   */
  async *#load(range: StoredRange, settled = 0): AsyncGenerator<Bar, string> {
    let through: string | null = null
    let from = Number.POSITIVE_INFINITY
    let newest: Bar | null = null
    const open: Bar[] = []
    for await (const { as_of, bars } of this.#pages(range)) {
      through ??= as_of
      for (const bar of bars) {
        from = Math.min(from, secondsOf(bar.start))
        newest = bar
        if (bar.state === 'open') open.push(bar)
        else yield bar
      }
      this.#open.takeBars(bars)
    }
    const [first] = open
    if (first) await this.#loadMinutes(first)
    if (!first || secondsOf(first.start) >= settled) this.#open.close(settled)
    this.#hasFault = !newest || newest.partial !== null
    this.#loaded = { from, through: through ?? '' }
    return through ?? ''
  }

  /** Reads the minutes of bars that are not over. */
  async #loadMinutes({ start }: Bar): Promise<void> {
    for await (const { bars } of this.#pages({ since: start, interval: '1m' }))
      for (const bar of bars)
        if (bar.state !== 'open') this.#open.takeMinute(bar)
        else if (bar.blocks) this.#firstOpenBlock = Math.min(this.#firstOpenBlock, bar.blocks.first)
  }

  /** Reads the trades of minutes that are not over: back to the first one before them. A late trade is not in order. */
  async #takeStoredTrades(through: string): Promise<void> {
    const found: Update[] = []
    const isBefore = (update: Update) => update.type === 'trade' && !update.late && update.block.number < this.#firstOpenBlock
    for (let isLeft = this.#firstOpenBlock < Number.POSITIVE_INFINITY; isLeft; ) {
      const last = found.at(-1)
      const range = last ? { before: last.id } : { through }
      const page = await this.#retry(() => this.#readTrades(range))
      found.push(...page)
      isLeft = page.length === TRADES_PAGE_SIZE && found.length < TRADES_BOUND && !page.some(isBefore)
    }
    for (const update of found.reverse()) this.#open.apply(update)
  }

  async #readTrades(range: HistoryOptions): Promise<readonly Update[]> {
    const { signal } = this.#options
    const options = { ...range, types: ['trade'], order: 'desc', limit: TRADES_PAGE_SIZE, ...(signal && { signal }) } as const
    const page: Update[] = []
    for await (const update of this.#source.history(this.#symbol, options)) page.push(update)
    return page
  }

  /** Reads pages in the order of time. With a limit the newest bars, all at once. */
  async *#pages({ limit, ...range }: StoredRange): AsyncGenerator<BarsPage> {
    const pages: BarsPage[] = []
    let rest: StoredRange = range
    for (let left = limit ?? Number.POSITIVE_INFINITY; left > 0; ) {
      const order = limit === undefined ? 'asc' : 'desc'
      const page = await this.#get({ ...rest, order, limit: Math.min(left, PAGE_SIZE) })
      if (limit === undefined) yield page
      else pages.unshift({ ...page, bars: page.bars.toReversed() })
      if (page.next === null) break
      left -= page.bars.length
      rest = { ...range, [limit === undefined ? 'since' : 'until']: page.next }
    }
    yield* pages
  }

  #get(range: StoredRange): Promise<BarsPage> {
    const { interval, pools, signal } = this.#options
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries({ interval, pools, ...range, open: true }))
      if (value !== undefined) query.set(name, value instanceof Date ? value.toISOString() : String(value))
    return this.#retry(() => this.#source.http.get(`/v1/bars/${encodeURIComponent(this.#symbol)}`, query, signal))
  }

  /** Repeats a request as long as a stream would reconnect. A request waits between its own attempts. */
  async #retry<Answer>(read: () => Promise<Answer>): Promise<Answer> {
    const { signal, onError } = this.#options
    for (;;) {
      try {
        return await read()
      } catch (failure) {
        const error = failure as StocktapeError
        if (signal?.aborted || !this.#mayPass(error)) throw error
        onError?.(error)
      }
    }
  }

  #mayPass({ code }: StocktapeError): boolean {
    const { retry, isKnown } = this.#source.http
    if (retry?.attempts !== undefined) return false
    // An error of another kind has no code.
    return typeof code === 'number' ? code === 429 || code >= 500 : typeof code === 'string' && isKnown && code !== 'no_key'
  }
}

/** The time of the block of a trade, in seconds, or of the block that replaced it. */
function timeOfTrade(update: Update): number | null {
  const block = update.type === 'amend' && 'block' in update.update ? update.update.block : 'block' in update ? update.block : null
  return block?.timestamp ? secondsOf(block.timestamp) : null
}

import { addParts, type BarPart, type BarTrade, barFieldsOf, partOfTrade } from '../generated/bar-fold.ts'
import { parseDecimal } from '../generated/decimal.ts'
import type { Bar, BarMessage, TradeMessage, Update } from '../generated/messages.ts'

const MINUTE_S = 60
/** Limit of the trades that are kept, far more than those of a day. Beyond it all are forgotten until the next bar begins. */
const TRADES_BOUND = 100_000
/** Limit of the pools whose currency is not known yet. */
const POOLS_BOUND = 1_000

type FoldedMinute = {
  readonly part: BarPart | null
  readonly venues: readonly string[]
  readonly revision: number
  readonly partial: string | null
}

type KeptTrade = { readonly trade: BarTrade; readonly currency: string }
/** The trades of one block by their keys. `timestamp` is in seconds, and null until it is known. */
type KeptBlock = { timestamp: number | null; readonly trades: Map<string, KeptTrade> }

export const secondsOf = (time: string): number => Date.parse(time) / 1_000
export const timeOf = (seconds: number): string => new Date(seconds * 1_000).toISOString()
export const floorTo = (seconds: number, step: number): number => seconds - (seconds % step)

/**
 * The bars of one token that are not over: folds of the trades in them, and in a longer interval of the minutes of them that are
 * over. It uses the code of the relay, so that the last fold of a bar is the bar that the relay publishes.
 */
export class OpenBars {
  readonly #seconds: number
  readonly #pools: readonly string[] | null
  readonly #closed = new Map<number, FoldedMinute>()
  readonly #blocks = new Map<number, KeptBlock>()
  #tradeCount = 0
  /** Folds of the trades of each minute, until they change. */
  readonly #folds = new Map<number, FoldedMinute>()
  /** The bars as they were last returned, as texts. */
  readonly #shown = new Map<number, string>()
  /** Why the relay says that a bar is partial. */
  readonly #partials = new Map<number, string | null>()
  /** Pools against the main currency, until it is known. */
  readonly #mainPools = new Set<string>()
  #mainCurrency: string | null = null
  /** The minute in which the relay was asked whether a pool counts. */
  readonly #askedPools = new Map<string, number>()
  #symbol = ''
  #staleAfterS = 0
  /** Bars that start before have lost trades. */
  #completeFrom = 0
  /** The first moment that is not over, in seconds, as far as it is known. */
  openFrom = 0

  /** `pools` are those whose trades make the bars; null for all against the main currency, which is the first of QUOTE_TOKENS. */
  constructor(seconds: number, pools: readonly string[] | null) {
    this.#seconds = seconds
    this.#pools = pools?.map((pool) => pool.toLowerCase()) ?? null
  }

  /** Start of the first bar that is not over; null if none has trades. */
  get first(): number | null {
    const starts = [...this.#starts()]
    return starts.length === 0 ? null : Math.min(...starts)
  }

  /** Whether the relay was not asked yet if a bar is partial. */
  get hasUnknownPartial(): boolean {
    return [...this.#starts()].some((start) => !this.#partials.has(start))
  }

  /** Forgets which bars are partial, so that the relay is asked again. */
  forgetPartials(): void {
    this.#partials.clear()
  }

  /** Takes all bars of the interval that the relay has from one that is not over. */
  takeBars(bars: readonly Bar[]): void {
    for (const bar of bars) {
      const start = secondsOf(bar.start)
      this.#learn(bar)
      if (bar.state === 'open') this.#partials.set(start, bar.partial)
      else this.close(secondsOf(bar.end))
    }
    for (const start of this.#starts()) if (!this.#partials.has(start)) this.#partials.set(start, null)
  }

  /** Takes a minute that is over, with the bar of its trades. */
  takeMinute(bar: Bar | BarMessage): void {
    const start = secondsOf(bar.start)
    this.#learn(bar)
    this.close(start + MINUTE_S)
    if (floorTo(start, this.#seconds) + this.#seconds > this.openFrom) this.#closed.set(start, foldOf(bar))
  }

  /** Forgets the trades before this time, and the bars that end before it. */
  close(time: number): void {
    if (time <= this.openFrom) return
    this.openFrom = time
    for (const [number, { timestamp, trades }] of this.#blocks)
      if (timestamp !== null && timestamp < time) {
        this.#tradeCount -= trades.size
        this.#blocks.delete(number)
      }
    for (const minute of this.#folds.keys()) if (minute < time) this.#folds.delete(minute)
    const openStart = floorTo(time, this.#seconds)
    for (const map of [this.#closed, this.#shown, this.#partials])
      for (const start of map.keys()) if (start < openStart) map.delete(start)
  }

  /**
   * Takes a trade, or what became of one. `late`: it is one of a bar that is over. `unknown`: whether its pool counts is known
   * once the relay was asked for the bar.
   */
  apply(update: Update): 'late' | 'unknown' | null {
    switch (update.type) {
      case 'trade':
        return this.#put(update)
      case 'amend':
        if (update.update.type === 'trade') return this.#put(update.update)
        return update.fact_type === 'trade' ? this.#remove(update.key) : null
      case 'retract':
        return update.fact_type === 'trade' ? this.#remove(update.key) : null
      case 'seal': {
        const { number, timestamp } = update.block
        const block = this.#blocks.get(number)
        if (!block || timestamp === null) return null
        this.#setTime(block, secondsOf(timestamp))
        return this.#ask(block)
      }
      default:
        return null
    }
  }

  /** Returns the bars that are not the same as when they were last returned. */
  takeChanges(): readonly Bar[] {
    return [...new Set([...this.#starts(), ...this.#shown.keys()])]
      .sort((a, b) => a - b)
      .flatMap((start) => {
        const bar = this.#barAt(start)
        const text = JSON.stringify(bar)
        if (start < this.#completeFrom || this.#shown.get(start) === text) return []
        this.#shown.set(start, text)
        return [bar]
      })
  }

  *#starts(): Generator<number> {
    for (const minute of this.#closed.keys()) yield floorTo(minute, this.#seconds)
    for (const [timestamp] of this.#openTrades()) yield floorTo(timestamp, this.#seconds)
  }

  /** The trades that count, with the times of their blocks. */
  *#openTrades(): Generator<readonly [timestamp: number, trade: BarTrade]> {
    for (const { timestamp, trades } of this.#blocks.values())
      if (timestamp !== null && timestamp >= this.openFrom)
        for (const kept of trades.values()) if (this.#counts(kept)) yield [timestamp, kept.trade]
  }

  #barAt(start: number): Bar {
    const minutes = new Map([...this.#openMinutes(), ...this.#closed])
    const inside = [...minutes].filter(([minute]) => floorTo(minute, this.#seconds) === start).sort(([a], [b]) => a - b)
    const folds = inside.map(([, fold]) => fold)
    const partial = this.#partials.get(start) ?? null
    return {
      ...barOf(folds, { start, seconds: this.#seconds, symbol: this.#symbol, staleAfterS: this.#staleAfterS, partial }),
      state: 'open',
    }
  }

  #openMinutes(): ReadonlyMap<number, FoldedMinute> {
    const trades = new Map<number, BarTrade[]>()
    for (const [timestamp, trade] of this.#openTrades()) {
      const minute = floorTo(timestamp, MINUTE_S)
      if (!this.#folds.has(minute)) trades.set(minute, [...(trades.get(minute) ?? []), trade])
    }
    for (const [minute, ofMinute] of trades) {
      const venues = ofMinute.map(({ pool }) => pool)
      this.#folds.set(minute, { part: ofMinute.map(partOfTrade).reduce(addParts), venues, revision: 1, partial: null })
    }
    return this.#folds
  }

  #put({ key, venue, block: { number, timestamp }, tx, nav, symbol, ...trade }: TradeContent): 'late' | 'unknown' | null {
    const { side, amount, shares, currency_amount, price, basis_bps, basis } = trade
    this.#symbol = symbol
    this.#staleAfterS = nav.stale_after_s
    // A token with unknown decimals has no bars.
    if (amount === null) return null
    const block = this.#blocks.get(number) ?? { timestamp: null, trades: new Map<string, KeptTrade>() }
    const time = timestamp === null ? block.timestamp : secondsOf(timestamp)
    if (time !== null && time < this.openFrom) return 'late'
    const kept: KeptTrade = {
      currency: venue.currency.address,
      trade: {
        ...{ block: number, logIndex: tx.log_index, pool: venue.pool, side, amount, shares, currencyAmount: currency_amount },
        ...{ price, basisBps: basis_bps, basis, nav },
      },
    }
    if (this.#tradeCount >= TRADES_BOUND) this.#forget()
    if (!block.trades.has(key)) this.#tradeCount += 1
    this.#blocks.set(number, block)
    block.trades.set(key, kept)
    this.#setTime(block, time)
    if (!this.#pools && this.#mainCurrency === null && this.#mainPools.has(venue.pool)) {
      this.#mainCurrency = kept.currency
      this.#folds.clear()
    }
    return this.#ask(block)
  }

  /** The relay is asked once a minute whether a pool counts, because only a bar of its trades tells. */
  #ask({ timestamp, trades }: KeptBlock): 'unknown' | null {
    if (this.#pools || this.#mainCurrency !== null || timestamp === null) return null
    const minute = floorTo(timestamp, MINUTE_S)
    const unknown = [...trades.values()].find(({ trade: { pool } }) => this.#askedPools.get(pool) !== minute)
    if (!unknown) return null
    if (this.#askedPools.size > POOLS_BOUND) this.#askedPools.clear()
    this.#askedPools.set(unknown.trade.pool, minute)
    return 'unknown'
  }

  #remove(key: string): 'late' | null {
    const number = Number.parseInt(key, 10)
    const block = this.#blocks.get(number)
    if (!block?.trades.delete(key)) return 'late'
    this.#tradeCount -= 1
    if (block.trades.size === 0) this.#blocks.delete(number)
    if (block.timestamp !== null) this.#folds.delete(floorTo(block.timestamp, MINUTE_S))
    return null
  }

  #setTime(block: KeptBlock, time: number | null): void {
    for (const timestamp of [block.timestamp, time]) if (timestamp !== null) this.#folds.delete(floorTo(timestamp, MINUTE_S))
    block.timestamp = time
  }

  #counts({ trade, currency }: KeptTrade): boolean {
    return this.#pools ? this.#pools.includes(trade.pool) : currency === this.#mainCurrency || this.#mainPools.has(trade.pool)
  }

  #learn({ symbol, venues, nav }: Bar | BarMessage): void {
    this.#symbol = symbol
    this.#staleAfterS = nav.stale_after_s
    if (this.#pools || this.#mainCurrency !== null) return
    if (this.#mainPools.size > POOLS_BOUND) this.#mainPools.clear()
    for (const pool of venues) this.#mainPools.add(pool)
    const kept = [...this.#blocks.values()].flatMap(({ trades }) => [...trades.values()])
    this.#mainCurrency = kept.find(({ trade }) => this.#mainPools.has(trade.pool))?.currency ?? null
    this.#folds.clear()
  }

  #forget(): void {
    const newest = [...this.#blocks.values()].reduce((time, { timestamp }) => Math.max(time, timestamp ?? 0), this.openFrom)
    this.#completeFrom = floorTo(newest, this.#seconds) + this.#seconds
    this.#blocks.clear()
    this.#folds.clear()
    this.#tradeCount = 0
  }
}

type BarFrame = Pick<Bar, 'symbol' | 'partial'> & { readonly start: number; readonly seconds: number; readonly staleAfterS: number }

/** Folds minutes in their order. */
export function barOf(
  minutes: readonly FoldedMinute[],
  { symbol, start, seconds, staleAfterS, partial }: BarFrame,
): Omit<Bar, 'state'> {
  const part = minutes.reduce<BarPart | null>((sum, { part }) => (sum && part ? addParts(sum, part) : (sum ?? part)), null)
  const venues = [...new Set(minutes.flatMap(({ venues }) => venues))].sort()
  const fields = barFieldsOf(part, venues, {
    ...{ start: timeOf(start), end: timeOf(start + seconds), staleAfterS },
    revision: minutes.reduce((sum, { revision }) => sum + revision, 0) || 1,
    partial: minutes.find(({ partial }) => partial !== null)?.partial ?? partial,
  })
  return { symbol, ...fields }
}

export const foldOf = (bar: Bar | BarMessage): FoldedMinute => {
  const { venues, revision, partial } = bar
  return { part: partOfBar(bar), venues, revision, partial }
}

type TradeContent = Omit<TradeMessage, 'id' | 'prev' | 'time'>

/** The places inside the minute do not matter, because the blocks of two minutes are others. */
function partOfBar(bar: Bar | BarMessage): BarPart | null {
  const { blocks, high, low, trades, shares, basis_bps, basis, nav } = bar
  if (!blocks) return null
  const placed = (price: string | null, block: number) => (price === null ? null : { block, logIndex: 0, price })
  return {
    open: placed(bar.open, blocks.first),
    close: placed(bar.close, blocks.last),
    ...{ high, low, trades },
    volume: decimalOf(bar.volume),
    shares: shares === null ? null : decimalOf(shares),
    currencyVolume: decimalOf(bar.currency_volume),
    buyVolume: decimalOf(bar.buy_volume),
    buyCurrencyVolume: decimalOf(bar.buy_currency_volume),
    firstBlock: blocks.first,
    last: { block: blocks.last, logIndex: 0, basisBps: basis_bps, basis, nav },
  }
}

const decimalOf = (text: string) => parseDecimal(text) ?? { units: 0n, scale: 0 }

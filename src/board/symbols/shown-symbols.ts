import { type Book, premium, type StockState } from '../../sdk/client/index.ts'
import type { DayBars } from '../feed/day-bars.ts'
import type { BoardView, SortKey } from '../shared/board-route.ts'
import { nameOf } from '../shared/stock-texts.ts'

/** Returns the stocks that match the search: pinned ones first, then by the sort key. Stocks without a value are always last. */
export function orderSymbols(stocks: readonly StockState[], view: BoardView, day: Figures, nowMs: number): StockState[] {
  const wanted = view.search.trim().toLowerCase()
  const pins = new Set(view.pins)
  const readValue = readers[view.sort]
  const sign = view.isDescending ? -1 : 1
  return stocks
    .filter((stock) => wanted === '' || matches(stock, wanted))
    .map((stock) => ({ stock, value: readValue(stock, day, nowMs), isPinned: pins.has(stock.symbol) }))
    .sort(
      (a, b) =>
        Number(b.isPinned) - Number(a.isPinned) ||
        Number(a.value === null) - Number(b.value === null) ||
        sign * compare(a.value, b.value) ||
        compare(a.stock.symbol, b.stock.symbol),
    )
    .map(({ stock }) => stock)
}

/** Returns the stocks that match a search: first those whose symbol begins with it, then those whose name does. */
export function searchSymbols(stocks: readonly StockState[], text: string): readonly StockState[] {
  const wanted = text.trim().toLowerCase()
  const begins = (part: string) => Number(part.toLowerCase().startsWith(wanted))
  const rank = (stock: StockState) => 2 * begins(stock.symbol) + begins(nameOf(stock))
  return stocks.filter((stock) => matches(stock, wanted)).toSorted((a, b) => rank(b) - rank(a) || compare(a.symbol, b.symbol))
}

/** Finds a stock by its address or symbol, in upper or lower case, with or without the `c` at its end. */
export function findStock(book: Pick<Book, 'get' | 'all'>, name: string): StockState | undefined {
  const wanted = name.toLowerCase()
  const named = (text: string) => book.all().find(({ symbol }) => symbol.toLowerCase() === text)
  return book.get(name) ?? named(wanted) ?? named(`${wanted}c`) ?? (wanted.endsWith('c') ? named(wanted.slice(0, -1)) : undefined)
}

/** Length from which a text may be a part of an ISIN. */
const ISIN_PART = 3

/** A letter or two are in most addresses. */
function matches(stock: StockState, wanted: string): boolean {
  const { symbol, address, token } = stock
  const codes = [wanted.startsWith('0x') && address, wanted.length >= ISIN_PART && token.isin]
  return [symbol, nameOf(stock), ...codes].some((text) => typeof text === 'string' && text.toLowerCase().includes(wanted))
}

type Value = number | string | null
const numberOf = (text: string | null | undefined): number | null => (text == null ? null : Number(text))

type Figures = Pick<DayBars, 'of'>

const readers: Readonly<Record<SortKey, (stock: StockState, day: Figures, nowMs: number) => Value>> = {
  symbol: ({ symbol }) => symbol,
  nav: ({ nav }) => numberOf(nav.price),
  quote: ({ quote }) => numberOf(quote?.price),
  basis: (stock) => numberOf(premium(stock)?.bps),
  change: (stock, day, nowMs) => day.of(stock, nowMs).change?.percent ?? null,
  // Without a trade there is no volume to sort by.
  volume: (stock, day, nowMs) => day.of(stock, nowMs).volume || null,
}

function compare(a: Value, b: Value): number {
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0
  return typeof a === 'number' && typeof b === 'number' ? a - b : 0
}

const WALL_PAGE_MS = 15_000
const WALL_COLUMNS = 3
const WALL_TILE_PX = 190

/** A wall cannot be scrolled, so it shows page after page, each with as many tiles as fit. */
export function wallPageOf(count: number, heightPx: number, nowMs: number): { readonly from: number; readonly until: number } {
  const size = WALL_COLUMNS * Math.max(1, Math.floor(heightPx / WALL_TILE_PX))
  const pages = Math.max(1, Math.ceil(count / size))
  const from = (Math.floor(nowMs / WALL_PAGE_MS) % pages) * size
  return { from, until: Math.min(count, from + size) }
}

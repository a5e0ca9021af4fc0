import type { StockState, Update } from '../../sdk/client/index.ts'

/** A price from this time on; null if the price is not known from this time on. */
export type PricePoint = { readonly atMs: number; readonly price: number | null }
export type Prices = { readonly nav: readonly PricePoint[]; readonly quote: readonly PricePoint[] }

const POINTS_BOUND = 2_000
const none: readonly PricePoint[] = []

/** Prices over time: one line for the NAV of each token, and one for each of its pools. */
export class PriceSeries {
  readonly #lines = new Map<string, PricePoint[]>()

  /** Returns the NAV and the line of the pool whose quote is shown for the stock. */
  of({ address, quote }: Pick<StockState, 'address' | 'quote'>): Prices {
    return { nav: this.#lines.get(address) ?? none, quote: this.#lines.get(`${address} ${quote?.venue.pool}`) ?? none }
  }

  apply(update: Update): void {
    if (update.type !== 'nav' && update.type !== 'quote') return
    const price = update.type === 'nav' ? update.nav.price : update.price
    const points = this.#lineOf(update.type === 'nav' ? update.address : `${update.address} ${update.venue.pool}`)
    points.push({ atMs: Date.parse(update.time), price: price === null ? null : Number(price) })
    if (points.length > POINTS_BOUND) points.splice(0, POINTS_BOUND / 10)
  }

  /** Adds updates that are older than those in the series. `updates` contains the newest first. */
  prepend(updates: readonly Update[]): void {
    const older = new PriceSeries()
    for (const update of updates.toReversed()) older.apply(update)
    for (const [name, points] of older.#lines) this.#lineOf(name).unshift(...points)
  }

  #lineOf(name: string): PricePoint[] {
    const points = this.#lines.get(name) ?? []
    this.#lines.set(name, points)
    return points
  }
}

type Column = (number | null | undefined)[]

/** Returns both lines on one time axis, in seconds, for a chart of steps. The last known value extends until now. */
export function alignedPrices({ nav, quote, nowMs }: Prices & { readonly nowMs: number }): [number[], Column, Column] {
  const [navAt, quoteAt] = [priceByTime(nav), priceByTime(quote)]
  const times = [...new Set([...navAt.keys(), ...quoteAt.keys(), nowMs / 1_000])].sort((a, b) => a - b)
  const columnOf = (priceAt: ReadonlyMap<number, number | null>): Column => {
    let held: number | null | undefined
    return times.map((at) => {
      if (priceAt.has(at)) held = priceAt.get(at)
      return held
    })
  }
  return [times, columnOf(navAt), columnOf(quoteAt)]
}

/** A line of steps is drawn up to its last price, so a price that ends is repeated just before its end. */
const priceByTime = (points: readonly PricePoint[]): ReadonlyMap<number, number | null> =>
  new Map(
    points.flatMap(({ atMs, price }, index): readonly (readonly [number, number | null])[] => {
      const before = points[index - 1]?.price ?? null
      return price === null && before !== null
        ? [
            [(atMs - 1) / 1_000, before],
            [atMs / 1_000, null],
          ]
        : [[atMs / 1_000, price]]
    }),
  )

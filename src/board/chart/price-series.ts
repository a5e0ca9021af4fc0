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

import type { Weather } from './active-faults.ts'
import { type Book, firstBooks, multiplierAt } from './contract-state.ts'
import { Dice } from './seeded-random.ts'
import { happen } from './simulated-block.ts'
import type { Chain } from './simulated-chain.ts'
import { newcomer, type Stock, stocks } from './simulated-tokens.ts'
import type { Settings } from './simulation-settings.ts'
import { type Clock, NOON } from './virtual-clock.ts'

/** A record as it was served. */
export type ServedRecord = {
  readonly contract_address: string
  readonly symbol: string
  readonly decimals: number
  readonly multiplier: number
  readonly nav_price?: unknown
  readonly nav_price_updated_at?: unknown
  readonly [field: string]: unknown
}

/** One answer that was a list. */
export type Served = { readonly at: number; readonly records: readonly ServedRecord[] }

const LATENCY_MS = 30
const DEADLINE_MS = 10_000
const LEAST_ROUND_MS = 4_000
const FUTURE_MS = 600_000
/** What the odd NAVs are, in the order of the fault's amounts. */
const oddities = ['missing', 'zero', 'negative', 'text', 'no time', 'future', 'frozen'] as const

type Options = {
  readonly settings: Settings
  readonly clock: Clock
  readonly weather: Weather
  readonly chain: Chain
}

/** The list of tokens as its API serves it, with every NAV round on the way. */
export class ListModel {
  readonly served: Served[] = []
  readonly #options: Options
  #fetches = 0
  #newcomerListed = false

  constructor(options: Options) {
    this.#options = options
    options.weather.onsets('listed').subscribe(() => {
      this.#newcomerListed = true
    })
  }

  readonly fetch = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const { clock, weather } = this.#options
      if (weather.is('listHangs')) return clock.after(DEADLINE_MS, () => reject(new Error('timed out')))
      return clock.after(LATENCY_MS, () => {
        if (weather.is('listFails')) return reject(new Error('HTTP 500'))
        if (weather.is('listHtml')) return resolve('<html>busy</html>')
        this.#fetches += 1
        const records = this.records(this.#fetches)
        this.served.push({ at: clock.now(), records })
        resolve(JSON.stringify({ tokens: records }))
      })
    })

  /** What the nth answer holds now. */
  records(nth = 0): readonly ServedRecord[] {
    const { weather } = this.#options
    if (weather.is('listEmpty')) return []
    const all = this.#newcomerListed ? [...stocks, newcomer] : stocks
    const gone = weather.amount('delisted')
    const left = weather.amount('listShrinks') ?? all.length
    return all.filter((_, index) => index !== gone && index < left).map((stock) => this.#record(stock, nth))
  }

  #record(stock: Stock, nth: number): ServedRecord {
    const { weather } = this.#options
    const index = stocks.indexOf(stock)
    const renamed = weather.amount('renamed') === index
    const { book, second } = this.#chainOf(stock)
    const fields = { symbol: stock.symbol, name: stock.symbol, ...book?.fields }
    return {
      ...fields,
      contract_address: stock.address,
      symbol: renamed ? `${fields.symbol}x` : fields.symbol,
      decimals: stock.decimals,
      total_supply: 1_000,
      multiplier: book ? Number(`${multiplierAt(book, second)}e-18`) : 1,
      paused_features: book?.paused ?? [],
      ...this.#nav(stock, nth),
    }
  }

  /** What a contract holds, as far as whoever keeps the list knows. */
  #chainOf({ address }: Stock): { readonly book: Book | undefined; readonly second: number } {
    const { chain, settings } = this.#options
    if (settings.listLagMs < 0) {
      const { building } = chain
      return { book: happen(building, building.txs).after.get(address), second: building.timestamp }
    }
    const view = chain.view(settings.listLagMs)
    const head = view.block(view.head)
    return { book: (head?.after ?? firstBooks).get(address), second: head?.timestamp ?? 0 }
  }

  #nav({ address }: Stock, nth: number): Pick<ServedRecord, 'nav_price' | 'nav_price_updated_at'> {
    const { clock, settings, weather } = this.#options
    const dice = new Dice(settings.seed, 'nav', address)
    const roundMs = LEAST_ROUND_MS * dice.int(1, 6)
    const old = nth % 2 === 0 ? (weather.amount('oldNav') ?? 0) : 0
    const round = Math.floor((clock.frame - old) / roundMs)
    const price = 100 + Math.floor(new Dice(settings.seed, 'round', address, round).roll() * 1_000_000) / 10_000
    const updatedAt = (at: number) => new Date(at).toISOString()
    const fresh = { nav_price: price, nav_price_updated_at: updatedAt(NOON + round * roundMs) }
    const odd = weather.amount('oddNav')
    if (odd === null || address !== stocks[0]?.address) return fresh
    switch (oddities[odd]) {
      case 'missing':
        return {}
      case 'zero':
        return { ...fresh, nav_price: 0 }
      case 'negative':
        return { ...fresh, nav_price: -price }
      case 'text':
        return { ...fresh, nav_price: `${price}` }
      case 'no time':
        return { nav_price: price }
      case 'future':
        return { ...fresh, nav_price_updated_at: updatedAt(clock.now() + FUTURE_MS) }
      default:
        return { nav_price: 123.45, nav_price_updated_at: updatedAt(NOON - roundMs) }
    }
  }
}

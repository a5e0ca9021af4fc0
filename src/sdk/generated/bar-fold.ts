import { addDecimals, compareDecimals, type Decimal, formatDecimal, parseDecimal, unitPriceOf } from './decimal.ts'

// The relay and its clients make bars with this file, so that both have the same ones.

type BarBasis = 'premium' | 'drift' | null

/** The reference value of a trade, as in its message. */
export type BarNav = {
  readonly price: string | null
  readonly updated_at: string | null
  readonly age_s: number | null
  readonly state: 'fresh' | 'stale' | 'missing' | 'invalid'
  readonly stale_after_s: number
  readonly frozen: boolean | null
}

/** The fields of a trade that a bar needs. The amount is known: a token with unknown decimals has no bars. */
export type BarTrade<Pool extends string = string> = {
  readonly block: number
  readonly logIndex: number
  readonly pool: Pool
  readonly side: 'buy' | 'sell' | null
  readonly amount: string
  readonly shares: string | null
  readonly currencyAmount: string
  readonly price: string | null
  readonly basisBps: string | null
  readonly basis: BarBasis
  readonly nav: BarNav
}

type PlacedPrice = { readonly block: number; readonly logIndex: number; readonly price: string }
type LastTrade = Pick<BarTrade, 'block' | 'logIndex' | 'basisBps' | 'basis' | 'nav'>

/** The sums over trades of one pool, or of several. Two of them add up in any order. */
export type BarPart = {
  readonly open: PlacedPrice | null
  readonly close: PlacedPrice | null
  readonly high: string | null
  readonly low: string | null
  readonly trades: number
  readonly volume: Decimal
  /** Null if the multiplier of one of the trades is unknown. */
  readonly shares: Decimal | null
  readonly currencyVolume: Decimal
  readonly buyVolume: Decimal
  readonly buyCurrencyVolume: Decimal
  readonly firstBlock: number
  readonly last: LastTrade
}

const ZERO: Decimal = { units: 0n, scale: 0 }
const decimalOf = (text: string): Decimal => parseDecimal(text) ?? ZERO

export function partOfTrade({ block, logIndex, price, ...trade }: BarTrade): BarPart {
  const placed = price === null ? null : { block, logIndex, price }
  const [amount, currencyAmount] = [decimalOf(trade.amount), decimalOf(trade.currencyAmount)]
  const isBuy = trade.side === 'buy'
  const { basisBps, basis, nav } = trade
  return {
    ...{ open: placed, close: placed, high: price, low: price },
    trades: 1,
    volume: amount,
    shares: trade.shares === null ? null : decimalOf(trade.shares),
    currencyVolume: currencyAmount,
    buyVolume: isBuy ? amount : ZERO,
    buyCurrencyVolume: isBuy ? currencyAmount : ZERO,
    firstBlock: block,
    last: { block, logIndex, basisBps, basis, nav },
  }
}

export function addParts(a: BarPart, b: BarPart): BarPart {
  return {
    open: pickPlaced(a.open, b.open, isBefore),
    close: pickPlaced(a.close, b.close, (one, other) => !isBefore(one, other)),
    high: pickPrice(a.high, b.high, 1),
    low: pickPrice(a.low, b.low, -1),
    trades: a.trades + b.trades,
    volume: addDecimals(a.volume, b.volume),
    shares: a.shares && b.shares && addDecimals(a.shares, b.shares),
    currencyVolume: addDecimals(a.currencyVolume, b.currencyVolume),
    buyVolume: addDecimals(a.buyVolume, b.buyVolume),
    buyCurrencyVolume: addDecimals(a.buyCurrencyVolume, b.buyCurrencyVolume),
    firstBlock: Math.min(a.firstBlock, b.firstBlock),
    last: isBefore(a.last, b.last) ? b.last : a.last,
  }
}

type Place = Pick<PlacedPrice, 'block' | 'logIndex'>
const isBefore = (a: Place, b: Place): boolean => a.block < b.block || (a.block === b.block && a.logIndex < b.logIndex)

const pickPlaced = (a: PlacedPrice | null, b: PlacedPrice | null, isFirst: (a: Place, b: Place) => boolean) =>
  a && b ? (isFirst(a, b) ? a : b) : (a ?? b)

const pickPrice = (a: string | null, b: string | null, sign: 1 | -1): string | null =>
  a !== null && b !== null ? (sign * compareDecimals(decimalOf(a), decimalOf(b)) >= 0 ? a : b) : (a ?? b)

type BarHeading = {
  readonly start: string
  readonly end: string
  readonly revision: number
  readonly partial: string | null
  readonly staleAfterS: number
}

/** Returns the fields of a bar in the order of the contract. `part` is null if its trades are all gone. */
export function barFieldsOf<Pool extends string>(
  part: BarPart | null,
  venues: readonly Pool[],
  { start, end, revision, partial, staleAfterS }: BarHeading,
) {
  const { open = null, close = null, high = null, low = null, trades = 0, volume = ZERO, shares = ZERO } = part ?? {}
  const { currencyVolume = ZERO, buyVolume = ZERO, buyCurrencyVolume = ZERO, last = null } = part ?? {}
  return {
    ...{ start, end, revision, open: open?.price ?? null, high, low, close: close?.price ?? null },
    vwap: unitPriceOf(currencyVolume, volume),
    trades,
    volume: formatDecimal(volume),
    shares: shares && formatDecimal(shares),
    currency_volume: formatDecimal(currencyVolume),
    buy_volume: formatDecimal(buyVolume),
    buy_currency_volume: formatDecimal(buyCurrencyVolume),
    basis_bps: last?.basisBps ?? null,
    basis: last?.basis ?? null,
    nav: last?.nav ?? noNav(staleAfterS),
    venues,
    blocks: part && { first: part.firstBlock, last: part.last.block },
    partial,
  }
}

const noNav = (stale_after_s: number): BarNav => ({
  ...{ price: null, updated_at: null, age_s: null, state: 'missing' },
  stale_after_s,
  frozen: null,
})

import type { Update } from '../../../src/protocol/updates.ts'
import { type ExactFraction, shifted, unitsOf } from '../../support/exact-fraction.ts'
import type { PlacedLog } from '../placed-logs.ts'
import { tokenAt } from '../simulated-tokens.ts'
import { decimalText } from './exact-decimals.ts'
import { swapOf } from './swaps.ts'

type Trade = Extract<Update, { type: 'trade' }>
export type Bar = Extract<Update, { type: 'bar' }>
/** The fields of a bar that follow from its trades. */
export type BarContent = Omit<
  Bar,
  'type' | 'id' | 'prev' | 'symbol' | 'address' | 'time' | 'start' | 'end' | 'revision' | 'partial'
>

/** The fields of a trade that a bar needs. */
export type FoldedTrade = { readonly block: number; readonly logIndex: number; readonly pool: string } & Pick<
  Trade,
  'side' | 'shares' | 'currency_amount' | 'price' | 'basis_bps' | 'basis' | 'nav'
> & { readonly amount: string }

const PRICE_DECIMALS = 8
/** More than any sum of amounts has. */
const PLACES = 60

export const noNav = (stale_after_s: number): Bar['nav'] => ({
  ...{ price: null, updated_at: null, age_s: null, state: 'missing' },
  stale_after_s,
  frozen: null,
})

/** The bar of these trades, computed independently of the relay: by whole numbers, from all trades at once. */
export function expectedBar(trades: readonly FoldedTrade[], staleAfterS: number): BarContent {
  const inOrder = trades.toSorted((a, b) => a.block - b.block || a.logIndex - b.logIndex)
  const [first, last] = [inOrder[0], inOrder.at(-1)]
  const prices = inOrder.flatMap(({ price }) => price ?? [])
  const byValue = prices.toSorted((a, b) => (unitsOf(a, PRICE_DECIMALS) < unitsOf(b, PRICE_DECIMALS) ? -1 : 1))
  const bought = inOrder.filter(({ side }) => side === 'buy')
  const [volume, currency] = [sumOf(inOrder, 'amount'), sumOf(inOrder, 'currency_amount')]
  return {
    ...{ open: prices[0] ?? null, high: byValue.at(-1) ?? null, low: byValue[0] ?? null, close: prices.at(-1) ?? null },
    vwap: roundedPrice([unitsOf(currency, PLACES), unitsOf(volume, PLACES)]),
    trades: inOrder.length,
    volume,
    shares: inOrder.some(({ shares }) => shares === null) ? null : sumOf(inOrder, 'shares'),
    currency_volume: currency,
    buy_volume: sumOf(bought, 'amount'),
    buy_currency_volume: sumOf(bought, 'currency_amount'),
    ...{ basis_bps: last?.basis_bps ?? null, basis: last?.basis ?? null, nav: last?.nav ?? noNav(staleAfterS) },
    venues: [...new Set(inOrder.map(({ pool }) => pool as Bar['venues'][number]))].sort(),
    blocks: first && last ? { first: first.block, last: last.block } : null,
  }
}

function sumOf(trades: readonly FoldedTrade[], field: 'amount' | 'shares' | 'currency_amount'): string {
  const units = trades.reduce((sum, trade) => sum + unitsOf(trade[field] ?? '0', PLACES), 0n)
  return decimalText(units, PLACES)
}

/** Null where there is no fraction, and where it rounds to 0. */
function roundedPrice([a, b]: ExactFraction): string | null {
  if (b === 0n) return null
  const scaled = a * 10n ** BigInt(PRICE_DECIMALS)
  const [whole, twice] = [scaled / b, 2n * (scaled % b)]
  const units = twice > b || (twice === b && whole % 2n === 1n) ? whole + 1n : whole
  return units === 0n ? null : decimalText(units, PRICE_DECIMALS)
}

const magnitude = (value: bigint): bigint => (value < 0n ? -value : value)

/** The numbers of a trade from its log alone. Those that follow from the list are not known: the log has neither NAV nor shares. */
export function tradeOfLog(log: PlacedLog): Omit<FoldedTrade, 'shares' | 'nav' | 'basis' | 'basis_bps'> | null {
  const swap = swapOf(log)
  const decimals = swap && tokenAt(swap.pool.token)?.decimals
  if (!swap || decimals === undefined || decimals === null) return null
  const { pool, token, currency } = swap
  const sold = token === 0n ? -currency : token
  const [amount, paid] = [decimalText(magnitude(token), decimals), decimalText(magnitude(currency), pool.currency.decimals)]
  const places = decimals - pool.currency.decimals
  return {
    ...{ block: log.block, logIndex: log.logIndex, pool: pool.id },
    side: sold === 0n ? null : sold > 0n ? 'sell' : 'buy',
    amount,
    currency_amount: paid,
    price: roundedPrice(shifted([magnitude(currency), magnitude(token)], places)),
  }
}

/** Names the fields in which two bars differ. */
export function differencesOf<Content extends object>(one: Content, other: Content): string {
  const names = Object.keys(other) as (keyof Content & string)[]
  return names
    .filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]))
    .map((name) => `${name} ${JSON.stringify(one[name])}, not ${JSON.stringify(other[name])}`)
    .join('; ')
}

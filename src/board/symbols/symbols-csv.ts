import { premium, type StockState } from '../../sdk/client/index.ts'
import type { DayFigures } from '../feed/day-bars.ts'
import { csvOf } from '../shared/csv.ts'
import { navStateOf } from '../shared/state-words.ts'
import { nameOf } from '../shared/stock-texts.ts'

const columns = ['symbol', 'name', 'address', 'price', 'currency', 'nav', 'nav_state', 'nav_updated_at', 'basis_bps', 'basis']
const dayColumns = ['change_percent', 'change_since', 'volume_24h', 'trades_24h']

/** The list as CSV, in its order. */
export function symbolsCsv(shown: readonly { readonly stock: StockState; readonly day: DayFigures }[]): string {
  const rows = shown.map(({ stock, day: { change, volume, trades } }) => {
    const { symbol, address, quote, nav } = stock
    const basis = premium(stock)
    return [
      ...[symbol, nameOf(stock), address, quote?.price ?? null, quote?.venue.currency.symbol ?? null],
      ...[nav.price, navStateOf(nav), nav.updated_at, basis?.bps ?? null, basis?.kind ?? null],
      ...[change?.percent.toFixed(4) ?? null, change && new Date(change.sinceMs).toISOString(), volume, trades],
    ]
  })
  return csvOf([...columns, ...dayColumns], rows)
}

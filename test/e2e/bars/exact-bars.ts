import { formatUnits } from 'viem/utils'
import { unitsOf } from '../../support/exact-fraction.ts'
import type { Message, MessageOf } from '../../support/test-listener.ts'

/** Bars from the messages that a listener received, in integers and independent of src. */

type Trade = Pick<MessageOf<'trade'>, 'stage' | 'key' | 'venue' | 'side' | 'amount' | 'shares' | 'currency_amount' | 'price'> &
  Pick<MessageOf<'trade'>, 'basis_bps' | 'basis' | 'nav' | 'block' | 'tx'>
type PlacedTrade = { readonly symbol: string; readonly seconds: number; readonly trade: Trade }

/** More than any amount has. */
const PLACES = 18
const PRICE_PLACES = 8

/** The trades that hold after all messages, in chain order: the sealed ones, or with `hasOpen` the pre-confirmed ones too. */
function tradesIn(messages: readonly Message[], hasOpen = false): readonly PlacedTrade[] {
  const trades = new Map<string, { readonly symbol: string; readonly trade: Trade; readonly isSealed: boolean }>()
  for (const message of messages) {
    if (message.type === 'trade')
      trades.set(message.key, { symbol: message.symbol ?? '', trade: message, isSealed: message.stage === 'sealed' })
    if (message.type === 'retract' || message.type === 'amend') {
      const before = trades.get(message.key)
      trades.delete(message.key)
      if (message.type === 'amend' && message.update.type === 'trade' && before)
        trades.set(message.key, { ...before, trade: message.update, isSealed: message.update.stage === 'sealed' })
    }
    if (message.type === 'seal')
      for (const key of message.keys) {
        const sealed = trades.get(key)
        if (sealed) trades.set(key, { ...sealed, isSealed: true })
      }
  }
  return [...trades.values()]
    .filter(({ isSealed }) => isSealed || hasOpen)
    .map(({ symbol, trade }) => ({ symbol, trade, seconds: Date.parse(trade.block.timestamp ?? '') / 1_000 }))
    .sort((a, b) => a.trade.block.number - b.trade.block.number || a.trade.tx.log_index - b.trade.tx.log_index)
}

type Options = { readonly seconds?: number; readonly pools?: readonly string[]; readonly hasOpen?: boolean }

/** The bars of all tokens, in the order of their starts, then of their symbols. Without what depends on the past of a bar. */
export function exactBarsOf(messages: readonly Message[], { seconds = 60, pools, hasOpen = false }: Options = {}) {
  const trades = tradesIn(messages, hasOpen).filter(({ trade }) => !pools || pools.includes(trade.venue.pool))
  const groups = Map.groupBy(trades, ({ symbol, seconds: at }) => JSON.stringify([at - (at % seconds), symbol]))
  return [...groups]
    .map(([name, group]) => {
      const [start, symbol] = JSON.parse(name) as [number, string]
      return exactBarOf(
        symbol,
        start,
        start + seconds,
        group.map(({ trade }) => trade),
      )
    })
    .sort((a, b) => (a.start === b.start ? (a.symbol < b.symbol ? -1 : 1) : a.start < b.start ? -1 : 1))
}

function exactBarOf(symbol: string, start: number, end: number, trades: readonly Trade[]) {
  const prices = trades.flatMap(({ price }) => (price === null ? [] : [price]))
  const ascending = prices.toSorted((a, b) => signOf(unitsOf(a, PLACES) - unitsOf(b, PLACES)))
  const [first, last] = [trades[0], trades.at(-1)]
  const bought = trades.filter(({ side }) => side === 'buy')
  const volume = sumOf(trades, ({ amount }) => amount)
  const paid = sumOf(trades, ({ currency_amount }) => currency_amount)
  return {
    symbol,
    start: new Date(start * 1_000).toISOString(),
    end: new Date(end * 1_000).toISOString(),
    open: prices[0] ?? null,
    high: ascending.at(-1) ?? null,
    low: ascending[0] ?? null,
    close: prices.at(-1) ?? null,
    vwap: quotientOf(paid, volume),
    trades: trades.length,
    volume: formatUnits(volume, PLACES),
    shares: trades.some(({ shares }) => shares === null)
      ? null
      : formatUnits(
          sumOf(trades, ({ shares }) => shares),
          PLACES,
        ),
    currency_volume: formatUnits(paid, PLACES),
    buy_volume: formatUnits(
      sumOf(bought, ({ amount }) => amount),
      PLACES,
    ),
    buy_currency_volume: formatUnits(
      sumOf(bought, ({ currency_amount }) => currency_amount),
      PLACES,
    ),
    basis_bps: last?.basis_bps,
    basis: last?.basis,
    nav: last?.nav,
    venues: [...new Set(trades.map(({ venue }) => venue.pool))].toSorted(),
    blocks: { first: first?.block.number, last: last?.block.number },
  }
}

const signOf = (units: bigint): number => (units < 0n ? -1 : units > 0n ? 1 : 0)

const sumOf = (trades: readonly Trade[], textOf: (trade: Trade) => string | null): bigint =>
  trades.reduce((sum, trade) => sum + unitsOf(textOf(trade) ?? '0', PLACES), 0n)

/** The quotient with 8 decimals, a half to the even one. Null if it is 0, or if the divisor is. */
function quotientOf(dividend: bigint, divisor: bigint): string | null {
  if (divisor === 0n) return null
  const scaled = dividend * 10n ** BigInt(PRICE_PLACES)
  const floor = scaled / divisor
  const candidates = [floor, floor + 1n]
  const nearest = candidates.toSorted((a, b) => signOf(distance(a) - distance(b)) || Number(a & 1n) - Number(b & 1n))
  return nearest[0] === 0n ? null : formatUnits(nearest[0] ?? 0n, PRICE_PLACES)
  function distance(candidate: bigint): bigint {
    const difference = 2n * (candidate * divisor - scaled)
    return difference < 0n ? -difference : difference
  }
}

import type { Hex } from '../../../lib/hex.ts'
import { blockOf } from '../../../protocol/fields.ts'
import { type Draft, movementTypes, type TradeFields } from '../../../protocol/updates.ts'
import type { BlockTrades } from '../../notes/bar-notes.ts'
import type { NotedTrade } from '../../tokens/minute-bars.ts'
import type { IngestState } from '../ingest-state.ts'
import { openPoolSettings } from '../pools/named-pools.ts'
import { addFault, type BarBook, changeTrades, endFaults } from './bar-book.ts'

/** Follows the published trades, and what became of them. */
export function trackBarTrades(state: IngestState, draft: Draft): void {
  // Most updates are movements.
  if (movementTypes.has(draft.type)) return
  switch (draft.type) {
    case 'trade':
      return putTrade(state, draft.address, draft)
    case 'amend':
      if (draft.update.type === 'trade') return putTrade(state, draft.address, draft.update)
      return changeTrades(state.bars, draft.address, blockOf(draft.key), (block) => without(block, draft.key))
    case 'retract':
      return changeTrades(state.bars, draft.address, blockOf(draft.key), (block) => without(block, draft.key))
    case 'seal':
      return sealTrades(state.bars, draft)
    case 'hole':
      return addFault(state.bars, { reason: draft.reason, token: null, pool: null }, draft.blocks.first, draft.blocks.last)
    case 'venue':
      return trackVenue(state, draft)
  }
}

function putTrade(state: IngestState, address: Hex, trade: TradeFields): void {
  const { amount, shares, currency_amount, price, basis_bps, basis, nav, side, venue, block, tx, key, stage } = trade
  // A token with unknown decimals has no bars, also if they were known when the trade was first published.
  if (amount === null) return changeTrades(state.bars, address, block.number, (before) => without(before, key))
  const noted: NotedTrade = {
    ...{ block: block.number, logIndex: tx.log_index, pool: venue.pool, side, amount, shares },
    ...{ currencyAmount: currency_amount, price, basisBps: basis_bps, basis, nav, key },
    isMain: isInBars(state, venue),
    isSealed: stage === 'sealed',
    second: secondsOf(block.timestamp),
  }
  changeTrades(state.bars, address, block.number, (before) => [...without(before, key), noted])
}

/** Whether the trades of a venue are in the bars that no request limits to some pools. */
const isInBars = ({ quoteSettings: { mainCurrency } }: IngestState, { currency }: TradeFields['venue']): boolean =>
  mainCurrency === null || currency.address === mainCurrency

const secondsOf = (time: string | null): number | null => (time === null ? null : Date.parse(time) / 1_000)

const without = (trades: BlockTrades, key: string): BlockTrades => trades.filter((trade) => trade.key !== key)

function sealTrades(book: BarBook, { address, keys, block: { number, timestamp } }: Extract<Draft, { type: 'seal' }>): void {
  if (!book.trades.get(address)?.has(number)) return
  const sealed = new Set(keys)
  const second = secondsOf(timestamp)
  // A trade that the seal does not list keeps its time: its pool may be refused, and its block may be replaced.
  changeTrades(book, address, number, (before) =>
    before.map((trade) => (sealed.has(trade.key) ? { ...trade, isSealed: true, second } : trade)),
  )
}

/** Ends the faults of refused pools that the settings no longer name: no message says when a pool that is dropped already goes. */
export function endUnnamedFaults(state: IngestState): void {
  const { bars: book, cursor } = state
  if (!cursor || !book.faults.some(({ lastBlock }) => lastBlock === null)) return
  const settingOf = openPoolSettings(state)
  endFaults(book, cursor.number, ({ pool: id, token }) => id !== null && token !== null && !settingOf({ id, token }))
}

function trackVenue(state: IngestState, draft: Extract<Draft, { type: 'venue' }>): void {
  const { change, reason, from_block, venue } = draft
  const { bars: book } = state
  const { pool } = venue
  endFaults(book, from_block - 1, (fault) => fault.pool === pool)
  if (change === 'dropped' && isInBars(state, venue))
    addFault(
      book,
      { reason: reason ?? 'dropped', token: draft.address, pool },
      from_block,
      reason === 'refused' ? null : from_block,
    )
}

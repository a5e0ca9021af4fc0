import type { Hex } from '../../../lib/hex.ts'
import { type Draft, movementTypes, type TradeFields, tradeFields } from '../../../protocol/updates.ts'
import type { IngestState } from '../ingest-state.ts'

/** Keeps the last trade of each token: the newest in chain order that is not retracted. */
export function trackLastTrade(state: IngestState, draft: Draft): void {
  // Most updates are movements.
  if (draft.address === null || movementTypes.has(draft.type)) return
  const last = state.lastTrades.get(draft.address) ?? null
  switch (draft.type) {
    case 'trade':
    case 'amend': {
      const fact = draft.type === 'amend' ? draft.update : draft
      const isLast = last?.key === draft.key
      if (fact.type === 'trade' && (isLast || last === null || isAfter(fact, last)))
        setLastTrade(state, draft.address, fieldsOf(fact))
      // The log is no swap after all.
      else if (fact.type !== 'trade' && isLast) setLastTrade(state, draft.address, newestKnown(state, draft.address))
      break
    }
    case 'retract':
      if (last?.key === draft.key) setLastTrade(state, draft.address, newestKnown(state, draft.address))
      break
    case 'seal':
      if (last && draft.keys.includes(last.key))
        setLastTrade(state, draft.address, { ...last, stage: 'sealed', block: draft.block })
  }
}

function setLastTrade(state: IngestState, address: Hex, trade: TradeFields | null): void {
  state.lastTrades.set(address, trade)
  state.changedTrades.add(address)
}

/** The trade before one that is gone, if its block is not forgotten. */
function newestKnown({ ledger }: IngestState, address: Hex): TradeFields | null {
  const trades = ledger
    .factsOf(address)
    .flatMap(({ published: { draft }, sealed }) => (draft.type === 'trade' ? [{ draft, sealed }] : []))
  const newest = trades.at(-1)
  if (!newest) return null
  const { sealed } = newest
  const trade = fieldsOf(newest.draft)
  return sealed ? { ...trade, stage: 'sealed', block: { ...sealed, timestamp: sealed.timestamp ?? trade.block.timestamp } } : trade
}

const fieldsOf = (trade: TradeFields): TradeFields =>
  Object.fromEntries(Object.keys(tradeFields).map((name) => [name, Reflect.get(trade, name)])) as TradeFields

const isAfter = (a: Pick<TradeFields, 'block' | 'tx'>, b: TradeFields): boolean =>
  a.block.number > b.block.number || (a.block.number === b.block.number && a.tx.log_index >= b.tx.log_index)

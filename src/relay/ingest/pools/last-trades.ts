import type { Hex } from '../../../lib/hex.ts'
import { type Draft, type TradeFields, tradeFields } from '../../../protocol/updates.ts'
import type { IngestState } from '../ingest-state.ts'

/** Keeps the last trade of each token: the newest in chain order that is not retracted. */
export function trackLastTrade(state: IngestState, draft: Draft): void {
  if (draft.address === null) return
  const last = state.lastTrades.get(draft.address) ?? null
  switch (draft.type) {
    case 'trade':
      if (last === null || isAfter(draft, last)) setLastTrade(state, draft.address, fieldsOf(draft))
      break
    case 'amend':
      if (draft.update.type === 'trade' && last?.key === draft.key) setLastTrade(state, draft.address, fieldsOf(draft.update))
      break
    case 'retract':
      if (last !== null && last.key === draft.key) setLastTrade(state, draft.address, newestKnown(state, draft.address))
      break
    case 'seal':
      if (last !== null && last.stage === 'preconfirmed' && draft.keys.includes(last.key))
        setLastTrade(state, draft.address, { ...last, stage: 'sealed', block: draft.block })
  }
}

function setLastTrade(state: IngestState, address: Hex, trade: TradeFields | null): void {
  state.lastTrades.set(address, trade)
  state.changedTrades.add(address)
}

/** After a retract, the trade before it, if its block is not forgotten. */
function newestKnown({ ledger }: IngestState, address: Hex): TradeFields | null {
  const trades = ledger.factsOf(address).flatMap(({ published: { draft } }) => (draft.type === 'trade' ? [draft] : []))
  const newest = trades.at(-1)
  return newest ? fieldsOf(newest) : null
}

const fieldsOf = (trade: TradeFields): TradeFields =>
  Object.fromEntries(Object.keys(tradeFields).map((name) => [name, Reflect.get(trade, name)])) as TradeFields

const isAfter = (a: Pick<TradeFields, 'block' | 'tx'>, b: TradeFields): boolean =>
  a.block.number > b.block.number || (a.block.number === b.block.number && a.tx.log_index >= b.tx.log_index)

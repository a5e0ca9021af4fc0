import type { MovementState, StockState, Update } from '../client/index.ts'
import { initialFeed, type TapeFeed, type TapeState } from './tape-memory.ts'
import { movementsOf, selectsStock, symbolsOf, type TapeSelection, updatesOf } from './tape-selection.ts'

/** What a component shows of a tape. Each part is the same object until it changes. */
export type TapeView<Type extends Update['type'] = Update['type']> = {
  readonly stocks: readonly StockState[]
  /** The newest movements of the stocks, newest first, each with the stage that it has reached. */
  readonly movements: readonly MovementState[]
  /** The newest updates as they came, newest first. */
  readonly updates: readonly Extract<Update, { type: Type }>[]
  readonly feed: TapeFeed
}

/** What is shown before anything came, and by a server. */
export const emptyView = { stocks: [], movements: [], updates: [], feed: initialFeed } as const

/** Selects what a component shows, and keeps what is as it was. */
export function viewOf<Type extends Update['type']>(
  tape: TapeState,
  selection: TapeSelection<Type>,
  before: TapeView<Type>,
): TapeView<Type> {
  const symbols = symbolsOf(selection)
  const stocks = kept(
    before.stocks,
    tape.stocks.filter((stock) => selectsStock(symbols, stock)),
  )
  const movements = stocks === before.stocks ? before.movements : kept(before.movements, movementsOf(stocks, selection))
  const updates = kept(before.updates, updatesOf(tape.recent, stocks, selection))
  const view = { stocks, movements, updates, feed: tape.feed }
  const isSame = stocks === before.stocks && updates === before.updates && tape.feed === before.feed
  return isSame ? before : view
}

const kept = <Item>(before: readonly Item[], now: readonly Item[]): readonly Item[] =>
  before.length === now.length && before.every((item, at) => item === now[at]) ? before : now

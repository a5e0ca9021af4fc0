import type { MovementState, StockState, Update } from '../client/index.ts'
import { namedTypes } from '../generated/names.ts'
import { selectsStock, symbolsOf, type TapeSelection } from './tape-selection.ts'
import { initialFeed, type TapeFeed, type TapeState } from './tape-state.ts'

/** The part of a tape that a component shows. Each property is the same object until it changes. */
export type TapeView<Type extends Update['type'] = Update['type']> = {
  readonly stocks: readonly StockState[]
  /** The newest movements of the stocks, newest first, each with its present stage. */
  readonly movements: readonly MovementState[]
  /** The newest updates as they were published, newest first. */
  readonly updates: readonly Extract<Update, { type: Type }>[]
  readonly feed: TapeFeed
}

/** The view before the first message, and on a server. */
export const emptyView = { stocks: [], movements: [], updates: [], feed: initialFeed } as const

const DEFAULT_LIMIT = 50

/** Returns the view of a tape. Each part that did not change is the same object as in `before`. */
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
  const isSame = stocks === before.stocks && updates === before.updates && tape.feed === before.feed
  return isSame ? before : { stocks, movements, updates, feed: tape.feed }
}

const kept = <Item>(before: readonly Item[], now: readonly Item[]): readonly Item[] =>
  before.length === now.length && before.every((item, at) => item === now[at]) ? before : now

const movementsOf = (stocks: readonly StockState[], selection: TapeSelection): readonly MovementState[] =>
  stocks
    .flatMap(({ movements }) => movements)
    .filter((movement) => selectsType(selection, movement.type) && hasValue(selection, movement))
    .sort((a, b) => (a.time === b.time ? 0 : a.time < b.time ? 1 : -1))
    .slice(0, selection.limit ?? DEFAULT_LIMIT)

/** Returns the newest update first. With `minValue`, the end of a fact is included only if the fact passed the filter. */
function updatesOf<Type extends Update['type']>(
  recent: readonly Update[],
  stocks: readonly StockState[],
  selection: TapeSelection<Type>,
): readonly Extract<Update, { type: Type }>[] {
  const addresses = new Set<string | null>([null, ...stocks.map(({ address }) => address)])
  const keys = new Set<string>()
  return recent
    .filter((update) => addresses.has(update.address) && passesValue(selection, update, keys))
    .filter((update): update is Extract<Update, { type: Type }> => selectsType(selection, update.type))
    .slice(-(selection.limit ?? DEFAULT_LIMIT))
    .reverse()
}

const selectsType = ({ types }: TapeSelection, type: Update['type']): boolean =>
  types === '*' || (types?.includes(type) ?? !namedTypes.includes(type))

/** Whether an update passes `minValue`. Adds the key of each fact that passes to `keys`. */
function passesValue(selection: TapeSelection, update: Update, keys: Set<string>): boolean {
  if (selection.minValue === undefined) return true
  const content = update.type === 'amend' ? update.update : update
  if ('reference_value' in content && hasValue(selection, content)) keys.add(content.key)
  if (update.type === 'seal') return update.keys.some((key) => keys.has(key))
  if (update.type === 'amend' || update.type === 'retract') return keys.has(update.key)
  return !('reference_value' in update) || hasValue(selection, update)
}

const hasValue = ({ minValue }: TapeSelection, { reference_value }: Pick<MovementState, 'reference_value'>): boolean =>
  minValue === undefined || (reference_value !== null && Number(reference_value) >= Number(minValue))

import type { MovementState, StockState, Update } from '../client/index.ts'
import { namedTypes } from '../generated/names.ts'
import type { TapeUnion } from './tape-union.ts'

/** What a component shows. */
export type TapeSelection<Type extends Update['type'] = Update['type']> = {
  /** Symbols or addresses, or `*` for all. */
  readonly symbols: string | readonly string[]
  /** The types of `updates`, or `*` for all. By default all but `approval` and `log`. */
  readonly types?: readonly Type[] | '*'
  /** Only movements of at least this reference value. */
  readonly minValue?: string | number
  /** The most movements, and the most updates (50). */
  readonly limit?: number
}

const LIMIT = 50

export const symbolsOf = ({ symbols }: TapeSelection): readonly string[] => [symbols].flat()

export const unionOf = (selection: TapeSelection): TapeUnion => ({
  symbols: symbolsOf(selection),
  isEveryType: selection.types === '*' || namedTypes.some((type) => selection.types?.includes(type as Update['type'])),
})

export function selectsStock(symbols: readonly string[], { symbol, address, token }: StockState): boolean {
  const name = symbol.toLowerCase()
  const names = ['*', name, name.replace(/c$/, ''), address, `isin:${token.isin}`.toLowerCase()]
  return symbols.some((wanted) => names.includes(wanted.toLowerCase()))
}

/** The movements of the stocks, newest first. */
export function movementsOf(stocks: readonly StockState[], selection: TapeSelection): readonly MovementState[] {
  return stocks
    .flatMap(({ movements }) => movements)
    .filter((movement) => selectsType(selection, movement.type) && hasValue(selection, movement))
    .sort((a, b) => (a.time === b.time ? 0 : a.time < b.time ? 1 : -1))
    .slice(0, selection.limit ?? LIMIT)
}

/** The updates of a selection, newest first. With a value filter, facts end here only if they began here. */
export function updatesOf<Type extends Update['type']>(
  recent: readonly Update[],
  stocks: readonly StockState[],
  selection: TapeSelection<Type>,
): readonly Extract<Update, { type: Type }>[] {
  const addresses = new Set<string | null>([null, ...stocks.map(({ address }) => address)])
  const keys = new Set<string>()
  const selected = recent.filter((update) => addresses.has(update.address) && passesValue(selection, update, keys))
  return selected
    .filter((update): update is Extract<Update, { type: Type }> => selectsType(selection, update.type))
    .slice(-(selection.limit ?? LIMIT))
    .reverse()
}

const selectsType = ({ types }: TapeSelection, type: Update['type']): boolean =>
  types === '*' || (types?.includes(type) ?? !namedTypes.includes(type))

function passesValue(selection: TapeSelection, update: Update, keys: Set<string>): boolean {
  if (selection.minValue === undefined) return true
  if ('reference_value' in update) {
    const passes = hasValue(selection, update)
    if (passes) keys.add(update.key)
    return passes
  }
  switch (update.type) {
    case 'amend':
      if ('reference_value' in update.update && hasValue(selection, update.update)) keys.add(update.key)
      return keys.has(update.key)
    case 'retract':
      return keys.has(update.key)
    case 'seal':
      return update.keys.some((key) => keys.has(key))
    default:
      return true
  }
}

const hasValue = ({ minValue }: TapeSelection, { reference_value }: Pick<MovementState, 'reference_value'>): boolean =>
  minValue === undefined || (reference_value !== null && Number(reference_value) >= Number(minValue))

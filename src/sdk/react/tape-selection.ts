import type { StockState, Update } from '../client/index.ts'
import { namedTypes } from '../generated/names.ts'

/** Selects the part of the tape that a component shows. */
export type TapeSelection<Type extends Update['type'] = Update['type']> = {
  /** Symbols or addresses, or `*` for all. */
  readonly symbols: string | readonly string[]
  /** Types of `updates`, or `*` for all. By default all except `approval` and `log`. */
  readonly types?: readonly Type[] | '*'
  /** Omit movements whose reference value is below this or unknown. */
  readonly minValue?: string | number
  /** Limit on the number of movements, and on the number of updates; default 50. */
  readonly limit?: number
}

/** The part of the tape that one stream delivers for several selections. */
export type TapeUnion = {
  /** Symbols or addresses. `unite` sorts them, and returns `*` alone if one of them is `*`. */
  readonly symbols: readonly string[]
  /** Whether the stream includes the types that it omits by default. */
  readonly isEveryType: boolean
}

export const symbolsOf = ({ symbols }: TapeSelection): readonly string[] => [symbols].flat()

export const unionOf = (selection: TapeSelection): TapeUnion => ({
  symbols: symbolsOf(selection),
  isEveryType: selection.types === '*' || namedTypes.some((type) => selection.types?.includes(type as Update['type'])),
})

export function unite(unions: readonly TapeUnion[]): TapeUnion {
  const symbols = new Set(unions.flatMap((union) => union.symbols))
  return { symbols: symbols.has('*') ? ['*'] : [...symbols].sort(), isEveryType: unions.some(({ isEveryType }) => isEveryType) }
}

export const covers = (wide: TapeUnion, narrow: TapeUnion): boolean =>
  (wide.isEveryType || !narrow.isEveryType) &&
  (wide.symbols[0] === '*' || narrow.symbols.every((symbol) => wide.symbols.includes(symbol)))

export function selectsStock(symbols: readonly string[], { symbol, address, token }: StockState): boolean {
  const name = symbol.toLowerCase()
  const names = ['*', name, name.replace(/c$/, ''), address, `isin:${token.isin}`.toLowerCase()]
  return symbols.some((wanted) => names.includes(wanted.toLowerCase()))
}

import type { StockState, StreamOptions, Update, ValueFilters } from '../client/index.ts'
import { namedTypes, readingTypes, updateTypes } from '../generated/names.ts'

/** Selects the part of the tape that a component shows. */
export type TapeSelection<Type extends Update['type'] = Update['type']> = ValueFilters & {
  /** Symbols or addresses, or `*` for all. */
  readonly symbols: string | readonly string[]
  /** Types of `updates`, or `*` for all. By default all except `approval`, `log`, and the readings `nav`, `quote` and `finality`. */
  readonly types?: readonly Type[] | '*'
  /** With `sealed`, facts are included once their block is sealed. */
  readonly stage?: StreamOptions['stage']
  /** Begins with the stored updates since then: `5m`, `2h`, or a time; the newest 1,000 of them. By default the lists begin empty. */
  readonly since?: string | Date
  /** Limit on the number of movements, and on the number of updates; default 50. */
  readonly limit?: number
  /** `false` selects nothing, and opens no connection. */
  readonly enabled?: boolean
}

/** The part of the tape that one stream delivers for several selections. */
export type TapeUnion = {
  /** Symbols or addresses. `unite` sorts them, and returns `*` alone if one of them is `*`. */
  readonly symbols: readonly string[]
  /** `*` if the stream includes the types that it omits by default. */
  readonly types: '*' | undefined
  /** For each selection with `since`, what to read from the history first: the options of a request, as text. */
  readonly pasts: readonly string[]
}

/** The types of `updates` if a selection names none. */
export const defaultTypes = updateTypes.filter((type) => ![...namedTypes, ...readingTypes].includes(type))

export function unionOf(selection: TapeSelection): TapeUnion {
  const { limit, enabled, stage, ...past } = selection
  const { types, since } = past
  if (enabled === false) return unite([])
  return {
    symbols: [selection.symbols].flat(),
    types: types === '*' || namedTypes.some((type) => types?.includes(type as Update['type'])) ? '*' : undefined,
    pasts: since ? [JSON.stringify({ ...past, types: types ?? defaultTypes })] : [],
  }
}

export function unite(unions: readonly TapeUnion[]): TapeUnion {
  const symbols = new Set(unions.flatMap((union) => union.symbols))
  return {
    symbols: symbols.has('*') ? ['*'] : [...symbols].sort(),
    types: unions.find(({ types }) => types)?.types,
    pasts: [...new Set(unions.flatMap(({ pasts }) => pasts))],
  }
}

export const covers = (wide: TapeUnion, narrow: TapeUnion): boolean =>
  (wide.types ?? narrow.types) === wide.types &&
  (wide.symbols[0] === '*' || narrow.symbols.every((symbol) => wide.symbols.includes(symbol))) &&
  narrow.pasts.every((past) => wide.pasts.includes(past))

export function selectsStock(symbols: readonly string[], { symbol, address, token }: StockState): boolean {
  const name = symbol.toLowerCase()
  const names = ['*', name, name.replace(/c$/, ''), address, `isin:${token.isin}`.toLowerCase()]
  return symbols.some((wanted) => names.includes(wanted.toLowerCase()))
}

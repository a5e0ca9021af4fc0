/** What one stream has to carry, so that everybody who listens to it gets what they selected. */
export type TapeUnion = {
  /** Sorted; `*` stands alone. */
  readonly symbols: readonly string[]
  /** Also the types that a stream does not carry by default. */
  readonly isEveryType: boolean
}

export function unite(unions: Iterable<TapeUnion>): TapeUnion {
  const all = [...unions]
  const symbols = new Set(all.flatMap((union) => union.symbols))
  return { symbols: symbols.has('*') ? ['*'] : [...symbols].sort(), isEveryType: all.some(({ isEveryType }) => isEveryType) }
}

export const covers = (wide: TapeUnion, narrow: TapeUnion): boolean =>
  (wide.isEveryType || !narrow.isEveryType) && narrow.symbols.every((symbol) => wide.symbols.includes(symbol) || includesAll(wide))

const includesAll = ({ symbols }: TapeUnion): boolean => symbols[0] === '*'

import type { Hex } from '../../../lib/hex.ts'
import type { SelectionOptions } from '../../../protocol/selection/selection.ts'
import { filterTestOf, shownFilters } from '../../../protocol/selection/value-filters.ts'
import type { Update, UpdateType } from '../../../protocol/updates.ts'
import type { FactContent } from './key-history.ts'

/** The updates of these tokens (null for all) that pass these options. */
export type Selection = { readonly tokens: ReadonlySet<Hex> | null; readonly options: SelectionOptions }

/** Listeners with equal keys share their bytes, so the key contains all options. */
export const optionsKey = (options: SelectionOptions): string => JSON.stringify({ ...options, ...shownFilters(options) })

export const tokensKey = (tokens: Selection['tokens']): string => (tokens === null ? '*' : [...tokens].sort().join())

/** Null stands for an update about all tokens. */
export const includesToken = ({ tokens }: Selection, address: Hex | null): boolean =>
  tokens === null || (tokens.size > 0 && (address === null || tokens.has(address)))

export function createContentMatcher(selection: Selection): (content: Update | FactContent) => boolean {
  const { options } = selection
  const types: ReadonlySet<UpdateType> = new Set(options.types)
  const passesFilters = filterTestOf(options)
  return (content) =>
    types.has(content.type) && includesToken(selection, content.address) && (passesFilters === null || passesFilters(content))
}

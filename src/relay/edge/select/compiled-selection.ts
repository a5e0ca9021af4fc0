import type { Hex } from '../../../lib/hex.ts'
import type { SelectionOptions } from '../../../protocol/parameters/selection.ts'
import { filterTestOf, shownFilters } from '../../../protocol/parameters/value-filters.ts'
import type { Update, UpdateType } from '../../../protocol/updates.ts'
import type { FactContent } from './key-history.ts'

/** Selects the updates of these tokens (null for all) that pass these options. */
export type Selection = { readonly tokens: ReadonlySet<Hex> | null; readonly options: SelectionOptions }

/** Returns the options as text. Listeners with equal texts share their bytes, so the text contains every option. */
export const optionsKey = (options: SelectionOptions): string => JSON.stringify({ ...options, ...shownFilters(options) })

export const tokensKey = (tokens: Selection['tokens']): string => (tokens === null ? '*' : [...tokens].sort().join())

/** Whether a selection includes updates about a token. `address` is null for an update about all tokens. */
export const includesToken = ({ tokens }: Selection, address: Hex | null): boolean =>
  tokens === null || (tokens.size > 0 && (address === null || tokens.has(address)))

export function createContentMatcher(selection: Selection): (content: Update | FactContent) => boolean {
  const { options } = selection
  const types: ReadonlySet<UpdateType> = new Set(options.types)
  const passesFilters = filterTestOf(options)
  return (content) =>
    types.has(content.type) && includesToken(selection, content.address) && (passesFilters === null || passesFilters(content))
}

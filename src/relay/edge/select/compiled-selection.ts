import { compareDecimals, type Decimal, formatDecimal, parseDecimal } from '../../../protocol/decimal.ts'
import type { Hex } from '../../../protocol/fields.ts'
import type { SelectionOptions } from '../../../protocol/selection.ts'
import { type Movement, movementTypes, type Update, type UpdateType } from '../../../protocol/updates.ts'
import type { FactContent } from './key-history.ts'

/** What one listener receives: the updates of these tokens (null for all) that pass its options. */
export type Selection = { readonly tokens: ReadonlySet<Hex> | null; readonly options: SelectionOptions }

/** Equal options have equal keys, and so have equal token sets: listeners with both equal share their bytes. */
export const optionsKey = (options: SelectionOptions): string =>
  JSON.stringify([
    options.types,
    options.stage,
    options.minValue && formatDecimal(options.minValue),
    options.minShares && formatDecimal(options.minShares),
    options.party,
  ])

export const tokensKey = (tokens: Selection['tokens']): string => (tokens === null ? '*' : [...tokens].sort().join())

export const hasValueFilter = (options: SelectionOptions): boolean =>
  options.minValue !== null || options.minShares !== null || options.party !== null

/** Whether the selection includes a token; null stands for an update about all tokens. */
export const includesToken = ({ tokens }: Selection, address: Hex | null): boolean =>
  tokens === null || (tokens.size > 0 && (address === null || tokens.has(address)))

/** Tests whether one content passes a selection. */
export function createContentMatcher(selection: Selection): (content: Update | FactContent) => boolean {
  const { options } = selection
  const types: ReadonlySet<UpdateType> = new Set(options.types)
  return (content) =>
    types.has(content.type) &&
    includesToken(selection, content.address) &&
    (!isMovement(content) || passesFilters(content, options))
}

type FilteredFields = Pick<Movement, 'type' | 'reference_value' | 'shares' | 'from' | 'to'>
const isMovement = (content: Update | FactContent): content is Extract<Update | FactContent, FilteredFields> =>
  movementTypes.has(content.type)

/** Every filter that is set must hold; an unknown value never passes. */
const passesFilters = (movement: FilteredFields, { minValue, minShares, party }: SelectionOptions): boolean =>
  isAtLeast(movement.reference_value, minValue) &&
  isAtLeast(movement.shares, minShares) &&
  (party === null || movement.from === party || movement.to === party)

function isAtLeast(text: string | null, minimum: Decimal | null): boolean {
  if (minimum === null) return true
  const value = text === null ? null : parseDecimal(text)
  return value !== null && compareDecimals(value, minimum) >= 0
}

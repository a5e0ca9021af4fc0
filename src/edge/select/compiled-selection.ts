import { compareDecimals, type Decimal, formatDecimal, parseDecimal } from '../../protocol/decimal.ts'
import type { Hex } from '../../protocol/fields.ts'
import type { SelectionOptions } from '../../protocol/selection.ts'
import { type Movement, movementTypes, type Update, type UpdateType } from '../../protocol/updates.ts'
import type { FactContent } from './key-history.ts'

/** What one listener hears: of these tokens (null for all) what its options let through. */
export type Selection = { readonly tokens: ReadonlySet<Hex> | null; readonly options: SelectionOptions }

/** The same options have the same name, and so have the same tokens, whoever chose them: all who share both share their bytes. */
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

/** Whether anything about this token, or about all of them, is asked for. */
export const includesToken = ({ tokens }: Selection, address: Hex | null): boolean =>
  tokens === null || (tokens.size > 0 && (address === null || tokens.has(address)))

/** Makes the question that is asked of every content: does this selection let it through? */
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

/** All filters that are set must hold; what is unknown never passes one. */
const passesFilters = (movement: FilteredFields, { minValue, minShares, party }: SelectionOptions): boolean =>
  isAtLeast(movement.reference_value, minValue) &&
  isAtLeast(movement.shares, minShares) &&
  (party === null || movement.from === party || movement.to === party)

function isAtLeast(text: string | null, minimum: Decimal | null): boolean {
  if (minimum === null) return true
  const value = text === null ? null : parseDecimal(text)
  return value !== null && compareDecimals(value, minimum) >= 0
}

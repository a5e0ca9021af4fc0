import { compareDecimals, type Decimal, formatDecimal, parseDecimal } from '../../protocol/decimal.ts'
import type { Hex } from '../../protocol/fields.ts'
import type { Options } from '../../protocol/selection.ts'
import { type Movement, movementTypes, type Update, type UpdateType } from '../../protocol/updates.ts'
import type { Content } from './key-history.ts'

/** What one listener hears: of these tokens (null for all) what its options let through. */
export type Selection = { readonly tokens: ReadonlySet<Hex> | null; readonly options: Options }

/** The same options have the same name, and so have the same tokens, whoever chose them: all who share both share their bytes. */
export const nameOfOptions = (options: Options): string =>
  JSON.stringify([
    options.types,
    options.stage,
    options.minValue && formatDecimal(options.minValue),
    options.minShares && formatDecimal(options.minShares),
    options.party,
  ])

export const nameOfTokens = (tokens: Selection['tokens']): string => (tokens === null ? '*' : [...tokens].sort().join())

export const hasValueFilter = (options: Options): boolean =>
  options.minValue !== null || options.minShares !== null || options.party !== null

/** Whether anything about this token, or about all of them, is asked for. */
export const concerns = ({ tokens }: Selection, address: Hex | null): boolean =>
  tokens === null || (tokens.size > 0 && (address === null || tokens.has(address)))

/** Makes the question that is asked of every content: does this selection let it through? */
export function passing(selection: Selection): (content: Update | Content) => boolean {
  const { options } = selection
  const types: ReadonlySet<UpdateType> = new Set(options.types)
  return (content) =>
    types.has(content.type) &&
    concerns(selection, content.address) &&
    (!isMovement(content) || matches(content, options))
}

type Moved = Pick<Movement, 'type' | 'reference_value' | 'shares' | 'from' | 'to'>
const isMovement = (content: Update | Content): content is Extract<Update | Content, Moved> =>
  movementTypes.has(content.type)

/** All filters that are set must hold; what is unknown never passes one. */
const matches = (moved: Moved, { minValue, minShares, party }: Options): boolean =>
  reaches(moved.reference_value, minValue) &&
  reaches(moved.shares, minShares) &&
  (party === null || moved.from === party || moved.to === party)

function reaches(text: string | null, least: Decimal | null): boolean {
  if (least === null) return true
  const value = text === null ? null : parseDecimal(text)
  return value !== null && compareDecimals(value, least) >= 0
}

import { compareDecimals, type Decimal, formatDecimal, parseDecimal } from '../protocol/decimal.ts'
import type { Hex } from '../protocol/parts.ts'
import type { Options } from '../protocol/selection.ts'
import { type Movement, movementTypes, type Update, type UpdateType } from '../protocol/updates.ts'

/** What one listener hears: of these tokens (null for all) what its options let through. */
export type Selection = { readonly tokens: ReadonlySet<Hex> | null; readonly options: Options }

/** The same selection has the same name, whoever made it, so that all who share it share their bytes. */
export const nameOf = ({ tokens, options }: Selection): string =>
  JSON.stringify([
    tokens && [...tokens].sort(),
    options.types,
    options.stage,
    options.minValue && formatDecimal(options.minValue),
    options.minShares && formatDecimal(options.minShares),
    options.party,
  ])

export const hasValueFilter = ({ options }: Selection): boolean =>
  options.minValue !== null || options.minShares !== null || options.party !== null

/** Makes the question that is asked of every update: does this selection hear it? */
export function passing({ tokens, options }: Selection): (update: Update) => boolean {
  const types: ReadonlySet<UpdateType> = new Set(options.types)
  const sealedOnly = options.stage === 'sealed'
  return (update) => {
    if (!types.has(update.type) || tokens?.size === 0) return false
    if (tokens && update.address !== null && !tokens.has(update.address)) return false
    if (sealedOnly && 'stage' in update && update.stage === 'preconfirmed') return false
    return !isMovement(update) || matches(update, options)
  }
}

const isMovement = (update: Update): update is Movement => movementTypes.has(update.type)

/** All filters that are set must hold; what is unknown never passes one. */
const matches = (update: Movement, { minValue, minShares, party }: Options): boolean =>
  reaches(update.reference_value, minValue) &&
  reaches(update.shares, minShares) &&
  (party === null || update.from === party || update.to === party)

function reaches(text: string | null, least: Decimal | null): boolean {
  if (least === null) return true
  const value = text === null ? null : parseDecimal(text)
  return value !== null && compareDecimals(value, least) >= 0
}

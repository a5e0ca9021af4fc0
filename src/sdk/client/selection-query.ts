import type { Update } from '../generated/messages.ts'
import { filterParameters, type ValueFilters } from '../generated/names.ts'
import type { StreamOptions } from './stream-types.ts'

export type SelectionFilters = Pick<StreamOptions<Update['type']>, 'types' | 'stage' | keyof ValueFilters>

export function selectionQuery(symbols: string | readonly string[], options: SelectionFilters): URLSearchParams {
  const query = new URLSearchParams({ symbols: String(symbols) })
  for (const [option, name] of filterParameters) setGiven(query, { [name]: options[option] })
  return setGiven(query, { types: options.types, stage: options.stage })
}

/** Sets the parameters whose value is not undefined. */
export function setGiven(query: URLSearchParams, given: Readonly<Record<string, unknown>>): URLSearchParams {
  for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, String(value))
  return query
}

export const timeText = (time?: string | Date): string | undefined => (time instanceof Date ? time.toISOString() : time)

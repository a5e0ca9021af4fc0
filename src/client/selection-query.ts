import type { Update } from './messages.ts'
import type { StreamOptions } from './options.ts'

/** What a stream and the history both select by. */
export type SelectionFilters = Pick<StreamOptions<Update['type']>, 'types' | 'stage' | 'minValue' | 'minShares' | 'party'>

/** The query parameters of a selection. */
export function selectionQuery(symbols: string | readonly string[], options: SelectionFilters): URLSearchParams {
  const { types, stage, minValue, minShares, party } = options
  const query = new URLSearchParams({ symbols: String(symbols) })
  const given = { types: types && String(types), stage, min_value: minValue, min_shares: minShares, party }
  for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, String(value))
  return query
}

export const timeText = (time: string | Date): string => (time instanceof Date ? time.toISOString() : time)

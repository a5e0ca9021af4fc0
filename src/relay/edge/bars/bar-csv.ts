import { type StoredBar, StoredBar as StoredBarSchema } from '../../../protocol/bars/bars-query.ts'

/** The fields of a bar that are one value, in their order. */
const columns = (Object.keys(StoredBarSchema.shape) as (keyof StoredBar)[]).filter(
  (name) => name !== 'nav' && name !== 'venues' && name !== 'blocks',
)

export const csvHeader = columns.join(',')

export const csvLineOf = (bar: StoredBar): string => columns.map((name) => cellOf(bar[name])).join(',')

function cellOf(value: unknown): string {
  const text = value === null ? '' : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

import { isDeepStrictEqual } from 'node:util'
import type { TokenRecord } from '../../../protocol/fields.ts'
import { insertInOrder } from '../chain-position.ts'
import type { RecordChangeSchema, Stored } from '../token-schema.ts'

/** A change of one field of the record by a log. It is in effect until the list changes that field. */
export type RecordChange = Stored<typeof RecordChangeSchema>

/** Limit of kept changes of a record. Beyond it the oldest is dropped. */
const RECORD_CHANGES_BOUND = 64

export function applyRecordChanges(listed: TokenRecord, changes: readonly RecordChange[]): TokenRecord {
  if (changes.length === 0) return listed
  const record: { [name: string]: unknown } = { ...listed }
  for (const { field, entry, value } of changes) record[field] = entry === null ? value : withEntry(record[field], entry, value)
  return record
}

export const addRecordChange = (changes: readonly RecordChange[], change: RecordChange): readonly RecordChange[] =>
  insertInOrder(changes, change).slice(-RECORD_CHANGES_BOUND)

/** Drops changes of fields for which the list has a new value, because that value is newer. */
export function dropChangesOverriddenByList(
  changes: readonly RecordChange[],
  before: TokenRecord,
  now: TokenRecord,
): readonly RecordChange[] {
  const isKept = ({ field }: RecordChange) => (now[field] ?? null) === null || isDeepStrictEqual(before[field], now[field])
  return changes.every(isKept) ? changes : changes.filter(isKept)
}

/** Sets an entry of a table. Rebuilds the table from its entries, because a contract may use any name, such as `__proto__`. */
function withEntry(table: unknown, entry: string, value: string | null): object {
  const entries = typeof table === 'object' && table !== null ? Object.entries(table) : []
  const others = entries.filter(([name]) => name !== entry)
  return Object.fromEntries(value === null || value === '' ? others : [...others, [entry, value]])
}

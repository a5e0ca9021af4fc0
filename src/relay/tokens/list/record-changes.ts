import { isDeepStrictEqual } from 'node:util'
import type { TokenRecord } from '../../../protocol/fields.ts'
import { insertInOrder, type KeyedPosition } from '../chain-position.ts'

/** A record field from a log; it holds until the list changes that field. */
export type RecordChange = KeyedPosition & {
  readonly field: string
  /** The entry within the field, where the field is a table. */
  readonly entry: string | null
  /** Null where it was removed. */
  readonly value: string | null
}

/** How many fields from logs are kept; beyond it the oldest is dropped. */
const RECORD_CHANGES_BOUND = 64

/** The list's record with the later changes from logs. */
export function applyRecordChanges(listed: TokenRecord, changes: readonly RecordChange[]): TokenRecord {
  if (changes.length === 0) return listed
  const record: { [name: string]: unknown } = { ...listed }
  for (const { field, entry, value } of changes) record[field] = entry === null ? value : withEntry(record[field], entry, value)
  return record
}

export const addRecordChange = (changes: readonly RecordChange[], change: RecordChange): readonly RecordChange[] =>
  insertInOrder(changes, change).slice(-RECORD_CHANGES_BOUND)

/** Drops the changes of fields to which the list has given another value since: the list is newer. */
export function dropChangesOverriddenByList(
  changes: readonly RecordChange[],
  before: TokenRecord,
  now: TokenRecord,
): readonly RecordChange[] {
  const isKept = ({ field }: RecordChange) => (now[field] ?? null) === null || isDeepStrictEqual(before[field], now[field])
  return changes.every(isKept) ? changes : changes.filter(isKept)
}

/** Rebuilds the table from entries, since a name from outside may be anything, such as `__proto__`. */
function withEntry(table: unknown, entry: string, value: string | null): object {
  const entries = typeof table === 'object' && table !== null ? Object.entries(table) : []
  const others = entries.filter(([name]) => name !== entry)
  return Object.fromEntries(value === null || value === '' ? others : [...others, [entry, value]])
}

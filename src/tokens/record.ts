import { isDeepStrictEqual } from 'node:util'
import type { TokenRecord } from '../protocol/fields.ts'
import { dropUnsealed, insertInOrder, type KeyedPosition } from './chain-position.ts'

/** A field of the record as a log says it, until the list says something else. */
export type RecordChange = KeyedPosition & {
  readonly field: string
  /** Which entry of the field, where it is a table. */
  readonly entry: string | null
  /** Null where it was removed. */
  readonly value: string | null
}

/** How many fields that logs said are remembered; of more, the oldest is forgotten. */
const RECORD_CHANGES_BOUND = 64

/** The record that is held: the list's, and over it what logs said since. */
export function applyRecordChanges(listed: TokenRecord, changes: readonly RecordChange[]): TokenRecord {
  if (changes.length === 0) return listed
  const record: { [name: string]: unknown } = { ...listed }
  for (const { field, entry, value } of changes)
    record[field] = entry === null ? value : withEntry(record[field], entry, value)
  return record
}

export const addRecordChange = (changes: readonly RecordChange[], change: RecordChange): readonly RecordChange[] =>
  insertInOrder(changes, change).slice(-RECORD_CHANGES_BOUND)

/** Without what logs of a block said that it does not hold. */
export const dropUnsealedRecordChanges = (
  changes: readonly RecordChange[],
  block: number,
  sealedKeys: ReadonlySet<string>,
) => dropUnsealed(changes, block, sealedKeys)

/** Without the fields of which the list has changed its own word: it knows better by now. */
export function dropChangesOverriddenByList(
  changes: readonly RecordChange[],
  before: TokenRecord,
  now: TokenRecord,
): readonly RecordChange[] {
  const isKept = ({ field }: RecordChange) => isDeepStrictEqual(before[field], now[field])
  return changes.every(isKept) ? changes : changes.filter(isKept)
}

/** An entry is a name from outside: it may be called anything. */
function withEntry(table: unknown, entry: string, value: string | null): object {
  const entries = typeof table === 'object' && table !== null ? Object.entries(table) : []
  const others = entries.filter(([name]) => name !== entry)
  return Object.fromEntries(value === null || value === '' ? others : [...others, [entry, value]])
}

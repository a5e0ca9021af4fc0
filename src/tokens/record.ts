import { isDeepStrictEqual } from 'node:util'
import type { TokenRecord } from '../protocol/fields.ts'
import { inserted, keptIn, type Placed } from './chain-position.ts'

/** A field of the record as a log says it, until the list says something else. */
export type FieldSaid = Placed & {
  readonly field: string
  /** Which entry of the field, where it is a table. */
  readonly entry: string | null
  /** Null where it was removed. */
  readonly value: string | null
}

/** How many fields that logs said are remembered; of more, the oldest is forgotten. */
const FIELDS_BOUND = 64

/** The record that is held: the list's, and over it what logs said since. */
export function recordWith(listed: TokenRecord, said: readonly FieldSaid[]): TokenRecord {
  if (said.length === 0) return listed
  const record: { [name: string]: unknown } = { ...listed }
  for (const { field, entry, value } of said)
    record[field] = entry === null ? value : tableWith(record[field], entry, value)
  return record
}

export const withField = (said: readonly FieldSaid[], one: FieldSaid): readonly FieldSaid[] =>
  inserted(said, one).slice(-FIELDS_BOUND)

/** Without what logs of a block said that it does not hold. */
export const fieldsKept = (said: readonly FieldSaid[], block: number, keys: ReadonlySet<string>) =>
  keptIn(said, block, keys)

/** Without the fields of which the list has changed its own word: it knows better by now. */
export function fieldsLeft(said: readonly FieldSaid[], before: TokenRecord, now: TokenRecord): readonly FieldSaid[] {
  const isLeft = ({ field }: FieldSaid) => isDeepStrictEqual(before[field], now[field])
  return said.every(isLeft) ? said : said.filter(isLeft)
}

/** An entry is a name from outside: it may be called anything. */
function tableWith(table: unknown, entry: string, value: string | null): object {
  const entries = typeof table === 'object' && table !== null ? Object.entries(table) : []
  const others = entries.filter(([name]) => name !== entry)
  return Object.fromEntries(value === null || value === '' ? others : [...others, [entry, value]])
}

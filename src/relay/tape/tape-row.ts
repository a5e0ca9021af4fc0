import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Hex } from '../../lib/hex.ts'
import type { Update, UpdateType } from '../../protocol/updates.ts'
import type { Entry } from './tape.ts'

export type TapeRow = readonly [seq: number, text: string]

/** Prepares a query for rows as arrays. For a row as an object Node keeps a hidden class: a million rows took 50 MB. */
export function prepareRows(database: DatabaseSync, sql: string): StatementSync {
  const statement = database.prepare(sql)
  statement.setReturnArrays(true)
  return statement
}

export const entryOf = ([seq, text]: TapeRow): Entry => ({ seq, text, update: parseUpdate(text) })

/** The tape wrote this text itself, and the schema version vouches for its shape. */
export const parseUpdate = (text: string): Update => JSON.parse(text) as Update

/** Both fields are among the first of every text, and quotes in strings are escaped, so the first match is the field. */
const typePattern = /^\{"type":"(\w+)"/
const addressPattern = /"address":(?:null|"(0x[0-9a-f]{40})")/

/** Reads two fields without parsing the update. SQLite's JSON functions fail on deep values, which would refuse the tape. */
export function channelOf(text: string): { readonly type: UpdateType; readonly address: Hex | null } {
  return { type: typePattern.exec(text)?.[1] as UpdateType, address: (addressPattern.exec(text)?.[1] ?? null) as Hex | null }
}

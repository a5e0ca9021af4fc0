import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Hex } from '../../lib/hex.ts'
import type { Update, UpdateType } from '../../protocol/updates.ts'
import type { Entry } from './tape.ts'

/** An update as the file stores it. */
export type TapeRow = readonly [seq: number, text: string]

/**
 * Prepares a query for rows as arrays. For each row that is an object, Node makes a hidden class that stays in memory for
 * long: to read a million rows took 50 MB.
 */
export function prepareRows(database: DatabaseSync, sql: string): StatementSync {
  const statement = database.prepare(sql)
  statement.setReturnArrays(true)
  return statement
}

export const entryOf = ([seq, text]: TapeRow): Entry => ({ seq, text, update: parseUpdate(text) })

/** The tape wrote this text itself, and the schema version vouches for its shape. */
export const parseUpdate = (text: string): Update => JSON.parse(text) as Update

/** Both fields come first in every text, and a quote inside a string is escaped: the first match is the field. */
const typePattern = /^\{"type":"(\w+)"/
const addressPattern = /"address":(?:null|"(0x[0-9a-f]{40})")/

/**
 * The type and the address of a stored update, without reading all of it. SQLite must not read it: its JSON functions give
 * up on deep values, and one such row would refuse the whole tape.
 */
export function channelOf(text: string): { readonly type: UpdateType; readonly address: Hex | null } {
  return { type: typePattern.exec(text)?.[1] as UpdateType, address: (addressPattern.exec(text)?.[1] ?? null) as Hex | null }
}

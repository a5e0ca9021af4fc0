import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Hex } from '../../lib/hex.ts'
import type { Draft, Update, UpdateType } from '../../protocol/updates.ts'
import type { Entry } from './tape.ts'

export type TapeRow = readonly [seq: number, text: string]

/** Prepares a query whose rows are arrays. For each row as an object Node keeps a hidden class: a million rows took 50 MB. */
export function prepareRows(database: DatabaseSync, sql: string): StatementSync {
  const statement = database.prepare(sql)
  statement.setReturnArrays(true)
  return statement
}

/** Returns an update as JSON in the field order of the contract: `type`, which is first in every draft, then `id` and `prev`. */
export function textOf(draft: Draft, id: string, prev: string | null): string {
  const json = JSON.stringify(draft)
  const afterType = json.indexOf(',')
  return `${json.slice(0, afterType)},"id":"${id}","prev":${prev === null ? null : `"${prev}"`}${json.slice(afterType)}`
}

/** Parses the text of an update without checking it. `readMessage` checks the texts that other processes wrote. */
export const parseUpdate = (text: string): Update => JSON.parse(text) as Update

export const entryOf = ([seq, text]: TapeRow): Entry => ({ seq, text, update: parseUpdate(text) })

/** `type` and `address` are among the first fields of an update, and JSON escapes quotes in strings: the first match is right. */
const typePattern = /^\{"type":"(\w+)"/
const addressPattern = /"address":(?:null|"(0x[0-9a-f]{40})")/

/** Reads type and address without parsing the whole update. SQLite's JSON functions fail on deeply nested values. */
export function channelOf(text: string): { readonly type: UpdateType; readonly address: Hex | null } {
  return { type: typePattern.exec(text)?.[1] as UpdateType, address: (addressPattern.exec(text)?.[1] ?? null) as Hex | null }
}

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Entry } from './tape.ts'
import { parseUpdate } from './update-text.ts'

export type TapeRow = readonly [seq: number, text: string]

/** Prepares a query whose rows are arrays. For each row as an object Node keeps a hidden class: a million rows took 50 MB. */
export function prepareRows(database: DatabaseSync, sql: string): StatementSync {
  const statement = database.prepare(sql)
  statement.setReturnArrays(true)
  return statement
}

export const entryOf = ([seq, text]: TapeRow): Entry => ({ seq, text, update: parseUpdate(text) })

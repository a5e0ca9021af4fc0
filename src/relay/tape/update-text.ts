import type { Hex } from '../../lib/hex.ts'
import type { Update, UpdateType } from '../../protocol/updates.ts'

/** Parses the text of an update without checking it. `readMessage` checks the texts that other processes wrote. */
export const parseUpdate = (text: string): Update => JSON.parse(text) as Update

/** `type` and `address` are among the first fields of an update, and JSON escapes quotes in strings: the first match is right. */
const typePattern = /^\{"type":"(\w+)"/
const addressPattern = /"address":(?:null|"(0x[0-9a-f]{40})")/

/** Reads type and address without parsing the whole update. SQLite's JSON functions fail on deeply nested values. */
export function channelOf(text: string): { readonly type: UpdateType; readonly address: Hex | null } {
  return { type: typePattern.exec(text)?.[1] as UpdateType, address: (addressPattern.exec(text)?.[1] ?? null) as Hex | null }
}

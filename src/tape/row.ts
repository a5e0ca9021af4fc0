import type { Update } from '../protocol/updates.ts'
import type { Entry } from './tape.ts'

/** An update as the file stores it. */
export type TapeRow = { readonly seq: number; readonly text: string }

export const entryOf = ({ seq, text }: TapeRow): Entry => ({
  seq,
  text,
  // The tape wrote this text itself, and the schema version vouches for its shape.
  update: JSON.parse(text) as Update,
})

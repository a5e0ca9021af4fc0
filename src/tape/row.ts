import type { Update } from '../protocol/updates.ts'
import type { Entry } from './tape.ts'

/** A message as the file has it. */
export type TapeRow = { readonly seq: number; readonly text: string }

export const entryOf = ({ seq, text }: TapeRow): Entry => ({
  seq,
  text,
  // The text is what the tape wrote: it is read back, not checked again.
  update: JSON.parse(text) as Update,
})

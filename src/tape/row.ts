import type { Update } from '../protocol/updates.ts'
import type { Entry } from './tape.ts'

/** A message as the file has it. */
export type Row = { readonly seq: number; readonly text: string }

export const entryOf = ({ seq, text }: Row): Entry => ({
  seq,
  text,
  // The text is what the tape wrote: it is read back, not checked again.
  update: JSON.parse(text) as Update,
})

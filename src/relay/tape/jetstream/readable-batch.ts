import { parsePosition } from '../../../protocol/position.ts'
import { Update } from '../../../protocol/updates.ts'
import { type BatchMessage, decodeBatch, otherVersionOf } from '../batch-message.ts'
import { isReadableNote } from '../notes.ts'
import { SEQ_BOUND } from '../runs.ts'
import type { Entry } from '../tape.ts'
import { channelOf, entryOf } from '../tape-row.ts'

export type ReadMessage =
  | { readonly kind: 'batch'; readonly batch: BatchMessage; readonly entries: readonly Entry[] }
  | { readonly kind: 'otherVersion'; readonly version: number }
  | { readonly kind: 'unreadable' }

/** Checks all of a message: anybody who reaches NATS may have written it, and the tape's file keeps what it takes over. */
export function readMessage(bytes: Uint8Array): ReadMessage {
  try {
    const batch = decodeBatch(bytes)
    const entries = batch && entriesOf(batch)
    if (batch && entries && areReadable(batch.notes)) return { kind: 'batch', batch, entries }
    const version = otherVersionOf(bytes)
    return version === null ? { kind: 'unreadable' } : { kind: 'otherVersion', version }
  } catch {
    // Values that are nested too deep overflow the stack.
    return { kind: 'unreadable' }
  }
}

/** Null if an update or a number is wrong. */
function entriesOf({ epoch, after, first, texts, lastSeqs }: BatchMessage): readonly Entry[] | null {
  if (lastSeqs?.some(([, seq]) => seq > after)) return null
  if (texts.length === 0) return []
  if (first <= after || first + texts.length > SEQ_BOUND) return null
  const entries = texts.map((text, nth) => entryOf([first + nth, text]))
  return entries.every((entry) => isReadable(entry, epoch)) ? entries : null
}

function isReadable({ seq, text, update }: Entry, epoch: string): boolean {
  if (!Update.safeParse(update).success || !Number.isFinite(Date.parse(update.time))) return false
  const { type, address } = channelOf(text)
  if (type !== update.type || address !== update.address || update.id !== `${epoch}.${seq}`) return false
  const prev = update.prev === null ? null : parsePosition(update.prev)
  return prev === null || (prev.epoch === epoch && prev.seq < seq)
}

const areReadable = (notes: BatchMessage['notes']): boolean =>
  JSON.stringify(notes) !== undefined &&
  Object.entries(notes).every(([name, value]) => value === null || isReadableNote(name, value))

import type { GapMessage, SnapshotMessage, Update } from '../generated/messages.ts'

/** A gap that the relay reports, or one that the client found in a stream that is alive. */
export type Gap = GapMessage | MissedGap
/** The pages at `backfill` also contain the messages that were received. */
export type MissedGap = Omit<GapMessage, 'reason'> & { readonly reason: 'missed' }

/** An item of a stream. The messages that end a delivered fact are included even if `types` does not name them. */
export type StreamItem<Type extends Update['type'] = Update['type']> =
  | Extract<Update, { type: Type | 'seal' | 'retract' | 'amend' }>
  | SnapshotMessage
  | Gap

import type { Update } from './updates.ts'

type KeyPublication = Exclude<Extract<Update, { readonly key?: string | undefined }>, { readonly type: 'retract' | 'amend' }>
type KeyContent = KeyPublication | Extract<Update, { readonly type: 'amend' }>['update']

/** Returns the content that was published last, then each amended one. Empty after a retract, or without the publication. */
export function contentsBefore(entries: readonly { readonly seq: number; readonly update: Update }[], beforeSeq: number) {
  let contents: { readonly seq: number; readonly content: KeyContent }[] = []
  for (const { seq, update } of entries) {
    if (seq >= beforeSeq) break
    if (update.type === 'retract') contents = []
    else if (update.type !== 'amend') contents.push({ seq, content: update as KeyPublication })
    else if (contents.length > 0) contents.push({ seq, content: update.update })
  }
  return contents
}

/** Limit on the age of a late fact's block. With an older block, it was read after an interruption, and counts as backfilled. */
const LATE_MAX_MS = 60_000

type CountedMessage = {
  readonly type: string
  readonly time: string
  readonly stage?: string | undefined
  readonly late?: boolean | undefined
  readonly block?: { readonly timestamp?: string | null } | undefined
}

/** Returns the event that the score and the metrics count for a message; null if they count none. */
export function keyEventOf({ type, stage, late, time, block }: CountedMessage) {
  if (type === 'seal') return 'sealed'
  if (type === 'amend') return 'amended'
  if (type === 'retract') return 'retracted'
  if (late) return block?.timestamp && Date.parse(time) - Date.parse(block.timestamp) <= LATE_MAX_MS ? 'late' : 'backfilled'
  return late === false && stage === 'preconfirmed' ? 'preconfirmed' : null
}

/**
 * A key is published, amended any number of times, and then sealed or retracted. After a retract it can be published again.
 * `npm run messages` copies this file into the SDK, so it imports nothing.
 */
export type KeyStage = 'preconfirmed' | 'sealed' | 'retracted'

type KeyMessage = {
  readonly type: string
  readonly key?: string | undefined
  readonly keys?: readonly string[]
  readonly types?: readonly string[]
  readonly stage?: string | undefined
  readonly update?: unknown
}

/** Keys that a message seals, retracts or amends. A seal also lists parts of another fact: they have no stage of their own. */
export const followedKeys = ({ type, key = '', keys = [], types = [] }: KeyMessage): readonly string[] =>
  type === 'seal' ? keys.filter((_, index) => types[index] !== 'part') : type === 'retract' || type === 'amend' ? [key] : []

export function stageAfter(before: KeyStage, { type, stage, update }: KeyMessage): KeyStage {
  if (type === 'retract') return 'retracted'
  if (type !== 'amend') return stage === 'preconfirmed' ? stage : 'sealed'
  return (update as KeyMessage).stage === 'sealed' ? 'sealed' : before
}

type KeyPublication<Message> = Exclude<
  Extract<Message, { readonly key?: string | undefined }>,
  { readonly type: 'retract' | 'amend' }
>
type KeyContent<Message> =
  | KeyPublication<Message>
  | Extract<Message, { readonly type: 'amend'; readonly update: unknown }>['update']

/** Returns the content that was published last, then each amended one. Empty after a retract, or without the publication. */
export function contentsBefore<Message extends KeyMessage>(
  entries: readonly { readonly seq: number; readonly update: Message }[],
  beforeSeq: number,
): readonly { readonly seq: number; readonly content: KeyContent<Message> }[] {
  let contents: { readonly seq: number; readonly content: KeyContent<Message> }[] = []
  for (const { seq, update } of entries) {
    if (seq >= beforeSeq) break
    if (update.type === 'retract') contents = []
    else if (update.type !== 'amend') contents.push({ seq, content: update as KeyPublication<Message> })
    else if (contents.length > 0) contents.push({ seq, content: update.update as KeyContent<Message> })
  }
  return contents
}

export type KeyEvent = 'preconfirmed' | 'late' | 'backfilled' | 'sealed' | 'amended' | 'retracted'

/** Limit on the age of a late fact's block. With an older block, it was read after an interruption, and counts as backfilled. */
const LATE_MAX_MS = 60_000

type CountedMessage = KeyMessage & {
  readonly time: string
  readonly late?: boolean | undefined
  readonly block?: { readonly timestamp?: string | null } | undefined
}

/** Returns the event that the score and the metrics count for a message; null if they count none. */
export function keyEventOf({ type, stage, late, time, block }: CountedMessage): KeyEvent | null {
  switch (type) {
    case 'seal':
      return 'sealed'
    case 'amend':
      return 'amended'
    case 'retract':
      return 'retracted'
    default:
      if (late) return block?.timestamp && Date.parse(time) - Date.parse(block.timestamp) <= LATE_MAX_MS ? 'late' : 'backfilled'
      return late === false && stage === 'preconfirmed' ? 'preconfirmed' : null
  }
}

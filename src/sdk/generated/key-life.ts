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

import { type ChainPosition, dropUnsealed, insertInOrder, isBefore, type KeyedPosition } from './chain-position.ts'

/** One thing that was said of what is paused: a log adds or takes away, the list and the contract itself say all of it. */
export type PauseChange = KeyedPosition & {
  readonly kind: 'paused' | 'unpaused' | 'all'
  readonly features: readonly number[]
}

/** All that is known of what is paused of a token: what was at first, and what was said since, in the order of the chain. */
export type PauseHistory = { readonly initial: readonly number[]; readonly changes: readonly PauseChange[] }

/** How many changes are remembered; of more, the oldest is what was at first. */
const CHANGES_BOUND = 64
/** Features that one token may have paused at most: there are four, and a few may come. */
const FEATURES_BOUND = 256

/** What is paused just before a place, or now. */
export function pausedAt({ initial, changes }: PauseHistory, position: ChainPosition | null): readonly number[] {
  let paused = initial
  for (const change of changes) {
    if (position && !isBefore(change, position)) break
    paused = applyPauseChange(paused, change)
  }
  return paused
}

export function addPauseChange(pauses: PauseHistory, change: PauseChange): PauseHistory {
  const [oldest, ...rest] = insertInOrder(pauses.changes, change)
  if (!oldest || rest.length < CHANGES_BOUND) return { ...pauses, changes: oldest ? [oldest, ...rest] : [] }
  return { initial: applyPauseChange(pauses.initial, oldest), changes: rest }
}

/** Without what logs of a block said that it does not hold. */
export function dropUnsealedPauseChanges(
  pauses: PauseHistory,
  block: number,
  sealedKeys: ReadonlySet<string>,
): PauseHistory {
  const changes = dropUnsealed(pauses.changes, block, sealedKeys)
  return changes === pauses.changes ? pauses : { ...pauses, changes }
}

/** An event names what the call named, and not what came of it: what was paused already repeats. */
export function applyPauseChange(
  paused: readonly number[],
  { kind, features }: Pick<PauseChange, 'kind' | 'features'>,
) {
  const kept = kind === 'all' ? [] : kind === 'paused' ? paused : paused.filter((one) => !features.includes(one))
  const now = kind === 'unpaused' ? kept : [...new Set([...kept, ...features])]
  return now.toSorted((a, b) => a - b).slice(0, FEATURES_BOUND)
}

import { type ChainPosition, insertInOrder, isBefore } from './chain-position.ts'
import type { PauseHistorySchema, Stored } from './token-schema.ts'

/** The features that were paused initially, and later changes in chain order. */
export type PauseHistory = Stored<typeof PauseHistorySchema>
export type PauseChange = PauseHistory['changes'][number]

/** Limit of kept changes of paused features. Beyond it the oldest becomes part of the initial features. */
const CHANGES_BOUND = 64
/** Limit of the paused features of a token. Today four exist, and a few may be added. */
const FEATURES_BOUND = 256

const featureNames = ['TRANSFER', 'MINT', 'BURN', 'SEIZE'] as const
export const featureName = (ordinal: number): string => featureNames[ordinal] ?? `UNKNOWN_${ordinal}`

/** The paused features just before a position; null means now. */
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

/** Returns the paused features after a change. A log may name features that are already paused. */
export function applyPauseChange(paused: readonly number[], { kind, features }: Pick<PauseChange, 'kind' | 'features'>) {
  const kept = kind === 'all' ? [] : kind === 'paused' ? paused : paused.filter((feature) => !features.includes(feature))
  const now = kind === 'unpaused' ? kept : [...new Set([...kept, ...features])]
  return now.toSorted((a, b) => a - b).slice(0, FEATURES_BOUND)
}

import { isoFromSecondsOrNull } from '../../lib/iso-time.ts'
import type { Draft, DraftOf } from '../../protocol/updates.ts'
import type { NavTiming } from './nav.ts'
import { featureName } from './pause-history.ts'
import type { Token } from './token.ts'

/** A token after a change, and the updates that publish the change. */
export type ChangedToken = { readonly after: Token; readonly drafts: readonly Draft[] }

/** Fields of every update about a token that no log caused. */
export const commonFields = ({ symbol, address }: Token, timing: NavTiming) => ({
  symbol,
  address,
  time: new Date(timing.now).toISOString(),
})

export function tokenDraft(
  token: Token,
  timing: NavTiming,
  { change, changed, before }: Pick<DraftOf<'token'>, 'change' | 'changed' | 'before'>,
): DraftOf<'token'> {
  return { type: 'token', ...commonFields(token, timing), change, changed, token: token.record, before, source: 'list' }
}

export function multiplierDraft(
  token: Token,
  timing: NavTiming,
  change: { readonly from: string | null; readonly effectiveAt: number | null; readonly source: 'clock' | 'list' },
): DraftOf<'multiplier'> {
  const { from: previous, source } = change
  const effective_at = isoFromSecondsOrNull(change.effectiveAt)
  const { multiplier } = token
  return { type: 'multiplier', ...commonFields(token, timing), phase: 'effective', previous, multiplier, effective_at, source }
}

/** Makes updates from all paused features, as list and contract report them. An update contains only features added or removed. */
export function pauseDrafts(before: Token, after: Token, timing: NavTiming): readonly DraftOf<'pause'>[] {
  const draft = (change: 'paused' | 'unpaused', feature_ids: number[]): DraftOf<'pause'> => ({
    type: 'pause',
    ...commonFields(after, timing),
    change,
    features: feature_ids.map(featureName),
    feature_ids,
    paused: after.paused.map(featureName),
    source: 'list',
  })
  const added = after.paused.filter((ordinal) => !before.paused.includes(ordinal))
  const removed = before.paused.filter((ordinal) => !after.paused.includes(ordinal))
  return [draft('paused', added), draft('unpaused', removed)].filter(({ features }) => features.length > 0)
}

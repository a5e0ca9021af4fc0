import { isoFromSecondsOrNull } from '../../lib/iso-time.ts'
import type { DraftOf } from '../../protocol/updates.ts'
import type { NavTiming } from './nav.ts'
import type { Token } from './token.ts'

/** Fields of all messages about a token that come from the list or the clock, not from a log. */
type CommonField = 'symbol' | 'address' | 'time'
const commonFields = ({ symbol, address }: Token, timing: NavTiming): Pick<DraftOf<'nav'>, CommonField> => ({
  symbol,
  address,
  time: new Date(timing.now).toISOString(),
})

const featureNames = ['TRANSFER', 'MINT', 'BURN', 'SEIZE'] as const
export const featureName = (ordinal: number): string => featureNames[ordinal] ?? `UNKNOWN_${ordinal}`

export function tokenDraft(
  token: Token,
  timing: NavTiming,
  { change, changed, before }: Pick<DraftOf<'token'>, 'change' | 'changed' | 'before'>,
): DraftOf<'token'> {
  return { type: 'token', ...commonFields(token, timing), change, changed, token: token.record, before, source: 'list' }
}

/** Announces the token's current multiplier. */
export function multiplierDraft(
  token: Token,
  timing: NavTiming,
  change: { readonly from: string | null; readonly effectiveAt: number | null; readonly source: 'clock' | 'list' },
): DraftOf<'multiplier'> {
  const { from, source } = change
  const effective_at = isoFromSecondsOrNull(change.effectiveAt)
  return {
    type: 'multiplier',
    ...commonFields(token, timing),
    phase: 'effective',
    previous: from,
    multiplier: token.multiplier,
    effective_at,
    source,
  }
}

/** List and contract report all paused features; the messages contain only those added or removed. */
export function pauseDrafts(before: Token, after: Token, timing: NavTiming): readonly DraftOf<'pause'>[] {
  const added = after.paused.filter((ordinal) => !before.paused.includes(ordinal))
  const removed = before.paused.filter((ordinal) => !after.paused.includes(ordinal))
  return [
    ...(added.length > 0 ? [pauseDraft(after, timing, 'paused', added)] : []),
    ...(removed.length > 0 ? [pauseDraft(after, timing, 'unpaused', removed)] : []),
  ]
}

function pauseDraft(
  token: Token,
  timing: NavTiming,
  change: DraftOf<'pause'>['change'],
  features: readonly number[],
): DraftOf<'pause'> {
  return {
    type: 'pause',
    ...commonFields(token, timing),
    change,
    features: features.map(featureName),
    feature_ids: [...features],
    paused: token.paused.map(featureName),
    source: 'list',
  }
}

export const navDraft = (
  token: Token,
  timing: NavTiming,
  { nav, before, source }: Pick<DraftOf<'nav'>, 'nav' | 'before' | 'source'>,
): DraftOf<'nav'> => ({ type: 'nav', ...commonFields(token, timing), nav, before, source })

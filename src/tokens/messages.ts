import type { DraftOf } from '../protocol/updates.ts'
import type { NavRule } from './nav.ts'
import type { Token } from './token.ts'

/** What is told of a token though no log of the chain says it: the list did, or the clock. */
type Common = 'symbol' | 'address' | 'time'
const commonOf = ({ symbol, address }: Token, rule: NavRule): Pick<DraftOf<'nav'>, Common> => ({
  symbol,
  address,
  time: new Date(rule.now).toISOString(),
})

const featureNames = ['TRANSFER', 'MINT', 'BURN', 'SEIZE'] as const
export const featureName = (ordinal: number): string => featureNames[ordinal] ?? `UNKNOWN_${ordinal}`

export const isoOf = (second: number): string => new Date(second * 1_000).toISOString()
export const isoOfSecond = (second: number | null): string | null => (second === null ? null : isoOf(second))

export function tokenDraft(
  token: Token,
  rule: NavRule,
  { change, changed, was }: Pick<DraftOf<'token'>, 'change' | 'changed' | 'was'>,
): DraftOf<'token'> {
  return { type: 'token', ...commonOf(token, rule), change, changed, token: token.record, was, source: 'list' }
}

/** The multiplier is now what the token holds. */
export function multiplierDraft(
  token: Token,
  rule: NavRule,
  told: { readonly from: string | null; readonly effectiveAt: number | null; readonly source: 'clock' | 'list' },
): DraftOf<'multiplier'> {
  const { from, source } = told
  const effective_at = isoOfSecond(told.effectiveAt)
  return {
    type: 'multiplier',
    ...commonOf(token, rule),
    phase: 'effective',
    from,
    to: token.multiplier,
    effective_at,
    source,
  }
}

/** Whoever is no log says all that is paused: told as what was added, and what was taken away. */
export function pauseDrafts(before: Token, after: Token, rule: NavRule): readonly DraftOf<'pause'>[] {
  const added = after.paused.filter((ordinal) => !before.paused.includes(ordinal))
  const gone = before.paused.filter((ordinal) => !after.paused.includes(ordinal))
  return [
    ...(added.length > 0 ? [pauseDraft(after, rule, { paused: true, raw: added })] : []),
    ...(gone.length > 0 ? [pauseDraft(after, rule, { paused: false, raw: gone })] : []),
  ]
}

function pauseDraft(
  token: Token,
  rule: NavRule,
  { paused, raw }: { readonly paused: boolean; readonly raw: readonly number[] },
): DraftOf<'pause'> {
  const features = raw.map(featureName)
  return {
    type: 'pause',
    ...commonOf(token, rule),
    paused,
    features,
    raw: [...raw],
    now: [...token.paused],
    source: 'list',
  }
}

export const navDraft = (
  token: Token,
  rule: NavRule,
  { nav, was, source }: Pick<DraftOf<'nav'>, 'nav' | 'was' | 'source'>,
): DraftOf<'nav'> => ({ type: 'nav', ...commonOf(token, rule), nav, was, source })

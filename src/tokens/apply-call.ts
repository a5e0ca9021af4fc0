import type { Hex } from '../protocol/fields.ts'
import type { Draft } from '../protocol/updates.ts'
import { multiplierText, secondOf } from './apply-log.ts'
import { isBefore, type Place } from './chain-position.ts'
import { multiplierDraft, pauseDrafts } from './messages.ts'
import { type Factor, type FactorChange, factorAt, sameDouble, withWitness } from './multiplier.ts'
import type { NavRule } from './nav.ts'
import { after, type Pauses, pausedAt, withPause } from './pauses.ts'
import { held, type Token } from './token.ts'

/** What a token's own contract answers when it is asked as of a block; null where it does not know the question. */
export type TokenAnswer = {
  readonly address: Hex
  readonly block: number
  readonly multiplier: bigint | null
  readonly scheduled: { readonly to: bigint; readonly effectiveAt: bigint } | null
  readonly paused: readonly number[] | null
}

/**
 * The token with what its contract says. Mostly that is what is held, to the last digit. Where it is not, a log was
 * missed: then it is told, by the clock since no log says so and the list did not either. What a log said since every
 * block was read stands: whoever answers otherwise is a node that lags, whatever block it was asked about.
 */
export function withAnswer(
  token: Token,
  answer: TokenAnswer,
  rule: NavRule,
): { readonly after: Token; readonly drafts: readonly Draft[] } {
  const place: Place = { block: answer.block, logIndex: Number.MAX_SAFE_INTEGER }
  const factor = factorAnswered(token.factor, answer, place)
  const pauses = pausesAnswered(token, answer, place)
  const now = held({ ...token, factor, pauses }, rule)
  const moved = !sameDouble(token.multiplier, now.multiplier)
  return {
    after: now,
    drafts: [
      ...(moved ? [multiplierDraft(now, rule, { from: token.multiplier, effectiveAt: null, source: 'clock' })] : []),
      ...pauseDrafts(token, now, rule),
    ],
  }
}

function pausesAnswered({ pauses, factor }: Token, { paused }: TokenAnswer, place: Place): Pauses {
  if (paused === null) return pauses
  const features = pauses.changes
    .filter((change) => change.kind !== 'all' && isSince(change, factor.gap) && isBefore(change, place))
    .reduce(after, paused)
  if (features.join() === pausedAt(pauses, place).join()) return pauses
  return withPause(pauses, { ...place, key: null, kind: 'all', features })
}

/** Whether all blocks since then were read. */
const isSince = ({ block }: Place, gap: number | null): boolean => block > (gap ?? -1)

function factorAnswered(factor: Factor, { multiplier, scheduled }: TokenAnswer, place: Place): Factor {
  const said = factor.changes.findLast((change) => change.source !== 'list' && isBefore(change, place))
  if (multiplier === null || (said?.source === 'log' && isSince(said, factor.gap))) return factor
  const before = factorAt(factor, { ...place, timestamp: null })
  const common = { ...place, key: null, source: 'call', timestamp: null, matured: false } as const
  const answered = (change: Pick<FactorChange, 'phase' | 'to' | 'effectiveAt'>): FactorChange => ({
    ...common,
    from: null,
    ...change,
  })
  const value = multiplierText(multiplier)
  const isKnown = before.value === value && before.source !== 'list' && before.source !== null
  const known = isKnown ? factor : withWitness(factor, answered({ phase: 'effective', to: value, effectiveAt: null }))
  const planned = scheduled && { to: multiplierText(scheduled.to), effectiveAt: secondOf(scheduled.effectiveAt) }
  const { scheduled: held } = before
  if (planned?.to === held?.to && planned?.effectiveAt === held?.effectiveAt) return known
  return withWitness(
    known,
    answered(
      planned ? { phase: 'scheduled', ...planned } : { phase: 'cancelled', to: held?.to ?? null, effectiveAt: null },
    ),
  )
}

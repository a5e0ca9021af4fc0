import type { Hex } from '../protocol/parts.ts'
import type { Draft } from '../protocol/updates.ts'
import { type Factor, type FactorChange, factorAt, sameDouble, withWitness } from './factor.ts'
import type { NavRule } from './nav.ts'
import { pausedAt, withPause } from './pauses.ts'
import type { Place } from './place.ts'
import { held, type Token } from './token.ts'
import { multiplierDraft, pauseDrafts } from './told.ts'
import { multiplierText, secondOf } from './word.ts'

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
 * missed: then it is told, by the clock since no log says so and the list did not either.
 */
export function withAnswer(
  token: Token,
  answer: TokenAnswer,
  rule: NavRule,
): { readonly after: Token; readonly drafts: readonly Draft[] } {
  const place: Place = { block: answer.block, logIndex: Number.MAX_SAFE_INTEGER }
  const factor = factorAnswered(token.factor, answer, place)
  const missed = answer.paused && answer.paused.join() !== pausedAt(token.pauses, place).join()
  const pauses = missed
    ? withPause(token.pauses, { ...place, key: null, kind: 'all', features: answer.paused ?? [] })
    : token.pauses
  const after = held({ ...token, factor, pauses }, rule)
  const moved = !sameDouble(token.multiplier, after.multiplier)
  return {
    after,
    drafts: [
      ...(moved ? [multiplierDraft(after, rule, { from: token.multiplier, effectiveAt: null, source: 'clock' })] : []),
      ...pauseDrafts(token, after, rule),
    ],
  }
}

function factorAnswered(factor: Factor, { multiplier, scheduled }: TokenAnswer, place: Place): Factor {
  if (multiplier === null) return factor
  const before = factorAt(factor, { ...place, timestamp: null })
  const common = { ...place, key: null, source: 'call', timestamp: null, matured: false } as const
  const said = (change: Pick<FactorChange, 'phase' | 'to' | 'effectiveAt'>): FactorChange => ({
    ...common,
    from: null,
    ...change,
  })
  const value = multiplierText(multiplier)
  const isKnown = before.value === value && before.source !== 'list' && before.source !== null
  const known = isKnown ? factor : withWitness(factor, said({ phase: 'effective', to: value, effectiveAt: null }))
  const planned = scheduled && { to: multiplierText(scheduled.to), effectiveAt: secondOf(scheduled.effectiveAt) }
  const { scheduled: held } = before
  if (planned?.to === held?.to && planned?.effectiveAt === held?.effectiveAt) return known
  return withWitness(
    known,
    said(
      planned ? { phase: 'scheduled', ...planned } : { phase: 'cancelled', to: held?.to ?? null, effectiveAt: null },
    ),
  )
}

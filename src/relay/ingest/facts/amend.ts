import type { Hex } from '../../../lib/hex.ts'
import type { Moment } from '../batch-values.ts'
import type { IngestState } from '../ingest-state.ts'
import { type Publication, UNPLACED } from '../publication.ts'
import { changedFields, type FactDraft, type PublishedFact, replaceDraft } from './fact.ts'
import { correctMultiplier } from './make-fact.ts'

export function amend(state: IngestState, published: PublishedFact, fact: FactDraft, moment: Moment): Publication {
  return amendment(state, published, replaceDraft(published, fact), moment)
}

/** Returns the `amend` of a published fact, whose content was `before`. */
export function amendment({ tokens }: IngestState, published: PublishedFact, before: FactDraft, moment: Moment): Publication {
  const { address, key } = before
  const { time: _time, ...update } = published.draft
  return {
    draft: {
      type: 'amend',
      symbol: tokens.get(address)?.symbol ?? before.symbol,
      address,
      time: moment.time,
      key,
      fact_type: before.type,
      fact_id: UNPLACED,
      changed: changedFields(before, update),
      update,
    },
    fact: published,
  }
}

/** Amends the facts of a token that were published with another multiplier than the one in effect at their chain position. */
export function correctMultipliers(
  state: IngestState,
  address: Hex,
  moment: Moment,
  isAffected: (published: PublishedFact) => boolean = () => true,
): readonly Publication[] {
  const token = state.tokens.get(address)
  if (!token) return []
  return state.ledger.factsOf(address).flatMap(({ published, sealed }) => {
    const before = published.draft
    if (!('shares' in before) || !isAffected(published)) return []
    // The block that has sealed it was replaced, and the new one is not read for it yet.
    if (published.sealedIn !== null && !sealed) return []
    const block = sealed ? { ...sealed, timestamp: sealed.timestamp ?? before.block.timestamp } : { ...before.block, hash: null }
    const tx = { ...before.tx, index: published.txIndex }
    const stage = sealed ? 'sealed' : 'preconfirmed'
    const fact = correctMultiplier({ ...before, stage, block, tx, time: moment.time }, token, state.chainTime)
    return fact ? [amend(state, published, fact, moment)] : []
  })
}

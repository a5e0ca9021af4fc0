import { formatPosition } from '../../protocol/position.ts'
import type { Draft, DraftOf } from '../../protocol/updates.ts'
import type { PublishedFact } from './facts/fact.ts'

/** An update to publish, and the fact that it publishes, amends or retracts. `fact` is null for any other update. */
export type Publication = { readonly draft: Draft; readonly fact: PublishedFact | null }

export const NOTHING: readonly Publication[] = []

export const withoutFacts = (drafts: readonly Draft[]): readonly Publication[] => drafts.map((draft) => ({ draft, fact: null }))

/** Appends publications one by one: a single `push` with thousands of arguments would overflow the stack. */
export function addAll(publications: Publication[], more: readonly Publication[]): void {
  for (const publication of more) publications.push(publication)
}

/** The `fact_id` of a retract or amend until `place` sets it. */
export const UNPLACED = ''

/** Gives an update the number `seq`. The `fact_id` of an amend or retract is the position of the fact's previous update. */
export function place({ draft, fact }: Publication, seq: number, epoch: string): Draft {
  if (!fact) return draft
  const placed: Draft = 'fact_id' in draft ? { ...draft, fact_id: formatPosition(epoch, fact.seq) } : draft
  fact.seq = seq
  return placed
}

export const forAllTokens = (draft: DraftForAll, time: string): Publication => {
  const { type, ...rest } = draft
  return { draft: { type, symbol: '*', address: null, time, ...rest } as Draft, fact: null }
}
type DraftForAll = {
  [Type in 'status' | 'hole' | 'finality' | 'session']: Omit<DraftOf<Type>, 'symbol' | 'address' | 'time'>
}['status' | 'hole' | 'finality' | 'session']

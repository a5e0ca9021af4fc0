import { formatPosition } from '../../protocol/position.ts'
import type { Draft, DraftOf } from '../../protocol/updates.ts'
import type { PublishedFact } from './facts/fact.ts'

/** An update to publish, and the fact that it publishes, amends or retracts; null without one. */
export type Publication = { readonly draft: Draft; readonly fact: PublishedFact | null }

export const NOTHING: readonly Publication[] = []

export const withoutFacts = (drafts: readonly Draft[]): readonly Publication[] => drafts.map((draft) => ({ draft, fact: null }))

/** Appends publications one by one: spread into one `push`, thousands of them overflow the stack. */
export function addAll(publications: Publication[], more: readonly Publication[]): void {
  for (const publication of more) publications.push(publication)
}

/** The `fact_id` of a retract or amend until the update is placed on the tape. */
export const UNPLACED = ''

/** Gives an update its number on the tape. An amend or retract names the number that its fact had before. */
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

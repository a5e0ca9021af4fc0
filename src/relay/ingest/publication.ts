import { formatPosition } from '../../protocol/position.ts'
import type { Draft, DraftOf } from '../../protocol/updates.ts'
import type { PublishedFact } from './facts/fact.ts'

/** An update to publish, and the on-chain fact that it publishes, amends or retracts. */
export type Publication = { readonly draft: Draft; readonly fact: PublishedFact | null }

export const NOTHING: readonly Publication[] = []

/** Updates that concern no on-chain fact. */
export const withoutFacts = (drafts: readonly Draft[]): readonly Publication[] => drafts.map((draft) => ({ draft, fact: null }))

/** Appends publications, which may be more than the stack has room for as arguments of one `push`. */
export function addAll(publications: Publication[], more: readonly Publication[]): void {
  for (const publication of more) publications.push(publication)
}

/** The `fact_id` of a retract or amend until the update is placed on the tape. */
export const UNPLACED = ''

/** Gives an update its number on the tape. Only then it is known which position an amendment or retraction names. */
export function place({ draft, fact }: Publication, seq: number, epoch: string): Draft {
  if (!fact) return draft
  const placed: Draft = 'fact_id' in draft ? { ...draft, fact_id: formatPosition(epoch, fact.seq) } : draft
  fact.seq = seq
  return placed
}

/** An update that concerns all tokens. */
export const forAllTokens = (draft: DraftForAll, time: string): Publication => {
  const { type, ...rest } = draft
  return { draft: { type, symbol: '*', address: null, time, ...rest } as Draft, fact: null }
}
type DraftForAll = {
  [Type in 'status' | 'hole' | 'finality' | 'session']: Omit<DraftOf<Type>, 'symbol' | 'address' | 'time'>
}['status' | 'hole' | 'finality' | 'session']

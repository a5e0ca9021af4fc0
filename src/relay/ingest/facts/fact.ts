import { type Draft, type DraftOf, type FactType, factRows, type UpdateType } from '../../../protocol/updates.ts'

type KeyedDraft<Type extends UpdateType> = DraftOf<Type> & {
  readonly [Name in 'key' | 'stage' | 'late' | 'block' | 'tx']: DraftOf<'transfer'>[Name]
}
/** An update that publishes one fact. An update with `source` `list` or `clock` has no key: it publishes no fact. */
export type FactDraft = { [Type in FactType]: KeyedDraft<Type> }[FactType]

export type PublishedFact = {
  draft: FactDraft
  /** Index of the transaction in its block. The key omits it, because it changes when an earlier transaction leaves the block. */
  txIndex: number
  state: 'open' | 'sealed'
  /** Number of the update that published or last amended the fact; 0 until the tape has given it. */
  seq: number
}

/** Replaces the content of a published fact. Returns the former content. */
export function replaceDraft(published: PublishedFact, fact: FactDraft): FactDraft {
  const before = published.draft
  published.draft = { ...fact, late: before.late }
  published.txIndex = fact.tx.index
  return before
}

export const isFact = (draft: Draft): draft is FactDraft => draft.type in factRows && 'key' in draft && draft.key !== undefined

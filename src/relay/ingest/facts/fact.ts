import type { Hex } from '../../../lib/hex.ts'
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
  /** Hash of the block whose last seal lists it; null before the first one. */
  sealedIn: Hex | null
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

/** The contract that emitted the log of a fact. */
export const contractOf = (fact: FactDraft): Hex => (fact.type === 'trade' ? fact.venue.pool : fact.address)

export const isFact = (draft: Draft): draft is FactDraft => draft.type in factRows && 'key' in draft && draft.key !== undefined

/** Whether two facts have the same content. Their log indexes in the transaction may differ. */
export function isSameContent(a: FactDraft, b: FactDraft): boolean {
  if (a.type !== b.type || a.address !== b.address) return false
  if ('memo' in a && 'memo' in b) return a.raw === b.raw && a.from === b.from && a.to === b.to && a.memo === b.memo
  if (a.type === 'approval' && b.type === 'approval') return a.raw === b.raw && a.owner === b.owner && a.spender === b.spender
  return contentOf(a) === contentOf(b)
}

export const contentOf = (fact: FactDraft): string => {
  const values = factRows[fact.type].content.map((name): unknown => Reflect.get(fact, name))
  const more = fact.type === 'token' ? fact.changed.map((name) => fact.token[name]) : fact.type === 'trade' ? [fact.venue.pool] : []
  return JSON.stringify([fact.type, fact.address, ...values, ...more])
}

/** Whether two facts with the same content also agree in the fields that depend on other logs. If not, `amend` publishes them. */
export function hasSameDetail(a: FactDraft, b: FactDraft): boolean {
  // After other swaps, a swap of these amounts leaves another price of the pool.
  if (a.type === 'trade' && b.type === 'trade' && (a.pool_price !== b.pool_price || a.venue.fee_bps !== b.venue.fee_bps))
    return false
  if ('shares' in a && 'shares' in b) return a.multiplier === b.multiplier && a.shares === b.shares
  if (a.type === 'multiplier' && b.type === 'multiplier') return a.previous === b.previous
  return a.type !== 'action' || b.type !== 'action' || a.keys.join() === b.keys.join()
}

const volatileFields: ReadonlySet<string> = new Set(['id', 'prev', 'time', 'stage', 'late', 'nav', 'block', 'ingest', 'symbol'])

export function changedFields(before: object, now: object): string[] {
  const [old, current] = [new Map(Object.entries(before)), new Map(Object.entries(now))]
  const names = new Set([...old.keys(), ...current.keys()])
  const differs = (a: unknown, b: unknown) => a !== b && JSON.stringify(a) !== JSON.stringify(b)
  return [...names].filter((name) => !volatileFields.has(name) && differs(old.get(name), current.get(name)))
}

import type { Hex } from '../protocol/fields.ts'
import type { Draft, DraftOf, UpdateType } from '../protocol/updates.ts'

/** The fields that come from the log alone: no source, time, block or NAV. */
const contentFields = {
  transfer: ['from', 'to', 'raw', 'memo'],
  mint: ['from', 'to', 'raw', 'memo'],
  burn: ['from', 'to', 'raw', 'memo'],
  seize: ['from', 'to', 'raw', 'memo'],
  approval: ['owner', 'spender', 'raw'],
  multiplier: ['phase', 'to', 'effective_at'],
  pause: ['change', 'feature_ids'],
  action: ['action_id', 'description', 'uri'],
  token: ['changed'],
  log: ['topics', 'data'],
} as const satisfies Partial<Record<UpdateType, readonly string[]>>

/** Types of updates that publish one on-chain fact. */
export type FactType = keyof typeof contentFields

type KeyedDraft<Type extends UpdateType> = DraftOf<Type> & {
  readonly [Name in 'key' | 'stage' | 'late' | 'block' | 'tx']: DraftOf<'transfer'>[Name]
}
/** An update that publishes one on-chain fact. Of some types only those that come from a log, not from the list or clock. */
export type FactDraft = { [Type in FactType]: KeyedDraft<Type> }[FactType]

const isFactType = (type: UpdateType): type is FactType => type in contentFields
export const isFact = (draft: Draft): draft is FactDraft => isFactType(draft.type) && 'key' in draft && draft.key !== undefined

/** The same on-chain content gives the same text, at any log index of its transaction. */
export const contentOf = (fact: FactDraft): string => {
  const fields = new Map<string, unknown>(Object.entries(fact))
  const values = contentFields[fact.type].map((name) => fields.get(name))
  const record = fact.type === 'token' ? fact.changed.map((name) => fact.token[name]) : []
  return JSON.stringify([fact.type, fact.address, ...values, ...record])
}

/** What a fact derives from other logs, such as its multiplier. If it changes, the fact is amended. */
export const detailOf = (fact: FactDraft): string | null => {
  if ('shares' in fact) return JSON.stringify([fact.multiplier, fact.shares])
  if (fact.type === 'multiplier') return fact.from
  return fact.type === 'action' ? fact.keys.join() : null
}

/** Fields that may differ between two updates of the same fact. */
const volatileFields: ReadonlySet<string> = new Set(['id', 'prev', 'time', 'stage', 'late', 'nav', 'block', 'ingest', 'symbol'])

/** The names of the fields in which two updates of a key differ. */
export function changedFields(before: object, now: object): string[] {
  const [old, current] = [new Map(Object.entries(before)), new Map(Object.entries(now))]
  const names = new Set([...old.keys(), ...current.keys()])
  return [...names].filter(
    (name) => !volatileFields.has(name) && JSON.stringify(old.get(name)) !== JSON.stringify(current.get(name)),
  )
}

export type FactLocation = {
  readonly key: string
  readonly address: Hex
  readonly tx: Hex
  /** No part of the key: the key stays when an earlier transaction leaves the block. */
  readonly txIndex: number
  readonly logIndex: number
}

export const factLocation = (fact: Pick<FactDraft, 'key' | 'address' | 'tx'>): FactLocation => ({
  key: fact.key,
  address: fact.address,
  tx: fact.tx.hash,
  txIndex: fact.tx.index,
  logIndex: fact.tx.log_index,
})

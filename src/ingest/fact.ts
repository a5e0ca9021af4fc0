import type { Hex } from '../protocol/fields.ts'
import type { Draft, DraftOf, UpdateType } from '../protocol/updates.ts'

/** What a message says of the chain alone: not who carried it, when, in which block or at what NAV. */
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

/** Types of which a message tells one on-chain fact. */
export type FactType = keyof typeof contentFields

type KeyedDraft<Type extends UpdateType> = DraftOf<Type> & {
  readonly [Name in 'key' | 'stage' | 'late' | 'block' | 'tx']: DraftOf<'transfer'>[Name]
}
/** A message that tells one on-chain fact: of some types, those that a log and not the list or the clock has said. */
export type FactDraft = { [Type in FactType]: KeyedDraft<Type> }[FactType]

const isFactType = (type: UpdateType): type is FactType => type in contentFields
export const isFact = (draft: Draft): draft is FactDraft =>
  isFactType(draft.type) && 'key' in draft && draft.key !== undefined

/** The same on-chain content reads the same, wherever in its transaction it stands. */
export const contentOf = (fact: FactDraft): string => {
  const fields = new Map<string, unknown>(Object.entries(fact))
  const values = contentFields[fact.type].map((name) => fields.get(name))
  const record = fact.type === 'token' ? fact.changed.map((name) => fact.token[name]) : []
  return JSON.stringify([fact.type, fact.address, ...values, ...record])
}

/** What else must be right under a key, and follows from what the chain said elsewhere. */
export const detailOf = (fact: FactDraft): string | null => {
  if ('shares' in fact) return JSON.stringify([fact.multiplier, fact.shares])
  if (fact.type === 'multiplier') return fact.from
  return fact.type === 'action' ? fact.keys.join() : null
}

/** Fields that differ from one telling of a fact to the next although the fact is the same. */
const volatileFields: ReadonlySet<string> = new Set([
  'id',
  'prev',
  'time',
  'stage',
  'late',
  'nav',
  'block',
  'ingest',
  'symbol',
])

/** The names of the fields in which two messages of the same key differ. */
export function changedFields(before: object, now: object): string[] {
  const [old, fresh] = [new Map(Object.entries(before)), new Map(Object.entries(now))]
  const names = new Set([...old.keys(), ...fresh.keys()])
  return [...names].filter(
    (name) => !volatileFields.has(name) && JSON.stringify(old.get(name)) !== JSON.stringify(fresh.get(name)),
  )
}

/** Where a fact stands: its transaction, and its place in the block. */
export type FactLocation = {
  readonly key: string
  readonly address: Hex
  readonly tx: Hex
  /** Its transaction's place in the block: no part of the key, so another may fall out before it and it stays. */
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

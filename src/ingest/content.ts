import type { Hex } from '../protocol/parts.ts'
import type { Draft, UpdateType } from '../protocol/updates.ts'

/** What a message says of the chain alone: not who carried it, when, in which block or at what NAV. */
const said: Partial<Record<UpdateType, readonly string[]>> = {
  transfer: ['from', 'to', 'raw', 'memo'],
  mint: ['from', 'to', 'raw', 'memo'],
  burn: ['from', 'to', 'raw', 'memo'],
  seize: ['from', 'to', 'raw', 'memo'],
  approval: ['owner', 'spender', 'raw'],
  log: ['topics', 'data'],
}

/** Types of which a message tells one on-chain fact. */
export type FactType = 'transfer' | 'mint' | 'burn' | 'seize' | 'approval' | 'log'
/** A message that tells one on-chain fact. */
export type FactDraft = Extract<Draft, { type: FactType }>

export const isFact = (draft: Draft): draft is FactDraft => draft.type in said

/** The same on-chain content reads the same, wherever in its transaction it stands. */
export const contentOf = (fact: FactDraft | Omit<FactDraft, 'time'>): string => {
  const fields = new Map<string, unknown>(Object.entries(fact))
  return JSON.stringify([fact.type, fact.address, ...(said[fact.type] ?? []).map((name) => fields.get(name))])
}

/** Fields that differ from one telling of a fact to the next although the fact is the same. */
const passing: ReadonlySet<string> = new Set([
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
    (name) => !passing.has(name) && JSON.stringify(old.get(name)) !== JSON.stringify(fresh.get(name)),
  )
}

/** Where a fact stands: its transaction, and its place in the block. */
export type Place = { readonly key: string; readonly address: Hex; readonly tx: Hex; readonly logIndex: number }

export const placeOf = (fact: Pick<FactDraft, 'key' | 'address' | 'tx'>): Place => ({
  key: fact.key,
  address: fact.address,
  tx: fact.tx.hash,
  logIndex: fact.tx.log_index,
})

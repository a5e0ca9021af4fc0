import { createHash } from 'node:crypto'
import type { Hex } from '../../../../src/lib/hex.ts'
import { formatKey } from '../../../../src/protocol/fields.ts'
import type { DraftOf } from '../../../../src/protocol/updates.ts'
import { apple, approval, transfer } from '../tape/update-drafts.ts'

/** Drafts of updates about facts, built by hand, so that a test can also build what ingest never writes. */

export const at = 1_000_000

/** A fact by its token, block and index. */
export type FactPosition = { readonly address?: Hex; readonly block?: number; readonly index?: number }

type FactDraft = DraftOf<'transfer' | 'seize' | 'approval' | 'pause'>
type AmendContent = DraftOf<'amend'>['update']
type TransferChange = Partial<Pick<DraftOf<'transfer'>, 'reference_value' | 'shares' | 'from' | 'to' | 'memo'>>

const hash = (text: string): Hex => `0x${createHash('sha256').update(text).digest('hex')}`

const positionOf = ({ block = 7, index = 0, address = apple }: FactPosition) => {
  const tx = hash(`${address} ${index}`)
  return {
    key: formatKey(block, tx, index),
    block: { number: block, hash: null, timestamp: null },
    tx: { hash: tx, index, log_index: index },
  }
}

const keyOf = (fact: FactPosition): string => positionOf(fact).key
const blockHash = (block: number, fork = 0): Hex => hash(`${block} ${fork}`)

export const transferAt = (fact: FactPosition, change: TransferChange = {}): DraftOf<'transfer'> => ({
  ...transfer({ at, ...fact }),
  ...positionOf(fact),
  ...change,
})
export const approvalAt = (fact: FactPosition): DraftOf<'approval'> => ({ ...approval({ at, ...fact }), ...positionOf(fact) })
export const pauseAt = (fact: FactPosition): DraftOf<'pause'> => {
  const { symbol, address, time } = approval({ at, ...fact })
  const { key, block, tx } = positionOf(fact)
  return {
    ...{ type: 'pause', symbol, address, time, change: 'paused' },
    ...{ features: ['TRANSFER'], feature_ids: [0], paused: ['TRANSFER'] },
    ...{ source: 'log', key, stage: 'preconfirmed', late: false, block, tx },
  }
}

/** The same fact, published as already sealed. */
export const sealedAt = <Draft extends FactDraft>(draft: Draft, fork = 0): Draft => ({
  ...draft,
  stage: 'sealed',
  block: { number: numberOf(draft), hash: blockHash(numberOf(draft), fork), timestamp: null },
})

const numberOf = (draft: FactDraft): number => Number(draft.key?.split('-')[0])

/** An amend of a fact; `update` is its new content. */
export function amendOf(fact: FactDraft, update: FactDraft): DraftOf<'amend'> {
  const { symbol, address, time, key = '' } = fact
  const { time: _, ...content } = update
  const amended: AmendContent = content
  const common = { symbol, address, time, key, fact_type: fact.type }
  return { type: 'amend', ...common, fact_id: 'k.1', changed: ['memo'], update: amended }
}

export function retractOf(draft: FactDraft, reason: DraftOf<'retract'>['reason'] = 'not_sealed'): DraftOf<'retract'> {
  const { symbol, address, time, key = '', type } = draft
  const block = { number: numberOf(draft), hash: blockHash(numberOf(draft)), timestamp: null }
  return {
    ...{ type: 'retract', symbol, address, time, key, fact_type: type, fact_id: 'k.1' },
    ...{ reason, replaced_by: null, restored: null, block },
  }
}

/** Seals a block of one token with these contents, in log order. A bare position stands for a log folded into another. */
export function sealOf(
  contents: readonly (FactDraft | FactPosition)[],
  block = 7,
  fork = 0,
  address: Hex = apple,
): DraftOf<'seal'> {
  const { symbol, time } = approval({ at, address })
  const keys = contents.map((content) => ('type' in content ? (content.key ?? '') : keyOf({ address, block, ...content })))
  const types = contents.map((content) => ('type' in content ? content.type : 'part'))
  const digest = createHash('sha256').update(keys.join('\n')).digest('hex').slice(0, 32)
  const sealed = { number: block, hash: blockHash(block, fork), timestamp: null }
  return { type: 'seal', symbol, address, time, block: sealed, keys, types, late_keys: [], count: keys.length, digest }
}

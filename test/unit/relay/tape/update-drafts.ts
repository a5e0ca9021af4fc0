import type { Hex } from '../../../../src/lib/hex.ts'
import type { Draft, DraftOf } from '../../../../src/protocol/updates.ts'
import { tokenNotes } from '../../../../src/relay/notes/published-notes.ts'
import { Notes } from '../../../../src/relay/tape/notes.ts'

/** Drafts of every kind that a tape treats differently, each as short as the contract allows. */

export const apple: Hex = `0x${'aa'.repeat(20)}`
export const tesla: Hex = `0x${'7e'.repeat(20)}`

const word = (digit: string): Hex => `0x${digit.repeat(64)}`
const hash = (number: number): Hex => `0x${number.toString(16).padStart(64, '0')}`

type Seal = DraftOf<'seal'>
type DraftFields = { readonly address?: Hex; readonly at: number; readonly nth?: number }

const commonFields = ({ address = apple, at }: DraftFields) => ({
  symbol: address === apple ? 'AAPLc' : 'TSLAc',
  address,
  time: new Date(at).toISOString(),
})

const factFields = (nth: number) => ({ key: `${nth}-${hash(nth)}-0`, stage: 'preconfirmed' as const, late: false })

const positionFields = (nth: number) => ({
  block: { number: nth, hash: null, timestamp: null },
  tx: { hash: hash(nth), index: 0, log_index: 0 },
})

const nav = { price: '231.5', updated_at: null, age_s: null, state: 'fresh' as const, stale_after_s: 93_600, frozen: null }

const ingest = { source: 'poll' as const, received_at: '2026-11-20T12:00:00.000Z', published_at: '2026-11-20T12:00:00.000Z' }

export const transfer = ({ nth = 1, ...about }: DraftFields): DraftOf<'transfer'> => ({
  ...{ type: 'transfer', ...commonFields(about), ...factFields(nth), from: tesla, to: apple, raw: '150000000' },
  ...{ amount: '1.5', multiplier: '1', shares: '1.5', reference_value: '347.25', nav, memo: null },
  ...positionFields(nth),
  ingest,
})

export const approval = ({ nth = 1, ...about }: DraftFields): DraftOf<'approval'> => ({
  ...{ type: 'approval', ...commonFields(about), ...factFields(nth), owner: tesla, spender: apple, raw: '1' },
  ...{ amount: '0.00000001', ...positionFields(nth), ingest },
})

export const otherLog = ({ nth = 1, ...about }: DraftFields): DraftOf<'log'> => ({
  ...{ type: 'log', ...commonFields(about), ...factFields(nth), topics: [word('1')], data: '0x' },
  ...positionFields(nth),
})

export const seal = ({ nth = 1, types = [], ...about }: DraftFields & Pick<Partial<Seal>, 'types'>): Seal => ({
  ...{ type: 'seal', ...commonFields(about), block: { number: nth, hash: hash(nth), timestamp: null } },
  ...{ keys: types.map(() => factFields(nth).key), types, late_keys: [], count: types.length, digest: '0'.repeat(32) },
})

export const retract = ({ nth = 1, ...about }: DraftFields): DraftOf<'retract'> => ({
  ...{ type: 'retract', ...commonFields(about), key: factFields(nth).key, fact_type: 'transfer', fact_id: 'k.1' },
  ...{ reason: 'not_sealed', replaced_by: null, restored: null, block: { number: nth, hash: hash(nth), timestamp: null } },
})

export const amend = ({ nth = 1, ...about }: DraftFields): DraftOf<'amend'> => {
  const { time: _, ...update } = transfer({ nth, ...about })
  const { key } = update
  return { type: 'amend', ...commonFields(about), key, fact_type: 'transfer', fact_id: 'k.1', changed: ['memo'], update }
}

/** A corporate action, which eviction by count spares. */
export const pause = ({ nth = 1, ...about }: DraftFields): DraftOf<'pause'> => ({
  ...{ type: 'pause', ...commonFields(about), change: 'paused', features: ['TRANSFER'] },
  ...{ feature_ids: [0], paused: ['TRANSFER'], source: 'log' },
  ...factFields(nth),
  ...positionFields(nth),
})

export const navChange = (fields: DraftFields): DraftOf<'nav'> => ({
  ...{ type: 'nav', ...commonFields(fields), nav, before: null, source: 'list' },
})

export const status = ({ at }: DraftFields): DraftOf<'status'> => ({
  ...{ type: 'status', symbol: '*', address: null, time: new Date(at).toISOString(), source: 'poll' },
  ...{ started_at: new Date(at).toISOString(), reason: 'ok', head: { pending: null, sealed: null, safe: null, finalized: null } },
})

export const token = (fields: DraftFields): DraftOf<'token'> => ({
  ...{ type: 'token', ...commonFields(fields), change: 'listed', changed: [], token: { symbol: 'AAPLc' } },
  ...{ before: null, source: 'list' },
})

export const oneOfEach = (fields: DraftFields): readonly Draft[] =>
  [transfer, approval, otherLog, seal, navChange, token, status].map((make) => make(fields))

/** The notes of tokens that have only the fields that a test reads, and a record. */
export const notesOfTokens = <Token extends { readonly address: Hex }>(tokens: Iterable<Token>): Notes => {
  const notes = new Notes()
  for (const token of tokens) notes.set<unknown>(tokenNotes.at(token.address), { record: {}, ...token })
  return notes
}

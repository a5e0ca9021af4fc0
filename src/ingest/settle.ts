import { createHash } from 'node:crypto'
import type { SealedBlock } from '../chain/sealed/block-logs.ts'
import type { Block, Hex } from '../protocol/fields.ts'
import type { DraftOf } from '../protocol/updates.ts'
import { changedFields, type FactDraft } from './fact.ts'
import type { Settling, Told } from './ledger.ts'

/** A digest of a block's keys is this long: enough to notice a difference, short enough to read out. */
const DIGEST_BYTES = 16

/** What messages that follow a key have in common. */
type Setting = {
  readonly time: string
  /** A token's symbol now, or as it was when it was told. */
  readonly symbolOf: (address: Hex, before: string) => string
  /** The position of a message by its number. */
  readonly position: (seq: number) => string
  /** What holds again of a token where something that was told of it is not so. */
  readonly now: (told: Told) => unknown
}

/** The same for what a sealed block brings. */
type Sealing = Setting & { readonly block: Block }

export const placeOfBlock = ({
  number,
  hash,
  timestamp,
}: Pick<SealedBlock, 'number' | 'hash' | 'timestamp'>): Block => ({
  number,
  hash,
  timestamp: timestamp === null ? null : new Date(timestamp * 1_000).toISOString(),
})

/** What was told is not so. */
export function retractOf(
  { told, reason, by }: Settling['retractions'][number],
  { block, time, symbolOf, position, now }: Sealing,
): DraftOf<'retract'> {
  const { address, key } = told
  const symbol = symbolOf(address, told.symbol)
  const was = position(told.seq)
  return { type: 'retract', symbol, address, time, key, of: told.type, was, reason, by, now: now(told), block }
}

/** The same key, other content: the whole new message, and in what it differs from the one before. */
export function amendOf(
  { told, of, before, fact }: { told: Told; of: Told['type']; before: object | null; fact: FactDraft },
  { time, symbolOf, position }: Setting,
): DraftOf<'amend'> {
  const { time: _time, ...update } = fact
  const { address, key } = told
  return {
    type: 'amend',
    symbol: symbolOf(address, told.symbol),
    address,
    time,
    key,
    of,
    was: position(told.seq),
    changed: before ? changedFields(before, update) : ['type'],
    update,
  }
}

/** A block holds these logs of a token. */
export function sealOf(
  { address, symbol, logs }: Settling['seals'][number],
  late: ReadonlySet<string>,
  { block, time, symbolOf }: Sealing,
): DraftOf<'seal'> {
  const keys = logs.map(({ key }) => key)
  return {
    type: 'seal',
    symbol: symbolOf(address, symbol ?? address),
    address,
    time,
    block,
    keys,
    types: logs.map(({ type }) => type),
    late: keys.filter((key) => late.has(key)),
    count: keys.length,
    digest: createHash('sha256')
      .update(keys.join('\n'))
      .digest('hex')
      .slice(0, 2 * DIGEST_BYTES),
  }
}

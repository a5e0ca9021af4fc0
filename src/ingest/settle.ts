import { createHash } from 'node:crypto'
import type { SealedBlock } from '../chain/sealed/block-logs.ts'
import type { Block, Hex } from '../protocol/fields.ts'
import type { DraftOf } from '../protocol/updates.ts'
import { changedFields, type FactDraft } from './fact.ts'
import type { PublishedFact, Settlement } from './ledger.ts'

/** A digest of a block's keys is this long: enough to notice a difference, short enough to read out. */
const DIGEST_BYTES = 16

/** What messages that follow a key have in common. */
type MessageContext = {
  readonly time: string
  /** A token's symbol now, or as it was when it was told. */
  readonly symbolOf: (address: Hex, before: string) => string
  /** The position of a message by its number. */
  readonly positionOf: (seq: number) => string
  /** What holds again of a token where something that was told of it is not so. */
  readonly currentValue: (published: PublishedFact) => DraftOf<'retract'>['now']
}

/** The same for what a sealed block brings. */
type BlockMessageContext = MessageContext & { readonly block: Block }

export const blockFieldOf = ({
  number,
  hash,
  timestamp,
}: Pick<SealedBlock, 'number' | 'hash' | 'timestamp'>): Block => ({
  number,
  hash,
  timestamp: timestamp === null ? null : new Date(timestamp * 1_000).toISOString(),
})

/** What was told is not so. */
export function retractDraft(
  { published, reason, by }: Settlement['retractions'][number],
  { block, time, symbolOf, positionOf, currentValue }: BlockMessageContext,
): DraftOf<'retract'> {
  const { address, key } = published
  const symbol = symbolOf(address, published.symbol)
  const was = positionOf(published.seq)
  return {
    type: 'retract',
    symbol,
    address,
    time,
    key,
    of: published.type,
    was,
    reason,
    by,
    now: currentValue(published),
    block,
  }
}

/** The same key, other content: the whole new message, and in what it differs from the one before. */
export function amendDraft(
  {
    told,
    of,
    before,
    fact,
  }: { told: PublishedFact; of: PublishedFact['type']; before: object | null; fact: FactDraft },
  { time, symbolOf, positionOf }: MessageContext,
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
    was: positionOf(told.seq),
    changed: before ? changedFields(before, update) : ['type'],
    update,
  }
}

/** A block holds these logs of a token. */
export function sealDraft(
  { address, symbol, logs }: Settlement['seals'][number],
  lateKeys: ReadonlySet<string>,
  { block, time, symbolOf }: BlockMessageContext,
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
    late_keys: keys.filter((key) => lateKeys.has(key)),
    count: keys.length,
    digest: createHash('sha256')
      .update(keys.join('\n'))
      .digest('hex')
      .slice(0, 2 * DIGEST_BYTES),
  }
}

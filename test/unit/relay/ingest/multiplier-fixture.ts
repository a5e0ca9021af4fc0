import type { Update } from '../../../../src/protocol/updates.ts'
import type { Log } from '../../../../src/relay/chain/logs/log-parser.ts'
import { timestampOf, txHash } from '../chain/node-json.ts'
import { apple } from '../tokens/stock-records.ts'
import { listEvent, openIngest, statusEvent, subscribedEvent } from './reducer-fixture.ts'
import { multiplierUpdated, transfer, uiMultiplierUpdated } from './token-logs.ts'

/** A transfer of one token: its shares are its multiplier. */
export const moved = (block: number, index = 0): Log => transfer({ block, index }, 100_000_000n)
/** A change that takes effect with the time of its own block, or of a later one. */
export const changed = (block: number, from: string, to: string, { index = 0, due = block } = {}): Log =>
  uiMultiplierUpdated({ block, index, tx: txHash(block, index) }, from, to, timestampOf(due))
/** An immediate two-for-one split: the old event first, then the new one, as the token emits them. */
export const splitLogs = (block: number, index: number): readonly [Log, Log] => {
  const tx = txHash(block, index)
  return [
    multiplierUpdated({ block, index, tx }, '2'),
    uiMultiplierUpdated({ block, index: index + 1, tx }, '1', '2', timestampOf(block)),
  ]
}
export const isoTime = (second: number) => new Date(second * 1_000).toISOString()

const shortKey = (key: string): string => key.replace(/-0x[0-9a-f]+-/, '/')
/** The shares of one token are its multiplier, and are not told. */
const sharesBeside = ({ shares, multiplier }: { shares: string | null; multiplier: string | null }) =>
  shares === multiplier ? '' : ` = ${shares}`
const tell = (update: Update): string => {
  const late = 'late' in update && update.late ? ' late' : ''
  switch (update.type) {
    case 'transfer':
      return `${update.stage} ${shortKey(update.key)} x ${update.multiplier}${sharesBeside(update)}${late}`
    case 'multiplier':
      return `${update.phase} ${update.previous} to ${update.multiplier} by ${update.source}${late}`
    case 'retract': {
      const { restored } = update
      return `retract ${shortKey(update.key)} ${update.reason}${restored && 'multiplier' in restored ? `, now ${restored.multiplier}` : ''}`
    }
    case 'amend': {
      const { update: fact } = update
      return 'shares' in fact
        ? `amend ${shortKey(update.key)} ${fact.stage} x ${fact.multiplier}${sharesBeside(fact)}`
        : `amend ${shortKey(update.key)} ${update.changed.join()}`
    }
    case 'seal':
      return `seal ${update.keys.map(shortKey).join()}`
    case 'pause':
      return `${update.change} ${update.feature_ids.join()}, now ${update.paused.join()}`
    default:
      return update.type
  }
}

/** A reducer with a token of multiplier 1 that is listed, and then subscribed. */
export const openListed = (source: 'pendingLogs' | 'poll' | 'sealed' = 'pendingLogs', record = apple()) =>
  openIngest(tell, { first: [listEvent(record), subscribedEvent, statusEvent(source)] })

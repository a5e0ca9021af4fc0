import { expect, onTestFinished } from 'vitest'
import { Update } from '../../../../src/protocol/updates.ts'
import type { Log } from '../../../../src/relay/chain/logs/log-parser.ts'
import type { IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import type { Entry } from '../../../../src/relay/tape/tape.ts'
import { timestampOf, txHash } from '../chain/node-json.ts'
import { openTestTape } from '../tape/test-tape.ts'
import { apple } from '../tokens/stock-records.ts'
import { listEvent, openReducer, statusEvent, subscribedEvent } from './reducer-fixture.ts'
import { multiplierUpdated, uiMultiplierUpdated } from './token-logs.ts'

export const positionAt = (block: number, index: number) => ({ block, index })
/** An immediate two-for-one split: the old event first, then the new one, as the token emits them. */
export const splitLogs = (block: number, index: number): readonly [Log, Log] => {
  const tx = txHash(block, index)
  return [
    multiplierUpdated({ block, index, tx }, '2'),
    uiMultiplierUpdated({ block, index: index + 1, tx }, '1', '2', timestampOf(block)),
  ]
}
export const isoTime = (second: number) => new Date(second * 1_000).toISOString()

/** Checks an update against the contract and summarises it. */
export const summarise = ({ update, text }: Entry): string => {
  expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
  switch (update.type) {
    case 'transfer':
      return `${update.stage} ${shortKey(update.key)} ${update.raw} x ${update.multiplier} = ${update.shares}${update.late ? ' late' : ''}`
    case 'multiplier':
      return `${update.phase} ${update.previous} to ${update.multiplier} by ${update.source}${update.late ? ' late' : ''}`
    case 'retract':
      return `retract ${shortKey(update.key)} ${update.reason} now ${JSON.stringify(update.restored)}`
    case 'amend':
      return `amend ${shortKey(update.key)} ${update.changed.join()}: ${'shares' in update.update ? update.update.multiplier : ''} ${'stage' in update.update ? update.update.stage : ''}`
    case 'seal':
      return `seal ${update.keys.map(shortKey).join()} as ${update.types.join()}`
    default:
      return update.type
  }
}
const shortKey = (key: string): string => key.replace(/-0x[0-9a-f]+-/, '/')

/** A reducer with a token of multiplier 1, listed once subscribed. Summarises what it publishes. */
export const openListed = async (source: 'pendingLogs' | 'poll' | 'sealed' = 'pendingLogs', subscribed = [subscribedEvent]) => {
  const openedTape = await openTestTape()
  onTestFinished(() => openedTape.close())
  const fixture = await openReducer(openedTape.tape)
  await fixture.publish(listEvent(apple()), ...subscribed, statusEvent(source))
  const publish = async (...batch: IngestEvent[]) => (await fixture.publish(...batch)).map(summarise)
  return { openedTape, ...fixture, publish }
}
/** The newest block, by its number, as it was asked for. */
export const headEvent = (block: number): IngestEvent => ({
  type: 'head',
  sealed: block,
  pending: null,
  timestamp: timestampOf(block),
})
/** Two answers that agree on the newest block. */
export const agreedHead = (block: number): readonly IngestEvent[] => [headEvent(block), headEvent(block)]

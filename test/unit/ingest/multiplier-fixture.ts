import { expect, onTestFinished } from 'vitest'
import type { Log } from '../../../src/chain/logs/log-schema.ts'
import type { Arrival } from '../../../src/ingest/reducer.ts'
import { Update } from '../../../src/protocol/updates.ts'
import type { Entry } from '../../../src/tape/tape.ts'
import { secondOf, txHash } from '../chain/node-json.ts'
import { openEmbedded } from '../tape/test-tape.ts'
import { apple } from '../tokens/stock-records.ts'
import { hearing, listed, restore, status } from './reducer-fixture.ts'
import { multiplied, multipliedOnce } from './token-logs.ts'

export const at = (block: number, index: number) => ({ block, index })
/** A two-for-one split at once, as the token says it: first in the old way, then in the new. */
export const split = (block: number, index: number): readonly [Log, Log] => {
  const tx = txHash(block, index)
  return [
    multipliedOnce({ block, index, tx }, '2'),
    multiplied({ block, index: index + 1, tx }, '1', '2', secondOf(block)),
  ]
}
export const iso = (second: number) => new Date(second * 1_000).toISOString()

/** What is told, in few words; everything that is told is checked against the contract first. */
export const short = ({ update, text }: Entry): string => {
  expect(JSON.stringify(Update.parse(JSON.parse(text)))).toBe(text)
  switch (update.type) {
    case 'transfer':
      return `${update.stage} ${place(update.key)} ${update.raw} x ${update.multiplier} = ${update.shares}${update.late ? ' late' : ''}`
    case 'multiplier':
      return `${update.phase} ${update.from} to ${update.to} by ${update.source}${update.late ? ' late' : ''}`
    case 'retract':
      return `retract ${place(update.key)} ${update.reason} now ${JSON.stringify(update.now)}`
    case 'amend':
      return `amend ${place(update.key)} ${update.changed.join()}: ${'multiplier' in update.update ? update.update.multiplier : ''} ${'stage' in update.update ? update.update.stage : ''}`
    case 'seal':
      return `seal ${update.keys.map(place).join()} as ${update.types.join()}`
    default:
      return update.type
  }
}
const place = (key: string): string => key.replace(/-0x[0-9a-f]+-/, '/')

/** A teller that has listed a token of the multiplier 1, or would if its logs were heard, and the short of what it tells. */
export const begin = async (source: 'pendingLogs' | 'poll' | 'sealed' = 'pendingLogs', heard = [hearing]) => {
  const embedded = await openEmbedded()
  onTestFinished(() => embedded.close())
  const house = await restore(embedded.tape)
  await house.tell(listed(apple()), ...heard, status(source))
  const tell = async (...turn: Arrival[]) => (await house.tell(...turn)).map(short)
  return { embedded, ...house, tell }
}
/** The newest block, by its number. */
export const head = (block: number): Arrival => ({
  type: 'head',
  sealed: block,
  pending: null,
  timestamp: secondOf(block),
})

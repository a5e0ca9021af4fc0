import { readTogether } from '../../../../src/chain/logs/fold-transaction.ts'
import { type Log, readLogs } from '../../../../src/chain/logs/log-schema.ts'
import type { Hex } from '../../../../src/protocol/fields.ts'
import { alice, bob, pendingLog, tesla, texts, txHash, word, words } from '../node-json.ts'
import { topicOf } from './standard-events.ts'

/** What one log holds; where it stands is known once it stands in a row with others. */
export type Word = { readonly topics: readonly Hex[]; readonly data: Hex; readonly address?: Hex; readonly tx?: number }

const said = (event: string, indexed: readonly Hex[], data: Hex): Word => ({
  topics: [topicOf(event), ...indexed],
  data,
})
export const transfer = (raw = 1, from = alice): Word => said('Transfer', [word(from), word(bob)], word(raw))
export const memo = (text: number): Word => said('Memo', [word(alice), word(text)], '0x')
export const seized = (raw = 1, from = alice): Word => said('Seized', [word(tesla), word(from), word(bob)], word(raw))
export const announced = (id: string): Word => said('Announcement', [word(alice)], texts(id, 'a split', ''))
export const ended = (id: string): Word => said('EndAnnouncement', [], texts(id))
export const once = (to: number): Word => said('MultiplierUpdated', [], word(to))
export const multiplied = (to: number): Word => said('UIMultiplierUpdated', [], words(1, to, 9))
export const cancelled: Word = said('UIMultiplierUpdateCancelled', [], words(7, 9))
export const paused: Word = said('Paused', [word(alice)], words(0x20, 1, 0))
export const gap: Word = { topics: [], data: '0x', address: `0x${'99'.repeat(20)}`, tx: 99 }

export const of = (address: Hex, one: Word): Word => ({ ...one, address })
export const inTx = (tx: number, one: Word): Word => ({ ...one, tx })

/** These logs in a row, as one block holds them. */
export const logsOf = (some: readonly Word[]): readonly Log[] =>
  readLogs(
    some.map(({ tx = 0, ...held }, index) => ({
      ...pendingLog({ block: 5, index }),
      transactionHash: txHash(5, tx),
      ...held,
    })),
  ).logs

/** What is said, each by its place, and the places of what is only part of it. */
export const tell = (...some: readonly Word[]) => {
  const logs = logsOf(some).filter(({ topics }) => topics.length > 0)
  const { sayings, parts } = readTogether(logs)
  const place = (key: string) => Number(key.split('-')[2])
  return {
    sayings: sayings.map(({ log, said: { event }, memo: text, seized: taken, inside, closed }) =>
      [
        `${log.logIndex} ${event}`,
        ...(text ? [`memo ${Number(text)}`] : []),
        ...(taken ? ['seized'] : []),
        ...(closed ? [`closed around ${inside.map(place)}`] : []),
      ].join(', '),
    ),
    parts: parts.map(({ logIndex }) => logIndex),
  }
}

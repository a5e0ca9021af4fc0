import type { Hex } from '../../../../../src/lib/hex.ts'
import type { DecodedLog } from '../../../../../src/relay/chain/logs/fold-logs.ts'
import { LogMemory } from '../../../../../src/relay/chain/logs/log-memory.ts'
import { type Log, parseLogs } from '../../../../../src/relay/chain/logs/log-parser.ts'
import { alice, blockHash, bob, pendingLog, stringData, tesla, txHash, word, words } from '../node-json.ts'
import { topicOf } from './standard-events.ts'

/** The content of a log; its position follows from the list that it is in. */
export type LogContent = { readonly topics: readonly Hex[]; readonly data: Hex; readonly address?: Hex; readonly tx?: number }

const eventContent = (event: string, indexed: readonly Hex[], data: Hex): LogContent => ({
  topics: [topicOf(event), ...indexed],
  data,
})
export const transfer = (raw = 1, from = alice): LogContent => eventContent('Transfer', [word(from), word(bob)], word(raw))
export const memo = (text: number): LogContent => eventContent('Memo', [word(alice), word(text)], '0x')
export const seized = (raw = 1, from = alice): LogContent => eventContent('Seized', [word(tesla), word(from), word(bob)], word(raw))
export const announcement = (id: string): LogContent => eventContent('Announcement', [word(alice)], stringData(id, 'a split', ''))
export const endAnnouncement = (id: string): LogContent => eventContent('EndAnnouncement', [], stringData(id))
export const multiplierUpdated = (to: number): LogContent => eventContent('MultiplierUpdated', [], word(to))
/** In effect since second 9, unless it is a schedule. */
export const uiMultiplierUpdated = (to: number, effectiveAt = 9): LogContent =>
  eventContent('UIMultiplierUpdated', [], words(1, to, effectiveAt))
export const uiMultiplierUpdateCancelled: LogContent = eventContent('UIMultiplierUpdateCancelled', [], words(7, 9))
export const paused: LogContent = eventContent('Paused', [word(alice)], words(0x20, 1, 0))
export const filler: LogContent = { topics: [], data: '0x', address: `0x${'99'.repeat(20)}`, tx: 99 }

export const atAddress = (address: Hex, content: LogContent): LogContent => ({ ...content, address })
export const inTx = (tx: number, content: LogContent): LogContent => ({ ...content, tx })

/** These logs in a row, as in one block. */
export const buildLogs = (contents: readonly LogContent[]): readonly Log[] =>
  parseLogs(
    contents.map(({ tx = 0, ...content }, index) => ({
      ...pendingLog({ block: 5, index }),
      transactionHash: txHash(5, tx),
      ...content,
    })),
  ).logs

/** Folds the logs of one sealed block. */
export const decodeLogs = (logs: readonly Log[]) =>
  new LogMemory().foldBlock({ number: 5, hash: blockHash(5), timestamp: null, logs })

/** The decoded logs with their log indexes. */
export const foldLogs = (...contents: readonly LogContent[]): readonly string[] => {
  const logs = buildLogs(contents).filter(({ topics }) => topics.length > 0)
  return decodeLogs(logs).decodedLogs.map(describeLog)
}

/** What a log means, in words. */
export const describeLog = ({ log, decoded: { event }, memo: text, isSeized, enclosedKeys, isClosed }: DecodedLog): string =>
  [
    `${log.logIndex} ${event}`,
    ...(text ? [`memo ${Number(text)}`] : []),
    ...(isSeized ? ['seized'] : []),
    ...(isClosed ? [`closed around ${enclosedKeys.map((key) => Number(key.split('-')[2]))}`] : []),
  ].join(', ')

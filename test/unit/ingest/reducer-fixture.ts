import { type Log, readLogs } from '../../../src/chain/logs/log-schema.ts'
import type { SealedBlock } from '../../../src/chain/sealed/block-logs.ts'
import type { ChainEvent } from '../../../src/chain/source/source.ts'
import { type IngestEvent, Reducer } from '../../../src/ingest/reducer.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import type { Update } from '../../../src/protocol/updates.ts'
import type { SearchableTape } from '../../../src/tape/tape.ts'
import type { FeedSetting } from '../../../src/tokens/price-feeds.ts'
import { blockHash, pendingLog, timestampOf } from '../chain/node-json.ts'
import { APPLE, NOON, parsedList, type StockRecord, TESLA } from '../tokens/stock-records.ts'

export type LogPosition = {
  readonly block: number
  readonly index?: number
  readonly address?: Hex
  readonly raw?: bigint
  /** The transaction, if it is not the default of the position. */
  readonly tx?: Hex
}

const readLog = (nodeLog: Record<string, unknown>): Log => {
  const [log] = readLogs(nodeLog).logs
  if (!log) throw new Error('no log')
  return log
}

/** A pre-confirmed log as a node sends it. */
export const logAt = ({ tx, address = APPLE as Hex, ...position }: LogPosition): Log => {
  const nodeLog = pendingLog({ ...position, address })
  return readLog(tx ? { ...nodeLog, transactionHash: tx } : nodeLog)
}

/** A pre-confirmed log as the reducer receives it. */
export const pendingLogEvent = (
  position: LogPosition,
  { via = 'pendingLogs', ...overrides }: { via?: 'pendingLogs' | 'poll' } & Partial<Log> = {},
): Extract<IngestEvent, { type: 'transaction' }> => transactionEvent([{ ...logAt(position), ...overrides }], via)

/** The same log as it comes from the source. */
export const sourceLogEvent = (position: LogPosition): Extract<ChainEvent, { type: 'logs' }> => ({
  type: 'logs',
  logs: [logAt(position)],
  via: 'pendingLogs',
  receivedAt: NOON,
})

/** Pre-confirmed logs of one transaction that arrive together. */
export const transactionEvent = (
  logs: readonly Log[],
  via: 'pendingLogs' | 'poll' = 'pendingLogs',
): Extract<IngestEvent, { type: 'transaction' }> => ({
  type: 'transaction',
  logs: logs.map((log) => ({ log, via, receivedAt: NOON })),
})

type SealedEventOptions = Partial<Pick<SealedBlock, 'hash' | 'addresses' | 'via' | 'timestamp'>> & {
  readonly newest?: number
  readonly cursor?: number
}

/** A sealed block with these logs and no others of its addresses. */
export const sealedEvent = (
  number: number,
  positions: readonly Omit<LogPosition, 'block'>[],
  {
    hash = blockHash(number),
    addresses = [APPLE as Hex, TESLA as Hex],
    via = 'sealed',
    timestamp = timestampOf(number),
    newest = number,
    cursor = number,
  }: SealedEventOptions = {},
): Extract<ChainEvent, { type: 'sealed' }> => {
  const logs = positions.map((position) => logAt({ ...position, block: number }))
  return sealedEventOfLogs(number, logs, { hash, addresses, via, timestamp, newest, cursor })
}

export const sealedEventOfLogs = (
  number: number,
  logs: readonly Log[],
  {
    hash = blockHash(number),
    addresses = [APPLE as Hex, TESLA as Hex],
    via = 'sealed',
    timestamp = timestampOf(number),
    newest = number,
    cursor = number,
  }: SealedEventOptions = {},
): Extract<ChainEvent, { type: 'sealed' }> => {
  const block: SealedBlock = { number, hash, timestamp, logs: logs.map((log) => ({ ...log, blockHash: hash })), addresses, via }
  return { type: 'sealed', blocks: [block], newest, cursor: { number: cursor, hash: cursor === number ? hash : null } }
}

export const listEvent = (...records: readonly StockRecord[]): IngestEvent => ({ type: 'list', tokens: parsedList(...records) })
export const subscribedEvent: IngestEvent = { type: 'subscribed', addresses: [APPLE as Hex, TESLA as Hex] }
export const statusEvent = (source: 'pendingLogs' | 'poll' | 'sealed' | 'down'): IngestEvent => ({
  type: 'status',
  source,
  reason: source === 'sealed' ? 'no_pending' : source === 'down' ? 'unreachable' : 'ok',
})

/** A reducer restored from a tape, and its counters. */
export const openReducer = async (tape: SearchableTape, clock = { now: NOON }, feeds: readonly FeedSetting[] = []) => {
  const counts = { repeated: 0, foreign: 0, unreadable: 0 }
  const reducer = await Reducer.restore({
    tape,
    staleMs: 93_600_000,
    feeds,
    now: () => clock.now,
    count: {
      repeated: () => {
        counts.repeated += 1
      },
      unlisted: () => {
        counts.foreign += 1
      },
      unreadable: (n) => {
        counts.unreadable += n
      },
    },
  })
  const publish = async (...batch: readonly IngestEvent[]) => {
    const { drafts, notes } = reducer.reduce(batch)
    return tape.append(drafts, notes)
  }
  return { reducer, counts, publish, clock }
}

export const readUpdates = async (tape: SearchableTape): Promise<readonly Update[]> =>
  (await tape.readAfter(0, 100_000)).map(({ update }) => update)

/** The published keys in order, each as often as it was published. */
export const publishedKeys = async (tape: SearchableTape): Promise<readonly string[]> =>
  (await readUpdates(tape)).flatMap((update) => ('key' in update && 'stage' in update && update.key ? [update.key] : []))

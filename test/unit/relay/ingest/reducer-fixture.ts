import type { Hex } from '../../../../src/lib/hex.ts'
import type { Update } from '../../../../src/protocol/updates.ts'
import { LogMemory } from '../../../../src/relay/chain/logs/log-memory.ts'
import { type Log, parseLogs } from '../../../../src/relay/chain/logs/log-parser.ts'
import type { SealedBlock } from '../../../../src/relay/chain/sealed/settlement-types.ts'
import type { ChainEvent } from '../../../../src/relay/chain/source/source.ts'
import type { FeedSetting } from '../../../../src/relay/config/feed-settings.ts'
import { foldBatch, type IngestEvent } from '../../../../src/relay/ingest/fold-batch.ts'
import { type LogCounts, type Reduction, reduce } from '../../../../src/relay/ingest/reduce.ts'
import { restoreState } from '../../../../src/relay/ingest/restore-state.ts'
import type { SearchableTape } from '../../../../src/relay/tape/tape.ts'
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
  const [log] = parseLogs(nodeLog).logs
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
): Extract<ChainEvent, { type: 'logs' }> => transactionEvent([{ ...logAt(position), ...overrides }], via)

/** Pre-confirmed logs that arrive together. */
export const transactionEvent = (
  logs: readonly Log[],
  via: 'pendingLogs' | 'poll' = 'pendingLogs',
): Extract<ChainEvent, { type: 'logs' }> => ({ type: 'logs', logs, via, receivedAt: NOON })

type SealedEventOptions = Partial<Pick<SealedBlock, 'hash' | 'addresses' | 'via' | 'timestamp'>> & {
  readonly newest?: number
  readonly cursor?: number
  readonly restartCursor?: number
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
    restartCursor = cursor,
  }: SealedEventOptions = {},
): Extract<ChainEvent, { type: 'sealed' }> => {
  const logs = positions.map((position) => logAt({ ...position, block: number }))
  return sealedEventOfLogs(number, logs, { hash, addresses, via, timestamp, newest, cursor, restartCursor })
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
    restartCursor = cursor,
  }: SealedEventOptions = {},
): Extract<ChainEvent, { type: 'sealed' }> => {
  const block: SealedBlock = { number, hash, timestamp, logs: logs.map((log) => ({ ...log, blockHash: hash })), addresses, via }
  const cursorAt = (at: number) => ({ number: at, hash: at === number ? hash : null })
  return { type: 'sealed', blocks: [block], newest, cursor: cursorAt(cursor), restartCursor: cursorAt(restartCursor) }
}

/** A sealed block that has more logs than these, which cannot be read. */
export const partialEventOfLogs = (...[number, logs, options]: Parameters<typeof sealedEventOfLogs>) => {
  const event = sealedEventOfLogs(number, logs, options)
  return { ...event, blocks: event.blocks.map((block) => ({ ...block, isPartial: true as const })) }
}

/** Blocks that cannot be read. All before the block after `cursor` are settled. */
export const holeEvent = (from: number, to: number, cursor = to): Extract<ChainEvent, { type: 'hole' }> => ({
  type: 'hole',
  blocks: { from, to },
  reason: 'pruned',
  cursor: { number: cursor, hash: null },
  restartCursor: { number: cursor, hash: null },
})

export const listEvent = (...records: readonly StockRecord[]): IngestEvent => ({ type: 'list', tokens: parsedList(...records) })
export const subscribedEvent: IngestEvent = { type: 'subscribed', addresses: [APPLE as Hex, TESLA as Hex] }
export const statusEvent = (source: 'pendingLogs' | 'poll' | 'sealed' | 'down'): IngestEvent => ({
  type: 'status',
  source,
  reason: source === 'sealed' ? 'no_pending' : source === 'down' ? 'unreachable' : 'ok',
})

/** A small batch is reduced in one part. */
const reduceAtOnce = (...batch: Parameters<typeof reduce>): Reduction => {
  const { done, value } = reduce(...batch).next()
  if (!done) throw new Error('the batch is reduced in parts')
  return value
}

/** The state restored from a tape, what is published from it, and what is counted. */
export const openReducer = async (
  tape: SearchableTape,
  clock = { now: NOON },
  feeds: readonly FeedSetting[] = [],
  worth: Partial<Pick<Parameters<typeof restoreState>[1], 'quotes' | 'hasRegistry' | 'sessionAt'>> = {},
) => {
  const counts = { repeated: 0, unlisted: 0, unreadable: 0 }
  const state = await restoreState(tape, {
    ...{
      navStaleAfterMs: 93_600_000,
      feeds,
      quotes: { pools: [], poolMinDepth: { units: 1_000n, scale: 0 } },
      hasRegistry: true,
      sessionAt: null,
    },
    ...worth,
  })
  const memory = new LogMemory()
  const reduceEvents = (...events: readonly IngestEvent[]) => {
    const reduction = reduceAtOnce(state, foldBatch({ at: clock.now, wallTime: clock.now, events }, memory))
    for (const name of ['repeated', 'unlisted', 'unreadable'] satisfies (keyof LogCounts)[]) counts[name] += reduction.counts[name]
    return reduction
  }
  const publish = async (...batch: readonly IngestEvent[]) => {
    const { updates, notes, keepAfter } = reduceEvents(...batch)
    return tape.append(updates, notes, keepAfter)
  }
  /** Writes the first parts of a large block, as the pipeline does. Returns how many updates each has. */
  const publishParts = async (bound: number, ...events: readonly IngestEvent[]) => {
    const steps = reduce(state, foldBatch({ at: clock.now, wallTime: clock.now, events }, memory))
    const sizes: number[] = []
    for (let done: boolean | undefined = false; !done && sizes.length < bound; ) {
      const step = steps.next()
      const { updates, notes, keepAfter } = step.value
      await tape.append(updates, notes, keepAfter)
      if (updates.length > 0) sizes.push(updates.length)
      done = step.done
    }
    return sizes
  }
  return { state, counts, reduceEvents, publish, publishParts, clock }
}

export const readUpdates = async (tape: SearchableTape): Promise<readonly Update[]> =>
  (await tape.readAfter(0, 100_000)).map(({ update }) => update)

/** The published keys in order, each as often as it was published. */
export const publishedKeys = async (tape: SearchableTape): Promise<readonly string[]> =>
  (await readUpdates(tape)).flatMap((update) => ('key' in update && 'stage' in update && update.key ? [update.key] : []))
